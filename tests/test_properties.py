"""What holds for every game, whatever is played: conservation, codecs, determinism, clones, symmetry of the seats."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import (
    CODE,
    MARBLES_BY_SEAT,
    PER_SEAT,
    SEAT_NUMBERS,
    SEATLESS,
    TEXT,
    Table,
    all_pieces,
    assert_conserved,
    everything,
    property_settings,
    random_games,
    rotate_seats,
    share_small_batches,
)
from montecristo_env import Decision, GameBatch, GameRecord, Ruleset, actions, observation
from montecristo_env.core import batch
from montecristo_env.core.constants import MAX_PLAYERS
from montecristo_env.core.jit import INTERPRETED
from montecristo_env.core.layout import STATE
from reference import VARIANTS

pytestmark = pytest.mark.engine
interpreted = pytest.mark.interpreted

players = st.integers(2, 4)
seeds = st.integers(0, 2**53 - 1)
mixed_players = st.lists(players, min_size=1, max_size=5)


@st.composite
def rulesets(draw: st.DrawFn) -> Ruleset:
    """Any rule set that can be played."""

    def thirty() -> tuple[tuple[int, ...], ...]:
        types = draw(st.lists(st.integers(0, 14), min_size=30, max_size=30))
        counts = np.bincount(types, minlength=15).reshape(5, 3)
        return tuple(tuple(row) for row in counts.tolist())

    market = sorted(draw(st.lists(st.integers(1, 3), min_size=5, max_size=5)), reverse=True)
    return Ruleset(
        deck=thirty(),
        card_adventurers=tuple(draw(st.lists(st.integers(0, 9), min_size=3, max_size=3))),
        tokens=thirty(),
        market=tuple(market),
        target=draw(st.integers(1, 60)),
        round_limit=draw(st.integers(1, 30)),
        **{name: draw(st.sampled_from(choices)) for name, choices in VARIANTS.items()},
    )


def play_to_the_end(games: GameBatch) -> None:
    while not games.over.all():
        games.step(games.sample_actions())


# --- Conservation ----------------------------------------------------------------------------------------------------


@interpreted
@property_settings(60)
@given(mixed_players, seeds, rulesets())
def test_every_state_is_sane_and_nothing_gets_lost(num_players: list[int], seed: int, ruleset: Ruleset) -> None:
    """§1.4 to §1.8, by the engine's own checks and by others; the observation keeps to its bounds."""
    games = GameBatch(len(num_players), num_players, seed=seed, ruleset=ruleset)
    step = 0
    while True:
        if not INTERPRETED or step % 40 == 0:
            assert games.violations() == {}
        for game, n in enumerate(num_players):
            assert_conserved(games.public_state(game), n, ruleset)
        seen = games.observe()
        assert (seen >= 0).all() and (seen <= observation.HIGHEST).all()
        if games.over.all():
            break
        games.step(games.sample_actions())
        step += 1
    assert games.violations() == {}
    assert (games.terminated != games.truncated).all()
    assert (games.winners.sum(axis=1) >= 1).all()
    assert (games.scores.max(axis=1)[games.terminated] >= ruleset.target).all()
    assert (games.states["round_number"] <= ruleset.round_limit).all()


def spoil_place(row: np.void) -> None:
    """Two adventurers of one player change places, which counts them from the rear."""
    player, dungeon = np.argwhere(row["crew"] >= 2)[0]
    first, second = row["places"][player, dungeon, :2].tolist()
    row["places"][player, dungeon, :2] = second, first


def spoil_lane(row: np.void) -> None:
    """All marbles are there, but four of a colour in one lane."""
    row["lanes"] = 0
    for lane, marbles in enumerate(([1, 1, 1, 1], [2, 2, 2], [2, 3, 3], [3, 3])):
        row["lanes"][lane, : len(marbles)] = marbles
        row["lane_size"][lane] = len(marbles)


def spoil_dungeon(row: np.void) -> None:
    """Tokens of the bag are in a dungeon that has no place for them."""
    for _ in range(5):
        row["bag_size"] -= 1
        token = row["bag_order"][row["bag_size"]]
        row["bag"][token] -= 1
        row["dungeon_tokens"][0, token] += 1


