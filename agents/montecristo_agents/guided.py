"""The player that searches with a trained network at its side."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from montecristo_agents.entity import EntityEvaluator, EntityNetwork
from montecristo_agents.mcts import MOST_SIMULATIONS, whole_number
from montecristo_agents.models import shipped_model
from montecristo_agents.policy import PolicyAgent, shipped
from montecristo_agents.search import Search
from montecristo_env.agent import Evaluation, PublicView
from montecristo_env.core.actions import COUNT, FIRST
from montecristo_env.errors import InvalidArgument
from montecristo_env.threads import ALL_CORES

GAMES_AT_ONCE = 128  # so that their trees do not fill the memory
MOST_CONSIDERED = 16  # moves at the root


def policy_mcts(settings: str = "") -> "SearchAgent":
    """Searches with the network of a model file: `policy+mcts:PATH:200` makes 200 simulations per decision."""
    path, _, simulations = settings.rpartition(":")
    if not path:
        raise InvalidArgument(
            f"policy+mcts needs a model file and a number of simulations: policy+mcts:PATH:200, not {settings!r}"
        )
    number = _simulations(simulations)
    return SearchAgent(EntityNetwork.load(path), number, f"policy+mcts:{Path(path).stem}:{number}")


def alphazero(settings: str = "") -> "SearchAgent | PolicyAgent":
    """The network that this package brings along, trained by AlphaZero.

    `alphazero` plays without search, `alphazero:200` with 200 simulations per decision; `alphazero:temperature=0.5` and
    `alphazero:lookahead=4` are settings of `PolicyAgent`.
    """
    if not settings or "=" in settings:
        return shipped("alphazero", settings)
    number = _simulations(settings)
    with shipped_model("alphazero") as path:
        return SearchAgent(EntityNetwork.load(path), number, f"alphazero:{number}")


def _simulations(text: str) -> int:
    return whole_number("the number of simulations", text, 1, MOST_SIMULATIONS)


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

    def win_probabilities(self, games: PublicView, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """The share of the win that its network expects for every seat, (K, 4)."""
        return self.network.win_probabilities(games, rows)

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
