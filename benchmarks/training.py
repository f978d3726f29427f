"""How fast self-play trains, against MaskablePPO with a free environment: `python benchmarks/training.py`.

The free environment shows the same observations and masks again and again. Two learners meet it, with the settings of a
preset and a network of its sizes: MaskablePPO itself, with layers of torch's own, and ours, whose first layer passes
over zeros, and which may share weights. The first is what Stable-Baselines3 and torch allow, and what the bar is about;
the second shows what the games, the advice and the opponents cost. All work in float32.

Each has a process of its own. In that of MaskablePPO itself the threads of torch are as torch has them; in the others
they spin less, as in our training. All are measured in turn, repeat by repeat, and compared within each, so that the
noise of the machine hits all alike; CPU time suffers less where others compute. Evaluations and checkpoints are not
counted.

AlphaZero is measured on one core, with the settings of its preset `full` but in one process: positions per second,
learning included, and simulations per second of the search that plays. `--presets` without names leaves PPO out.
"""

import argparse
import multiprocessing
import os
import sys
import time
from dataclasses import replace
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple, cast

import montecristo_train  # noqa: F401, before torch, which it tells not to keep cores busy

# isort: split
import numpy as np
import torch
from engine import machine, save, summary
from gymnasium.spaces import Box
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.buffers import MaskableRolloutBuffer
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import VecEnv
from torch import nn

from montecristo_agents import advice
from montecristo_agents.entity import EntityEvaluator
from montecristo_agents.search import Search
from montecristo_env import GameBatch, observation
from montecristo_train import alphazero
from montecristo_train.alphazero_settings import PRESETS as ALPHAZERO_PRESETS
from montecristo_train.checkpoint import past_self
from montecristo_train.entity import export as export_entity
from montecristo_train.entity import tensors
from montecristo_train.network import export
from montecristo_train.ppo import make_env, make_model
from montecristo_train.selfplay import SelfPlayVecEnv
from montecristo_train.settings import PRESETS, Settings
from montecristo_train.workers import Workers

BAR = 0.9  # of the speed of MaskablePPO itself with the free environment
SELF_PLAY, ITSELF, OUR_LEARNER = "self-play", "MaskablePPO itself, free games", "our learner, free games"
SPIN, SPIN_BY_DEFAULT = "GOMP_SPINCOUNT", "300000"  # what torch's threads do, unless they are told not to


class FreeVecEnv(VecEnv):
    """Looks like tables of self-play in the middle of their games, but never does anything."""

    render_mode = None

    def __init__(self, like: SelfPlayVecEnv) -> None:
        self.seen, self.masks = like.reset(), list(like.action_masks())
        self.result = np.zeros(like.num_envs, np.float32), np.zeros(like.num_envs, np.bool_), [{}] * like.num_envs
        super().__init__(like.num_envs, like.observation_space, like.action_space)

    def reset(self) -> np.ndarray:
        return self.seen

    def step_async(self, actions: np.ndarray) -> None:
        pass

    def step_wait(self) -> Any:
        return self.seen, *self.result

    def env_method(self, *args: Any, **kwargs: Any) -> list[Any]:
        return self.masks

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [getattr(self, attr_name)] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None: ...

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False] * self.num_envs

    def close(self) -> None: ...

    def action_masks(self) -> None:
        """MaskablePPO asks whether there is such a method, then calls it through `env_method`."""


def tables_in_the_middle(settings: Settings) -> SelfPlayVecEnv:
    """Games of all ages."""
    env = make_env(settings)
    env.shaping = settings.shaping
    env.games.play_random(100)
    env.games.reset()
    return env


def self_play(settings: Settings) -> MaskablePPO:
    """The recipe as it is in the middle of a run: games of all ages, the pool full of past selves, shaping."""
    env = tables_in_the_middle(settings)
    model = make_model(settings, env)
    for _ in range(settings.pool_size):
        env.pool.add_past_self(past_self(export(model, {})))
    env._seat_learners(np.arange(env.num_envs))  # again, now that there are past selves
    return model


