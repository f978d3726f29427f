"""Trains an agent by self-play with MaskablePPO: `python -m montecristo_train.ppo quick`, or `smoke`, or `full`.

One network learns to play all seats of games with 2, 3 and 4 players. It plays all of them itself, but in some games
some seats are held by its past selves. Every decision of every seat that it holds is a sample, credited with what that
seat gets (see `seat_gae`): a share of the win, and nothing before the end. It sees the observation and nothing else.

A run folder holds the settings, metrics, checkpoints, a learning curve and the trained agent,
`policy:RUN/agent.safetensors`; `--resume RUN` goes on after a stop of any kind.
"""

import dataclasses
import sys
import time
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from gymnasium import Space, spaces
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.type_aliases import Schedule
from torch import nn

from montecristo_agents.entity import EntityNetwork, Sizes
from montecristo_env import actions
from montecristo_env.util.commands import run_command
from montecristo_env.util.files import locked
from montecristo_train import entity
from montecristo_train.checkpoint import past_self, read_checkpoint, write_checkpoint
from montecristo_train.entity import EntityModule
from montecristo_train.runs import (
    AGENT,
    CHECKPOINT,
    Metrics,
    ProgressLines,
    finish,
    start_or_resume,
    training_facts,
    win_rates,
    wins,
    writing,
)
from montecristo_train.seat_gae import SeatRolloutBuffer
from montecristo_train.selfplay import SelfPlayVecEnv, make_env
from montecristo_train.settings import SelfPlaySettings

NEVER = 2**62


@dataclasses.dataclass(frozen=True)
class Settings(SelfPlaySettings):
    """Self-play with MaskablePPO."""

    start: str = ""
    """A model file to start from, with a network of the same sizes; from scratch if empty."""
    n_threads: int = 2
    """For torch."""


QUICK = Settings(
    total_timesteps=1_500_000,
    n_envs=256,
    pair_units=16,
    entity_units=24,
    hidden_units=128,
    learning_rate=1e-3,
    final_learning_rate=1e-4,
    snapshot_every=200_000,
    evaluate_every=250_000,
    evaluate_deals=50,
    checkpoint_every=250_000,
)
PRESETS = {
    "smoke": (
        "under a minute: to see that it works",
        dataclasses.replace(
            QUICK,
            total_timesteps=20_000,
            n_envs=32,
            n_steps=32,
            batch_size=256,
            pair_units=8,
            entity_units=8,
            hidden_units=32,
            snapshot_every=5_000,
            evaluate_every=10_000,
            evaluate_deals=10,
            checkpoint_every=5_000,
        ),
    ),
    "quick": ("about five minutes: an agent that beats random", QUICK),
    "full": ("about an hour: what PPO learns from the observation", Settings()),
}


# --- The network -----------------------------------------------------------------------------------------------------


class EntityExtractor(BaseFeaturesExtractor):
    """The entity network; its features are the logits of all actions and, last, the reward that the decider expects."""

    def __init__(self, observation_space: Space[Any], sizes: Sizes) -> None:
        super().__init__(observation_space, actions.COUNT + 1)
        self.module = EntityModule(sizes)
        for unused in (self.module.value, self.module.auxiliary):
            unused.requires_grad_(False)

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """For observations with the kinds in market order, (K, observation.SIZE)."""
        outputs = self.module(observations)
        return torch.cat([outputs.logits, entity.expected_rewards(outputs, observations)], 1)


class Columns(nn.Module):
    """Some of its inputs."""

    def __init__(self, first: int, end: int) -> None:
        super().__init__()
        self.columns = slice(first, end)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """These columns."""
        return features[:, self.columns]


class EntityPolicy(MaskableActorCriticPolicy):
    """The policy of Stable-Baselines3 on the entity network, which has heads of its own."""

    def __init__(
        self, observation_space: spaces.Box, action_space: "spaces.Discrete[Any]", schedule: Schedule, sizes: Sizes
    ) -> None:
        super().__init__(
            observation_space,
            action_space,
            schedule,
            net_arch=[],
            ortho_init=False,
            features_extractor_class=EntityExtractor,
            features_extractor_kwargs={"sizes": sizes},
        )
        heads: Any = Columns(0, actions.COUNT), Columns(actions.COUNT, actions.COUNT + 1)
        self.action_net, self.value_net = heads
        learning = [parameter for parameter in self.parameters() if parameter.requires_grad]
        self.optimizer = torch.optim.Adam(learning, lr=schedule(1), eps=1e-5)


def module_of(model: MaskablePPO) -> EntityModule:
    """The network that learns."""
    return cast(EntityExtractor, model.policy.features_extractor).module


def export(model: MaskablePPO, training: dict[str, Any]) -> EntityNetwork:
    """The network as it plays, without torch."""
    return entity.export_wins(module_of(model), training)


# --- Training --------------------------------------------------------------------------------------------------------


