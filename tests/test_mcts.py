"""The player that searches: what is hidden stays hidden to it, it repeats itself, and thinking longer helps."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from numpy.typing import NDArray

from helpers import CODE, DIAMOND, EMERALD, GOLD, RUBY, SAPPHIRE, F, Table, all_pieces, public_part
from montecristo_agents import mcts
from montecristo_agents.mcts import MctsAgent
from montecristo_env import GameBatch, InvalidArgument, Lane, PublicView, Ruleset, make_agent
from montecristo_env.agent import Agent
from montecristo_env.core.constants import NONE
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
    agent = MctsAgent(settings)
    while not games.over.all():
        rows = np.flatnonzero(~games.over)
        games.step(agent.act(PublicView(games), rows), rows)  # which refuses what is illegal
    assert games.violations() == {}


def test_same_seeds_give_same_play_whatever_else_is_in_the_batch() -> None:
    games = middle_games(12)
    agent = MctsAgent(ENOUGH)
    together = answers(agent, games)
    np.testing.assert_array_equal(answers(agent, games), together)
    rows = np.array([2, 3, 7])
    np.testing.assert_array_equal(agent.act(PublicView(games.copy()), rows), together[rows])
    for row in rows:
        assert answers(agent, games[[row]])[0] == together[row]


@pytest.mark.parametrize("cores", [1, 3])
def test_threads_do_not_change_play(monkeypatch: pytest.MonkeyPatch, cores: int) -> None:
    games = middle_games(8)
    before = answers(MctsAgent(ENOUGH), games)
    monkeypatch.setattr(mcts, "ALL_CORES", cores)
    np.testing.assert_array_equal(answers(MctsAgent(ENOUGH), games), before)


def test_has_nothing_to_say_to_no_games_and_to_games_that_are_over() -> None:
    games = GameBatch(2, 2, seed=0)
    games.play_random(10_000)
    assert games.over.all()
    np.testing.assert_array_equal(answers(MctsAgent("5"), games), [NONE, NONE])
    assert MctsAgent("5").act(PublicView(games), np.zeros(0, np.int64)).shape == (0,)


def test_other_random_streams_give_other_searches() -> None:
    games = middle_games(40)
    others = games.copy()
    others.states["play_key"] += 1
    assert (answers(MctsAgent(ENOUGH), games) != answers(MctsAgent(ENOUGH), others)).any()


def test_does_not_touch_the_games() -> None:
    games = middle_games(6)
    before = public_part(games.states).copy()
    MctsAgent("20").act(PublicView(games), np.arange(6))
    np.testing.assert_array_equal(public_part(games.states), before)


@pytest.mark.parametrize("settings", ["12:rollout=random", "3:rounds=1"])
def test_compiled_and_interpreted_search_agree(monkeypatch: pytest.MonkeyPatch, settings: str) -> None:
    compiled = answers(MctsAgent(settings), middle_games(1))
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    done = run_python(
        "import sys; sys.path.insert(0, 'tests')\n"
        "from test_mcts import MctsAgent, answers, middle_games\n"
        f"print(*answers(MctsAgent('{settings}'), middle_games(1)))\n"
    )
    assert done.stdout.split() == [str(action) for action in compiled], done.stderr


def test_says_how_often_it_tried_each_action_and_what_that_led_to() -> None:
    games = middle_games(9)
    agent, view, rows = MctsAgent("60"), PublicView(games.copy()), np.array([1, 2, 6])
    shares, values = agent.evaluate(view, rows)
    np.testing.assert_array_equal(shares.argmax(axis=1), answers(agent, games)[rows])
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    np.testing.assert_allclose(shares * 60, np.round(shares * 60), atol=1e-9)
    assert not shares[games.action_mask()[rows] == 0].any()
    assert ((values > -1) & (values < 1)).all()


def test_expects_what_the_winning_move_pays() -> None:
    games = on_the_brink()
    values = MctsAgent("200").evaluate(PublicView(games), np.arange(len(games))).values
    assert (values > 0.9).all()


def test_luck_is_the_same_for_the_first_try_of_every_move_and_for_the_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    done = run_python(
        "import sys; sys.path.insert(0, 'tests')\n"
        "from montecristo_agents import tree\n"
        "from test_mcts import Counter, MctsAgent, PublicView, middle_games, np\n"
        "drawn, determinize = Counter(), tree.determinize\n"
        "def watched(root, key, s):\n"
        "    drawn[int(key)] += 1\n"
        "    determinize(root, key, s)\n"
        "tree.determinize = watched\n"
        "tries = 30 * MctsAgent('30:rounds=0').evaluate(PublicView(middle_games(1)), np.arange(1)).probabilities[0]\n"
        "print(sorted(drawn.values()))\n"
        "print(sorted(int((tries.round() > before).sum()) for before in range(int(tries.round().max()))))\n"
    )
    drawn, expected = done.stdout.splitlines()
    assert drawn == expected and max(map(int, expected.strip("[]").split(","))) > 2, done.stderr


# --- What is hidden --------------------------------------------------------------------------------------------------


def with_the_same_keys(games: GameBatch, others: GameBatch) -> None:
    """Gives the others the random streams of these games, which agents draw from but know nothing of."""
    others.states["play_key"] = games.states["play_key"]


@pytest.mark.parametrize("settings", ["100", ENOUGH])
def test_games_that_differ_only_in_what_is_hidden_get_the_same_action(settings: str) -> None:
    agent = MctsAgent(settings)
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
    agent = MctsAgent("1000:rollout=random")
    for kind, move in ((RUBY, "market R up 1"), (EMERALD, "market E up 2")):
        known = answers(agent, market_before_a_chest(kind, known=True))
        assert (known == CODE[move]).mean() >= 0.8
    with_rubies, with_emeralds = (market_before_a_chest(kind, known=False) for kind in (RUBY, EMERALD))
    assert (with_rubies.states["bag_order"] != with_emeralds.states["bag_order"]).any()
    np.testing.assert_array_equal(answers(agent, with_rubies), answers(agent, with_emeralds))


# --- Strength --------------------------------------------------------------------------------------------------------


def on_the_brink() -> GameBatch:
    """Red, 38 points, can take a treasure worth 9 in the last dungeon: no other move ends the game."""
    table = Table(2)
    table.lanes([1, 0, 1], [0, 1, 0], [0, 1, 1], [1, 0, 0])
    table.market(RUBY, GOLD, SAPPHIRE, EMERALD, DIAMOND)
    table.put(F, (RUBY, 3), (DIAMOND, 1), (EMERALD, 1))
    table.enter(F, 0)
    table.give(0, (RUBY, 3), (DIAMOND, 1), (EMERALD, 1))
    table.row["score"][:2] = 38, 39
    table.draw_tokens_next((SAPPHIRE, 1), (SAPPHIRE, 1), (SAPPHIRE, 2))
    table.begin(Lane.CHEST)
    table.play("put F", "put A", "put B")
    assert table.legal == ["stop taking", "take D1", "take E1", "take R3"]
    games = table.games[np.zeros(20, np.int64)]
    games.states["play_key"] = np.arange(20)
    return games


def test_finds_the_move_that_wins_at_once() -> None:
    games = on_the_brink()
    for settings in ("20", "20:rollout=random:rounds=0"):
        assert set(answers(MctsAgent(settings), games)) == {CODE["take R3"]}


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
    assert wins(MctsAgent("50"), make_agent("greedy"), deals=20, seed=0) >= 0.8


# --- Settings --------------------------------------------------------------------------------------------------------


def test_is_made_by_name() -> None:
    agent = make_agent("mcts:50:rollout=random:rounds=3")
    assert isinstance(agent, MctsAgent)
    assert (agent.name, agent.simulations, agent.rollout, agent.rounds) == (
        "mcts:50:rollout=random:rounds=3",
        50,
        "random",
        3,
    )
    assert make_agent("mcts").name == f"mcts:{mcts.SIMULATIONS}"


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
