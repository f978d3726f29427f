"""How fast the engine is, and how much memory it takes: `python benchmarks/engine.py [--json FILE] [--quick]`.

Machines are noisy, so every figure is the median of repeats, with the lowest and highest, and figures that are compared
with each other are measured in turn, repeat by repeat, in one run.
"""

import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import numba
import numpy as np
import tyro

from montecristo_env import GameBatch, actions, observation
from montecristo_env.core.layout import aligned_zeros

BATCH = 1024
WIDE = 128 * BATCH  # too many for the caches
JsonFile: TypeAlias = Annotated[Path | None, tyro.conf.arg(metavar="FILE", help="also write the figures to this file")]
Quick: TypeAlias = Annotated[bool, tyro.conf.arg(help="fewer repeats and no million games, to try it out")]


class Loop:
    """What a training loop asks of the engine: sample, step, restart finished games, observe, mask."""

    def __init__(self, num_games: int, num_players: int, threads: int = 1) -> None:
        self.games = GameBatch(num_games, num_players, seed=0, threads=threads)
        self.observations = aligned_zeros((num_games, observation.SIZE), np.int8)
        self.masks = aligned_zeros((num_games, actions.COUNT), np.int8)
        self.actions = aligned_zeros((num_games,), np.int64)
        self.games.play_random(50)  # into the middle of games
        self.games.sample_actions(self.actions)

    def run(self, steps: int) -> int:
        for _ in range(steps):
            self.games.step(
                self.actions, autoreset=True, observations=self.observations, masks=self.masks, samples=self.actions
            )
        return steps * len(self.games)

    def run_rules(self, steps: int) -> int:
        for _ in range(steps):
            self.games.step(self.actions, autoreset=True, samples=self.actions)
        return steps * len(self.games)


@numba.njit(nogil=True)
def write_every_byte(observations: np.ndarray, masks: np.ndarray) -> None:
    """Only writes as many bytes as the engine does: a small number computed for each."""
    for game in range(observations.shape[0]):
        for i in range(observations.shape[1]):
            observations[game, i] = (game + i) & 3
        for i in range(masks.shape[1]):
            masks[game, i] = (game ^ i) & 1


def rate(work: Callable[[], int]) -> float:
    """Units of work per second."""
    start = time.perf_counter()
    done = work()
    return done / (time.perf_counter() - start)


def measure(works: dict[str, Callable[[], int]], repeats: int) -> dict[str, list[float]]:
    """Rates of several pieces of work, measured in turn so that noise hits them alike."""
    for work in works.values():
        work()
    rates: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            rates[name].append(rate(work))
    return rates


def summary(values: list[float]) -> dict[str, float]:
    return {"median": statistics.median(values), "lowest": min(values), "highest": max(values)}


def ratio(rates: dict[str, list[float]], over: str, under: str) -> dict[str, float]:
    """Of pairs measured one right after the other."""
    return summary([a / b for a, b in zip(rates[over], rates[under], strict=True)])


