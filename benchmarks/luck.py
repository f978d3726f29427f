"""The audit of luck: its mean must be 0 for every seat, whoever plays and whatever the values are.

    python benchmarks/luck.py --games 20000 --agent greedy
    python benchmarks/luck.py --games 20000 --agent random --model agent.safetensors

prints, for 2, 3 and 4 players, the mean luck of every seat with its standard error, and exits with 1 if that of the
first seat is further from 0 than two of them. An engine whose `resample_hidden` does not fit what players know fails.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tyro

from montecristo_agents.luck import SIGNALS, LuckMeter
from montecristo_env import GameBatch, PublicView, make_agent
from montecristo_env.core.constants import MAX_PLAYERS

GAMES_AT_ONCE = 2000


@dataclass
class Options:
    games: int = 20_000
    """With each number of players."""
    players: tuple[int, ...] = (2, 3, 4)
    """Numbers of players."""
    agent: str = "random"
    """Plays all seats."""
    model: Path | None = None
    """The file of the network that gives the values; default: that of alphazero."""
    redraws: int = 4
    """Of every draw."""
    seed: int = 0
    """Same seed, same figures."""


def luck_of_games(meter: LuckMeter, agent: str, players: int, size: int, seed: int) -> np.ndarray:
    """The luck of every seat in `size` games, (games, 4, signals)."""
    player, total = make_agent(agent), np.zeros((size, MAX_PLAYERS, len(SIGNALS)))
    seeds = GameBatch(size, players, seed=seed).seeds.copy()
    for begin in range(0, size, GAMES_AT_ONCE):
        part = total[begin : begin + GAMES_AT_ONCE]
        games = GameBatch(len(part), players, seed=seeds[begin : begin + GAMES_AT_ONCE])
        active = np.arange(len(part))
        while active.size:
            measured = meter.step(games, player.act(PublicView(games), active), active, losses=False)
            part[measured.drawn] += measured.luck
            active = active[~games.over[active]]
    return total


def main() -> None:
    options = tyro.cli(Options)
    load = LuckMeter.shipped if options.model is None else lambda redraws: LuckMeter.load(options.model, redraws)
    meter = load(options.redraws)
    print(f"{options.agent} in all seats, {options.games:,} games each, {options.redraws} redraws, {meter.sha256}")
    failed = False
    for players in options.players:
        luck = luck_of_games(meter, options.agent, players, options.games, options.seed + players)[:, :players]
        error = luck.std(axis=0, ddof=1) / np.sqrt(options.games)
        z = luck.mean(axis=0) / error
        for signal, name in enumerate(SIGNALS):
            means = zip(luck.mean(axis=0)[:, signal], error[:, signal], strict=True)
            seats = ", ".join(f"{mean:+.5f} ± {one:.5f}" for mean, one in means)
            print(f"{players} players, {name}: {seats}; first seat z = {z[0, signal]:+.2f}")
            failed |= bool(abs(z[0, signal]) > 2)
    sys.exit(failed)


if __name__ == "__main__":
    main()
