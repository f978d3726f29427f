"""Plays random games with 2, 3 and 4 players and shows how they went: `python -m montecristo_train.random_games`.

A fixed set of games is played, each to its end. Restarting finished games and stopping after so many steps would
count short games more often than long ones.
"""

import argparse
import sys
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from montecristo_env import GameBatch

try:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    from rich.table import Table
except ImportError:
    sys.exit("The progress bar and the table need the package rich: pip install 'montecristo-env[dev]'")

STEPS_PER_CALL = 64  # decisions per game between two updates of the progress bar


@dataclass
class Outcome:
    """Games that were played to their end, one row each."""

    seconds: float
    decisions: NDArray[np.int64]
    rounds: NDArray[np.int64]
    scores: NDArray[np.int64]  # (games, players)
    winners: NDArray[np.bool_]  # (games, players)
    truncated: NDArray[np.bool_]


def play(num_games: int, num_players: int, seed: int, progress: Progress) -> Outcome:
    """Plays every one of the games to its end."""
    games = GameBatch(num_games=num_games, num_players=num_players, seed=seed)
    bar = progress.add_task(f"{num_players} players", total=num_games)
    seconds = 0.0
    while not games.over.all():
        start = time.perf_counter()
        games.play_random(STEPS_PER_CALL)  # does nothing to games that are over
        seconds += time.perf_counter() - start
        progress.update(bar, completed=int(games.over.sum()))
    return Outcome(
        seconds=seconds,
        decisions=games.states["decisions"].astype(np.int64),
        rounds=games.states["round_number"].astype(np.int64),
        scores=games.scores[:, :num_players].astype(np.int64),
        winners=games.winners[:, :num_players].astype(np.bool_),
        truncated=games.truncated.copy(),
    )


def spread(values: NDArray[np.int64]) -> str:
    """The mean, and the range that holds the middle 90 percent."""
    low, high = np.percentile(values, [5, 95])
    return f"{values.mean():.1f} ({low:.0f}–{high:.0f})"


def percentage(shares: NDArray[np.float64]) -> str:
    """The mean of one value per game, with its 95 percent interval."""
    half_width = 1.96 * shares.std() / np.sqrt(len(shares))
    return f"{100 * shares.mean():.2f} ± {100 * half_width:.2f} %"


def describe(outcome: Outcome) -> dict[str, str]:
    """One column of the table."""
    games, players = outcome.winners.shape
    best = outcome.scores.max(axis=1)
    leaders = (outcome.scores == best[:, None]).sum(axis=1)
    num_winners = outcome.winners.sum(axis=1)
    win_shares = outcome.winners / num_winners[:, None]  # a shared win counts as a part for each
    column = {
        "decisions/s": f"{outcome.decisions.sum() / outcome.seconds:,.0f}",
        "games/s": f"{games / outcome.seconds:,.0f}",
        "decisions per game": spread(outcome.decisions),
        "rounds per game": spread(outcome.rounds),
        "winner's score": spread(best),
    }
    column |= {f"wins of seat {seat}": percentage(win_shares[:, seat]) for seat in range(players)}
    column |= {
        "tie broken (§9.2)": f"{100 * np.mean((leaders > 1) & (num_winners < leaders)):.2f} %",
        "win shared (§9.3)": f"{100 * np.mean(num_winners > 1):.2f} %",
        "cut off (§9.4)": f"{100 * outcome.truncated.mean():.2f} %",
    }
    return column


def main() -> None:
    """Reads the command line, plays and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--games", type=int, default=100_000, help="games per number of players (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="same seed, same games (default: %(default)s)")
    options = parser.parse_args()
    if options.games < 1:
        parser.error("--games must be at least 1")

    warm_up = GameBatch(num_games=1, num_players=2, seed=0)  # compiles, which is not to be timed
    warm_up.play_random(1)
    console = Console()
    bars = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    columns = {}
    with Progress(*bars, console=console, transient=True) as progress:
        for num_players in (2, 3, 4):
            columns[num_players] = describe(play(options.games, num_players, options.seed, progress))

    caption = f"Brackets: 5 % to 95 % of the games. ±: 95 % interval. Threads: {warm_up.threads}."
    table = Table(title=f"{options.games:,} random games each", caption=caption)
    table.add_column("")
    for num_players in columns:
        table.add_column(f"{num_players} players", justify="right")
    labels = list(columns[2])
    labels[7:7] = [f"wins of seat {seat}" for seat in (2, 3)]
    for label in labels:
        table.add_row(label, *(column.get(label, "–") for column in columns.values()))
    console.print(table)


if __name__ == "__main__":
    main()
