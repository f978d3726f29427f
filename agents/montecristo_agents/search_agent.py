"""The players that search: one `Search`, with whatever evaluator is plugged in."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from montecristo_agents.entity import EntityEvaluator, EntityNetwork
from montecristo_agents.models import shipped_model
from montecristo_agents.policy import PolicyAgent, shipped
from montecristo_agents.search import MOST_CHOICES, SEARCH, WIN_WEIGHT, Evaluator, Search
from montecristo_env.agent import Evaluation, PublicView
from montecristo_env.core.actions import COUNT, FIRST
from montecristo_env.errors import InvalidArgument
from montecristo_env.util.threads import ALL_CORES, parallel_map

MOST_SIMULATIONS = 100_000
MOST_CONSIDERED = 16  # moves at the root
GAMES_AT_ONCE = 128
NODES_AT_ONCE = 2**23  # room in the trees of games that are searched together: 320 MiB


class SearchAgent:
    """Plays what the Gumbel search finds with an evaluator; see `search`. All chance comes from the games' own streams.

    Args:
        make_evaluator: makes an evaluator for so many threads. Every call of `act` gets one of its own.
        simulations: per decision.
        name: of the agent.
        win_weight: of the share of the win in the utility of games that are over; the rest is for points.
        games_at_once: how many games are searched together: many for evaluators to which large batches are cheap.
        best_response: whether it takes for granted that all others play what the evaluator likes best (see `Search`).
    """

    def __init__(
        self,
        make_evaluator: Callable[[int], Evaluator],
        simulations: int,
        name: str = "search",
        win_weight: float = WIN_WEIGHT,
        games_at_once: int = GAMES_AT_ONCE,
        best_response: bool = False,
    ) -> None:
        self.make_evaluator, self.simulations, self.name = make_evaluator, simulations, name
        self.win_weight, self.games_at_once, self.best_response = win_weight, games_at_once, best_response

    def act(self, games: PublicView, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """One legal action per row."""
        actions: NDArray[np.int64] = self._search(games, rows)["action"]
        return actions

    def evaluate(self, games: PublicView, rows: NDArray[np.int64]) -> Evaluation:
        """The improved policy, and what it may expect: the reward "win" if the utility is the share of the win."""
        found = self._search(games, rows)
        shares = np.take_along_axis(found["values"], games.current_player[rows, None].astype(np.int64), 1)[:, 0]
        players = games.num_players[rows]
        likely = np.zeros((rows.size, COUNT))
        for k, decision in enumerate(games["decision"][rows]):
            block = slice(FIRST[decision], FIRST[decision + 1])
            likely[k, block] = found["policy"][k, : block.stop - block.start]
        return Evaluation(likely, (players * shares - 1) / (players - 1))

    def _search(self, games: PublicView, rows: NDArray[np.int64]) -> NDArray[np.void]:
        """The results of a search in each of these games, `SEARCH`."""
        keys = games.random_keys(rows)
        roots, found = games.resample_hidden(keys, rows).states, np.zeros(rows.size, SEARCH)
        at_once = max(1, min(self.games_at_once, NODES_AT_ONCE // (self.simulations * MOST_CHOICES)))

        def search_part(number: int) -> None:
            part = slice(number * at_once, (number + 1) * at_once)
            search = Search(
                keys[part].size,
                self.make_evaluator(ALL_CORES),
                [self.simulations] * MOST_CONSIDERED,
                win_weight=self.win_weight,
                best_response=self.best_response,
                threads=ALL_CORES,  # for a part that is alone; two or more are searched by a thread each
            )
            found[part] = search.run(roots[part], keys[part])

        parallel_map(search_part, -(-rows.size // at_once))
        return found


class NetworkSearchAgent(SearchAgent):
    """Searches with an entity network.

    Args:
        network: that evaluates positions.
        simulations: per decision.
        name: of the agent.
        best_response: whether it takes for granted that all others play the network's best moves.
    """

    def __init__(
        self, network: EntityNetwork, simulations: int, name: str = "policy+mcts", best_response: bool = False
    ) -> None:
        super().__init__(partial(EntityEvaluator, network), simulations, name, best_response=best_response)
        self.network = network

    def evaluate(self, games: PublicView, rows: NDArray[np.int64]) -> Evaluation:
        """The improved policy, and the reward "win" that the network expects without search."""
        found = super().evaluate(games, rows)
        return found._replace(values=self.network.evaluate(games.observe(rows=rows))[1].astype(float))

    def win_probabilities(self, games: PublicView, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """The share of the win that its network expects for every seat, (K, 4)."""
        return self.network.win_probabilities(games, rows)


def policy_mcts(settings: str = "") -> NetworkSearchAgent:
    """Searches with the network of a model file: `policy+mcts:PATH:200` makes 200 simulations per decision."""
    path, _, simulations = settings.rpartition(":")
    if not path:
        raise InvalidArgument(
            f"policy+mcts needs a model file and a number of simulations: policy+mcts:PATH:200, not {settings!r}"
        )
    number = simulations_from(simulations)
    return NetworkSearchAgent(EntityNetwork.load(path), number, f"policy+mcts:{Path(path).stem}:{number}")


def alphazero(settings: str = "") -> NetworkSearchAgent | PolicyAgent:
    """The network that this package brings along, trained by AlphaZero.

    `alphazero` plays without search, `alphazero:200` with 200 simulations per decision; `alphazero:temperature=0.5` and
    `alphazero:lookahead=4` are settings of `PolicyAgent`.
    """
    if not settings or "=" in settings:
        return shipped("alphazero", settings)
    number = simulations_from(settings)
    with shipped_model("alphazero") as path:
        return NetworkSearchAgent(EntityNetwork.load(path), number, f"alphazero:{number}")


def simulations_from(text: str) -> int:
    """The number of simulations that a setting gives."""
    return whole_number("the number of simulations", text, 1, MOST_SIMULATIONS)


def whole_number(what: str, text: str, lowest: int, highest: int) -> int:
    """The number that a setting gives."""
    if not (text.isascii() and text.isdecimal()) or not lowest <= int(text) <= highest:
        raise InvalidArgument(f"{what} must be a whole number from {lowest} to {highest}, but is {text!r}")
    return int(text)
