"""Trains an agent by self-play with MaskablePPO: `python -m montecristo_train.ppo quick`, or `smoke`, or `full`.

One network learns to play all seats of games with 2, 3 and 4 players. It plays all of them itself, but in some games
some seats are held by its past selves or by scripted players. Every decision of every seat it holds is a sample,
credited with what that seat gets (see `credit`). A run folder holds the settings, metrics, checkpoints, a learning
curve and the trained agent, `policy:RUN/agent.safetensors`; `--resume RUN` goes on after a stop of any kind.
"""

import dataclasses
import importlib.metadata
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
import torch
import tyro
from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import TensorBoardOutputFormat, configure

from montecristo_agents.arena import play
from montecristo_agents.policy import Network, PolicyAgent
from montecristo_env import Agent
from montecristo_env.commands import resumable, run_command
from montecristo_env.errors import InvalidArgument, MonteCristoError
from montecristo_env.files import is_empty, locked, write_whole
from montecristo_env.ruleset import Ruleset
from montecristo_train.checkpoint import past_self, read_checkpoint, write_checkpoint
from montecristo_train.credit import SeatRolloutBuffer
from montecristo_train.curve import draw_curve
from montecristo_train.lessons import give_lessons, subject
from montecristo_train.network import export, load, make_policy
from montecristo_train.selfplay import SelfPlayVecEnv, make_env
from montecristo_train.settings import MORE_THAN_LUCK, PRESETS, SelfPlaySettings, Settings

AGENT, CHECKPOINT, CURVE, METRICS, SETTINGS, TENSORBOARD = (
    "agent.safetensors",
    "checkpoint.safetensors",
    "curve.png",
    "metrics.jsonl",
    "settings.json",
    "tensorboard",
)
NEVER = 2**62
S = TypeVar("S", bound=SelfPlaySettings)
EVALUATION_SEED = 1_000_003  # deals that no table of a run is likely to play


def make_model(settings: Settings, env: SelfPlayVecEnv, **policy: Any) -> MaskablePPO:
    """MaskablePPO, but for the buffer that credits every seat with its own rewards; `policy` replaces our network."""
    first, last = settings.learning_rate, settings.final_learning_rate
    return MaskablePPO(
        env=env,
        learning_rate=lambda remaining: last + (first - last) * max(0.0, remaining),  # a run overshoots its steps
        n_steps=settings.rollout,
        batch_size=settings.batch,
        n_epochs=settings.epochs,
        gamma=settings.discount,
        gae_lambda=settings.decay,
        clip_range=settings.clip,
        ent_coef=settings.entropy,
        vf_coef=settings.value_weight,
        max_grad_norm=settings.gradient_limit,
        rollout_buffer_class=SeatRolloutBuffer,
        rollout_buffer_kwargs={"table": env},
        **(policy or make_policy(settings.hidden, settings.symmetric, settings.bfloat16)),
        seed=settings.seed,
        device="cpu",
    )


class TwoLines(Progress):
    """A bar with the speed and the time left, which fits into 80 columns, and below it what was measured last."""

    def __init__(self, console: Console | None = None, unit: str = "steps") -> None:
        super().__init__(
            TextColumn("{task.description}"),
            BarColumn(bar_width=16),
            TextColumn("{task.percentage:.0f} %, {task.fields[fps]:,.0f} " + unit + "/s,"),
            TimeElapsedColumn(),
            TextColumn("gone,"),
            TimeRemainingColumn(),
            TextColumn("left"),
            console=console,
        )

    def get_renderables(self) -> Iterator[RenderableType]:
        """The two lines; the second one as soon as there is something to say."""
        yield from super().get_renderables()
        for task in self.tasks:
            if task.fields["results"]:
                yield Text(task.fields["results"])


