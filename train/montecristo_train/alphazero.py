"""Trains an agent from the rules alone: `python -m montecristo_train.alphazero quick`, or `smoke`, or `full`.

Gumbel AlphaZero. One network plays all seats of games with 2, 3 and 4 players by search (`montecristo_agents.search`),
and learns what the search has found: its improved policy, and the value of the position for every player by TD(lambda).
No player written by hand is involved, other than to measure win rates. Processes play (see `workers`), and this one
learns; with `--n-workers 0` all happens in this process, and the same seed gives the same run. With `--ray` those who
play are actors of Ray, on any machines.

A run folder holds the settings, metrics, checkpoints, a learning curve and the trained agent,
`policy:RUN/agent.safetensors` or `policy+mcts:RUN/agent.safetensors:64`. `--resume RUN` goes on after a stop of any
kind: with the weights and counters of the last checkpoint, and new games.
"""

import copy
import dataclasses
import json
import math
import sys
import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import montecristo_train  # noqa: F401, before torch, which it tells not to keep cores busy

# isort: split
import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as safetensors_bytes
from torch.nn import functional

from montecristo_agents.entity import EntityNetwork
from montecristo_agents.models import checksum
from montecristo_env import observation
from montecristo_env.errors import InvalidArgument
from montecristo_env.util.commands import run_command
from montecristo_env.util.files import atomic_write, locked
from montecristo_train.alphazero_settings import PRESETS, Settings
from montecristo_train.entity import ILLEGAL, EntityModule, Outputs, export, has_bfloat16, load, tensors
from montecristo_train.episodes import AUXILIARY, VALUE, WIN, Batch, Positions, prepare
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
from montecristo_train.workers import make_workers

FORMAT = "1"


# --- Learning --------------------------------------------------------------------------------------------------------


class Learner:
    """The network that learns, its average, and what it learns from."""

    def __init__(self, settings: Settings) -> None:
        torch.manual_seed(settings.seed)
        self.settings = settings
        self.module = EntityModule(settings.sizes)
        if settings.start:
            load(self.module, EntityNetwork.load(settings.start))
        self.average = copy.deepcopy(self.module)
        self.optimizer = torch.optim.AdamW(
            self.module.parameters(), settings.learning_rate, weight_decay=settings.weight_decay, fused=True
        )
        self.rng = np.random.default_rng(settings.seed)
        self.buffer = Positions.empty(settings.buffer_size)
        self.positions = 0
        """That were played so far."""
        self.games = 0.0
        self.filled = 0  # positions that went into the buffer
        self._due = -settings.replay_ratio * settings.learning_starts  # positions still to learn from

    def add(self, new: Positions) -> None:
        """Puts positions into the buffer, over the oldest ones."""
        places = (self.filled + np.arange(len(new.states))) % self.settings.buffer_size
        for kept, part in zip(self.buffer, new, strict=True):
            kept[places] = part
        self.filled += places.size
        self.positions += places.size
        self._due += self.settings.replay_ratio * places.size

    def learn(self) -> dict[str, float]:
        """Takes as many gradient steps as are due; the means of their losses."""
        settings = self.settings
        first, last, done = settings.learning_rate, settings.final_learning_rate, settings.share_done(self.positions)
        for group in self.optimizer.param_groups:
            group["lr"] = last + (first - last) * 0.5 * (1 + math.cos(math.pi * done))
        window = min(self.filled, settings.buffer_size, max(settings.min_window, int(settings.window * self.positions)))
        totals: dict[str, float] = {}
        steps = max(0, int(self._due // settings.batch_size))
        for _ in range(steps):
            picked = (self.filled - 1 - self.rng.integers(0, window, settings.batch_size)) % settings.buffer_size
            for name, value in self._step(prepare(self.buffer, picked)).items():
                totals[name] = totals.get(name, 0.0) + value / steps
        self._due -= steps * settings.batch_size
        return totals

    def _step(self, batch: Batch) -> dict[str, float]:
        settings = self.settings
        with torch.autocast("cpu", torch.bfloat16, settings.bfloat16 and has_bfloat16()):
            outputs = Outputs(*(part.float() for part in self.module(torch.from_numpy(batch.seen))))
        policies, targets = torch.from_numpy(batch.policies), torch.from_numpy(batch.targets)
        present = torch.from_numpy(np.asarray(observation.view(batch.seen, "present")) == 1)
        logits = outputs.logits.masked_fill(torch.from_numpy(~batch.masks), ILLEGAL)
        policy_loss = cross_entropy(logits, policies)
        value_loss = cross_entropy(outputs.value.masked_fill(~present, ILLEGAL), targets[:, VALUE])
        win_loss = cross_entropy(outputs.win.masked_fill(~present, ILLEGAL), targets[:, WIN])
        known = torch.cat([torch.ones_like(present[:, :1]), present], 1)  # absent players score nothing
        aux_loss = functional.mse_loss(outputs.auxiliary * known, targets[:, AUXILIARY])
        loss = policy_loss + settings.vf_coef * value_loss + settings.win_coef * win_loss + settings.aux_coef * aux_loss
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.module.parameters(), settings.max_grad_norm)
        self.optimizer.step()
        with torch.no_grad():
            for mean, current in zip(self.average.parameters(), self.module.parameters(), strict=True):
                mean.lerp_(current, settings.average_rate)
            entropy = cross_entropy((policies + 1e-9).log(), policies)
        losses = {"policy": policy_loss, "value": value_loss, "win": win_loss, "aux": aux_loss}
        found = {f"train/{name}_loss": part.item() for name, part in losses.items()}
        return found | {"train/entropy_loss": -entropy.item(), "train/policy_kl": (policy_loss - entropy).item()}

    def save(self, path: Path, facts: dict[str, Any]) -> None:
        """Writes a checkpoint, all but the games and the buffer; an older one stays if something fails."""
        state: dict[str, torch.Tensor] = {}
        for name, module in (("module", self.module), ("average", self.average)):
            state |= {f"{name}.{key}": tensor for key, tensor in module.state_dict().items()}
        for number, moments in self.optimizer.state_dict()["state"].items():
            state |= {f"optimizer.{number}.{key}": tensor for key, tensor in moments.items()}
        content = {name: np.ascontiguousarray(tensor.numpy()) for name, tensor in state.items()}
        facts = facts | {"positions": self.positions, "games": self.games, "random": self.rng.bit_generator.state}
        header = {"format": FORMAT, "facts": json.dumps(facts)}
        atomic_write(path, safetensors_bytes(content, header | {"checksum": checksum(header, content)}))

    def load(self, path: Path) -> dict[str, Any]:
        """Goes on from a checkpoint; what was kept with it."""
        try:
            with safe_open(path, framework="np") as file:
                header = file.metadata() or {}
                content = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no mapping)
        except (OSError, SafetensorError) as error:
            raise InvalidArgument(f"{path} is no checkpoint that can be read: {error}") from None
        if header.get("format") != FORMAT or header.get("checksum") != checksum(header, content):
            raise InvalidArgument(f"{path} is damaged, or no checkpoint of format {FORMAT}: its checksum is wrong")
        moments: dict[int, dict[str, torch.Tensor]] = {}
        states: dict[str, dict[str, torch.Tensor]] = {"module": {}, "average": {}}
        for name, array in content.items():
            owner, _, key = name.partition(".")
            if owner == "optimizer":
                number, _, key = key.partition(".")
                moments.setdefault(int(number), {})[key] = torch.from_numpy(array)
            else:
                states[owner][key] = torch.from_numpy(array)
        self.module.load_state_dict(states["module"])
        self.average.load_state_dict(states["average"])
        self.optimizer.load_state_dict(self.optimizer.state_dict() | {"state": moments})
        facts: dict[str, Any] = json.loads(header["facts"])
        self.positions, self.games = facts["positions"], facts["games"]
        self.rng.bit_generator.state = facts["random"]
        return facts


