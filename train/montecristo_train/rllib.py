"""Trains an agent by self-play with PPO on Ray RLlib: `python -m montecristo_train.rllib quick`, or `smoke`, or `full`.

The same game, rewards, credit by seat and pool as in `montecristo_train.ppo`; what plays and what learns are processes
of Ray, on this machine or, with `--address auto`, on the cluster that it belongs to. A runner that dies, or its whole
machine, is replaced, and training goes on. A run folder holds settings, metrics, checkpoints and the trained agent,
`policy:RUN/agent.safetensors`; `--resume RUN` goes on from the last checkpoint.
"""

import dataclasses
import hashlib
import json
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from montecristo_agents.entity import EntityNetwork
from montecristo_env.errors import InvalidArgument
from montecristo_env.util.commands import missing, run_command
from montecristo_env.util.files import locked
from montecristo_train import ppo
from montecristo_train.rllib_runner import League, MaskedNetwork, RllibSettings, SelfPlayRunner, export, spaces
from montecristo_train.runs import (
    AGENT,
    METRICS,
    forget_metrics_after,
    start_or_resume,
    training_facts,
    win_rates,
    wins,
    writing,
)
from montecristo_train.settings import SelfPlaySettings

try:
    import ray
    from ray.rllib.algorithms.ppo import PPO, PPOConfig
    from ray.rllib.core import DEFAULT_MODULE_ID
    from ray.rllib.core.rl_module.rl_module import RLModuleSpec
except ImportError as error:
    raise missing("training on Ray", error.name, "rllib") from error

CHECKPOINTS, CHECKSUM = "checkpoints", "sha256"


def _shared(preset: str) -> dict[str, Any]:
    """What the preset of `montecristo_train.ppo` says of settings that both recipes have."""
    names = {field.name for field in dataclasses.fields(SelfPlaySettings)}
    return {name: value for name, value in vars(ppo.PRESETS[preset][1]).items() if name in names}


PRESETS = {
    "smoke": ("a minute: to see that it works", RllibSettings(**_shared("smoke"))),
    "quick": ("minutes: an agent that beats random", RllibSettings(**_shared("quick"))),
    "full": ("hours: what PPO learns from the observation", RllibSettings(**_shared("full"))),
}


def make_config(settings: RllibSettings) -> PPOConfig:
    """The run in RLlib's words."""
    if settings.n_envs % max(1, settings.n_runners):
        raise InvalidArgument(f"{settings.n_runners} runners cannot share {settings.n_envs} games equally")
    observations, choices = spaces()
    return (
        PPOConfig()
        .environment(
            observation_space=observations,
            action_space=choices,
            env_config={"settings": settings},
            disable_env_checking=True,
        )
        .env_runners(
            env_runner_cls=SelfPlayRunner,
            num_env_runners=settings.n_runners,
            rollout_fragment_length=settings.n_steps,
            sample_timeout_s=None,
        )
        .learners(num_learners=0)
        .rl_module(rl_module_spec=RLModuleSpec(MaskedNetwork, model_config={"sizes": list(settings.sizes)}))
        .training(
            lr=[[0, settings.learning_rate], [settings.total_timesteps, settings.final_learning_rate]],
            entropy_coeff=[[0, settings.ent_coef], [settings.total_timesteps, settings.final_ent_coef]],
            gamma=settings.gamma,
            lambda_=settings.gae_lambda,
            clip_param=settings.clip_range,
            vf_clip_param=float("inf"),
            vf_loss_coeff=settings.vf_coef,
            use_kl_loss=False,
            grad_clip=settings.max_grad_norm,
            grad_clip_by="global_norm",
            train_batch_size=settings.n_envs * settings.n_steps,
            minibatch_size=settings.batch_size,
            num_epochs=settings.n_epochs,
        )
        .fault_tolerance(restart_failed_env_runners=True)
        .callbacks(League)
        .debugging(seed=settings.seed, log_level="ERROR")
        .reporting(min_time_s_per_iteration=0)
    )


@contextmanager
def on_ray(settings: RllibSettings) -> Iterator[None]:
    """Joins the cluster, or makes one of this machine alone; one that is in use already is left as it is."""
    if ray.is_initialized():
        yield
        return
    here: dict[str, Any] = {} if settings.address else {"num_cpus": settings.n_runners + 1, "include_dashboard": False}
    ray.init(address=settings.address or "local", log_to_driver=False, **here)
    try:
        yield
    finally:
        ray.shutdown()


