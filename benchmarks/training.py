"""How fast training is: `python benchmarks/training.py [--json FILE] [--repeats 5] [--presets quick full]`.

PPO: decisions per second with the settings of its presets, from rollouts to an updated network, as in the middle of a
run: games of all ages, and a pool full of past selves. `--presets` without names leaves PPO out.

AlphaZero: positions per second with the settings of its preset `full`, learning included, on one core in one process,
and on two cores with two processes that play; then simulations per second of the search that plays, on one core.
`--positions 0` leaves AlphaZero out.

Each measurement has a process of its own. Evaluations and checkpoints are not counted.
"""

import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import replace
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

import montecristo_train  # noqa: F401, before torch, which it tells not to keep cores busy

# isort: split
import numpy as np
import torch
import tyro
from engine import JsonFile, machine, save, show, summary
from stable_baselines3.common.callbacks import BaseCallback

from montecristo_agents.entity import EntityEvaluator
from montecristo_agents.search import Search
from montecristo_env import GameBatch
from montecristo_train import alphazero, entity, ppo
from montecristo_train.alphazero_settings import PRESETS as ALPHAZERO_PRESETS
from montecristo_train.checkpoint import past_self
from montecristo_train.selfplay import make_env
from montecristo_train.workers import Workers

T = TypeVar("T")
Preset: TypeAlias = Literal["smoke", "quick", "full"]
Updates: TypeAlias = Annotated[int, tyro.conf.arg(help="of PPO, per measurement")]
Number: TypeAlias = Annotated[int, tyro.conf.arg(help="of AlphaZero, per measurement; 0 for none")]

BARS = {"positions, 1 core": 3_000, "simulations, 1 core": 50_000}  # per second
GAMES, SIMULATIONS, CONSIDERED = 256, 64, 16


class NoteSeats(BaseCallback):
    """Gives the rollout buffer what every seat got, as the callback of a run does."""

    def _on_step(self) -> bool:
        self.locals["rollout_buffer"].note(self.locals["infos"][0]["seats"])
        return True


def decisions_of_ppo(settings: ppo.Settings, repeats: int, updates: int) -> list[float]:
    """Decisions per second, from rollouts to updated networks."""
    torch.set_num_threads(settings.n_threads)
    env = make_env(settings)
    env.games.play_random(100)
    env.games.reset()
    model = ppo.make_model(settings, env)
    for _ in range(settings.pool_size):
        env.pool.add_past_self(past_self(ppo.export(model, {})))
    env._seat_learners(np.arange(env.num_envs))  # again, now that there are past selves

    def learn(updates: int) -> float:
        decisions, start = updates * settings.n_steps * settings.n_envs, time.perf_counter()
        model.learn(decisions, NoteSeats(), log_interval=ppo.NEVER, reset_num_timesteps=False)
        return decisions / (time.perf_counter() - start)

    learn(1)  # so that everything is compiled
    return [learn(updates) for _ in range(repeats)]


def positions_of_alphazero(workers: int, repeats: int, positions: int) -> list[float]:
    """Positions per second, played and learnt from; `workers` processes play, with 0 this one."""
    torch.set_num_threads(1)
    settings = replace(ALPHAZERO_PRESETS["full"][1], n_workers=workers, learning_starts=0)
    settings = settings if workers else replace(settings, n_envs=GAMES)  # as many as one of two processes has
    learner = alphazero.Learner(settings)

    def learn(wanted: int) -> float:
        start, begin = time.perf_counter(), learner.positions
        while learner.positions < begin + wanted:
            new, _ = players.collect(entity.tensors(learner.module), learner.positions)
            learner.add(new)
            learner.learn()
        return (learner.positions - begin) / (time.perf_counter() - start)

    with closing(Workers(settings, 0)) as players:
        learn(positions)  # so that everything is compiled, and games are of all ages
        return [learn(positions) for _ in range(repeats)]


def simulations_of_search(repeats: int) -> list[float]:
    """Simulations per second of the search, with a network of the sizes of the preset `full`."""
    module = entity.EntityModule(ALPHAZERO_PRESETS["full"][1].sizes)
    games = GameBatch(GAMES, np.resize([2, 2, 3, 4], GAMES), seed=0, threads=1)
    games.play_random(60)
    search = Search(GAMES, EntityEvaluator(entity.export(module, {})), [SIMULATIONS] * CONSIDERED)

    def simulate() -> float:
        start = time.perf_counter()
        search.run(games.states, np.arange(GAMES, dtype=np.uint64))
        return GAMES * SIMULATIONS / (time.perf_counter() - start)

    simulate()
    return [simulate() for _ in range(repeats)]


def use_cores(number: int) -> None:
    """Keeps this process, and those that it starts, on the first few cores, where the system can do that."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:number])


def in_a_process(cores: int, function: Callable[..., T], *arguments: Any) -> T:
    """What a function returns in a new process that may use `cores` cores."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context, use_cores, (cores,)) as process:
        return process.submit(function, *arguments).result()


def main(
    json: JsonFile = None,
    presets: tuple[Preset, ...] = ("quick", "full"),
    repeats: int = 5,
    updates: Updates = 2,
    positions: Number = 40_000,
) -> None:
    results: dict[str, Any] = {
        "machine": machine() | {"torch": torch.__version__},
        "repeats": repeats,
        "ppo": {},
        "alphazero": {},
    }
    print(f"{results['machine']['cpu']}; medians of {repeats} (lowest to highest)")

    def measure(recipe: str, name: str, cores: int, function: Callable[..., list[float]], *arguments: Any) -> None:
        print(f"measuring {name} …", file=sys.stderr, flush=True)
        found = results[recipe][name] = summary(in_a_process(cores, function, *arguments))
        bar = f"; the bar is {BARS[name] / 1000:g}" if name in BARS else ""
        print(f"  {recipe + ' ' + name:32s}{show(found, 'k/s', 1e-3)}{bar}", flush=True)

    cores = os.cpu_count() or 1
    for name in presets:
        settings = ppo.PRESETS[name][1]
        measure("ppo", f"decisions, {name}", cores, decisions_of_ppo, settings, repeats, updates)
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"  # of the processes that follow
    if positions:
        measure("alphazero", "positions, 1 core", 1, positions_of_alphazero, 0, repeats, positions)
        if cores > 1:
            measure("alphazero", "positions, 2 cores", 2, positions_of_alphazero, 2, repeats, positions)
        measure("alphazero", "simulations, 1 core", 1, simulations_of_search, repeats)
    save(json, results)


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