class TorchTrunk(BaseFeaturesExtractor):
    """Hidden layers as anybody would write them."""

    def __init__(self, observation_space: Box, scale: np.ndarray, hidden: tuple[int, ...]) -> None:
        super().__init__(observation_space, features_dim=hidden[-1])
        sizes = len(scale), *hidden
        self.layers = nn.Sequential(*(part for pair in pairwise(sizes) for part in (nn.Linear(*pair), nn.ReLU())))
        self.register_buffer("scale", torch.from_numpy(scale.copy()))

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        return cast(torch.Tensor, self.layers(observations * self.scale))


def policy_of_torch(settings: Settings) -> dict[str, Any]:
    scale = advice.SCALE if settings.advised else observation.SCALE
    return {
        "policy": "MlpPolicy",
        "policy_kwargs": {
            "features_extractor_class": TorchTrunk,
            "features_extractor_kwargs": {"scale": scale, "hidden": settings.hidden},
            "net_arch": [],
        },
    }


def free(settings: Settings, **policy: Any) -> MaskablePPO:
    """MaskablePPO on a free environment, with this policy or, if there is none, that of the recipe."""
    env: Any = FreeVecEnv(tables_in_the_middle(settings))
    model = make_model(settings, env, **policy)
    model.rollout_buffer = MaskableRolloutBuffer(
        settings.rollout,
        env.observation_space,
        env.action_space,
        "cpu",
        settings.decay,
        settings.discount,
        settings.tables,
    )
    return model


class Clock(NamedTuple):
    wall: float
    cpu: float


def cost(model: MaskablePPO, updates: int) -> Clock:
    """Seconds per sample, from rollouts to updated networks."""
    samples = updates * model.n_steps * model.n_envs
    start = Clock(time.perf_counter(), time.process_time())
    model.learn(samples, reset_num_timesteps=False)
    return Clock((time.perf_counter() - start.wall) / samples, (time.process_time() - start.cpu) / samples)


def work(name: str, settings: Settings, threads: int, asked: Connection) -> None:
    """What a process does: measures so many updates whenever it is asked to, until it is asked for none."""
    torch.set_num_threads(threads)
    if name == SELF_PLAY:
        model = self_play(settings)
    else:
        model = free(settings, **(policy_of_torch(settings) if name == ITSELF else {}))
    model.set_logger(Logger(None, []))  # else every call of `learn` leaves a folder behind
    cost(model, 1)  # so that everything is compiled, and games are of all ages
    asked.send(True)
    while updates := asked.recv():
        asked.send(cost(model, updates))


def start(name: str, settings: Settings, threads: int) -> Connection:
    """Starts a process; it is ready when it says so."""
    ours, theirs = multiprocessing.Pipe()
    spin = os.environ.get(SPIN, SPIN_BY_DEFAULT)
    if name == ITSELF:
        os.environ[SPIN] = SPIN_BY_DEFAULT
    context = multiprocessing.get_context("spawn")
    context.Process(target=work, args=(name, settings, threads, theirs), daemon=True).start()
    os.environ[SPIN] = spin
    theirs.close()  # so that a process that dies is not waited for
    ours.recv()
    return ours


def measure(settings: Settings, repeats: int, updates: int, threads: int) -> dict[str, Any]:
    processes = {name: start(name, settings, threads) for name in (SELF_PLAY, ITSELF, OUR_LEARNER)}

    def ask(process: Connection) -> Clock:
        process.send(updates)
        return cast(Clock, process.recv())

    costs = [{name: ask(process) for name, process in processes.items()} for _ in range(repeats)]
    for process in processes.values():
        process.send(0)
    return {
        "hidden": settings.hidden,
        "samples_per_second": {name: summary([1 / turn[name].wall for turn in costs]) for name in processes},
        "ratios": {
            name: {
                "time": summary([turn[name].wall / turn[SELF_PLAY].wall for turn in costs]),
                "CPU time": summary([turn[name].cpu / turn[SELF_PLAY].cpu for turn in costs]),
            }
            for name in (ITSELF, OUR_LEARNER)
        },
    }


ALPHAZERO_BARS = {"positions": 3_000, "simulations": 50_000}  # per second, on one core
GAMES, SIMULATIONS, CONSIDERED = 256, 64, 16


