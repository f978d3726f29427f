"""What nobody knows (§10): it does not leak, it is redrawn from the true distribution, and setups are uniform (§2).

All seeds are fixed, so the statistical tests either hold for good or fail for good.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from helpers import CODE, GOLD, RUBY, TEXT, Table, all_pieces, number, public_part, share_small_batches
from montecristo_env import GameBatch, GameRecord, IllegalAction, Lane, Ruleset
from montecristo_env.agent import PublicView
from montecristo_env.core import batch
from montecristo_env.core.chance import one_way
from montecristo_env.core.constants import NONE
from montecristo_env.core.jit import INTERPRETED
from montecristo_env.core.layout import HIDDEN_FIELDS, STATE
from montecristo_env.ruleset import VARIANTS

pytestmark = pytest.mark.engine
interpreted = pytest.mark.interpreted

LEAST_P = 1e-4  # the tests below make some hundred comparisons
FEW = 3 if INTERPRETED else 40
ALL_VARIANTS = Ruleset(**{name: values[-1] for name, values in VARIANTS.items()})  # §1.10


def middle_games(num_games: int, seed: int = 0) -> list[GameBatch]:
    """Batches at many stages, by both sets of rules; the piles of stalled ones were shuffled more than once."""
    batches = []
    for ruleset in (Ruleset(), ALL_VARIANTS):
        for steps in (0, 7, 40, 90, 150, 260):
            games = GameBatch(num_games, np.resize([2, 3, 4], num_games), seed + steps, ruleset)
            games.play_random(steps)
            batches.append(games)
        stalled = GameBatch(num_games, np.resize([4, 2, 3], num_games), seed, ruleset)
        rng = np.random.default_rng(seed)
        for _ in range(60 if INTERPRETED else 500):
            stalled.step([stall(mask, rng) for mask in stalled.action_mask()])
        batches.append(stalled)
    return batches


def stall(mask: NDArray[np.int8], rng: np.random.Generator) -> int:
    """Takes wild bags and keeps them."""
    codes = np.flatnonzero(mask)
    if codes.size == 0:
        return NONE
    for wanted in ("visit wild", "stop taking"):
        if mask[CODE[wanted]]:
            return CODE[wanted]
    return int(rng.choice([code for code in codes if TEXT[code] not in ("return chest", "discard W")]))


# --- Nothing hidden leaks --------------------------------------------------------------------------------------------


def assert_nobody_sees_a_difference(games: GameBatch, others: GameBatch) -> None:
    assert games.action_mask().tobytes() == others.action_mask().tobytes()
    assert games.observe().tobytes() == others.observe().tobytes()
    for n in (2, 3, 4):
        rows = np.flatnonzero(games.num_players == n)
        for seat in range(n):
            seen = games.observe(player=seat, rows=rows)
            assert seen.tobytes() == others.observe(player=seat, rows=rows).tobytes()
    for game in range(len(games)):
        assert games.public_state(game) == others.public_state(game)


@interpreted
def test_games_that_differ_only_in_what_is_hidden_look_the_same_to_everybody() -> None:
    """§10.2."""
    rng = np.random.default_rng(1)
    for games in middle_games(FEW):
        others = games.resample_hidden(rng)
        assert (games.states["slot_card"] != others.states["slot_card"]).any()
        assert (games.states["bag_order"] != others.states["bag_order"]).any()
        assert_nobody_sees_a_difference(games, others)


@interpreted
def test_they_look_the_same_until_the_next_draw() -> None:
    """§10.2: the same actions lead to the same sights as long as nothing is drawn face up."""
    rng = np.random.default_rng(2)
    followed = 0
    for games in middle_games(FEW, seed=5):
        others = games.resample_hidden(rng)
        rows = np.flatnonzero(~games.over)
        for _ in range(30):
            before = drawn_so_far(games, rows)
            acts = games.sample_actions(rows=rows)
            games.step(acts, rows=rows)
            others.step(acts, rows=rows)
            rows = rows[(drawn_so_far(games, rows) == before) & ~games.over[rows]]
            if rows.size == 0:
                break
            np.testing.assert_array_equal(public_part(games.states[rows]), public_part(others.states[rows]))
            assert_nobody_sees_a_difference(games[rows], others[rows])
            followed += rows.size
    assert followed > 15 * FEW


@interpreted
def test_an_action_draws_where_redrawing_changes_what_all_see_next_and_nowhere_else() -> None:
    """All legal actions, each in several redrawn games: without a draw the public part of the next row is the same."""
    rng = np.random.default_rng(4)
    redraws = 3 if INTERPRETED else 8
    drawn = differing = still = 0
    for games in middle_games(FEW, seed=9):
        masks = games.action_mask()
        rows, acts = np.nonzero(masks)
        tried = games[rows]
        before = tried.states.tobytes()
        draws = tried.draws(acts)
        assert tried.states.tobytes() == before
        first = tried.resample_hidden(rng)
        first.step(acts)
        differs = np.zeros(rows.size, np.bool_)
        for _ in range(redraws):
            other = tried.resample_hidden(rng)
            np.testing.assert_array_equal(other.draws(acts), draws)
            other.step(acts)
            differs |= (public_part(other.states) != public_part(first.states)).any(axis=1)
        assert not differs[~draws].any()
        certain = games.states["pile_size"][rows] <= games.num_players[rows]  # the whole pile may come, in any order
        drawn, differing = drawn + (draws & ~certain).sum(), differing + (differs & ~certain).sum()
        still += (~draws).sum()
    assert drawn >= FEW and still > 30 * FEW
    assert differing > 0.95 * drawn


@interpreted
def test_draws_are_found_in_chosen_rows_and_by_threads_and_illegal_actions_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    games = GameBatch(64 if INTERPRETED else 1024, 3, seed=1)
    games.play_random(60)
    acts = games.sample_actions()
    alone = np.concatenate([games.draws(acts[[row]], [row]) for row in range(len(games))])
    calls = share_small_batches(monkeypatch, 16)
    shared = games.copy()
    np.testing.assert_array_equal(shared.draws(acts), alone)
    assert INTERPRETED or calls
    rows = np.flatnonzero(~games.over)[1::3]
    np.testing.assert_array_equal(games.draws(acts[rows], rows), alone[rows])
    assert alone.any() and not alone[games.over].any()
    wrong = acts.copy()
    wrong[rows[-1]] = games.action_mask(rows=rows[-1:])[0].argmin()
    with pytest.raises(IllegalAction, match=rf"game {rows[-1]}: .* may not"):
        games.draws(wrong)


def drawn_so_far(games: GameBatch, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Grows with every face-up card and every chest."""
    states = games.states[rows]
    face_up = 30 - states["pile_size"] - states["wilds"].sum(axis=1) + 100 * states["shuffles"]
    return np.asarray(face_up + 10_000 * (30 - states["bag_size"] + 100 * states["refills"].astype(np.int64)))