def cross_entropy(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """The mean over the batch; targets are probabilities."""
    return -(targets * functional.log_softmax(logits, 1)).sum(1).mean()


# --- Runs ------------------------------------------------------------------------------------------------------------


def train(settings: Settings, folder: Path, resume: bool = False) -> EntityNetwork:
    """Trains, or goes on training, in a run folder, and returns the trained network.

    A folder in which another process trains is refused.
    """
    torch.set_num_threads(1)
    learner, latest = Learner(settings), dict[str, float]()
    with ExitStack() as stack:
        stack.enter_context(locked(folder))
        if resume and (folder / CHECKPOINT).exists():  # else it was stopped before the first one
            latest = learner.load(folder / CHECKPOINT)["latest"]
        metrics = stack.enter_context(Metrics(folder, learner.positions))
        progress = stack.enter_context(ProgressLines(unit="positions"))
        workers = stack.enter_context(closing(make_workers(settings, learner.positions)))
        bar = progress.add_task("training", total=settings.total_timesteps, fps=0.0, results=wins(latest))
        clock, begun = time.perf_counter(), learner.positions
        while learner.positions < settings.total_timesteps:
            before = learner.positions
            new, facts = workers.collect(tensors(learner.average), learner.positions)
            learner.games += facts.pop("games")
            learner.add(new)
            found = learner.learn() | facts
            found["time/evaluations_per_position"] = found.pop("evaluations") / len(new.states)
            found["time/fps"] = rate = (learner.positions - begun) / (time.perf_counter() - clock)
            end = learner.positions >= settings.total_timesteps
            if end or learner.positions // settings.evaluate_every > before // settings.evaluate_every:
                paused = time.perf_counter()
                latest = win_rates(settings, export(learner.average, {}))
                found |= latest
                clock += time.perf_counter() - paused
            metrics.log(learner.positions, found | {"games": learner.games})
            if end or learner.positions // settings.checkpoint_every > before // settings.checkpoint_every:
                facts = training_facts(settings, learner.positions, latest)
                with writing(folder / AGENT):
                    export(learner.average, facts).save(folder / AGENT, np.float16)
                with writing(folder / CHECKPOINT):
                    learner.save(folder / CHECKPOINT, {"latest": latest})
            progress.update(bar, completed=learner.positions, fps=rate, results=wins(latest))
        return finish(folder)


@dataclasses.dataclass(frozen=True)
class Run(Settings):
    """Trains an agent from the rules alone, by self-play with search."""

    run: Path | None = None
    """The run folder; default: a new one in runs/alphazero."""


def main(arguments: list[str]) -> None:
    """The command line."""
    presets = {name: (text, Run(**vars(preset))) for name, (text, preset) in PRESETS.items()}
    start_or_resume("alphazero", Settings, presets, train, arguments)


if __name__ == "__main__":
    run_command(main, sys.argv[1:])