def measure_alphazero(repeats: int, positions: int, connection: Connection) -> None:
    """What a process with one thread does: positions and simulations per second, by the clock and by CPU time."""
    torch.set_num_threads(1)
    settings = replace(ALPHAZERO_PRESETS["full"][1], n_workers=0, n_envs=GAMES, learning_starts=0)
    learner, workers = alphazero.Learner(settings), Workers(settings, 0)
    evaluations = 0

    def learn(wanted: int) -> Clock:
        nonlocal evaluations
        start, begin = Clock(time.perf_counter(), time.process_time()), learner.positions
        while learner.positions < begin + wanted:
            new, facts = workers.collect(tensors(learner.module), learner.td_lambda)
            evaluations += int(facts["evaluations"])
            learner.add(new)
            learner.learn()
        done = learner.positions - begin
        return Clock(done / (time.perf_counter() - start.wall), done / (time.process_time() - start.cpu))

    learn(positions)  # so that everything is compiled, and games are of all ages
    evaluations, first = 0, learner.positions
    rates = [learn(positions) for _ in range(repeats)]
    games = GameBatch(GAMES, np.resize([2, 2, 3, 4], GAMES), seed=0, threads=1)
    games.play_random(60)
    search = Search(GAMES, EntityEvaluator(export_entity(learner.average, {})), [SIMULATIONS] * CONSIDERED)

    def simulate() -> Clock:
        start = Clock(time.perf_counter(), time.process_time())
        search.run(games.states, np.arange(GAMES, dtype=np.uint64))
        done = GAMES * SIMULATIONS
        return Clock(done / (time.perf_counter() - start.wall), done / (time.process_time() - start.cpu))

    simulate()
    speeds = [simulate() for _ in range(repeats)]
    found = {"positions": rates, "simulations": speeds}
    connection.send(
        {"evaluations_per_position": evaluations / (learner.positions - first)}
        | {
            f"{name}_per_second": {
                "time": summary([c.wall for c in clocks]),
                "CPU time": summary([c.cpu for c in clocks]),
            }
            for name, clocks in found.items()
        }
    )


def alphazero_on_one_core(repeats: int, positions: int) -> dict[str, Any]:
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
    ours, theirs = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    context.Process(target=measure_alphazero, args=(repeats, positions, theirs), daemon=True).start()
    theirs.close()
    return cast(dict[str, Any], ours.recv())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--presets", nargs="*", choices=sorted(PRESETS), default=["quick", "full"])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--updates", type=int, default=2, help="per measurement")
    parser.add_argument("--threads", type=int, default=2, help="for torch")
    parser.add_argument("--positions", type=int, default=40_000, help="of AlphaZero, per measurement; 0 for none")
    options = parser.parse_args()
    results: dict[str, Any] = {
        "machine": machine() | {"torch": torch.__version__, "torch_threads": options.threads},
        "repeats": options.repeats,
        "presets": {},
    }
    for name in options.presets:
        print(f"measuring {name} …", file=sys.stderr, flush=True)
        results["presets"][name] = measure(PRESETS[name][1], options.repeats, options.updates, options.threads)
    print(f"\n{results['machine']['cpu']}, {options.threads} threads; medians of {options.repeats} (lowest to highest)")
    for name, part in results["presets"].items():
        print(f"\n{name}: network {part['hidden']}")
        for kind, values in part["samples_per_second"].items():
            low, mid, high = (values[key] for key in ("lowest", "median", "highest"))
            print(f"  {kind:36s}{mid:8,.0f} samples/s ({low:,.0f} to {high:,.0f})")
        for kind, ratios in part["ratios"].items():
            for clock, values in ratios.items():
                low, mid, high = (values[key] for key in ("lowest", "median", "highest"))
                bar = f"; the bar is {BAR}" if kind == ITSELF else ""
                print(f"  {SELF_PLAY} / {kind}, {clock}: {mid:.3f} ({low:.3f} to {high:.3f}){bar}")
    if options.positions:
        print("measuring alphazero …", file=sys.stderr, flush=True)
        part = results["alphazero"] = alphazero_on_one_core(options.repeats, options.positions)
        print(f"\nalphazero, one core: {part['evaluations_per_position']:.1f} evaluations per position")
        for what, bar_of in ALPHAZERO_BARS.items():
            for clock, values in part[f"{what}_per_second"].items():
                low, mid, high = (values[key] for key in ("lowest", "median", "highest"))
                print(f"  {what} per second of {clock}: {mid:,.0f} ({low:,.0f} to {high:,.0f}); the bar is {bar_of:,}")
    if options.json:
        save(options.json, results)


if __name__ == "__main__":
    main()