def one_more(field: str, *place: int) -> Callable[[np.void], None]:
    def spoil(row: np.void) -> None:
        if place:
            row[field][place] += 1
        else:
            row[field] += 1

    return spoil


def exchange_hidden(row: np.void) -> None:
    slot = np.flatnonzero(row["slot_shuffle"] >= 0)[0]
    row["slot_card"][slot] = (row["slot_card"][slot] + 1) % 15


def free_a_slot(row: np.void) -> None:
    row["slot_shuffle"][np.flatnonzero(row["slot_shuffle"] >= 0)[0]] = -1


def repeat_a_slot(row: np.void) -> None:
    top = int(row["pile_top"])
    row["pile"][top] = row["pile"][(top + 1) % row["pile"].size]


def set_to(field: str, value: int, *place: int) -> Callable[[np.void], None]:
    def spoil(row: np.void) -> None:
        if place:
            row[field][place] = value
        else:
            row[field] = value

    return spoil


SPOILED: list[tuple[str, Callable[[np.void], None]]] = [
    ("adventurers", one_more("marseille", 0)),
    ("adventurers", one_more("supply", 0)),
    ("adventurers", one_more("crew", 0, 0)),
    ("adventurers", one_more("zones", 0, 0)),
    ("adventurers", one_more("places", 0, 0, 0)),
    ("adventurers", one_more("places", 0, 0, 8)),
    ("adventurers", one_more("queue_length", 0)),
    ("adventurers", spoil_place),
    ("marbles", set_to("lanes", 0, 3, 0)),
    ("marbles", one_more("lane_size", 0)),
    ("marbles", spoil_lane),
    ("cards", one_more("card_discard", 0)),
    ("cards", one_more("unseen_cards", 0)),
    ("cards", one_more("offer", 0)),
    ("cards", one_more("pile_size")),
    ("cards", exchange_hidden),
    ("cards", free_a_slot),
    ("cards", repeat_a_slot),
    ("hands", one_more("wilds", 0)),
    ("hands", one_more("hands", 0, 0)),
    ("hands", one_more("hand_size", 0)),
    ("tokens", one_more("token_discard", 0)),
    ("tokens", one_more("bag", 0)),
    ("tokens", one_more("gathered", 0, 0)),
    ("tokens", one_more("dungeon_tokens", 0, 0)),
    ("tokens", set_to("bag_order", 15, 0)),
    ("tokens", spoil_dungeon),
    ("market", set_to("market", 4, slice(None))),  # type: ignore[arg-type]
    ("decision", one_more("legal")),
    ("decision", set_to("terminated", 1)),
    ("decision", set_to("current_player", -1)),
]


@interpreted
@pytest.mark.parametrize("case", range(len(SPOILED)), ids=lambda case: f"{SPOILED[case][0]}{case}")
def test_a_damaged_state_is_found_out(case: int) -> None:
    """The checks themselves can fail, each for its own reason."""
    failure, spoil = SPOILED[case]
    games = random_games(3, 3, seed=1, steps=45)
    assert games.violations() == {}
    spoil(games.states[1])
    found = games.violations()
    assert list(found) == [1] and failure in found[1]


# --- Actions ---------------------------------------------------------------------------------------------------------


@interpreted
def test_every_action_survives_its_codec() -> None:
    for code in range(actions.COUNT):
        action = actions.decode(code)
        assert actions.encode(action) == code
        assert actions.parse(str(action)) == action
        assert actions.parse(f"  {str(action).upper()} ".replace(" ", "  ")) == action
    assert len(set(TEXT)) == actions.COUNT


@interpreted
def test_the_blocks_of_actions_tile_the_codes_in_the_order_of_the_decisions() -> None:
    """§11.1: each kind of decision has its own block."""
    codes = [code for block in actions.BLOCKS.values() for code in block]
    assert codes == list(range(actions.COUNT))
    assert list(actions.BLOCKS) == [decision.name.lower() for decision in Decision if decision != Decision.OVER]
    for decision in Decision:
        first = actions.FIRST[decision]
        assert first == (actions.COUNT if decision == Decision.OVER else actions.BLOCKS[decision.name.lower()].start)
    assert max(len(block) for block in actions.BLOCKS.values()) <= 64  # a set of choices is one word