class Coach(BaseCallback):
    """Does between updates what MaskablePPO does not: annealing, the pool, evaluations, metrics and checkpoints."""

    model: MaskablePPO

    def __init__(self, settings: Settings, folder: Path, env: SelfPlayVecEnv, progress: Progress) -> None:
        super().__init__()
        self.settings, self.folder, self.env = settings, folder, env
        self.rollouts = 0
        self.latest: dict[str, float] = {}  # results of the last evaluation
        self._unlogged: dict[str, float] = {}  # the same, until they are in the metrics, once
        self._progress = progress
        self._bar = progress.add_task("training", total=settings.steps, fps=0.0, results="")
        self._settled = True  # nothing has been learnt since the last report

    def resume(self, facts: dict[str, Any]) -> None:
        """Goes on from a checkpoint."""
        self.rollouts, self.latest = facts["rollouts"], facts["latest"]

    def begin(self) -> None:
        """Looks at the clock."""
        self._begun, self._begun_at = time.perf_counter(), self.model.num_timesteps

    def _on_rollout_start(self) -> None:
        """After an update, or before the first one: what a checkpoint holds is complete at this moment."""
        if not self._settled:
            self._after_update()
        done = self.settings.share_done(self.model.num_timesteps)
        entropy = self.settings.entropy, self.settings.final_entropy
        self.model.ent_coef = entropy[0] + (entropy[1] - entropy[0]) * done
        self.env.shaping = self.settings.shaping_at(self.model.num_timesteps)

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        self.rollouts += 1
        self.env.pool.forget()
        self._settled = False

    def after_lesson(self) -> None:
        """What follows an update follows a lesson, too."""
        self._on_rollout_end()
        self._after_update()

    def _after_update(self) -> None:
        settings, steps = self.settings, self.model.num_timesteps
        self._settled = True
        rate = (steps - self._begun_at) / (time.perf_counter() - self._begun)
        if self.rollouts % settings.snapshot_every == 0:
            self.env.pool.add_past_self(past_self(export(self.model, {})))
        if self.rollouts % settings.evaluate_every == 0:
            self.evaluate()
        self._log(rate)
        self._progress.update(self._bar, completed=steps, fps=rate, results=wins(self.latest))
        if self.rollouts % settings.checkpoint_every == 0:
            self.save()

    def evaluate(self) -> None:
        """Plays the best moves of the learner against the baselines and its past selves."""
        past = [member.agent for member in self.env.pool.members if member.past_self]
        self.latest = self._unlogged = win_rates(self.settings, PolicyAgent(export(self.model, {})), past[-1:])

    def _log(self, rate: float) -> None:
        """One line of metrics, for TensorBoard too."""
        logged = self.model.logger.name_to_value
        episodes = list(self.model.ep_info_buffer or [])
        metrics = {name: float(logged[name]) for name in logged if name.startswith("train/")}
        metrics |= self._unlogged
        self._unlogged = {}
        metrics["time/fps"] = rate
        if episodes:
            metrics["game/decisions"] = float(np.mean([episode["l"] for episode in episodes]))
            metrics["game/margin"] = float(np.mean([episode["margin"] for episode in episodes]))
        for member in self.env.pool.members:
            if not member.past_self:
                metrics[f"pool/{member.agent.name}"] = member.win_rate
        past = [member.win_rate for member in self.env.pool.members if member.past_self]
        if past:
            metrics["pool/past_selves"] = float(np.mean(past))
            metrics["rating/past_selves"] = self.env.pool.rating
        for name, value in metrics.items():
            self.model.logger.record(name, value)
        with writing(self.folder / TENSORBOARD):
            self.model.logger.dump(self.model.num_timesteps)
        line = {"steps": self.model.num_timesteps, "rollouts": self.rollouts} | metrics
        with writing(self.folder / METRICS), (self.folder / METRICS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def save(self) -> None:
        """Writes the agent as it is now and a checkpoint."""
        training = {"settings": dataclasses.asdict(self.settings), "steps": self.model.num_timesteps} | provenance()
        with writing(self.folder / AGENT):
            export(self.model, training | {"win_rates": self.latest}).save(self.folder / AGENT, np.float16)
        extra = {"rollouts": self.rollouts, "latest": self.latest}
        with writing(self.folder / CHECKPOINT):
            write_checkpoint(self.folder / CHECKPOINT, self.model, self.env, extra)


def win_rates(settings: SelfPlaySettings, agent: PolicyAgent, past: Sequence[Agent]) -> dict[str, float]:
    """How the learner does against the baselines and past selves, on deals of their own."""
    agent.name = "learner"
    others: list[Any] = [*settings.evaluate_against, *past]
    deals, rules = settings.evaluate_deals, settings.ruleset
    report = play([*others, agent], 2, deals, EVALUATION_SEED, ruleset=rules, focus=len(others), progress=False)
    rates = {}
    for other in others:
        name = other if isinstance(other, str) else "past_self"
        pair = report.pair("learner", other if isinstance(other, str) else other.name)
        if pair is not None:
            rates[f"win_rate/{name}"] = pair.win_rate.value
    hardest = settings.evaluate_against[-1]
    for players in (3, 4):
        if settings.players[players - 2] == 0:
            continue
        report = play([hardest, agent], players, deals // 2, EVALUATION_SEED, ruleset=rules, focus=1, progress=False)
        pair = report.pair("learner", hardest)
        if pair is not None:
            rates[f"win_rate/{hardest}_{players}p"] = pair.win_rate.value
    return rates


def wins(rates: Mapping[str, float]) -> str:
    """The results of an evaluation as a text; an empty one before the first."""
    return "wins: " + ", ".join(f"{name.split('/')[-1]} {rate:.0%}" for name, rate in rates.items()) if rates else ""


class CannotWrite(MonteCristoError):
    """The run folder takes no more; what was in it before is still there."""

    exit_status = os.EX_IOERR


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Says which file of a run could not be written, and what to do."""
    try:
        yield
    except OSError as error:
        raise CannotWrite(
            f"cannot write {path}: {error.strerror or error}. What was there before is still there: make room, or make "
            f"the folder writable, and go on with --resume {path.parent}"
        ) from None


def provenance() -> dict[str, str]:
    """Versions and the commit that a run was made with."""
    names = ("montecristo-env", "numpy", "numba", "torch", "stable-baselines3", "sb3-contrib")
    facts = {name: importlib.metadata.version(name) for name in names}
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        facts["commit"] = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        facts["commit"] = "unknown"
    return facts


def train(settings: Settings, folder: Path, resume: bool = False) -> Network:
    """Trains, or goes on training, in a run folder, and returns the trained network.

    A folder in which another process trains is refused.
    """
    torch.set_num_threads(settings.threads)
    about = subject(settings.lessons_tries, settings.lessons_rounds, settings.lessons_on, settings.start)
    env = make_env(settings)
    model = make_model(settings, env)
    with locked(folder), TwoLines() as progress:
        coach = Coach(settings, folder, env, progress)
        coach.init_callback(model)  # `learn` does so, but what is kept before it needs the model, too
        resume = resume and (folder / CHECKPOINT).exists()  # else it was stopped before the first one
        if resume:
            coach.resume(read_checkpoint(folder / CHECKPOINT, model, env, settings.hidden))
        else:
            if settings.start:
                load(model, Network.load(settings.start))
        with writing(folder / TENSORBOARD):
            model.set_logger(configure(str(folder / TENSORBOARD), []))
            model.logger.output_formats = [TensorBoardOutputFormat(str(folder / TENSORBOARD))]
        forget_metrics_after(folder / METRICS, model.num_timesteps)
        model._total_timesteps = settings.steps
        coach.begin()
        give_lessons(model, env, settings.lessons, coach.after_lesson, about)
        model.learn(max(0, settings.steps - model.num_timesteps), coach, log_interval=NEVER, reset_num_timesteps=False)
        coach.evaluate()
        coach._log(0.0)
        coach.save()
        with writing(folder / CURVE):
            draw_curve(folder / METRICS, folder / CURVE)
    return Network.load(folder / AGENT)


def forget_metrics_after(path: Path, steps: int) -> None:
    """Drops the metrics of what was done after the checkpoint and will be done again."""
    if not path.exists():
        return
    kept = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            if json.loads(line)["steps"] <= steps:
                kept.append(line)
        except (
            LookupError,
            RecursionError,
            TypeError,
            ValueError,
        ):  # half a line: it was stopped, or the disk was full
            continue
    with writing(path):
        write_whole(path, "".join(f"{line}\n" for line in kept).encode())


def new_folder(folder: Path, settings: SelfPlaySettings) -> None:
    """Makes a run folder; one that holds another run is refused."""
    facts = {"settings": dataclasses.asdict(settings), "made_with": provenance()}
    claim(folder, {SETTINGS: (json.dumps(facts, indent=2) + "\n").encode()})


def claim(folder: Path, content: Mapping[str, bytes] = MappingProxyType({})) -> None:
    """Makes a folder for a run, with these files in it; one that holds anything is refused, and left as it is."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder):
            if not is_empty(folder):
                raise InvalidArgument(
                    f"{folder} is not empty: choose another --run, or go on there with --resume {folder}"
                )
            for name, written in content.items():
                write_whole(folder / name, written)
    except OSError as error:
        raise InvalidArgument(f"cannot write to {folder}: {error.strerror}") from None


def read_settings(folder: Path, kind: type[S]) -> S:
    """The settings of a run of some recipe."""
    try:
        kept: dict[str, Any] = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))["settings"]
        values: Any = {name: tuple(value) if isinstance(value, list) else value for name, value in kept.items()}
        return kind(**values)
    except (AttributeError, LookupError, OSError, RecursionError, TypeError, ValueError) as error:
        raise InvalidArgument(f"{folder} is no folder of a training run: {error}") from None


