"""How fast self-play trains, against MaskablePPO with a free environment: `python benchmarks/training.py`.

Both have the network, sizes and settings of a preset. The free environment shows the same observations and masks again
and again, so what it reaches is what Stable-Baselines3 and torch allow. Both are measured in turn, repeat by repeat,
and compared within each, so that the noise of the machine hits both alike; CPU time suffers less where others compute.
Evaluations and checkpoints are not counted.
"""

import argparse
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from engine import machine, save, summary
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.buffers import MaskableRolloutBuffer
from stable_baselines3.common.vec_env import VecEnv

from montecristo_train.checkpoint import past_self
from montecristo_train.network import export
from montecristo_train.ppo import make_env, make_model
from montecristo_train.selfplay import SelfPlayVecEnv
from montecristo_train.settings import PRESETS, Settings

BAR = 0.9  # of the speed with the free environment


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


def self_play(settings: Settings) -> MaskablePPO:
    """The recipe as it is in the middle of a run: games of all ages, the pool full of past selves, shaping."""
    env = make_env(settings)
    env.shaping = settings.shaping
    model = make_model(settings, env)
    for _ in range(settings.pool_size):
        env.pool.add_past_self(past_self(export(model, {})))
    env.games.play_random(100)
    env.games.reset()
    env._seat_learners(np.arange(env.num_envs))  # again, now that there are past selves
    model.learn(settings.tables * settings.rollout)
    return model


def free(settings: Settings, like: SelfPlayVecEnv) -> MaskablePPO:
    """MaskablePPO as it comes, but for the environment."""
    env: Any = FreeVecEnv(like)
    model = make_model(settings, env)
    model.rollout_buffer = MaskableRolloutBuffer(
        settings.rollout,
        env.observation_space,
        env.action_space,
        "cpu",
        settings.decay,
        settings.discount,
        settings.tables,
    )
    model.learn(settings.tables * settings.rollout)
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


def measure(settings: Settings, repeats: int, updates: int) -> dict[str, Any]:
    ours = self_play(settings)
    theirs = free(settings, cast(SelfPlayVecEnv, ours.env))
    pairs = [(cost(ours, updates), cost(theirs, updates)) for _ in range(repeats)]
    return {
        "hidden": settings.hidden,
        "samples_per_second": {
            "self-play": summary([1 / mine.wall for mine, _ in pairs]),
            "free environment": summary([1 / best.wall for _, best in pairs]),
        },
        "ratio": summary([best.wall / mine.wall for mine, best in pairs]),
        "ratio of CPU time": summary([best.cpu / mine.cpu for mine, best in pairs]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--presets", nargs="+", choices=sorted(PRESETS), default=["quick", "full"])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--updates", type=int, default=2, help="per measurement")
    parser.add_argument("--threads", type=int, default=2, help="for torch")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    results: dict[str, Any] = {
        "machine": machine() | {"torch": torch.__version__, "torch_threads": options.threads},
        "repeats": options.repeats,
        "presets": {},
    }
    for name in options.presets:
        print(f"measuring {name} …", file=sys.stderr, flush=True)
        results["presets"][name] = measure(PRESETS[name][1], options.repeats, options.updates)
    print(f"\n{results['machine']['cpu']}, {options.threads} threads; medians of {options.repeats} (lowest to highest)")
    for name, part in results["presets"].items():
        print(f"\n{name}: network {part['hidden']}")
        for kind, values in part["samples_per_second"].items():
            low, mid, high = (values[key] for key in ("lowest", "median", "highest"))
            print(f"  {kind:18s}{mid:10,.0f} samples/s ({low:,.0f} to {high:,.0f})")
        for kind in ("ratio", "ratio of CPU time"):
            low, mid, high = (part[kind][key] for key in ("lowest", "median", "highest"))
            print(f"  {kind:18s}{mid:10.3f} ({low:.3f} to {high:.3f}); the bar is {BAR}")
    if options.json:
        save(options.json, results)


if __name__ == "__main__":
    main()
