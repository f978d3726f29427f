"""The greedy player: legal, blind to what is hidden, the same everywhere, sensible and better than random play."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest
from numpy.typing import NDArray

from helpers import DIAMOND, EMERALD, GOLD, ODD_RULES, RUBY, SAPPHIRE, TEXT, A, B, C, F, Table, share_small_batches
from montecristo_agents.greedy import GreedyAgent, choose_actions
from montecristo_env import GameBatch, Lane, Ruleset, make_agent
from montecristo_env.agent import PublicView
from montecristo_env.core.constants import Decision
from montecristo_env.core.jit import INTERPRETED

pytestmark = pytest.mark.engine

GAMES = 300
MIXED = [2, 3, 4]


@pytest.fixture(scope="module")
def greedy() -> GreedyAgent:
    return GreedyAgent()


def act(greedy: GreedyAgent, games: GameBatch, rows: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    return greedy.act(PublicView(games), np.arange(len(games)) if rows is None else rows)


def choose(games: GameBatch) -> list[int]:
    """Its actions, chosen on the rows of the games themselves."""
    actions = np.empty(len(games), np.int64)
    choose_actions(games.states, actions, 0, len(games))
    return actions.tolist()


def middle_games(num_players: int | list[int], ruleset: Ruleset | None = None) -> list[GameBatch]:
    """Batches at many stages of random play, in which nobody is over."""
    batches = []
    for steps in (0, 5, 20, 50, 100, 150, 201):
        games = GameBatch(GAMES, np.resize(num_players, GAMES), seed=steps, ruleset=ruleset)
        games.play_random(steps)
        batches.append(games[~games.over])
    return batches


# --- What every agent must be ----------------------------------------------------------------------------------------


def test_it_is_found_by_its_name() -> None:
    assert make_agent("greedy").name == "greedy"


@pytest.mark.parametrize("ruleset", [None, ODD_RULES], ids=["default", "odd"])
@pytest.mark.parametrize("num_players", [2, 3, 4, MIXED], ids=str)
def test_every_action_is_legal(greedy: GreedyAgent, num_players: int | list[int], ruleset: Ruleset | None) -> None:
    asked = set()
    for games in middle_games(num_players, ruleset):
        for _ in range(20):
            asked |= set(games.states["decision"].tolist())
            games.step(act(greedy, games))  # an illegal action would raise
            games.reset()
    assert asked == {decision for decision in Decision if decision != Decision.OVER}


def test_what_is_hidden_changes_nothing(greedy: GreedyAgent) -> None:
    """Neither behind a view nor on rows in which it stands, as searches have them."""
    rng = np.random.default_rng(0)
    for games in middle_games(MIXED):
        others = games.resample_hidden(rng)
        expected = act(greedy, games).tolist()
        assert act(greedy, others).tolist() == expected
        assert choose(games) == choose(others) == expected


def test_the_same_position_gets_the_same_action_whatever_else_is_in_the_batch(greedy: GreedyAgent) -> None:
    for games in middle_games(MIXED):
        together = act(greedy, games)
        assert act(greedy, games).tolist() == together.tolist()
        some = np.arange(0, len(games), 7)
        assert act(greedy, games, some).tolist() == together[some].tolist()
        for row in some[:5]:
            assert act(greedy, games[int(row)]).tolist() == [together[row]]


@pytest.mark.skipif(INTERPRETED, reason="plain Python uses no threads")
def test_a_batch_shared_among_threads_gets_the_same_actions(
    greedy: GreedyAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = share_small_batches(monkeypatch, rows_per_thread=10)
    for games in middle_games(MIXED):
        together = act(greedy, games)
        shared.clear()
        with monkeypatch.context() as patch:
            patch.setattr("montecristo_agents.greedy.ROWS_PER_THREAD", 10)
            patch.setattr("montecristo_agents.greedy.ALL_CORES", 3)  # also where there is only one
            assert act(greedy, games).tolist() == together.tolist()
        assert shared


def test_choosing_leaves_the_row_as_it_was(greedy: GreedyAgent) -> None:
    """Searches let it choose on rows of their own."""
    for games in middle_games(MIXED):
        before = games.states.tobytes()
        choose(games)
        assert games.states.tobytes() == before


def test_a_finished_game_gets_no_action(greedy: GreedyAgent) -> None:
    games = GameBatch(1, seed=0)
    games.play_random(10_000)
    assert act(greedy, games).tolist() == [-1]


def signature() -> str:
    """A hash of what it does in a few games at many stages."""
    greedy, digest = GreedyAgent(), hashlib.sha256()
    for steps in range(0, 120, 8):
        games = GameBatch(3, MIXED, seed=steps)
        games.play_random(steps)
        digest.update(act(greedy, games).tobytes())
    return digest.hexdigest()


def test_plain_python_plays_the_same() -> None:
    env = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run([sys.executable, __file__], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == signature()


# --- Situations with an obvious move ---------------------------------------------------------------------------------


class Situation(Table):
    """A game of two laid out by hand; red, who has the only marbles that matter, is the greedy player."""

    def __init__(self) -> None:
        super().__init__()
        self.lanes([0, 1, 0], [0, 1, 1], [0, 1, 0], [0, 1, 1])
        self.market(RUBY, SAPPHIRE, EMERALD, GOLD, DIAMOND)

    def score_now(self) -> None:
        """Fills dungeon F, where nobody is, and so starts a scoring round."""
        self.put(F, (DIAMOND, 1), (DIAMOND, 2), (DIAMOND, 3))
        self.draw_tokens_next((DIAMOND, 1), (GOLD, 1), (GOLD, 1))
        self.begin(Lane.CHEST)
        self.play("put F", "put D", "put E")

    def moves(self, greedy: GreedyAgent, number: int = 1) -> list[str]:
        """The next moves of the greedy player, as long as it is their turn."""
        done = []
        while len(done) < number and self.row["current_player"] == 0:
            done.append(TEXT[act(greedy, self.games)[0]])
            self.play(done[-1])
        return done


def test_pays_with_exact_change(greedy: GreedyAgent) -> None:
    table = Situation()
    table.put(A, (RUBY, 2))
    table.enter(A, 0)
    table.give(0, (RUBY, 3), (RUBY, 2))
    table.score_now()
    assert table.moves(greedy, 2) == ["take R2", "pay R2"]


def test_pays_with_small_cards_before_wild_bags(greedy: GreedyAgent) -> None:
    table = Situation()
    table.put(A, (RUBY, 2))
    table.enter(A, 0)
    table.give(0, (RUBY, 1), (RUBY, 1))
    table.give_wild(0)
    table.give_wild(0)
    table.score_now()
    assert table.moves(greedy, 3) == ["take R2", "pay R1", "pay R1"]


def test_takes_the_most_valuable_token_it_can_pay(greedy: GreedyAgent) -> None:
    table = Situation()
    table.put(A, (RUBY, 2), (SAPPHIRE, 2), (RUBY, 3), (GOLD, 3))
    table.enter(A, 0)
    table.give(0, (RUBY, 2), (SAPPHIRE, 2), (GOLD, 3))
    table.score_now()
    assert table.moves(greedy) == ["take R2"]


def test_keeps_a_card_for_the_better_token_of_a_later_dungeon(greedy: GreedyAgent) -> None:
    table = Situation()
    table.put(A, (RUBY, 1))
    table.put(B, (RUBY, 3))
    table.enter(A, 0)
    table.enter(B, 0)
    table.give(0, (RUBY, 3))
    table.score_now()
    assert table.moves(greedy) == ["stop taking"]


def test_enters_the_dungeon_whose_token_it_can_pay(greedy: GreedyAgent) -> None:
    table = Situation()
    for dungeon, token in enumerate([(GOLD, 3), (RUBY, 3), (SAPPHIRE, 3), (EMERALD, 3), (DIAMOND, 3)]):
        table.put(dungeon, token)
    table.give(0, (SAPPHIRE, 3))
    table.begin(Lane.ADVENTURERS)
    assert table.moves(greedy) == ["enter C"]


def test_enters_in_a_crowd_to_overtake_a_rival(greedy: GreedyAgent) -> None:
    table = Situation()
    table.put(B, (RUBY, 3))
    table.enter(B, 1)
    table.give(0, (RUBY, 3))
    table.give(1, (RUBY, 3))
    table.begin(Lane.ADVENTURERS)
    assert table.moves(greedy, 2) == ["enter B", "enter B"]


def test_discards_the_card_it_needs_least(greedy: GreedyAgent) -> None:
    table = Situation()
    table.put(A, (RUBY, 3), (SAPPHIRE, 2))
    table.enter(A, 0, 0)
    table.give(0, (RUBY, 3), (RUBY, 2), (SAPPHIRE, 2), (SAPPHIRE, 3), (EMERALD, 3), (EMERALD, 2), (DIAMOND, 1))
    table.draw_next((RUBY, 3), (RUBY, 1))
    table.begin()
    table.play("deal R3")
    assert table.moves(greedy) == ["discard D1"]


def test_keeps_the_better_card_of_a_deal(greedy: GreedyAgent) -> None:
    table = Situation()
    table.draw_next((DIAMOND, 3), (RUBY, 3))
    table.begin()
    assert table.moves(greedy) == ["deal R3"]


def test_moves_up_the_market_what_only_it_can_sell(greedy: GreedyAgent) -> None:
    table = Situation()
    table.market(RUBY, SAPPHIRE, GOLD, EMERALD, DIAMOND)
    table.put(A, (GOLD, 3), (GOLD, 3))
    table.enter(A, 0, 0)
    table.give(0, (GOLD, 3), (GOLD, 3))
    table.begin(Lane.REARRANGE)
    assert table.moves(greedy) == ["market G up 2"]


def test_returns_a_marble_to_the_shortest_lane(greedy: GreedyAgent) -> None:
    table = Situation()
    table.lanes([1], [0, 1, 1, 0], [1, 0, 0], [0, 1, 0, 1])
    table.begin(Lane.REARRANGE)
    table.play("keep order")
    assert table.moves(greedy) == ["return supply"]


@pytest.mark.parametrize(("rival", "ends"), [(30, True), (39, False)])
def test_ends_the_game_only_if_that_wins_it(greedy: GreedyAgent, rival: int, ends: bool) -> None:
    """Red gathers the ruby for 9 points, blue the sapphire for 6, as soon as a dungeon is full."""
    table = Situation()
    table.row["score"][:2] = 33, rival
    table.put(A, (RUBY, 3))
    table.put(B, (SAPPHIRE, 3))
    table.put(C, (GOLD, 1), (GOLD, 1), (GOLD, 2))
    table.enter(A, 0)
    table.enter(B, 1)
    table.give(0, (RUBY, 3))
    table.give(1, (SAPPHIRE, 3))
    table.draw_tokens_next((DIAMOND, 1), (DIAMOND, 1), (DIAMOND, 2))
    table.begin(Lane.CHEST)
    put = table.moves(greedy, 3)
    assert ("put C" in put) == ends


# --- Strength --------------------------------------------------------------------------------------------------------


def wins_against_random(greedy: GreedyAgent, num_players: int, num_games: int) -> float:
    """The share of wins of one greedy player, who sits at every seat equally often."""
    seats = np.resize(np.arange(num_players), num_games)
    games = GameBatch(num_games, num_players, seed=11)
    while not games.over.all():
        games.play_random(10_000, until=seats)
        rows = np.flatnonzero(games.current_player == seats)
        games.step(act(greedy, games, rows), rows)
    winners = games.winners
    shares = winners[np.arange(num_games), seats] / winners.sum(axis=1)
    return float(shares.mean())


@pytest.mark.parametrize(("num_players", "least"), [(2, 0.97), (3, 0.9), (4, 0.9)])
def test_beats_random_players(greedy: GreedyAgent, num_players: int, least: float) -> None:
    assert wins_against_random(greedy, num_players, num_games=200) >= least


if __name__ == "__main__":
    print(signature())
