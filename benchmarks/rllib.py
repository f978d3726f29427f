"""How fast a runner of the RLlib recipe plays, against RLlib's stock PettingZoo wrapper: `python benchmarks/rllib.py`.

Both play games of two with the same network, and return episodes for PPO. They are measured in turn, repeat by repeat,
and compared within each. The stock runner is given several games at once, too, and the best of its sizes counts. Then
two runners play at the same time, each in a process of its own, against one of them alone.
"""

import dataclasses
import sys
import time
from collections.abc import Callable
from typing import Any

import ray
import tyro
from engine import JsonFile, machine, measure, ratio, save, show, summary
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.env.multi_agent_env_runner import MultiAgentEnvRunner
from ray.rllib.env.wrappers.pettingzoo_env import PettingZooEnv
from ray.tune.registry import register_env

from montecristo_env import montecristo_v0
from montecristo_train.rllib import PRESETS, make_config
from montecristo_train.rllib_runner import MaskedNetwork, RllibSettings, SelfPlayRunner, spaces

SETTINGS = dataclasses.replace(PRESETS["quick"][1], players=(1.0, 0.0, 0.0), n_runners=0, n_steps=32, past_share=0.0)
STOCK_SIZES = (1, 16, 64)
STOCK_STEPS = 2000
ROLLOUTS = 5  # of each runner in a measurement of scaling
AIM = 5.0


def stock_runner(games: int) -> MultiAgentEnvRunner:
    """What RLlib's documentation tells users of PettingZoo to do: one shared policy for all agents."""
    register_env("montecristo", lambda _: PettingZooEnv(montecristo_v0.env(num_players=2, obs_dtype="int8")))
    observations, choices = spaces()
    network = RLModuleSpec(
        MaskedNetwork,
        observation_space=observations,
        action_space=choices,
        model_config={"sizes": list(SETTINGS.sizes)},
    )
    config = (
        PPOConfig()
        .environment("montecristo", disable_env_checking=True)
        .env_runners(num_env_runners=0, num_envs_per_env_runner=games)
        .multi_agent(policies={"shared"}, policy_mapping_fn=lambda *_, **__: "shared")
        .rl_module(rl_module_spec=MultiRLModuleSpec(rl_module_specs={"shared": network}))
    )
    return MultiAgentEnvRunner(config=config)


def stock_work(games: int) -> Callable[[], int]:
    runner = stock_runner(games)
    return lambda: sum(episode.env_steps() for episode in runner.sample(num_timesteps=STOCK_STEPS))


def our_work(settings: RllibSettings) -> Callable[[], int]:
    runner = SelfPlayRunner(config=make_config(settings), worker_index=0)

    def work() -> int:
        runner.sample()
        return settings.n_envs * settings.n_steps

    return work


def measure_scaling(repeats: int) -> dict[str, Any]:
    """Steps per second of two runners at the same time over those of one alone, both as Ray actors."""
    actor = ray.remote(num_cpus=1)(SelfPlayRunner)
    config = make_config(SETTINGS)
    runners = [actor.remote(config=config, worker_index=number) for number in (1, 2)]

    def seconds(chosen: list[Any]) -> float:
        begun = time.perf_counter()
        ray.get([runner.sample.remote() for runner in chosen for _ in range(ROLLOUTS)])
        return time.perf_counter() - begun

    seconds(runners)  # warms up
    return summary([2 * seconds(runners[:1]) / seconds(runners) for _ in range(repeats)])


def main(json: JsonFile = None, repeats: int = 7) -> None:
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=500_000_000)
    works = {f"stock, {games} games": stock_work(games) for games in STOCK_SIZES}
    works["ours"] = our_work(SETTINGS)
    print("measuring …", file=sys.stderr, flush=True)
    rates = measure(works, repeats)
    rates["stock"] = [
        max(parts) for parts in zip(*(rates[f"stock, {games} games"] for games in STOCK_SIZES), strict=True)
    ]
    results = {
        "machine": machine() | {"ray": ray.__version__},
        "repeats": repeats,
        "steps_per_second": {name: summary(values) for name, values in rates.items()},
        "ratio": ratio(rates, "ours", "stock"),
        "two_runners": measure_scaling(repeats),
    }
    ray.shutdown()
    print(f"\n{results['machine']['cpu']}; medians of {repeats} (lowest to highest)")
    for name, values in results["steps_per_second"].items():
        print(f"  {name:28s}{show(values, 'env steps/s per runner')}")
    print(f"  {'ours over stock':28s}{show(results['ratio'], 'times')}; the aim is {AIM}")
    print(f"  {'two runners over one':28s}{show(results['two_runners'], 'times')}")
    save(json, results)


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