@interpreted
def test_hidden_fields_are_those_that_redrawing_changes_and_nothing_else() -> None:
    changed: set[str] = set()
    rng = np.random.default_rng(3)
    for games in middle_games(FEW):
        others = games.resample_hidden(rng)
        names = STATE.names or ()
        changed |= {name for name in names if games.states[name].tobytes() != others.states[name].tobytes()}
    assert changed <= set(HIDDEN_FIELDS)
    assert {"seed", "cards_key", "tokens_key", "slot_card", "bag_order"} <= changed


@interpreted
def test_rows_for_agents_hold_everything_public_and_zeros_for_what_is_hidden() -> None:
    for games in middle_games(FEW):
        rows = np.arange(1, len(games), 3)
        copies = PublicView(games).public_rows(rows)
        np.testing.assert_array_equal(public_part(copies), public_part(games.states[rows]))
        for name in set(HIDDEN_FIELDS) - {"bytes"}:
            assert not copies[name].any(), name


@interpreted
def test_keys_for_agents_come_from_the_stream_of_random_play_and_change_nothing_else() -> None:
    games = GameBatch(FEW, 3, seed=0)
    before = games.copy()
    keys = PublicView(games).random_keys()
    assert np.unique(keys).size == FEW
    assert (PublicView(games).random_keys() != keys).all()
    assert (before.random_keys([0, 2]) == keys[[0, 2]]).all()
    assert games.resample_hidden(keys).states.tobytes() == games.resample_hidden(keys).states.tobytes()
    games.states["play_key"] = before.states["play_key"]
    assert games.states.tobytes() == before.states.tobytes()