def measure_batch(players: int, repeats: int, steps: int) -> dict[str, Any]:
    """One thread and two, the rules alone, and the writes alone."""
    one, two = Loop(BATCH, players), Loop(BATCH, players, threads=2)
    wide, wide_two = Loop(WIDE, players), Loop(WIDE, players, threads=2)
    free, free_two = (GameBatch(BATCH, players, seed=1, threads=threads) for threads in (1, 2))
    free_wide, free_wide_two = (GameBatch(WIDE, players, seed=1, threads=threads) for threads in (1, 2))

    def play(games: GameBatch, steps: int) -> int:
        before = int(games.states["decisions"].sum())
        games.play_random(steps)
        done = int(games.states["decisions"].sum()) - before
        games.reset()
        return done

    def writes() -> int:
        for _ in range(steps):
            write_every_byte(one.observations, one.masks)
        return steps * BATCH

    rates = measure(
        {
            "loop": lambda: one.run(steps),
            "loop, 2 threads": lambda: two.run(steps),
            "writes": writes,
            "wide loop": lambda: wide.run(max(1, steps // 25)),
            "wide loop, 2 threads": lambda: wide_two.run(max(1, steps // 25)),
            "play_random": lambda: play(free, steps),
            "play_random, 2 threads": lambda: play(free_two, steps),
            "wide play_random": lambda: play(free_wide, steps // 10),
            "wide play_random, 2 threads": lambda: play(free_wide_two, steps // 10),
        },
        repeats,
    )
    return {
        "rates": {name: summary(values) for name, values in rates.items()},
        "ratios": {
            "loop / writes": ratio(rates, "loop", "writes"),
            "2 threads / 1, loop": ratio(rates, "loop, 2 threads", "loop"),
            "2 threads / 1, play_random": ratio(rates, "play_random, 2 threads", "play_random"),
            "2 threads / 1, wide loop": ratio(rates, "wide loop, 2 threads", "wide loop"),
            "2 threads / 1, wide play_random": ratio(rates, "wide play_random, 2 threads", "wide play_random"),
        },
    }


def measure_games(players: int, repeats: int) -> dict[str, float]:
    """Whole random games per second, both threads."""

    def whole_games() -> int:
        games = GameBatch(4 * BATCH, players, seed=int(time.time_ns() % 2**31), threads=2)
        games.play_random(1_000_000)
        return len(games)

    return summary(measure({"games": whole_games}, repeats)["games"])


def measure_one(players: int, repeats: int, steps: int) -> dict[str, float]:
    """Microseconds for step + observe + mask in a batch of one, through the Python API, new arrays each time."""
    games = GameBatch(1, players, seed=0)
    times = []
    for _ in range(repeats):
        spent = 0.0
        for _ in range(steps):
            action = games.sample_actions()
            start = time.perf_counter()
            seen, masks = np.empty((1, observation.SIZE), np.int8), np.empty((1, actions.COUNT), np.int8)
            games.step(action, observations=seen, masks=masks)
            spent += time.perf_counter() - start
            games.reset()
        times.append(1e6 * spent / steps)
    return summary(times)


def measure_sizes(players: int, sizes: list[int], repeats: int) -> list[dict[str, Any]]:
    """Nanoseconds per decision for batches of every size, one thread: with and without observations and masks."""
    rows = []
    for size in sizes:
        loop = Loop(size, players)
        steps = max(1, 200_000 // size)
        rates = measure({"loop": partial(loop.run, steps), "rules": partial(loop.run_rules, steps)}, repeats)
        rows.append(
            {
                "games": size,
                "memory_mib": (loop.games.states.nbytes + loop.games.rewards.nbytes + 8 * size) / 2**20,
                "loop_ns": summary([1e9 / value for value in rates["loop"]]),
                "rules_ns": summary([1e9 / value for value in rates["rules"]]),
            }
        )
    return rows


def machine() -> dict[str, Any]:
    model = platform.processor()
    info = Path("/proc/cpuinfo")
    if info.exists():
        model = next((line.split(":")[1].strip() for line in info.open() if line.startswith("model name")), model)
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
    }


def show(values: dict[str, float], unit: str, scale: float = 1.0) -> str:
    low, mid, high = (scale * values[name] for name in ("lowest", "median", "highest"))
    return f"{mid:8.2f} {unit:12s} ({low:.2f} to {high:.2f})"


def report(results: dict[str, Any]) -> None:
    print(f"\n{results['machine']['cpu']}, {results['machine']['cores']} cores; N = {BATCH}, wide = {WIDE}")
    print(f"medians of {results['repeats']} repeats (lowest to highest)")
    print(f"a row is {results['row_bytes']} bytes, an observation {observation.SIZE}, a mask {actions.COUNT}")
    for players, part in results["batch"].items():
        print(f"\n{players} players")
        for name, values in part["rates"].items():
            print(f"  {name:32s}{show(values, 'M decisions/s', 1e-6)}")
        for name, values in part["ratios"].items():
            print(f"  {name:32s}{show(values, '')}")
        print(f"  {'whole random games, 2 threads':32s}{show(part['games'], 'k games/s', 1e-3)}")
        print(f"  {'batch of one: step+observe+mask':32s}{show(part['one'], 'µs')}")
    print("\nns per decision, 2 players, one thread")
    print(f"  {'games':>9s} {'MiB':>8s} {'rules':>8s} {'with observations and masks':>28s}")
    for row in results["sizes"]:
        print(
            f"  {row['games']:9d} {row['memory_mib']:8.1f} {row['rules_ns']['median']:8.0f} "
            f"{row['loop_ns']['median']:28.0f}"
        )


def save(path: Path | None, results: dict[str, Any]) -> None:
    """Writes the figures to a file, if one is named."""
    if path is None:
        return
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(results, indent=1) + "\n")
    temporary.replace(path)


def main(json: JsonFile = None, quick: Quick = False) -> None:
    repeats, steps = (3, 20) if quick else (15, 100)
    sizes = [1, 16, 256, 1024, 16_384, 131_072] + ([] if quick else [1_000_000])
    results: dict[str, Any] = {
        "machine": machine(),
        "row_bytes": GameBatch(1).states.itemsize,
        "repeats": repeats,
        "batch": {},
    }
    for players in (2, 3, 4):
        print(f"measuring {players} players …", file=sys.stderr, flush=True)
        results["batch"][players] = measure_batch(players, repeats, steps) | {
            "games": measure_games(players, repeats),
            "one": measure_one(players, repeats, 2000),
        }
    print("measuring batches of all sizes …", file=sys.stderr, flush=True)
    results["sizes"] = measure_sizes(2, sizes, 3 if quick else 5)
    report(results)
    save(json, results)


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