UNREACHABLE = {"marble chest 6 down 1", "marble chest 6 down 2"}
"""The Treasure chest lane has just lost a marble when Rearrange begins (§3.2, §3.4), so it never holds seven then."""


def test_every_action_that_can_becomes_legal_at_some_time_in_random_play() -> None:
    seen = np.zeros(actions.COUNT, np.bool_)
    games = GameBatch(12_000, np.resize([2, 3, 4, 4], 12_000), seed=0)
    while not games.over.all():
        seen |= games.action_mask().any(axis=0)
        games.step(games.sample_actions())
    assert {TEXT[code] for code in np.flatnonzero(~seen)} == UNREACHABLE


@interpreted
@property_settings(30)
@given(mixed_players, seeds, st.integers(0, 250))
def test_masks_and_legal_actions_and_the_block_of_the_decision_agree(
    num_players: list[int], seed: int, steps: int
) -> None:
    games = random_games(len(num_players), num_players, seed, steps)
    masks = games.action_mask()
    for game, mask in enumerate(masks):
        codes = np.flatnonzero(mask).tolist()
        assert [actions.encode(action) for action in games.legal_actions(game)] == codes
        phase = games.public_state(game)["phase"]
        if phase == "over":
            assert codes == []
        else:
            assert len(codes) >= 2  # §11.4
            assert set(codes) <= set(actions.BLOCKS[phase])
    sampled = games.sample_actions()
    assert all(code == -1 if games.over[game] else masks[game, code] for game, code in enumerate(sampled))