class Training:
    """A run: RLlib's algorithm, and what is kept of it in a folder."""

    def __init__(self, settings: RllibSettings, folder: Path) -> None:
        self.settings, self.folder = settings, folder
        self.algorithm: PPO = make_config(settings).build_algo()
        self.latest: dict[str, float] = {}  # results of the last evaluation
        self._unlogged: dict[str, float] = {}  # the same, until they are in the metrics, once
        self.steps = 0

    def resume(self) -> None:
        """Goes on from the last checkpoint; if the run was stopped before the first one, it begins."""
        found = sorted((self.folder / CHECKPOINTS).glob("[0-9]*"))
        if not found:
            return
        check(found[-1])
        self.algorithm.load_checkpoint(str(found[-1].resolve()))
        self.steps = int(self.algorithm.metrics.peek(("env_runners", "num_env_steps_sampled_lifetime")))

    def update(self) -> dict[str, Any]:
        """Plays and learns once."""
        begun = time.perf_counter()
        result: dict[str, Any] = self.algorithm.train()
        played, self.steps = self.steps, int(result["env_runners"]["num_env_steps_sampled_lifetime"])
        end = self.steps >= self.settings.total_timesteps

        def due(every: int) -> bool:
            return end or self.steps // every > played // every

        if due(self.settings.evaluate_every):
            self.evaluate()
        self._log(result, (self.steps - played) / (time.perf_counter() - begun))
        if due(self.settings.checkpoint_every):
            self.save()
        return result

    def network(self) -> EntityNetwork:
        """The network as it is now."""
        return export(self.algorithm.get_module(), training_facts(self.settings, self.steps, self.latest))

    def evaluate(self) -> None:
        """Plays the best moves of the learner against the baselines."""
        self.latest = self._unlogged = win_rates(self.settings, self.network())

    def _log(self, result: dict[str, Any], rate: float) -> None:
        """One line of metrics, for the file and for people."""
        learner = result["learners"][DEFAULT_MODULE_ID]
        metrics = {"steps": self.steps, "rollouts": self.algorithm.iteration, "time/fps": rate} | self._unlogged
        self._unlogged = {}
        metrics |= {f"train/{name}": float(learner[name]) for name in ("policy_loss", "vf_loss", "entropy")}
        metrics |= {f"game/{name}": float(value) for name, value in result["env_runners"].get("game", {}).items()}
        with writing(self.folder / METRICS), (self.folder / METRICS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(metrics) + "\n")
        print(
            f"{self.steps:,} of {self.settings.total_timesteps:,} steps, {rate:,.0f}/s; {wins(self.latest)}", flush=True
        )

    def save(self) -> None:
        """Writes the agent and a checkpoint, which takes the place of older ones when it is complete."""
        with writing(self.folder / AGENT):
            self.network().save(self.folder / AGENT, np.float16)
        folder = self.folder / CHECKPOINTS
        complete, unfinished = folder / f"{self.algorithm.iteration:09}", folder / "unfinished"
        with writing(complete):
            folder.mkdir(exist_ok=True)
            shutil.rmtree(unfinished, ignore_errors=True)
            self.algorithm.save_to_path(unfinished.resolve())
            (unfinished / CHECKSUM).write_text(checksum(unfinished), encoding="utf-8")
            shutil.rmtree(complete, ignore_errors=True)
            unfinished.rename(complete)
            for older in sorted(folder.glob("[0-9]*"))[:-1]:
                shutil.rmtree(older)


def checksum(folder: Path) -> str:
    """A hash of all files of a checkpoint but for its own."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / CHECKSUM):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(folder).as_posix()} {len(content)}\0".encode() + content)
    return digest.hexdigest()


def check(checkpoint: Path) -> None:
    """Refuses a checkpoint that is not as it was written, before Ray reads any of it."""
    try:
        written = (checkpoint / CHECKSUM).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        written = ""
    if written != checksum(checkpoint):
        raise InvalidArgument(f"{checkpoint} is damaged, its checksum is not that of its content")


def train(settings: RllibSettings, folder: Path, resume: bool = False) -> EntityNetwork:
    """Trains, or goes on training, in a run folder, and returns the trained network.

    A folder in which another process trains is refused.
    """
    with locked(folder), on_ray(settings):
        training = Training(settings, folder)
        try:
            if resume:
                training.resume()
            forget_metrics_after(folder / METRICS, training.steps)
            while training.steps < settings.total_timesteps:
                training.update()
        finally:
            training.algorithm.stop()
    return EntityNetwork.load(folder / AGENT)


@dataclasses.dataclass(frozen=True)
class Run(RllibSettings):
    """Trains an agent by self-play with PPO on Ray RLlib."""

    run: Path | None = None
    """The run folder; default: a new one in runs/rllib."""


def main(arguments: list[str]) -> None:
    """The command line."""
    presets = {name: (text, Run(**vars(preset))) for name, (text, preset) in PRESETS.items()}
    start_or_resume("rllib", RllibSettings, presets, train, arguments)


if __name__ == "__main__":
    run_command(main, sys.argv[1:])
