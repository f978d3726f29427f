"""Run folders: how a run of any recipe begins, goes on and is measured, what it keeps, and what it shows meanwhile."""

import dataclasses
import importlib.metadata
import json
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self, TypeVar

import tyro
from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text
from torch.utils.tensorboard import SummaryWriter

from montecristo_agents.arena import play
from montecristo_agents.entity import EntityNetwork
from montecristo_agents.policy import PolicyAgent
from montecristo_agents.search_agent import NetworkSearchAgent
from montecristo_env import Agent
from montecristo_env.errors import InvalidArgument, MonteCristoError
from montecristo_env.ruleset import Ruleset
from montecristo_env.util.commands import CANNOT_WRITE, resumable
from montecristo_env.util.files import atomic_write, is_empty, locked
from montecristo_train.curve import draw_curve
from montecristo_train.settings import RunSettings

AGENT, CHECKPOINT, CURVE, METRICS, SETTINGS, TENSORBOARD = (
    "agent.safetensors",
    "checkpoint.safetensors",
    "curve.png",
    "metrics.jsonl",
    "settings.json",
    "tensorboard",
)
EVALUATION_SEED = 1_000_003  # deals that no game of a run is likely to play
MORE_THAN_LUCK = 0.65  # a higher win rate in the few games of an evaluation is no accident
_LEARNER = "learner"
S = TypeVar("S", bound=RunSettings)


# --- Begin and go on -------------------------------------------------------------------------------------------------


def start_or_resume(
    recipe: str,
    kind: type[S],
    presets: Mapping[str, tuple[str, Any]],
    train: Callable[[S, Path, bool], EntityNetwork],
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


def new_folder(folder: Path, settings: RunSettings) -> None:
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
                atomic_write(folder / name, written)
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


def training_facts(settings: RunSettings, timesteps: int, rates: Mapping[str, float]) -> dict[str, Any]:
    """What the header of a model file says about the training."""
    facts = {"settings": dataclasses.asdict(settings), "steps": timesteps, "win_rates": dict(rates)}
    return facts | provenance()


def provenance() -> dict[str, str]:
    """Versions and the commit that a run was made with."""
    names = ("montecristo-env", "numpy", "torch", "stable-baselines3", "sb3-contrib")
    facts = {name: importlib.metadata.version(name) for name in names}
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        facts["commit"] = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        facts["commit"] = "unknown"
    return facts


# --- Write -----------------------------------------------------------------------------------------------------------


class CannotWrite(MonteCristoError):
    """The run folder takes no more; what was in it before is still there."""

    exit_status = CANNOT_WRITE


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


class Metrics:
    """The metrics of a run: a line of JSON for each update, and the same for TensorBoard.

    What was logged after these timesteps is dropped first: it will be done again.
    """

    def __init__(self, folder: Path, timesteps: int) -> None:
        self._path = folder / METRICS
        forget_metrics_after(self._path, timesteps)
        with writing(folder / TENSORBOARD):
            self._board = SummaryWriter(str(folder / TENSORBOARD), purge_step=timesteps)

    def log(self, timesteps: int, metrics: Mapping[str, float]) -> None:
        """Adds a line."""
        with writing(self._path), self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"steps": timesteps, **metrics}) + "\n")
        for name, value in metrics.items():
            self._board.add_scalar(name, value, timesteps)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._board.close()


def finish(folder: Path) -> EntityNetwork:
    """Draws the learning curve of a run that is complete, and returns the trained network."""
    with writing(folder / CURVE):
        draw_curve(folder / METRICS, folder / CURVE)
    return EntityNetwork.load(folder / AGENT)


def forget_metrics_after(path: Path, timesteps: int) -> None:
    """Drops the metrics of what was done after the checkpoint and will be done again."""
    if not path.exists():
        return
    kept = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            if json.loads(line)["steps"] <= timesteps:
                kept.append(line)
        except (LookupError, RecursionError, TypeError, ValueError):  # half a line: it was stopped, or the disk full
            continue
    with writing(path):
        atomic_write(path, "".join(f"{line}\n" for line in kept).encode())


# --- Measure ---------------------------------------------------------------------------------------------------------


def win_rates(settings: RunSettings, network: EntityNetwork, past: Sequence[Agent] = ()) -> dict[str, float]:
    """How the best moves of a network do against the baselines and past selves, on deals of their own."""
    alone = PolicyAgent(network)
    deals, hardest = settings.evaluate_deals, settings.evaluate_against[-1]
    rates = {name: _win_rate(settings, alone, name, 2, deals) for name in settings.evaluate_against}
    for agent in past:
        rates["past_self"] = _win_rate(settings, alone, agent, 2, deals)
    for players in (3, 4):
        if settings.players[players - 2]:
            rates[f"{hardest}_{players}p"] = _win_rate(settings, alone, hardest, players, deals // 2)
    if simulations := settings.evaluate_simulations:
        searching = NetworkSearchAgent(network, simulations)
        rates[f"{hardest}_search_{simulations}"] = _win_rate(settings, searching, hardest, 2, deals // 2)
    return {f"win_rate/{name}": rate for name, rate in rates.items()}


def _win_rate(settings: RunSettings, agent: Agent, other: str | Agent, players: int, deals: int) -> float:
    """What the agent wins against another."""
    agent.name = _LEARNER
    rules = settings.ruleset
    report = play([other, agent], players, max(1, deals), EVALUATION_SEED, ruleset=rules, progress=False)
    return report.agent(_LEARNER).win_rate.value


def wins(rates: Mapping[str, float]) -> str:
    """The results of an evaluation as a text; an empty one before the first."""
    return "wins: " + ", ".join(f"{name.split('/')[-1]} {rate:.0%}" for name, rate in rates.items()) if rates else ""


def nothing_learnt(settings: RunSettings, network: EntityNetwork) -> str:
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


# --- Show ------------------------------------------------------------------------------------------------------------


class ProgressLines(Progress):
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