def make_model(settings: Settings, env: SelfPlayVecEnv) -> MaskablePPO:
    """MaskablePPO, with our network and a buffer that credits every seat with its own rewards."""
    first, last = settings.learning_rate, settings.final_learning_rate
    model = MaskablePPO(
        EntityPolicy,
        env,
        learning_rate=lambda remaining: last + (first - last) * max(0.0, remaining),  # a run overshoots its end
        n_steps=settings.n_steps,
        batch_size=settings.batch_size,
        n_epochs=settings.n_epochs,
        gamma=settings.gamma,
        gae_lambda=settings.gae_lambda,
        clip_range=settings.clip_range,
        ent_coef=settings.ent_coef,
        vf_coef=settings.vf_coef,
        max_grad_norm=settings.max_grad_norm,
        rollout_buffer_class=SeatRolloutBuffer,
        policy_kwargs={"sizes": settings.sizes},
        seed=settings.seed,
        device="cpu",
    )
    model.set_logger(Logger(None, []))  # metrics go their own way
    if settings.start:
        entity.load(module_of(model), EntityNetwork.load(settings.start))
    return model


class SelfPlayCallback(BaseCallback):
    """Does between updates what MaskablePPO does not: annealing, the pool, evaluations, metrics and checkpoints."""

    model: MaskablePPO

    def __init__(
        self, settings: Settings, folder: Path, env: SelfPlayVecEnv, metrics: Metrics, progress: ProgressLines
    ) -> None:
        super().__init__()
        self.settings, self.folder, self.env = settings, folder, env
        self.latest: dict[str, float] = {}
        """The win rates of the last evaluation."""
        self._metrics, self._progress = metrics, progress
        self._bar = progress.add_task("training", total=settings.total_timesteps, fps=0.0, results="")
        self._clock, self._before = time.perf_counter(), -1  # timesteps before the rollout that goes on

    def _on_training_start(self) -> None:
        self._clock, self._begun = time.perf_counter(), self.model.num_timesteps

    def _on_step(self) -> bool:
        self.locals["rollout_buffer"].note(self.locals["infos"][0]["seats"])
        return True

    def _on_rollout_start(self) -> None:
        """After an update, or before the first one: what a checkpoint holds is complete at this moment."""
        if self._before >= 0:
            self.after_update()
        self._before = self.model.num_timesteps
        first, last = self.settings.ent_coef, self.settings.final_ent_coef
        self.model.ent_coef = first + (last - first) * self.settings.share_done(self._before)

    def _on_rollout_end(self) -> None:
        self.env.pool.forget()

    def after_update(self, end: bool = False) -> None:
        """What is due by now; at the end of the training, everything."""
        settings, steps = self.settings, self.model.num_timesteps

        def passed(every: int) -> bool:
            return steps // every > self._before // every

        metrics = {name: float(value) for name, value in self.logger.name_to_value.items() if name.startswith("train/")}
        self.logger.dump(steps)  # to nowhere: it forgets them
        metrics["time/fps"] = rate = (steps - self._begun) / (time.perf_counter() - self._clock)
        if episodes := list(self.model.ep_info_buffer or []):
            metrics["game/decisions"] = float(np.mean([episode["l"] for episode in episodes]))
            metrics["game/margin"] = float(np.mean([episode["margin"] for episode in episodes]))
        metrics |= self.env.pool.metrics()
        if passed(settings.snapshot_every):
            self.env.pool.add_past_self(past_self(export(self.model, {})))
        if end or passed(settings.evaluate_every):
            past = [member.agent for member in self.env.pool.members if member.past_self]
            self.latest = win_rates(settings, export(self.model, {}), past[-1:])
            metrics |= self.latest
        self._metrics.log(steps, metrics)
        self._progress.update(self._bar, completed=steps, fps=rate, results=wins(self.latest))
        if end or passed(settings.checkpoint_every):
            self.save()

    def save(self) -> None:
        """Writes the agent as it is now and a checkpoint."""
        facts = training_facts(self.settings, self.model.num_timesteps, self.latest)
        with writing(self.folder / AGENT):
            export(self.model, facts).save(self.folder / AGENT, np.float16)
        with writing(self.folder / CHECKPOINT):
            write_checkpoint(self.folder / CHECKPOINT, self.model, self.env, {"latest": self.latest})


def train(settings: Settings, folder: Path, resume: bool = False) -> EntityNetwork:
    """Trains, or goes on training, in a run folder, and returns the trained network.

    A folder in which another process trains is refused.
    """
    torch.set_num_threads(settings.n_threads)
    env = make_env(settings)
    model, latest = make_model(settings, env), dict[str, float]()
    with locked(folder):
        if resume and (folder / CHECKPOINT).exists():  # else it was stopped before the first one
            latest = read_checkpoint(folder / CHECKPOINT, model, env, settings.sizes)["latest"]
        with Metrics(folder, model.num_timesteps) as metrics, ProgressLines() as progress:
            callback = SelfPlayCallback(settings, folder, env, metrics, progress)
            callback.latest = latest
            left = settings.total_timesteps - model.num_timesteps
            if left > 0:
                model.learn(left, callback, log_interval=NEVER, reset_num_timesteps=False)
                callback.after_update(end=True)
        return finish(folder)


@dataclasses.dataclass(frozen=True)
class Run(Settings):
    """Trains an agent by self-play with MaskablePPO."""

    run: Path | None = None
    """The run folder; default: a new one in runs/ppo."""


def main(arguments: list[str]) -> None:
    """The command line."""
    presets = {name: (text, Run(**vars(preset))) for name, (text, preset) in PRESETS.items()}
    start_or_resume("ppo", Settings, presets, train, arguments)


if __name__ == "__main__":
    run_command(main, sys.argv[1:])
