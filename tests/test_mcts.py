"""The search with rollouts: what is hidden stays hidden to it, it repeats itself, and thinking longer helps."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from numpy.typing import NDArray

from helpers import CODE, DIAMOND, EMERALD, GOLD, RUBY, SAPPHIRE, F, Table, all_pieces, public_part, winning_position
from montecristo_agents import search, search_agent
from montecristo_agents.heuristic_value import win_probabilities
from montecristo_agents.mcts import SIMULATIONS, RolloutEvaluator, mcts
from montecristo_agents.search import Search
from montecristo_agents.search_agent import MOST_CONSIDERED, SearchAgent
from montecristo_env import GameBatch, InvalidArgument, Lane, PublicView, Ruleset, make_agent
from montecristo_env.agent import Agent
from montecristo_env.core.constants import NONE
from montecristo_env.core.layout import States
from shell_helpers import run_python

ENOUGH = "300:rollout=random:rounds=3"
"""A search that takes little time, but enough simulations to be no copy of the greedy player, whose moves lead."""


def middle_games(num_games: int, decisions: int = 60, seed: int = 1) -> GameBatch:
    """Games in the middle, with 2, 3 and 4 players."""
    games = GameBatch(num_games, np.resize([2, 3, 4], num_games), seed=seed)
    games.play_random(decisions)
    assert not games.over.any()
    return games


def answers(agent: Agent, games: GameBatch) -> NDArray[np.int64]:
    """What an agent does in every game, which stays as it is."""
    return agent.act(PublicView(games.copy()), np.arange(len(games)))


# --- Legal, repeatable -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", ["8", "8:rollout=random", "8:rounds=0", "8:rollout=random:rounds=100"])
def test_plays_whole_games_of_all_sizes(settings: str) -> None:
    games = GameBatch(9, np.resize([2, 3, 4], 9), seed=0)
    agent = mcts(settings)
    while not games.over.all():
        rows = np.flatnonzero(~games.over)
        games.step(agent.act(PublicView(games), rows), rows)  # which refuses what is illegal
    assert games.violations() == {}


def test_same_seeds_give_same_play_whatever_else_is_in_the_batch() -> None:
    games = middle_games(12)
    agent = mcts(ENOUGH)
    together = answers(agent, games)
    np.testing.assert_array_equal(answers(agent, games), together)
    rows = np.array([2, 3, 7])
    np.testing.assert_array_equal(agent.act(PublicView(games.copy()), rows), together[rows])
    for row in rows:
        assert answers(agent, games[[row]])[0] == together[row]


@pytest.mark.parametrize("cores", [1, 3])
def test_threads_do_not_change_play(monkeypatch: pytest.MonkeyPatch, cores: int) -> None:
    games = middle_games(8)
    before = answers(mcts(ENOUGH), games)
    monkeypatch.setattr(search_agent, "ALL_CORES", cores)
    monkeypatch.setattr(search, "GAMES_PER_THREAD", 1)
    monkeypatch.setattr("montecristo_agents.mcts.ROWS_PER_THREAD", 1)
    np.testing.assert_array_equal(answers(mcts(ENOUGH), games), before)


def test_has_nothing_to_say_to_no_games_and_to_games_that_are_over() -> None:
    games = GameBatch(2, 2, seed=0)
    games.play_random(10_000)
    assert games.over.all()
    np.testing.assert_array_equal(answers(mcts("5"), games), [NONE, NONE])
    assert mcts("5").act(PublicView(games), np.zeros(0, np.int64)).shape == (0,)


def test_other_random_streams_give_other_searches() -> None:
    games = middle_games(40)
    others = games.copy()
    others.states["play_key"] += 1
    assert (answers(mcts(ENOUGH), games) != answers(mcts(ENOUGH), others)).any()


def test_does_not_touch_the_games() -> None:
    games = middle_games(6)
    before = public_part(games.states).copy()
    mcts("20").act(PublicView(games), np.arange(6))
    np.testing.assert_array_equal(public_part(games.states), before)


@pytest.mark.parametrize("settings", ["12:rollout=random", "3:rounds=1"])
def test_compiled_and_interpreted_search_agree(monkeypatch: pytest.MonkeyPatch, settings: str) -> None:
    compiled = answers(mcts(settings), middle_games(1))
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    done = run_python(
        "import sys; sys.path.insert(0, 'tests')\n"
        "from test_mcts import answers, mcts, middle_games\n"
        f"print(*answers(mcts('{settings}'), middle_games(1)))\n"
    )
    assert done.stdout.split() == [str(action) for action in compiled], done.stderr


def test_says_how_likely_each_action_is_and_what_it_expects() -> None:
    games = middle_games(9)
    agent, view, rows = mcts("60"), PublicView(games.copy()), np.array([1, 2, 6])
    likely, values = agent.evaluate(view, rows)
    np.testing.assert_allclose(likely.sum(axis=1), 1)
    assert not likely[games.action_mask()[rows] == 0].any()
    chosen = likely[np.arange(3), answers(agent, games)[rows]]
    assert (chosen > 1 / games.action_mask()[rows].sum(axis=1)).all()
    assert ((values > -1) & (values < 1)).all()


def test_expects_what_the_winning_move_pays() -> None:
    games = on_the_brink()
    values = mcts("200").evaluate(PublicView(games), np.arange(len(games))).values
    assert (values > 0.9).all()


class Watched(RolloutEvaluator):
    """Keeps what the search asks about."""

    def __init__(self, rollout: str = "greedy", rounds: int = 0) -> None:
        super().__init__(rollout, rounds)
        self.seen: list[States] = []

    def evaluate(self, rows: States) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        self.seen.append(rows.copy())
        found = super().evaluate(rows)
        assert rows.tobytes() == self.seen[-1].tobytes()
        return found


def test_luck_is_the_same_for_the_first_try_of_every_move_and_for_the_second() -> None:
    games, evaluator = middle_games(1), Watched()
    driver = Search(1, evaluator, [30] * MOST_CONSIDERED, win_weight=1.0)
    driver.run(games.states, np.array([5], np.uint64))
    drawn = Counter(int(rows["seed"][0]) for rows in evaluator.seen[1:])  # the first is the root
    moves = driver.searches["moves"][0]
    tries = driver._trees[0]["visits"][1 : 1 + moves]
    assert tries.sum() == 30
    assert sorted(drawn.values()) == sorted((tries > before).sum() for before in range(tries.max()))
    assert max(drawn.values()) > 2


# --- The evaluator


@pytest.mark.parametrize("settings", ["greedy", "random"])
def test_without_a_rollout_a_position_has_its_heuristic_value(settings: str) -> None:
    games = middle_games(9)
    shares = RolloutEvaluator(settings, 0).evaluate(games.states)[1]
    np.testing.assert_allclose(shares, win_probabilities(PublicView(games), np.arange(9)), rtol=1e-5)


def test_likes_the_move_of_the_greedy_player_best() -> None:
    games = middle_games(60)
    logits = RolloutEvaluator("greedy", 0).evaluate(games.states)[0]
    liked = np.where(games.action_mask(), logits, -np.inf).max(axis=1)
    chosen = answers(make_agent("greedy"), games)
    np.testing.assert_array_equal(logits[np.arange(60), chosen], liked)
    others = np.where(games.action_mask(), logits, np.inf).min(axis=1)
    assert (others < liked).mean() > 0.9


def test_a_rollout_to_the_end_gives_the_share_of_the_win() -> None:
    games = middle_games(30)
    shares = RolloutEvaluator("greedy", 100).evaluate(games.states)[1]
    greedy, rows = make_agent("greedy"), np.arange(30)
    while not games.over.all():
        rows = np.flatnonzero(~games.over)
        games.step(greedy.act(PublicView(games), rows), rows)
    np.testing.assert_allclose(shares, games.winners / games.winners.sum(axis=1, keepdims=True))


def test_evaluating_leaves_the_rows_as_they_are_and_passes_over_games_that_are_over() -> None:
    games = GameBatch(12, np.resize([2, 3, 4], 12), seed=0)
    games.play_random(10_000, rows=np.arange(6))
    before = games.states.tobytes()
    logits, shares = RolloutEvaluator().evaluate(games.states)
    assert games.states.tobytes() == before
    assert not logits[:6].any() and not shares[:6].any()
    np.testing.assert_allclose(shares[6:].sum(axis=1), 1, rtol=1e-5)
    assert not shares[np.arange(4) >= games.num_players[:, None]].any()


# --- What is hidden --------------------------------------------------------------------------------------------------


def with_the_same_keys(games: GameBatch, others: GameBatch) -> None:
    """Gives the others the random streams of these games, which agents draw from but know nothing of."""
    others.states["play_key"] = games.states["play_key"]


@pytest.mark.parametrize("settings", ["100", ENOUGH])
def test_games_that_differ_only_in_what_is_hidden_get_the_same_action(settings: str) -> None:
    agent = mcts(settings)
    for decisions in (0, 30, 90, 130):
        games = middle_games(40, decisions, seed=decisions)
        others = games.resample_hidden(np.random.default_rng(decisions))
        with_the_same_keys(games, others)
        assert (games.states["slot_card"] != others.states["slot_card"]).any()
        assert (games.states["bag_order"] != others.states["bag_order"]).any()
        np.testing.assert_array_equal(answers(agent, games), answers(agent, others))


def market_before_a_chest(next_kind: int, known: bool) -> GameBatch:
    """Red may move a market marker before they open a chest: with three rubies in it, or with three emeralds.

    They start a scoring round and bring them 24 points and the win, if they have moved the right marker, else 8.
    Known to all if the bag holds nothing else; hidden if it holds as many of both. Many times, with other random keys.
    """
    table = Table(2, Ruleset(market=(3, 1, 1, 1, 1)))
    table.market(GOLD, RUBY, EMERALD, SAPPHIRE, DIAMOND)
    table.lanes([], [], [0, 1, 1, 1, 0, 0], [0, 1, 1, 1, 0, 0])
    table.give(0, *((kind, bags) for kind in (RUBY, EMERALD) for bags in (2, 3, 3)))
    for dungeon in range(6):
        table.enter(dungeon, 0)
    table.row["score"][:2] = 20
    full = [(GOLD, 1), (GOLD, 1), (GOLD, 2)]
    table.put(F, *full)
    chest = [(next_kind, value) for value in (2, 3, 3)]
    in_bag = chest if known else [(kind, value) for kind in (RUBY, EMERALD) for value in (2, 3, 3)]
    out_of_bag = Counter(all_pieces(Ruleset().tokens))
    out_of_bag.subtract(in_bag + full)
    table.discard_tokens(*out_of_bag.elements())
    table.draw_tokens_next(*chest)
    table.begin(Lane.REARRANGE)
    games = table.games[np.zeros(30, np.int64)]
    games.states["play_key"] = np.arange(30)
    return games


def test_only_who_saw_the_bag_could_know_which_marker_to_move() -> None:
    """A search that plays on with the true bag would answer as if it were known."""
    agent = mcts("1000:rollout=random")
    for kind, move in ((RUBY, "market R up 1"), (EMERALD, "market E up 2")):
        known = answers(agent, market_before_a_chest(kind, known=True))
        assert (known == CODE[move]).mean() >= 0.8
    with_rubies, with_emeralds = (market_before_a_chest(kind, known=False) for kind in (RUBY, EMERALD))
    assert (with_rubies.states["bag_order"] != with_emeralds.states["bag_order"]).any()
    np.testing.assert_array_equal(answers(agent, with_rubies), answers(agent, with_emeralds))


# --- Strength --------------------------------------------------------------------------------------------------------


def on_the_brink() -> GameBatch:
    """Twenty games in the same position, with chances of their own."""
    table = winning_position()
    assert table.legal == ["stop taking", "take D1", "take E1", "take R3"]
    games = table.games[np.zeros(20, np.int64)]
    games.states["play_key"] = np.arange(20)
    return games


def test_finds_the_move_that_wins_at_once() -> None:
    games = on_the_brink()
    for settings in ("20", "20:rollout=random:rounds=0"):
        assert set(answers(mcts(settings), games)) == {CODE["take R3"]}


def wins(agent: Agent, other: Agent, deals: int, seed: int) -> float:
    """The share of games between two that the agent wins; every deal is played from both seats."""
    seeds = np.random.default_rng(seed).integers(2**53, size=deals, dtype=np.uint64)
    games = GameBatch(2 * deals, 2, seed=np.repeat(seeds, 2))
    seats = np.tile([0, 1], deals)
    while not games.over.all():
        for player, turn in ((agent, games.current_player == seats), (other, games.current_player == 1 - seats)):
            rows = np.flatnonzero(turn & ~games.over)
            if rows.size:
                games.step(player.act(PublicView(games), rows), rows)
    return float((games.winners / games.winners.sum(axis=1, keepdims=True))[np.arange(2 * deals), seats].mean())


def test_clearly_beats_the_greedy_player_whose_moves_lead_it() -> None:
    """The ladder says 96 %, in 80 games from 85 to 99; who only follows greedy wins half of the games."""
    assert wins(mcts("50"), make_agent("greedy"), deals=20, seed=0) >= 0.8


# --- Settings --------------------------------------------------------------------------------------------------------


def test_is_made_by_name() -> None:
    agent = make_agent("mcts:50:rollout=random:rounds=3")
    assert isinstance(agent, SearchAgent)
    assert (agent.name, agent.simulations) == ("mcts:50:rollout=random:rounds=3", 50)
    evaluator = agent.make_evaluator(2)
    assert isinstance(evaluator, RolloutEvaluator)
    assert (evaluator.rollout, evaluator.rounds, evaluator.threads) == ("random", 3, 2)
    assert make_agent("mcts").name == f"mcts:{SIMULATIONS}"


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("mcts:abc", "the number of simulations must be a whole number from 1 to 100000, but is 'abc'"),
        ("mcts:", "the number of simulations must be a whole number from 1 to 100000, but is ''"),
        ("mcts:0", "must be a whole number from 1"),
        ("mcts:-5", "must be a whole number from 1"),
        ("mcts:1e3", "must be a whole number from 1"),
        ("mcts:100001", "to 100000, but is '100001'"),
        ("mcts:800:rollout=foo", "'rollout=foo' is no setting of mcts: these are rollout=greedy or rollout=random"),
        ("mcts:800:depth=3", "'depth=3' is no setting of mcts"),
        ("mcts:800:", "'' is no setting of mcts"),
        ("mcts:800:rounds=-1", "rounds must be a whole number from 0 to 100, but is '-1'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(name: str, complaint: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        make_agent(name)
    assert complaint in str(refused.value)