@dataclasses.dataclass(frozen=True)
class Run(Settings):
    """Trains an agent by self-play with MaskablePPO."""

    run: Path | None = None
    """The run folder; default: a new one in runs/ppo."""


def main(arguments: list[str]) -> None:
    """The command line."""
    presets = {name: (text, Run(**vars(preset))) for name, (text, preset) in PRESETS.items()}
    start_or_resume("ppo", Settings, presets, train, arguments)


def start_or_resume(
    recipe: str,
    kind: type[S],
    presets: Mapping[str, tuple[str, Any]],
    train: Callable[[S, Path, bool], Network],
    arguments: list[str],
) -> None:
    """The command line of a recipe: `--resume RUN`, or a preset and changes to its settings.

    Args:
        recipe: the module's name.
        kind: of its settings.
        presets: by name, with a description; each has the settings and `run`, a folder or None.
        train: trains with these settings in this folder, or goes on with that.
        arguments: what the user wrote.
    """
    if arguments[:1] == ["--resume"]:
        if len(arguments) != 2:
            raise InvalidArgument("--resume needs the folder of a run and nothing else: --resume RUN")
        folder, resume = Path(arguments[1]), True
        settings = read_settings(folder, kind)
    else:
        chosen = tyro.extras.overridable_config_cli(
            dict(presets),
            prog=f"python -m montecristo_train.{recipe}",
            description="Trains an agent by self-play. A run that was stopped goes on with --resume RUN.",
            args=arguments,
        )
        folder, resume = chosen.run or Path("runs") / recipe / time.strftime("%Y%m%d-%H%M%S"), False
        settings = kind(**{field.name: getattr(chosen, field.name) for field in dataclasses.fields(kind)})
        settings = dataclasses.replace(settings, ruleset=str(Ruleset.parse(settings.ruleset)))  # a file may change
        new_folder(folder, settings)
    with resumable(f"python -m montecristo_train.{recipe} --resume {folder}"):
        network = train(settings, folder, resume)
    print(f"the agent, and what there is to know of its training, is in {folder}")
    if doubt := nothing_learnt(settings, network):
        print(doubt)
    print(f"let it play: python -m montecristo_agents.arena greedy policy:{folder / AGENT}")


def nothing_learnt(settings: SelfPlaySettings, network: Network) -> str:
    """What to say of an agent that has learnt nothing; an empty text if it has."""
    easiest = settings.evaluate_against[0]
    rate = network.training["win_rates"].get(f"win_rate/{easiest}", 1.0)
    if rate >= MORE_THAN_LUCK:
        return ""
    steps = network.training["steps"]
    return (
        f"it wins {rate:.0%} against {easiest}, so it has learnt nothing yet: {steps:,} steps are too few to, "
        f"they only show that training works; the preset quick has enough"
    )


if __name__ == "__main__":
    run_command(main, sys.argv[1:])
