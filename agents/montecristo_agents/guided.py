"""The player that searches with a trained network at its side."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from montecristo_agents import advice, tree
from montecristo_agents.advice import ROOM, Room, advise, room_for_advice
from montecristo_agents.entity import EntityEvaluator, EntityNetwork
from montecristo_agents.greedy import MOST_CHOICES
from montecristo_agents.judgement import FEATURES, judge_with
from montecristo_agents.mcts import MOST_SIMULATIONS, whole_number
from montecristo_agents.policy import Network, load_network, shipped_model
from montecristo_agents.search import Search
from montecristo_agents.tree import NODE, add_missing, back_up, descend, forget_hidden, most_visited, plant
from montecristo_env.agent import Agent, Evaluation, PublicView
from montecristo_env.core._jit import Library, kernel
from montecristo_env.core.actions import COUNT, FIRST
from montecristo_env.core.constants import MAX_PLAYERS, MIN_PLAYERS
from montecristo_env.core.layout import STATE, Row, States, aligned_empty, aligned_zeros
from montecristo_env.core.legal import NOTHING, bit
from montecristo_env.core.observation import SIZE, observe
from montecristo_env.errors import InvalidArgument
from montecristo_env.threads import ALL_CORES, share

CURIOSITY = 0.2  # how much the search trusts the network's idea of a move that was tried seldom; no other was tried
SHIPPED = "ppo"  # instead of a path
GAMES_AT_ONCE = 128  # so that their trees do not fill the memory
MOST_CONSIDERED = 16  # moves at the root of a Gumbel search
GAMES_PER_THREAD = 32  # games that are worth a thread when each goes down its tree once

library = Library("the guided search", __file__, tree.__file__, *advice.SOURCES)


def policy_mcts(settings: str = "") -> Agent:
    """Searches with a network: `policy+mcts:PATH:200`; an entity network by Gumbel search, a perceptron as before."""
    path, _, simulations = settings.rpartition(":")
    network = load_network(path) if path and path != SHIPPED else None
    if not isinstance(network, EntityNetwork):
        return GuidedAgent(settings)
    number = whole_number("the number of simulations", simulations, 1, MOST_SIMULATIONS)
    return SearchAgent(network, number, f"policy+mcts:{Path(path).stem}:{number}")


class SearchAgent:
    """Plays what the Gumbel search with an entity network finds; see `search`.

    Args:
        network: that evaluates positions.
        simulations: per decision.
        name: of the agent.
        best_response: whether it takes for granted that all others play the network's best moves (see `Search`).
    """

    def __init__(
        self, network: EntityNetwork, simulations: int, name: str = "policy+mcts", best_response: bool = False
    ) -> None:
        self.network, self.simulations, self.name = network, simulations, name
        self.best_response = best_response

    def act(self, games: PublicView, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """One legal action per row."""
        return self._search(games, rows)[0]

    def evaluate(self, games: PublicView, rows: NDArray[np.int64]) -> Evaluation:
        """The improved policy, and the reward "win" that the network expects without search."""
        return Evaluation(
            self._search(games, rows)[1], self.network.evaluate(games.observe(rows=rows))[1].astype(float)
        )

    def _search(self, games: PublicView, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The actions, and how likely each of all actions is."""
        chosen, likely = np.zeros(rows.size, np.int64), np.zeros((rows.size, COUNT))
        for begin in range(0, rows.size, GAMES_AT_ONCE):
            part = rows[begin : begin + GAMES_AT_ONCE]
            keys = games.random_keys(part)
            roots = games.resample_hidden(keys, part).states
            budgets = [self.simulations] * MOST_CONSIDERED
            evaluator = EntityEvaluator(self.network, ALL_CORES)
            search = Search(part.size, evaluator, budgets, best_response=self.best_response, threads=ALL_CORES)
            found = search.run(roots, keys)
            chosen[begin : begin + part.size] = found["action"]
            for row, (decision, policy) in enumerate(zip(roots["decision"], found["policy"], strict=True), begin):
                likely[row, FIRST[decision] : FIRST[decision + 1]] = policy[: FIRST[decision + 1] - FIRST[decision]]
        return chosen, likely