def test_random_play_is_uniform_over_the_legal_actions() -> None:
    """Many copies of one game with different streams of random play sample every action alike."""
    games = random_games(1, 3, seed=3, steps=5)
    many = games[np.zeros(40_000, np.int64)]
    many.states["play_key"] = np.arange(40_000, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    counts = np.bincount(many.sample_actions(), minlength=actions.COUNT)
    legal = games.action_mask()[0].astype(bool)
    assert (counts[~legal] == 0).all()
    expected = 40_000 / legal.sum()
    assert (np.abs(counts[legal] - expected) < 5 * np.sqrt(expected)).all()


# --- Determinism -----------------------------------------------------------------------------------------------------


@interpreted
@property_settings(20)
@given(mixed_players, seeds)
def test_same_seed_same_games(num_players: list[int], seed: int) -> None:
    first, second = (GameBatch(len(num_players), num_players, seed=seed) for _ in range(2))
    assert everything(first) == everything(second)
    for _ in range(60):
        first.step(first.sample_actions())
        second.step(second.sample_actions())
        assert everything(first) == everything(second)


@interpreted
def test_different_seeds_different_games() -> None:
    setups = {GameBatch(1, 3, seed=seed).states["slot_card"].tobytes() for seed in range(50)}
    assert len(setups) == 50
    assert GameBatch(1, 3).states.tobytes() != GameBatch(1, 3).states.tobytes()  # unpredictable without a seed


def test_no_result_depends_on_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = share_small_batches(monkeypatch, rows_per_thread=256)
    num_players = np.resize([2, 3, 4], 1024 + 77)
    pair = [GameBatch(num_players.size, num_players, seed=3, threads=threads) for threads in (1, 2)]

    def same(results: list[Any]) -> bool:
        assert shared, "the second batch must have been shared among threads"
        shared.clear()
        return bool(np.array_equal(results[0], results[1])) and everything(pair[0]) == everything(pair[1])

    assert same([None, None])
    for _ in range(40):
        assert same([games.observe() for games in pair])
        assert same([games.observe(player=1) for games in pair])
        assert same([games.action_mask() for games in pair])
        acts = [games.sample_actions() for games in pair]
        assert same(acts)
        for games, codes in zip(pair, acts, strict=True):
            games.step(codes)
        assert same([None, None])
    hidden = [games.resample_hidden(np.random.default_rng(0)) for games in pair]
    assert same([games.states for games in hidden])
    for games in pair:
        games.play_random(250)
    assert same([None, None]) and 0 < pair[0].over.sum() < num_players.size
    assert same([games.violations() == {} for games in pair])
    for games in pair:
        games.reset()
    assert same([None, None]) and not pair[0].over.any()


@interpreted
@property_settings(20)
@given(mixed_players, seeds)
def test_a_batch_is_as_many_batches_of_one(num_players: list[int], seed: int) -> None:
    games = GameBatch(len(num_players), num_players, seed=seed)
    alone = [GameBatch(1, n, seed=games.seeds[[game]]) for game, n in enumerate(num_players)]
    for _ in range(80):
        assert games.states.tobytes() == b"".join(single.states.tobytes() for single in alone)
        assert games.rewards.tobytes() == b"".join(single.rewards.tobytes() for single in alone)
        assert games.observe().tobytes() == b"".join(single.observe().tobytes() for single in alone)
        games.step(games.sample_actions())
        for single in alone:
            single.step(single.sample_actions())


@interpreted
@property_settings(20)
@given(st.integers(1, 6), st.integers(1, 6), seeds)
def test_the_first_games_of_a_seed_do_not_depend_on_how_many_follow(few: int, more: int, seed: int) -> None:
    small, large = GameBatch(few, 3, seed=seed), GameBatch(few + more, 3, seed=seed)
    assert large[:few].states.tobytes() == small.states.tobytes()
    again = GameBatch(few, 3, seed=small.seeds)
    assert again.states.tobytes() == small.states.tobytes()
    assert (small.seeds < 2**53).all()  # every JSON reader keeps them


def assert_random_play_is_sampling_and_stepping(
    played: GameBatch, steps: int, rows: list[int], until: list[int] | None = None
) -> None:
    stepped = played.copy()
    paid = stepped.rewards.copy()
    paid[rows] = 0
    played.play_random(steps, rows=rows, until=until)
    for row, seat in zip(rows, until or [-1] * len(rows), strict=True):
        for _ in range(steps):
            if stepped.over[row] or stepped.current_player[row] == seat:
                break
            stepped.step(stepped.sample_actions(rows=[row]), rows=[row])
            paid[row] = stepped.rewards[row]
    assert played.states.tobytes() == stepped.states.tobytes()
    np.testing.assert_array_equal(played.rewards, paid)  # of the games that ended during the call


@interpreted
@pytest.mark.parametrize("watched", [False, True])
@property_settings(15)
@given(st.lists(players, min_size=3, max_size=3), seeds, st.integers(1, 400))
def test_compiled_random_play_is_sampling_and_stepping(
    watched: bool, num_players: list[int], seed: int, steps: int
) -> None:
    """Also while a record follows."""
    games = GameBatch(3, num_players, seed=seed, reward="margin")
    if watched:
        GameRecord.record(games, 1)
    assert_random_play_is_sampling_and_stepping(games, steps, [0, 1, 2])
    assert_random_play_is_sampling_and_stepping(games, 2, [0, 1, 2])  # games that were over by then are paid no more
    games.reset(seed=seed)
    assert_random_play_is_sampling_and_stepping(games, steps, [1, 2])
    assert_random_play_is_sampling_and_stepping(games, 50, [0, 1], until=[0, 1])
    assert_random_play_is_sampling_and_stepping(games, 50, [0, 1], until=[0, 1])  # it is their turn already


# --- Steps and resets ------------------------------------------------------------------------------------------------


@interpreted
@property_settings(15)
@given(seeds, st.integers(0, 60), st.sets(st.integers(0, 5)))
def test_a_step_of_some_rows_leaves_the_others_alone(seed: int, steps: int, rows: set[int]) -> None:
    games = random_games(6, [2, 3, 4, 2, 3, 4], seed, steps)
    chosen = np.array(sorted(rows), np.int64)
    before, whole = games.copy(), games.copy()
    games.step(games.sample_actions(rows=chosen), rows=chosen)
    whole.step(whole.sample_actions())
    for row in range(6):
        expected = whole if row in rows else before
        assert games.states[[row]].tobytes() == expected.states[[row]].tobytes()
    mask = np.isin(np.arange(6), chosen)
    np.testing.assert_array_equal(games.observe(rows=mask), games.observe()[mask])
    np.testing.assert_array_equal(games.action_mask(rows=chosen), games.action_mask()[mask])


@interpreted
def test_out_buffers_receive_what_would_be_returned() -> None:
    games = random_games(4, [2, 3, 4, 4], seed=0, steps=30)
    seen = np.full((4, observation.SIZE), 77, np.int8)
    masks = np.full((4, actions.COUNT), 77, np.int8)
    codes = np.full(4, 77, np.int64)
    assert games.observe(out=seen) is seen and games.action_mask(out=masks) is masks
    np.testing.assert_array_equal(seen, games.observe())
    np.testing.assert_array_equal(seen, games.observe(player=games.current_player))
    np.testing.assert_array_equal(masks, games.action_mask())
    seen[:], masks[:] = 77, 77
    games.observe(out=seen, masks=masks)  # both in one pass
    np.testing.assert_array_equal(seen, games.observe())
    np.testing.assert_array_equal(masks, games.action_mask())
    clone = games.copy()
    assert games.sample_actions(out=codes) is codes
    np.testing.assert_array_equal(codes, clone.sample_actions())


@interpreted
def test_a_game_that_is_over_stays_as_it_is_whatever_action_it_gets() -> None:
    games = GameBatch(2, 2, seed=5)
    games.play_random(10_000)
    before, rewards = games.states.tobytes(), games.rewards.copy()
    assert games.over.all() and rewards.any()
    assert not games.action_mask().any()
    np.testing.assert_array_equal(games.observe(), games.observe(player=0))
    assert not observation.view(games.observe(), "deciding").any()
    games.step(games.sample_actions())
    games.step([CODE["enter A"], 100_000])
    games.play_random(3)
    assert games.states.tobytes() == before
    assert not games.rewards.any()  # paid once


@interpreted
@property_settings(15)
@given(mixed_players, seeds, seeds)
def test_a_reset_game_is_as_good_as_new(num_players: list[int], old: int, seed: int) -> None:
    """Nothing of the game before is left in the row."""
    fresh = GameBatch(len(num_players), num_players, seed=seed)
    used = random_games(len(num_players), num_players, old, 500)
    used.reset(seed=seed)
    assert used.states.tobytes() == fresh.states.tobytes()


@interpreted
def test_reset_starts_anew_what_it_is_asked_to() -> None:
    size = 8 if INTERPRETED else 30
    games = random_games(size, 2, seed=0, steps=220)
    over = games.over.copy()
    assert over.any() and not over.all()
    before = games.copy()
    games.reset()
    assert not games.over.any() and (games.states["decisions"][over] == 0).all()
    for row in np.flatnonzero(~over):
        assert games.states[[row]].tobytes() == before.states[[row]].tobytes()
    assert (games.seeds[over] != before.seeds[over]).all() and np.unique(games.seeds).size == size
    again = before.copy()
    again.reset()
    assert again.states.tobytes() == games.states.tobytes()  # each game takes the seed that follows its last
    games.reset(rows=[3], seed=[9])
    assert games[[3]].states.tobytes() == GameBatch(1, 2, seed=[9]).states.tobytes()
    games.reset(rows=[4])
    assert games.states["decisions"][4] == 0 and games.seeds[4] != again.seeds[4]


# --- Clones ----------------------------------------------------------------------------------------------------------

CLONES: dict[str, Callable[[GameBatch], GameBatch]] = {
    "copy": lambda games: games.copy(),
    "all rows": lambda games: games[:],
    "index": lambda games: games[[0, 1, 2, 3]],
    "mask": lambda games: games[np.ones(4, np.bool_)],
    "deepcopy": copy.deepcopy,
    "pickle": lambda games: pickle.loads(pickle.dumps(games)),
}


@interpreted
@pytest.mark.parametrize("way", CLONES)
def test_clones_are_equal_and_independent(way: str) -> None:
    games = GameBatch(4, [2, 3, 4, 3], seed=1, ruleset=Ruleset(target=12), reward="rank")
    games.play_random(40)
    clone = CLONES[way](games)
    assert everything(clone) == everything(games)
    assert (clone.ruleset, clone.reward, clone.threads) == (games.ruleset, games.reward, games.threads)
    before = everything(games)
    play_to_the_end(clone)
    assert everything(games) == before
    play_to_the_end(games)
    assert games.states.tobytes() == clone.states.tobytes()
    assert games.rewards.tobytes() == clone.rewards.tobytes()


@interpreted
def test_a_clone_of_some_rows_holds_them_in_the_order_given_repeats_included() -> None:
    games = random_games(5, [2, 3, 4, 3, 2], seed=1, steps=50)
    rows = [4, 0, 4, 2]
    clone = games[rows]
    assert clone.states.tobytes() == games.states[rows].tobytes() and len(clone) == 4
    assert games[1:4].states.tobytes() == games.states[1:4].tobytes()
    assert games[3].states.tobytes() == games.states[[3]].tobytes()
    clone.step(clone.sample_actions())
    assert clone[0].states.tobytes() == clone[2].states.tobytes()


# --- Symmetry of the seats -------------------------------------------------------------------------------------------


@interpreted
def test_every_field_of_a_row_is_known_to_have_seats_or_not() -> None:
    """A new field must be named in `helpers`, else the rotation below would be wrong without notice."""
    names = set(STATE.names or ())
    assert names >= PER_SEAT | SEAT_NUMBERS | MARBLES_BY_SEAT
    for name in names - PER_SEAT - {"gather_order", "lanes"}:
        assert STATE[name].shape[:1] != (MAX_PLAYERS,) or name == "lane_size", f"{name} looks as if it had seats"
    assert {name for name in SEATLESS if "player" in name} == {"num_players"}


@interpreted
@property_settings(25)
@given(players, seeds, st.integers(0, 200), st.integers(1, 3), st.sampled_from(["win", "rank", "margin"]))
def test_rotating_the_seats_rotates_everything_else(n: int, seed: int, steps: int, by: int, reward: str) -> None:
    """Players differ only by where they sit; what is clockwise stays clockwise."""
    by = by % n
    games = GameBatch(1 if INTERPRETED else 3, n, seed=seed, reward=reward)
    games.play_random(steps)
    rotated = games.copy()
    rotated.states[:] = rotate_seats(games.states, by)
    seats = (np.arange(n) + by) % n
    while True:
        assert rotated.states.tobytes() == rotate_seats(games.states, by).tobytes()
        for seat in range(n):
            assert rotated.observe(player=(seat + by) % n).tobytes() == games.observe(player=seat).tobytes()
        assert rotated.action_mask().tobytes() == games.action_mask().tobytes()
        np.testing.assert_array_equal(rotated.rewards[:, seats], games.rewards[:, :n])
        np.testing.assert_array_equal(rotated.scores[:, seats], games.scores[:, :n])
        np.testing.assert_array_equal(rotated.winners[:, seats], games.winners[:, :n])
        if games.over.all():
            break
        for _ in range(9 if INTERPRETED else 1):
            if not games.over.all():  # keep the rewards of the last step
                acts = games.sample_actions()
                rotated.sample_actions()
                games.step(acts)
                rotated.step(acts)
    assert rotated.violations() == {}


# --- The deal does not depend on what is decided ---------------------------------------------------------------------


def dealt(seed: int, n: int, policy_seed: int) -> tuple[list[str], list[str | None]]:
    """Tokens in the order drawn until the first refill; cards of the first pile from the top, None for a wild bag."""
    games = GameBatch(1, n, seed=[seed])
    record = GameRecord.record(games)
    rng = np.random.default_rng(policy_seed)
    for _ in range(150):
        if games.over[0]:
            break
        games.step([rng.choice(np.flatnonzero(games.action_mask()[0]))])
    tokens: list[str] = [*record.setup["dungeons"]]
    cards: list[str | None] = []
    first_bag = first_pile = True
    for event in record.events:
        first_bag &= "refill" not in event
        first_pile &= "shuffle" not in event
        if first_bag:
            tokens += event.get("tokens", [])
        if first_pile:
            cards += event.get("draw", []) + [None] * ("wild" in event)
    return tokens, cards


@interpreted
@property_settings(25)
@given(players, seeds, st.integers(0, 1000))
def test_the_same_seed_deals_the_same_whatever_is_decided(n: int, seed: int, policies: int) -> None:
    """§2: the tokens until the first refill, and each card of the first pile at its place in it."""
    tokens, cards = dealt(seed, n, policies)
    other_tokens, other_cards = dealt(seed, n, policies + 1)
    common = min(len(tokens), len(other_tokens))
    assert common >= 9 and tokens[:common] == other_tokens[:common]
    pairs = list(zip(cards, other_cards, strict=False))[: 30 - 8]  # wild bags come back at the bottom
    assert len(pairs) >= 2 * n
    assert all(card == other for card, other in pairs if card is not None and other is not None)


@interpreted
@property_settings(15)
@given(seeds, st.sets(st.integers(0, 29), min_size=3))
def test_the_order_in_a_mixed_bag_does_not_depend_on_what_else_is_in_it(key: int, kept: set[int]) -> None:
    """The tokens discarded by the time of a refill depend on decisions; their order in the mix does not."""
    orders = []
    for present in (range(30), sorted(kept)):
        table = Table(2)
        pieces = all_pieces(table.games.ruleset.tokens)
        table.row["tokens_key"] = key
        table.row["bag"] = 0
        table.row["bag_size"] = 0
        for i in present:
            kind, value = pieces[i]
            table.row["token_discard"][kind * 3 + value - 1] += 1
        batch.prepare_chest(table.states, 0)
        orders.append(table.row["bag_order"][: table.row["bag_size"]].tolist())
    everything_there, some = orders
    rest = iter(everything_there)
    assert len(some) == len(kept) and all(token in rest for token in some)  # a subsequence


# --- Records ---------------------------------------------------------------------------------------------------------


@interpreted
@property_settings(12)
@given(players, seeds, st.integers(0, 400), st.sampled_from([Ruleset(), Ruleset(target=8), Ruleset(round_limit=4)]))
def test_a_record_replays_every_public_state(n: int, seed: int, steps: int, ruleset: Ruleset) -> None:
    """From its events alone, finished or not; reading what was written gives the same record."""
    games = GameBatch(2, n, seed=seed, ruleset=ruleset)
    record = GameRecord.record(games, 1, players=[f"player {seat}" for seat in range(n)])
    states = [games.public_state(1)]
    while len(states) <= steps and not games.over[1]:
        games.step(games.sample_actions())
        states.append(games.public_state(1))
    read = GameRecord.from_json(record.to_json())
    assert read == record
    positions = list(read.replay())
    replayed = [position.games.public_state(0) for position in positions]
    asked = [state for state, position in zip(replayed, positions, strict=True) if is_asked(position.games)]
    assert asked == states
    moves = [event for event in record.events if "move" in event]
    assert len(positions) == len(moves) + 1
    for position in positions[1:]:
        assert "move" in record.events[position.event]
    forced = [not is_asked(position.games) for position in positions[:-1]]
    assert forced == ["forced" in event for event in moves]


def is_asked(games: GameBatch) -> bool:
    """Whether this is a state that a batch stops in: a real choice, or the end."""
    return bool(games.over[0] or games.action_mask()[0].sum() > 1)


@interpreted
def test_a_record_ends_with_the_reset_of_its_game_and_leaves_the_game_as_it_is() -> None:
    games, plain = GameBatch(2, 3, seed=4), GameBatch(2, 3, seed=4)
    record = GameRecord.record(games, 0)
    for _ in range(30):
        games.step(games.sample_actions())
        plain.step(plain.sample_actions())
    assert everything(games) == everything(plain)
    written = record.to_json()
    games.reset(rows=[0])
    games.play_random(20)
    assert record.to_json() == written
    assert len([event for event in record.events if "move" in event and "forced" not in event]) == 30