WORD = 2**64
GOLDEN, MIX_1, MIX_2 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB  # of SplitMix64


def unmixed(x: int) -> int:
    """What `chance.mix` has made x of."""
    for shift, factor in ((31, MIX_2), (27, MIX_1), (30, 1)):
        y = x
        for _ in range(64 // shift):
            y = x ^ (y >> shift)
        x = y * pow(factor, -1, WORD) % WORD
    return x


@interpreted
def test_keys_for_agents_do_not_lead_back_to_the_seed() -> None:
    """All steps from the seed to the stream of random play can be undone; from there to a key, none can."""
    games = GameBatch(FEW, 3, seed=0)
    stream_of_play = 3
    for game in range(FEW):
        seed = (unmixed(int(games.states["play_key"][game])) - GOLDEN * (stream_of_play + 1)) % WORD
        assert seed == games.seeds[game]  # so the stream itself would tell
    found = []
    for draw in range(1, 4):
        for key in PublicView(games).random_keys().tolist():
            for undone in (key, unmixed(key)):
                play_key = (undone - GOLDEN * draw) % WORD
                found.append((unmixed(play_key) - GOLDEN * (stream_of_play + 1)) % WORD)
    assert not set(found) & set(games.seeds.tolist())


@interpreted
def test_the_one_way_function_is_siphash() -> None:
    """The first test vector of its authors: key 00 01 … 0f, no message."""
    words = np.array([0x0706050403020100, 0x0F0E0D0C0B0A0908], np.uint64)
    numba = pytest.importorskip("numba", reason="Python calls a kernel by it")
    call: Callable[..., int] = numba.njit(lambda key, other: one_way(key, other))  # Python itself cannot call a kernel
    assert int(call(*words)) == 0x726FDB47DD0E0E31


@interpreted
def test_redrawing_keeps_everything_public_and_every_invariant_and_the_original() -> None:
    """§10.1."""
    rng = np.random.default_rng(4)
    for games in middle_games(FEW):
        before = games.states.tobytes()
        others = games.resample_hidden(rng)
        assert games.states.tobytes() == before
        np.testing.assert_array_equal(public_part(games.states), public_part(others.states))
        assert others.violations() == {}
        again = games.resample_hidden(np.random.default_rng(7))
        assert again.states.tobytes() == games.resample_hidden(np.random.default_rng(7)).states.tobytes()
        others.play_random(30)
        assert others.violations() == {}


@interpreted
def test_redrawing_permutes_cards_only_within_a_shuffle() -> None:
    """§10.1: of each shuffle, the unseen cards are the same before and after; its own pile never holds others."""
    rng = np.random.default_rng(5)
    several = 0
    for games in middle_games(FEW):
        others = games.resample_hidden(rng)
        for row, other in zip(games.states, others.states, strict=True):
            tags = set(row["slot_shuffle"].tolist()) - {NONE}
            several += len(tags) > 1
            for tag in tags:
                slots = row["slot_shuffle"] == tag
                assert sorted(row["slot_card"][slots]) == sorted(other["slot_card"][slots])
            size = row["bag_size"]
            assert sorted(row["bag_order"][:size]) == sorted(other["bag_order"][:size])
    assert INTERPRETED or several >= 10


# --- Two shuffles at once --------------------------------------------------------------------------------------------


def held_over(*wilds: tuple[int, tuple[int, int]]) -> Table:
    """All cards but these wild bags were seen; then the discards are shuffled for a wild bag of player 0."""
    table = Table(2)
    cards = all_pieces(table.games.ruleset.deck)
    for player, card in wilds:
        table.give_wild(player, card)
        cards.remove(card)
    table.discard(*cards)
    table.lanes([1, 0, 1], [0, 1, 0], [1, 0, 1], [0, 1, 0])
    table.begin(Lane.ADVENTURERS)
    table.play("visit wild")
    return table


@interpreted
def test_a_single_wild_bag_held_over_a_reshuffle_is_known_to_all() -> None:
    """§10.1: it is in none of the cards seen before, so no redrawing changes it."""
    table = held_over((1, (RUBY, 3)))
    assert table.row["shuffles"] == 2 and table.state["wilds"] == [1, 1]
    many = table.games[np.zeros(FEW * 10, np.int64)].resample_hidden(np.random.default_rng(0))
    old = many.states["slot_card"][np.arange(len(many)), many.states["wild_slots"][:, 1, 0]]
    new = many.states["slot_card"][np.arange(len(many)), many.states["wild_slots"][:, 0, 0]]
    assert (old == number((RUBY, 3))).all()
    assert np.unique(new).size > 5  # the new one may be anything else


def test_two_wild_bags_held_over_a_reshuffle_are_known_as_a_pair() -> None:
    """§10.1: which is which is even; neither is mistaken for a card of the new pile."""
    table = held_over((0, (RUBY, 3)), (1, (GOLD, 1)))
    many = table.games[np.zeros(4000, np.int64)].resample_hidden(np.random.default_rng(0))
    cards = many.states["slot_card"]
    rows = np.arange(len(many))
    of_0 = cards[rows, many.states["wild_slots"][:, 0, 0]]
    of_1 = cards[rows, many.states["wild_slots"][:, 1, 0]]
    assert set(zip(of_0.tolist(), of_1.tolist(), strict=True)) == {
        (number((RUBY, 3)), number((GOLD, 1))),
        (number((GOLD, 1)), number((RUBY, 3))),
    }
    assert stats.binomtest(int((of_0 == number((GOLD, 1))).sum()), 4000).pvalue > LEAST_P
    # The newer wild bag and the new pile: 28 cards, of which each place is equally likely to hold either copy.
    newer = cards[rows, many.states["wild_slots"][:, 0, 1]]
    expected = np.full(15, 2)
    expected[[number((RUBY, 3)), number((GOLD, 1))]] = 1
    assert chi_square(np.bincount(newer, minlength=15), expected / 28) > LEAST_P


@interpreted
def test_a_wild_bag_returned_under_the_pile_stays_of_its_shuffle() -> None:
    """§4.6, §10.1: the known wild bag lies under the new pile, and is known there too."""
    table = held_over((0, (RUBY, 3)))
    slot = table.row["wild_slots"][0, 0]
    while table.state["phase"] == "place":
        table.play("stop placing")
    table.give_any(0, 5)
    table.lanes([1, 0, 1], [0, 1, 0], [1, 0, 1], [0, 1, 0])
    table.draw_next(*table.pile_cards()[:2])
    table.begin(Lane.SUPPLY)
    while table.state["phase"] == "deal":
        table.play(table.legal[0])
    assert table.state["phase"] == "discard"
    table.play("discard W")
    assert table.pile()[-1] == slot
    many = table.games[np.zeros(FEW * 10, np.int64)].resample_hidden(np.random.default_rng(0))
    assert (many.states["slot_card"][:, slot] == number((RUBY, 3))).all()


# --- Redrawing against rejection sampling ----------------------------------------------------------------------------


def chi_square(counts: NDArray[np.int64], probabilities: NDArray[np.float64]) -> float:
    """The p-value of these counts; what has no probability must not occur."""
    possible = probabilities > 0
    assert counts[~possible].sum() == 0
    expected = probabilities[possible] / probabilities.sum() * counts.sum()
    assert expected.min() >= 4, "too few samples for a chi-square test"
    return float(stats.chisquare(counts[possible], expected).pvalue)


def same_distribution(some: list[tuple[int, ...]], others: list[tuple[int, ...]]) -> float:
    """The p-value of two samples having come from one distribution; rare outcomes are taken together."""
    counts = [Counter(some), Counter(others)]
    outcomes = set(counts[0]) | set(counts[1])
    common = [outcome for outcome in sorted(outcomes) if min(count[outcome] for count in counts) >= 5]
    table = [[count[outcome] for outcome in common] for count in counts]
    for row, count in zip(table, counts, strict=True):
        row.append(count.total() - sum(row))
    if not any(row[-1] for row in table):
        table = [row[:-1] for row in table]
    return float(stats.chi2_contingency(table).pvalue) if len(table[0]) > 1 else 1.0


def deals(num_games: int, ruleset: Ruleset, seed: int) -> GameBatch:
    """Games of two players that share everything but the shuffles of their cards, up to the first real choice."""
    games = GameBatch(num_games, 2, seed=seed, ruleset=ruleset)
    laid_out = GameBatch(1, 2, seed=seed, ruleset=ruleset).states
    batch.lay_out(laid_out, 0, np.uint64(seed))
    for row in range(num_games):
        batch.lay_out(games.states, row, games.seeds[row])
    cards = {name: games.states[name].copy() for name in ("slot_card", "cards_key")}
    games.states[:] = laid_out[0]
    for name, own in cards.items():
        games.states[name] = own
    for row in range(num_games):
        batch.proceed(games.states, row, NONE)
        while (legal := int(games.states["legal"][row])).bit_count() == 1:  # §11.4
            batch.proceed(games.states, row, legal.bit_length() - 1)
    assert games.violations() == {}
    return games


def play_alike(games: GameBatch, policy: Callable[[dict[str, object], list[str]], str], stop: int) -> GameBatch:
    """Plays decisions of the first game, by public knowledge only; keeps the games with the same history."""
    for _ in range(stop):
        public = public_part(games.states)
        games = games[np.flatnonzero((public == public[0]).all(axis=1))]
        legal = [str(action) for action in games.legal_actions(0)]
        games.step(np.full(len(games), CODE[policy(games.public_state(0), legal)]))
    public = public_part(games.states)
    return games[np.flatnonzero((public == public[0]).all(axis=1))]


def hidden_cards(games: GameBatch, from_pile: int) -> list[tuple[int, ...]]:
    """The cards behind all wild bags, and the next ones of the pile."""
    first = games.states[0]
    slots = [slot for row in first["wild_slots"] for slot in row if slot != NONE]
    slots += [first["pile"][(first["pile_top"] + i) % 32] for i in range(from_pile)]
    return [tuple(row) for row in games.states["slot_card"][:, slots].tolist()]


def collect_wilds(state: dict[str, object], legal: list[str]) -> str:
    """Everybody takes one wild bag and keeps it; nobody enters a dungeon."""
    wilds: list[int] = state["wilds"]  # type: ignore[assignment]
    if "visit wild" in legal and wilds[state["current_player"]] == 0:  # type: ignore[index]
        return "visit wild"
    for move in ("stop placing", "stop taking", "keep order"):
        if move in legal:
            return move
    return next(move for move in legal if move != "discard W")


def test_redrawing_agrees_with_rejection_sampling_of_fresh_deals() -> None:
    """§10.1: three sorts of cards, two wild bags taken, several deals seen: what may they and the next card be?"""
    ruleset = Ruleset(deck=((10, 0, 0), (10, 0, 0), (10, 0, 0), (0, 0, 0), (0, 0, 0)))
    games = deals(120_000, ruleset, seed=11)
    alike = play_alike(games, collect_wilds, stop=16)
    assert alike.states["wilds"][0].sum() == 2 and alike.states["shuffles"][0] == 1
    assert len(alike) > 400
    redrawn = alike[np.zeros(20_000, np.int64)].resample_hidden(np.random.default_rng(0))
    assert same_distribution(hidden_cards(alike, 1), hidden_cards(redrawn, 1)) > LEAST_P
    left = alike.states["unseen_cards"][0].astype(float)
    for place in range(3):
        shares = np.bincount([cards[place] for cards in hidden_cards(redrawn, 1)], minlength=15)
        assert chi_square(shares, left) > LEAST_P


def test_redrawing_agrees_with_rejection_sampling_across_a_reshuffle() -> None:
    """§10.1: an odd card was not seen before the reshuffle, so it is one of the two wild bags and nothing else."""
    ruleset = Ruleset(deck=((29, 0, 0), (0, 1, 0), (0, 0, 0), (0, 0, 0), (0, 0, 0)), target=10_000)
    usual, odd = number((GOLD, 1)), number((RUBY, 2))
    games = deals(6_000, ruleset, seed=3)
    given = games.states[0]
    wild = int(steps_until(games[0], lambda one: one.states["wilds"].any())[1].states["wild_slots"].max())
    given["slot_card"][given["slot_card"] == odd] = usual  # the first game is one of those that we look for
    given["slot_card"][wild] = odd
    assert games.violations() == {}

    stop, _ = steps_until(games[0], lambda one: one.states["shuffles"][0] == 2)
    alike = play_alike(games, collect_wilds, stop)
    assert 200 < len(alike) < 1000  # about 2 of 30
    redrawn = alike[np.zeros(4000, np.int64)].resample_hidden(np.random.default_rng(0))
    for sample in (alike, redrawn):
        assert set(hidden_cards(sample, from_pile=2)) == {(odd, usual, usual, usual), (usual, odd, usual, usual)}
    assert same_distribution(hidden_cards(alike, 0), hidden_cards(redrawn, 0)) > LEAST_P
    assert stats.binomtest(sum(cards[0] == odd for cards in hidden_cards(redrawn, 0)), 4000).pvalue > LEAST_P


def steps_until(game: GameBatch, reached: Callable[[GameBatch], bool]) -> tuple[int, GameBatch]:
    """How many decisions of one game it takes, and the game then."""
    game = game.copy()
    for step in itertools.count():
        if reached(game):
            return step, game
        legal = [str(action) for action in game.legal_actions(0)]
        game.step([CODE[collect_wilds(game.public_state(0), legal)]])
    raise AssertionError("unreachable")


def test_the_next_tokens_are_any_of_the_bag() -> None:
    """§10.1: the order of the bag is redrawn uniformly."""
    games = GameBatch(1, 3, seed=0)
    games.play_random(25)
    many = games[np.zeros(30_000, np.int64)].resample_hidden(np.random.default_rng(1))
    size = int(games.states["bag_size"][0])
    bag = games.states["bag"][0].astype(float)
    orders = many.states["bag_order"]
    for place in (0, size // 2, size - 1):
        assert chi_square(np.bincount(orders[:, place], minlength=15), bag) > LEAST_P
    pairs = np.bincount(orders[:, size - 1].astype(int) * 15 + orders[:, size - 2], minlength=225).reshape(15, 15)
    expected = np.outer(bag, bag) - np.diag(bag)
    assert chi_square(pairs.ravel(), expected.ravel()) > LEAST_P


def test_every_place_of_the_pile_is_any_of_the_unseen_cards() -> None:
    """§10.1."""
    games = GameBatch(1, 4, seed=0)
    games.play_random(25)
    many = games[np.zeros(30_000, np.int64)].resample_hidden(np.random.default_rng(1))
    unseen = games.states["unseen_cards"][0].astype(float)
    assert games.states["shuffles"][0] == 1
    for slot in np.flatnonzero(games.states["slot_shuffle"][0] != NONE):
        assert chi_square(np.bincount(many.states["slot_card"][:, slot], minlength=15), unseen) > LEAST_P


def test_redrawn_games_draw_differently_in_future_shuffles_too() -> None:
    """All chance to come is redrawn: no clone repeats the original's reshuffles or refills."""
    games = GameBatch(1, 2, seed=0)
    others = games[np.zeros(50, np.int64)].resample_hidden(np.random.default_rng(1))
    for name in ("seed", "cards_key", "tokens_key", "play_key"):
        values = others.states[name]
        assert np.unique(values).size == 50 and games.states[name][0] not in values


@interpreted
def test_a_record_holds_nothing_hidden() -> None:
    """A wild bag taken is an event; its card is not (§5.3)."""
    games = GameBatch(1, 4, seed=1)
    record = GameRecord.record(games)
    rng = np.random.default_rng(0)
    for _ in range(60):
        games.step([stall(games.action_mask()[0], rng)])
    wilds = [event for event in record.events if "wild" in event]
    assert wilds and all(set(event) == {"wild"} and event["wild"] in range(4) for event in wilds)
    assert set().union(*record.events) <= {"player", "move", "forced", "draw", "shuffle", "wild", "tokens", "refill"}


# --- Setup is uniform ------------------------------------------------------------------------------------------------

SETUPS = 120_000


@pytest.fixture(scope="module", params=[2, 3, 4])
def setups(request: pytest.FixtureRequest) -> GameBatch:
    """At the first real choice nothing has moved but cards: see `first_cards`."""
    games = GameBatch(SETUPS, request.param, seed=request.param)
    assert (games.states["round_number"] == 1).all() and (games.states["cylinder"] == Lane.SUPPLY).all()
    return games


def codes(columns: NDArray[np.generic], base: int) -> NDArray[np.int64]:
    """Every row as one number."""
    found = np.zeros(columns.shape[0], np.int64)
    for column in columns.T:
        found = found * base + column.astype(np.int64)
    return found


def lane_arrangements(games: GameBatch) -> list[NDArray[np.int64]]:
    """The arrangement of each lane as a number from 0."""
    size = 3 if games.num_players[0] == 2 else int(games.num_players[0])
    return [codes(games.states["lanes"][:, lane, :size], 5) for lane in range(4)]


def assert_uniform(found: NDArray[np.int64], outcomes: int) -> None:
    values, counts = np.unique(found, return_counts=True)
    assert values.size == outcomes
    assert chi_square(counts, np.ones(outcomes)) > LEAST_P


def assert_independent(some: NDArray[np.int64], others: NDArray[np.int64]) -> None:
    _, rows = np.unique(some, return_inverse=True)
    _, columns = np.unique(others, return_inverse=True)
    table = np.bincount(rows * (columns.max() + 1) + columns, minlength=(rows.max() + 1) * (columns.max() + 1))
    result = stats.chi2_contingency(table.reshape(rows.max() + 1, columns.max() + 1))
    assert result.expected_freq.min() >= 4 and result.pvalue > LEAST_P


def test_all_arrangements_of_marbles_are_equally_likely(setups: GameBatch) -> None:
    """§2.1: with 2 players 6 * 3^4 = 486 arrangements; with 3 and 4 every lane is any permutation, on its own."""
    n = int(setups.num_players[0])
    lanes = lane_arrangements(setups)
    if n == 2:
        assert_uniform(codes(np.array(lanes).T, 125), 486)
        seats = setups.states["lanes"][:, :, :3]
        assert ((seats == 1).sum(axis=(1, 2)) == 6).all() and ((seats == 2).sum(axis=(1, 2)) == 6).all()
        return
    for lane in lanes:
        assert_uniform(lane, {3: 6, 4: 24}[n])
    for one, other in itertools.combinations(lanes, 2):
        assert_independent(one, other)
    if n == 3:
        assert_uniform(codes(np.array(lanes).T, 625), 6**4)


def test_all_orders_of_the_market_are_equally_likely(setups: GameBatch) -> None:
    """§2.4; whatever the lanes are."""
    market = codes(setups.states["market"], 5)
    assert_uniform(market, 120)
    assert_independent(market, setups.states["lanes"][:, 0, 0].astype(np.int64))
    assert_independent(setups.states["market"][:, 0].astype(np.int64), lane_arrangements(setups)[1])


def test_the_first_tokens_are_any_of_the_bag(setups: GameBatch) -> None:
    """§2.3: each dungeon's, and those of two dungeons together."""
    tokens = setups.states["dungeon_tokens"].argmax(axis=2)
    assert (setups.states["dungeon_tokens"].sum(axis=2) == 1).all()
    for dungeon in range(6):
        assert chi_square(np.bincount(tokens[:, dungeon], minlength=15), np.full(15, 2.0)) > LEAST_P
    for one, other in ((0, 1), (0, 5), (2, 3)):
        pairs = np.bincount(tokens[:, one] * 15 + tokens[:, other], minlength=225)
        expected = np.full((15, 15), 4.0) - 2 * np.eye(15)
        assert chi_square(pairs, expected.ravel()) > LEAST_P
    assert_independent(tokens[:, 0], setups.states["market"][:, 0].astype(np.int64))
    assert_independent(tokens[:, 5], lane_arrangements(setups)[0])


def first_cards(games: GameBatch) -> NDArray[np.int64]:
    """How many of each card were drawn first: dealt already where all are alike and so forced (§11.4)."""
    return (games.states["offer"] + games.states["hands"].sum(axis=1)).astype(np.int64)


def test_the_first_cards_are_any_of_the_deck(setups: GameBatch) -> None:
    """§2.4: and the next card of the pile is any of the rest."""
    drawn = first_cards(setups)
    n = int(setups.num_players[0])
    assert (drawn.sum(axis=1) == n).all()
    shares = drawn.sum(axis=0)
    assert abs(shares / shares.sum() - 1 / 15).max() < 5 * np.sqrt(1 / 15 / shares.sum())
    top = setups.states["slot_card"][
        np.arange(SETUPS), setups.states["pile"][np.arange(SETUPS), setups.states["pile_top"]]
    ]
    assert chi_square(np.bincount(top, minlength=15), np.full(15, 2.0)) > LEAST_P
    if n == 2:
        pairs = Counter(map(tuple, np.sort(np.array([np.repeat(np.arange(15), row) for row in drawn]), axis=1)))
        wanted = {(i, j): 2.0 if i == j else 8.0 for i in range(15) for j in range(i, 15)}
        counts = np.array([pairs[pair] for pair in wanted])
        assert chi_square(counts, np.array(list(wanted.values()))) > LEAST_P
    assert_independent(top.astype(np.int64), setups.states["market"][:, 0].astype(np.int64))
    assert_independent(top.astype(np.int64), setups.states["dungeon_tokens"][:, 0].argmax(axis=1))


def test_the_order_of_the_pile_is_uniform() -> None:
    """§2.4: any two places of the pile hold any two cards."""
    games = GameBatch(SETUPS, 2, seed=9)
    rows = np.arange(SETUPS)
    cards = [
        games.states["slot_card"][rows, games.states["pile"][rows, (games.states["pile_top"] + place) % 32]]
        for place in (0, 1, 13, 27)
    ]
    expected = (np.full((15, 15), 4.0) - 2 * np.eye(15)).ravel()
    for one, other in itertools.combinations(cards, 2):
        assert chi_square(np.bincount(one.astype(int) * 15 + other, minlength=225), expected) > LEAST_P


def test_a_reshuffle_is_uniform_and_new_every_time() -> None:
    """§4.3: the same discards, many keys; the second shuffle of a game does not follow from its first."""
    table = Table(2)
    table.discard(*all_pieces(table.games.ruleset.deck))
    games = table.games[np.zeros(30_000, np.int64)]
    games.states["cards_key"] = np.random.default_rng(0).integers(2**63, size=30_000, dtype=np.uint64)
    seconds = games.copy()
    seconds.states["shuffles"] += 1
    orders = []
    for shuffled in (games, seconds):
        for row in range(30_000):
            batch.prepare_draw(shuffled.states, row, 1)
        orders.append(shuffled.states["slot_card"][:, [0, 1, 29]].astype(int))
    pairs = [(orders[0][:, 0], orders[0][:, 1]), (orders[0][:, 0], orders[0][:, 2])]
    expected = (np.full((15, 15), 4.0) - 2 * np.eye(15)).ravel()
    for one, other in pairs:
        assert chi_square(np.bincount(one * 15 + other, minlength=225), expected) > LEAST_P
    assert_independent(orders[0][:, 0], orders[1][:, 0])


def test_restarted_games_are_as_random_as_first_ones() -> None:
    """The seeds that follow in a row deal uniformly too, and independently of the game before."""
    games = GameBatch(60_000, 3, seed=0)
    first = lane_arrangements(games)[0]
    games.reset(rows=np.arange(60_000))
    second = lane_arrangements(games)[0]
    assert_uniform(second, 6)
    assert_independent(first, second)
    assert np.unique(games.seeds).size == 60_000