class GuidedAgent:
    """Searches with a network at its side: `policy+mcts:PATH:200` makes 200 simulations with the model file at PATH.

    `policy+mcts:ppo:200` does so with the network that this package brings along.

    A simulation goes down to a position with a new move, as that of `MctsAgent`, but nobody plays on from there: it is
    the network that says how likely each move is, and what the player on turn may hope for. The rest is shared among
    the others as the judge would. Its value head must be trained for the reward "win". All games of a batch are played
    together, so that the network is asked for all of them at once.

    Args:
        settings: the path of a model file, a colon and the number of simulations per decision.
    """

    def __init__(self, settings: str = "") -> None:
        path, _, simulations = settings.rpartition(":")
        if not path:
            raise InvalidArgument(
                f"policy+mcts needs a model file and a number of simulations: policy+mcts:PATH:200, not {settings!r}"
            )
        self.simulations = whole_number("the number of simulations", simulations, 1, MOST_SIMULATIONS)
        if path == SHIPPED:
            with shipped_model() as model:
                self.network = Network.load(model)
        else:
            self.network = Network.load(path)
        self.name = f"policy+mcts:{Path(path).stem}:{self.simulations}"
        library.compile_once(_call_every_entry_point)

    def act(self, games: PublicView, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """One legal action per row."""
        library.compile_once(_call_every_entry_point)  # again: a copy from another process was not made here
        parts = [rows[begin : begin + GAMES_AT_ONCE] for begin in range(0, rows.size, GAMES_AT_ONCE)]
        return np.concatenate([np.zeros(0, np.int64), *(self._search(games, part) for part in parts)])

    def _search(self, games: PublicView, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        keys = games.random_keys(rows)
        roots = games.resample_hidden(keys, rows).states
        played, tried = aligned_empty(roots.size, STATE), aligned_empty(ROOM * roots.size, STATE)
        trees = np.empty((roots.size, 1 + self.simulations * MOST_CHOICES), NODE)
        sizes, leaves = np.zeros(roots.size, np.int64), np.zeros(roots.size, np.int64)
        seen = np.empty((roots.size, self.network.inputs), np.int8)

        def run(function: Callable[..., None], *args: Any) -> None:
            share(function, *args, size=roots.size, threads=ALL_CORES, least=GAMES_PER_THREAD)

        run(plant_trees, roots, trees, sizes)
        for _ in range(self.simulations):
            run(descend_games, roots, keys, trees, played, tried, leaves, seen)
            logits, expected = self.network.evaluate(seen)
            run(grow_trees, played, trees, sizes, leaves, logits)
            run(back_up_trees, played, trees, leaves, expected)
        actions = np.empty(roots.size, np.int64)
        run(choose_actions, trees, actions)
        return actions


@library.entry_point
def plant_trees(roots: States, trees: np.ndarray, sizes: np.ndarray, begin: int, end: int) -> None:
    """A new tree for every root."""
    for k in range(begin, end):
        forget_hidden(roots[k])
        sizes[k] = plant(trees[k])


@library.entry_point
def descend_games(
    roots: States,
    keys: np.ndarray,
    trees: np.ndarray,
    played: States,
    tried: States,
    leaves: np.ndarray,
    seen: np.ndarray,
    begin: int,
    end: int,
) -> None:
    """Goes down in every tree to a position with a move that it does not have; what the player on turn sees there."""
    room = room_for_advice()
    for k in range(begin, end):
        leaves[k] = descend(trees[k], roots[k], keys[k], played[k], CURIOSITY)
        look(played[k], room, tried[ROOM * begin :], seen[k])


@kernel
def look(s: Row, room: Room, tried: States, seen: np.ndarray) -> None:
    """What the player on turn sees, with advice if there is room for it."""
    observe(s, max(int(s.current_player), 0), seen[:SIZE])
    if seen.size > SIZE:
        advise(s, room, tried[0], tried[1], seen)


@library.entry_point
def grow_trees(
    played: States,
    trees: np.ndarray,
    sizes: np.ndarray,
    leaves: np.ndarray,
    logits: np.ndarray,
    begin: int,
    end: int,
) -> None:
    """Adds to every leaf the moves that are missing."""
    priors = np.empty(MOST_CHOICES)
    for k in range(begin, end):
        if played[k].legal != NOTHING:
            write_priors(played[k], logits[k], priors)
            sizes[k] = add_missing(trees[k], sizes[k], leaves[k], played[k], priors)


@library.entry_point
def back_up_trees(
    played: States, trees: np.ndarray, leaves: np.ndarray, expected: np.ndarray, begin: int, end: int
) -> None:
    """Tells every tree what share of the win each player may hope for; the network knows it of the player on turn."""
    values, features = np.empty(MAX_PLAYERS), np.empty(len(FEATURES))
    for k in range(begin, end):
        judge_with(played[k], expected[k], features, values)
        back_up(trees[k], leaves[k], values)


@kernel
def write_priors(s: Row, logits: np.ndarray, priors: np.ndarray) -> None:
    """How likely each legal choice is, as the network says."""
    first, choices = int(FIRST[s.decision]), int(FIRST[s.decision + 1] - FIRST[s.decision])
    priors[:] = 0.0
    highest = -np.inf
    for choice in range(choices):
        if s.legal & bit(choice) != NOTHING:
            highest = max(highest, float(logits[first + choice]))
    total = 0.0
    for choice in range(choices):
        if s.legal & bit(choice) != NOTHING:
            priors[choice] = np.exp(float(logits[first + choice]) - highest)
            total += priors[choice]
    priors /= total


@library.entry_point
def choose_actions(trees: np.ndarray, out: np.ndarray, begin: int, end: int) -> None:
    """The action of every tree."""
    for k in range(begin, end):
        out[k] = most_visited(trees[k])


def _call_every_entry_point() -> None:
    roots = aligned_zeros(1, STATE)
    roots["num_players"] = MIN_PLAYERS
    roots["winners"] = 1
    keys, numbers, trees = np.zeros(1, np.uint64), np.zeros(1, np.int64), np.zeros((1, 1), NODE)
    seen, logits, expected = np.zeros((1, SIZE), np.int8), np.zeros((1, COUNT), np.float32), np.zeros(1, np.float32)
    plant_trees(roots, trees, numbers, 0, 1)
    descend_games(roots, keys, trees, roots.copy(), aligned_zeros(ROOM, STATE), numbers, seen, 0, 1)
    grow_trees(roots, trees, numbers, numbers, logits, 0, 1)
    back_up_trees(roots, trees, numbers, expected, 0, 1)
    choose_actions(trees, numbers, 0, 1)
