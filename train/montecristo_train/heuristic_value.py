"""Fits the heuristic value to results of games: `python -m montecristo_train.heuristic_value --agent alphazero`.

An agent plays against itself. Wherever a round begins, the features of every player are kept, and the weights are those
that make the results likeliest (see `montecristo_agents.heuristic_value`). Games that were not used for the fit tell
how good it is.
"""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import tyro
from numpy.typing import NDArray

from montecristo_agents.heuristic_value import EARLY, FEATURES, LATE, STAGES, WEIGHTS_FILE, features_of
from montecristo_env import GameBatch, make_agent
from montecristo_env.agent import PublicView
from montecristo_env.core.constants import MAX_PLAYERS, MIN_PLAYERS
from montecristo_env.util.commands import resumable, run_command
from montecristo_env.util.files import atomic_write

HELD_OUT = 5  # one game of this many is left out of the fit
L2 = 1e-4  # what a weight's square costs, so that what is seldom seen weighs little


@dataclass(frozen=True)
class Positions:
    """Beginnings of rounds of games of one size."""

    features: torch.Tensor
    """(K, players, features)"""
    late: torch.Tensor
    """(K, 1, 1), how near the leader is to the target."""
    shares: torch.Tensor
    """(K, players), of the win."""
    games: NDArray[np.int64]
    """(K,), which game they are from."""

    def log_loss(self, weights: torch.Tensor, which: NDArray[np.bool_]) -> torch.Tensor:
        """The mean of minus the logarithm of the probability that the winners were given."""
        each = weights[EARLY] + self.late[which] * weights[LATE]
        log_probabilities = torch.log_softmax((self.features[which] * each).sum(dim=2), dim=1)
        return -(self.shares[which] * log_probabilities).sum(dim=1).mean()


def play_games(agent: str, players: int, games: int, seed: int) -> Positions:
    """Lets an agent play against itself."""
    batch = GameBatch(games, players, seed=seed)
    view, player = PublicView(batch), make_agent(agent)
    seen_round = np.zeros(games, np.int64)
    features, late, rows = [], [], []
    while (going_on := np.flatnonzero(~batch.over)).size:
        begun = going_on[batch.states["round_number"][going_on] != seen_round[going_on]]
        seen_round[begun] = batch.states["round_number"][begun]
        described, near = features_of(view, begun)
        features.append(described[:, :players])
        late.append(near)
        rows.append(begun)
        batch.step(player.act(view, going_on), going_on)
    places = np.concatenate(rows)
    shares = (batch.winners / batch.winners.sum(axis=1, keepdims=True))[places, :players]
    return Positions(
        torch.from_numpy(np.concatenate(features)),
        torch.from_numpy(np.concatenate(late))[:, None, None],
        torch.from_numpy(shares),
        places,
    )


def fit(positions: Positions) -> tuple[NDArray[np.float64], float, float]:
    """The weights, (stages, features), and the log_loss at games left out, with them and if all were equally likely."""
    weights = torch.zeros(len(STAGES), len(FEATURES), dtype=torch.float64, requires_grad=True)
    fitted = positions.games % HELD_OUT != 0
    optimiser = torch.optim.LBFGS([weights], max_iter=300, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimiser.zero_grad()
        log_loss = positions.log_loss(weights, fitted) + L2 * (weights**2).sum()
        log_loss.backward()  # type: ignore[no-untyped-call]
        return log_loss

    optimiser.step(loss)  # type: ignore[no-untyped-call]
    found = weights.detach()
    equal = positions.log_loss(torch.zeros_like(found), ~fitted)
    return found.numpy(), float(positions.log_loss(found, ~fitted)), float(equal)


@dataclass(frozen=True)
class Options:
    """Fits the heuristic value to the results of games that an agent plays against itself."""

    agent: str = "alphazero"
    """Who plays."""
    games: int = 10_000
    """How many games, for each number of players."""
    seed: int = 1
    """Of the games."""
    out: Path = WEIGHTS_FILE
    """The file for the weights."""


def main(arguments: list[str]) -> None:
    """The command line."""
    options = tyro.cli(Options, args=arguments, prog="python -m montecristo_train.heuristic_value")
    with resumable("the same command begins again, nothing was written"):
        fit_all(options)


def fit_all(options: Options) -> None:
    """Plays and fits for each number of players, and writes the file."""
    kept = {}
    for players in range(MIN_PLAYERS, MAX_PLAYERS + 1):
        weights, log_loss, equal = fit(play_games(options.agent, players, options.games, options.seed))
        kept[str(players)] = {
            name: {stage: round(float(weights[place, feature]), 3) for place, stage in enumerate(STAGES)}
            for feature, name in enumerate(FEATURES)
        }
        print(f"{players} players: log_loss at games left out {log_loss:.4f}, without weights {equal:.4f}", flush=True)
    atomic_write(options.out, (json.dumps(kept, indent=1) + "\n").encode())


if __name__ == "__main__":
    run_command(main, sys.argv[1:])
