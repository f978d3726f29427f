"""The arena: agents play duplicate deals against each other, and a report compares their strength.

```sh
python -m montecristo_agents.arena random greedy mcts:200 --players 2 --deals 500
```

Every two agents meet on the same deals, in every seat (see `montecristo_agents.matches`). What is done is kept in a
folder: after Ctrl-C or a crash the same command goes on where it stopped. Same seed, same games, whatever happened.
"""

import hashlib
import io
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import montecristo_env
from montecristo_agents.dataset import GAMES_PER_SHARD, Dataset, DatasetWriter
from montecristo_agents.extras import Console, tyro
from montecristo_agents.extras import progress as bars
from montecristo_agents.luck import LuckMeter
from montecristo_agents.matches import Match, Played, Results, deal_seeds
from montecristo_agents.report import Report, deal_results, make_report
from montecristo_agents.sequential import ALPHA, Claim, SequentialTest, Verdict
from montecristo_env import Agent, InvalidArgument, MonteCristoError, Ruleset, make_agent
from montecristo_env.core.constants import MAX_PLAYERS, MIN_PLAYERS
from montecristo_env.ruleset import RulesetLike
from montecristo_env.util.commands import INTERRUPTED, quiet_pipe
from montecristo_env.util.files import atomic_write, is_empty, locked

CHUNK_SECONDS = 30.0  # what is played between two savings takes about so long: slow agents need many games at once
CHUNK_GROWTH = 4  # times the rounds of the chunk before, at most
CHUNK_GAMES = 8192  # at most: two threads' worth
CHUNKS_PER_CORE = 4  # on Ray: enough that no core waits long for the others at the end
MOST_DEALS = 10_000_000
MOST_SEED = 2**64 - 1
BAD_INPUT = 2  # the exit status
_FOLDER_NAME_LENGTH = 60
_CHUNK_NAME = re.compile(r"([0-9]{10})-([0-9]{10})\.npz")
_SPEED_PERIOD = 600.0  # seconds over which the time left is estimated


def play(
    agents: Sequence[str | Agent],
    players: int = 2,
    deals: int = 500,
    seed: int = 0,
    *,
    ruleset: RulesetLike = None,
    folder: str | Path | None = None,
    records: int = 0,
    focus: int | None = None,
    adjust: bool | LuckMeter = False,
    until: str = "",
    alpha: float = ALPHA,
    dataset: str | Path | None = None,
    progress: bool = True,
    ray: bool = False,
) -> Report:
    """Lets agents play against each other and reports; see `Run` and `Run.play` for the arguments.

    ```python
    report = play(["random", my_agent], players=3, deals=100)
    print(report)
    report.pair("random", my_agent.name).win_rate
    ```
    """
    run = Run(
        agents,
        players,
        deals,
        seed,
        ruleset=ruleset,
        folder=folder,
        records=records,
        focus=focus,
        adjust=adjust,
        until=until,
        alpha=alpha,
        dataset=dataset,
    )
    run.play(progress, ray)
    return run.report()


class Run:
    """An arena run, which can be stopped at any time and resumed from its folder.

    Args:
        agents: names or agents, two or more. The same twice is a mirror match. An agent object is known by its name
            alone: to resume with another one of the same name is a mistake that nobody notices.
        players: 2, 3 or 4 at a table.
        deals: how many deals every table plays.
        seed: same seed, same deals.
        ruleset: the settings of the game.
        folder: where to keep what is done; nowhere if None. A folder with another run in it is refused.
        records: of how many deals all games are recorded, in the folder.
        focus: the number of an agent: then the others meet only this one, and not each other.
        adjust: whether to report results without the luck of draws, too (see `luck`), with the shipped network's
            values or those of a meter. The games are the same, but take longer.
        until: a claim, such as "greedy beats random by 10 Elo": the run ends with the deal that decides it (see
            `sequential`), or after all `deals`. It is decided by adjusted results if there are any.
        alpha: how often the claim may be accepted of equals, and how often rejected if it is true.
        dataset: a folder for all decisions of all games, as NumPy shards (see `dataset`); nowhere if None.
    """

    def __init__(
        self,
        agents: Sequence[str | Agent],
        players: int = 2,
        deals: int = 500,
        seed: int = 0,
        *,
        ruleset: RulesetLike = None,
        folder: str | Path | None = None,
        records: int = 0,
        focus: int | None = None,
        adjust: bool | LuckMeter = False,
        until: str = "",
        alpha: float = ALPHA,
        dataset: str | Path | None = None,
    ) -> None:
        if isinstance(agents, str) or len(agents) < 2:
            raise InvalidArgument(f"the arena needs two agents or more, but got {agents!r}")
        players = _whole("players", players, MIN_PLAYERS, MAX_PLAYERS)
        deals = _whole("deals", deals, 1, MOST_DEALS)
        seed = _whole("seed", seed, 0, MOST_SEED)
        records = _whole("records", records, 0, deals)
        focus = None if focus is None else _whole("focus", focus, 0, len(agents) - 1)
        if records and folder is None:
            raise InvalidArgument("records need a folder")
        made = {agent: make_agent(agent) for agent in agents if isinstance(agent, str)}  # each name once
        objects = [made[agent] if isinstance(agent, str) else make_agent(agent) for agent in agents]
        meter = LuckMeter.shipped() if adjust is True else adjust or None
        self.match = Match(objects, players, deal_seeds(seed, deals), ruleset, focus, meter)
        called = [agent if isinstance(agent, str) else agent.name for agent in agents]
        self.names = _tell_apart(called)
        self.test = SequentialTest(Claim.parse(until), players, alpha) if until else None
        self._claimed = self._find_claimed(focus)
        self.settings: dict[str, Any] = {
            "agents": [
                {"name": name, "sha256": model_hash(agent)} for name, agent in zip(called, objects, strict=True)
            ],
            "players": players,
            "deals": deals,
            "seed": seed,
            "ruleset": self.match.ruleset.to_dict(),
            "records": records,
            "focus": focus,
            "adjust": None if meter is None else meter.settings,
            "until": None if self.test is None else {"claim": str(self.test.claim), "alpha": alpha},
            "dataset": dataset is not None,
            "version": montecristo_env.__version__,
        }
        self.settings = json.loads(json.dumps(self.settings))  # as it will be read again
        self.recorded_rounds = records * len(self.match.tables)
        self.folder = None if folder is None else _Folder(Path(folder), self.settings)
        self.results: list[Results] = [] if self.folder is None else self.folder.load(self.match)
        self.dataset = None if dataset is None else DatasetWriter(dataset, self.settings)
        if self.dataset is not None and len(Dataset(self.dataset.folder)) < len(self.results):
            raise InvalidArgument(
                f"{dataset} lacks games that {folder} says were played: begin with both folders empty"
            )

    def _find_claimed(self, focus: int | None) -> tuple[int, int] | None:
        """The numbers of the two agents that the claim is about."""
        if self.test is None:
            return None
        pair = self.test.claim.agent, self.test.claim.opponent
        for name in pair:
            if name not in self.names:
                raise InvalidArgument(f"the claim is about {name!r}, but these play: {', '.join(self.names)}")
        agent, opponent = (self.names.index(name) for name in pair)
        if agent == opponent or focus not in (None, agent, opponent):
            raise InvalidArgument(f"{pair[0]} and {pair[1]} do not meet: a claim is about two agents that do")
        return agent, opponent

    def verdict(self) -> Verdict | None:
        """What the sequential test says of the deals that are done, if there is one."""
        if self.test is None or self._claimed is None:
            return None
        if self.deals == 0:
            return self.test.verdict(np.zeros(0))
        return self.test.verdict(deal_results(self.match, Results.join(self.results), self._claimed, self._adjusted))

    @property
    def _adjusted(self) -> bool:
        """Whether a claim is decided by results without luck."""
        return self.match.meter is not None

    @property
    def is_done(self) -> bool:
        """Whether there is nothing left to play: all rounds are done, or the claim is decided."""
        verdict = self.verdict()
        return self.rounds == self.match.rounds or (verdict is not None and verdict.decision != "open")

    @property
    def rounds(self) -> int:
        """How many rounds are done."""
        return sum(len(part) for part in self.results)

    @property
    def deals(self) -> int:
        """How many deals are done at all tables."""
        return self.rounds // len(self.match.tables)

    def play(self, progress: bool = True, ray: bool = False) -> None:
        """Plays what is left, chunk by chunk. A KeyboardInterrupt loses no more than the chunks being played.

        Args:
            progress: whether to show a bar.
            ray: whether to play the chunks as tasks on a Ray cluster, many at a time; the games are the same.

        While another process plays in the same folder, this is refused.
        """
        if self.folder is None:
            self._play(progress, ray)
            return
        with locked(self.folder.path):
            self.results = self.folder.load(self.match)  # another process may have gone on meanwhile
            self._play(progress, ray)

    def _play(self, progress: bool, ray: bool) -> None:
        n = self.match.players
        if self.is_done:
            return
        chunks = self._play_on_ray() if ray else self._play_here()
        with _progress_bar(progress and not self.match.interactive) as bar:
            task = bar.add_task("playing", total=self.match.rounds * n, completed=self.rounds * n, rate=0.0)
            begun, before = time.perf_counter(), self.rounds
            for results, records, decisions in chunks:
                first = self.rounds
                if self.dataset is not None and decisions is not None:
                    self.dataset.save(first, first + len(results), decisions)
                if self.folder is not None:
                    for place, record in enumerate(records):
                        deal, table = divmod(first + place // n, len(self.match.tables))
                        record.save(self.folder.records / f"deal{deal}-table{table}-seat{place % n}.json")
                    self.folder.save(first, results)
                self.results.append(results)
                rate = (self.rounds - before) * n / (time.perf_counter() - begun)
                verdict = self.verdict()
                state = "playing" if verdict is None or self.test is None else f"{self.test.claim}: {verdict},"
                bar.update(task, completed=self.rounds * n, rate=rate, description=state)
                if verdict is not None and verdict.decision != "open":
                    chunks.close()  # on Ray, others may be under way
                    break

    def _play_here(self) -> Generator[Played]:
        """Chunk after chunk, of a size that takes some seconds."""
        size = 1
        while (first := self.rounds) < self.match.rounds:
            end = self._end_of_chunk(first, size)
            start = time.perf_counter()
            yield self.match.play(first, end, self._recorded_names(first), self.dataset is not None)
            size = _next_size(end - first, time.perf_counter() - start, CHUNK_GAMES // self.match.players)

    def _play_on_ray(self) -> Generator[Played]:
        """Many chunks at a time, in order: all of one size, so that every task has some of each table's rounds."""
        from montecristo_agents.cluster import cores, play_in_order  # Ray is an extra

        left = self.match.rounds - self.rounds
        size = max(1, min(left // (CHUNKS_PER_CORE * cores()), CHUNK_GAMES // self.match.players))
        chunks, first = [], self.rounds
        while first < self.match.rounds:
            end = self._end_of_chunk(first, size)
            chunks.append((first, end, self._recorded_names(first), self.dataset is not None))
            first = end
        return play_in_order(self.match, chunks)

    def _end_of_chunk(self, first: int, size: int) -> int:
        """Rounds that are recorded and others do not share a chunk; those of a shard are always as many."""
        if self.dataset is not None:
            size = max(1, GAMES_PER_SHARD // self.match.players)
        return min(first + size, self.recorded_rounds if first < self.recorded_rounds else self.match.rounds)

    def _recorded_names(self, first: int) -> list[str] | None:
        return self.names if first < self.recorded_rounds else None

    def report(self) -> Report:
        """What the deals that are done have shown."""
        if self.deals == 0:
            raise InvalidArgument("no deal has been played at all tables yet, so there is nothing to report")
        results, verdict, test = Results.join(self.results), self.verdict(), None
        if verdict is not None and self.test is not None and self._claimed is not None:
            results = results.first(verdict.deals * len(self.match.tables))  # what was played beyond was not needed
            decided_by = deal_results(self.match, results, self._claimed, self._adjusted)
            test = self.test.describe(decided_by, deal_results(self.match, results, self._claimed))
        asking = {id(agent): agent for agent in self.match.agents if hasattr(agent, "usage_report")}.values()
        usage = [agent.usage_report() for agent in asking]  # of language models
        return make_report(self.settings, self.names, self.match, results, test, usage)


class _Folder:
    """Where a run is kept: its settings, and the results of each chunk of rounds."""

    def __init__(self, path: Path, settings: dict[str, Any]) -> None:
        self.path = path
        self.chunks, self.records = path / "chunks", path / "records"
        known = path / "settings.json"
        try:
            path.mkdir(parents=True, exist_ok=True)
            with locked(path):
                if known.exists():
                    _refuse_another_run(path, json.loads(known.read_text(encoding="utf-8")), settings)
                elif not is_empty(path):
                    raise InvalidArgument(f"{path} is neither empty nor the folder of an arena run")
                self.chunks.mkdir(exist_ok=True)
                if settings["records"]:
                    self.records.mkdir(exist_ok=True)
                atomic_write(known, (json.dumps(settings, indent=2) + "\n").encode())
        except MonteCristoError:
            raise
        except OSError as error:
            raise InvalidArgument(f"cannot write to {path}: {error.strerror}") from None
        except (ValueError, RecursionError) as error:
            raise InvalidArgument(f"{known} is damaged: {error}") from None

    def save(self, first: int, results: Results) -> None:
        """Keeps the results of the rounds from `first`."""
        content = io.BytesIO()
        np.savez(content, **vars(results))
        atomic_write(self.chunks / f"{first:010}-{first + len(results):010}.npz", content.getvalue())

    def load(self, match: Match) -> list[Results]:
        """The results of all rounds that are done."""
        results: list[Results] = []
        done = 0
        for path in sorted(self.chunks.glob("*.npz")):
            named = _CHUNK_NAME.fullmatch(path.name)
            if named is None:
                raise InvalidArgument(f"{path} is no chunk of an arena run: those are called FIRST-END.npz")
            first, end = map(int, named.groups())
            if first != done:
                raise InvalidArgument(f"{self.chunks} is damaged: rounds {done} to {first} do not follow")
            if not first < end <= match.rounds:
                raise InvalidArgument(f"{path} is damaged: this run has the rounds 0 to {match.rounds}")
            results.append(_load_chunk(path, end - first, match))
            done = end
        return results


def _load_chunk(path: Path, rounds: int, match: Match) -> Results:
    try:
        with np.load(path) as saved:
            results = Results(**saved)
        results.check(rounds, match.players, len(match.agents), match.signals)
    except Exception as error:  # a damaged archive has many ways to say so
        raise InvalidArgument(f"{path} is damaged ({error}): delete it and what follows it") from None
    return results


def _refuse_another_run(path: Path, there: Any, here: dict[str, Any]) -> None:
    if not isinstance(there, dict):
        raise ValueError(f"settings must be a mapping, but are {there!r}")
    for name, value in here.items():
        if there.get(name) != value:
            raise InvalidArgument(
                f"{path} holds another run: its {name} is {json.dumps(there.get(name))}, not {json.dumps(value)}"
            )


def _whole(name: str, value: Any, lowest: int, highest: int) -> int:
    if not isinstance(value, int | np.integer) or not lowest <= value <= highest:
        raise InvalidArgument(f"{name} must be a whole number from {lowest} to {highest}, but is {value!r}")
    return int(value)


def _tell_apart(names: Sequence[str]) -> list[str]:
    """The names, those that come again with a number behind."""
    seen: Counter[str] = Counter()
    distinct = []
    for name in names:
        seen[name] += 1
        distinct.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return distinct


def model_hash(agent: Agent) -> str | None:
    """The SHA-256 of the model file that an agent has as its `path`, None if it has none."""
    path = getattr(agent, "path", None)
    return None if path is None else hashlib.sha256(Path(path).read_bytes()).hexdigest()


def _next_size(rounds: int, seconds: float, most: int) -> int:
    """How many rounds the next chunk should have, after one of `rounds` that took `seconds`."""
    fitting = int(rounds * CHUNK_SECONDS / max(seconds, 1e-9))
    return max(1, min(fitting, CHUNK_GROWTH * rounds, most))


def _progress_bar(shown: bool) -> bars.Progress:
    return bars.Progress(
        "{task.description}",
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        "games, {task.fields[rate]:,.0f}/s,",
        bars.TimeElapsedColumn(),
        "gone,",
        bars.TimeRemainingColumn(),
        "left",
        console=Console(stderr=True),
        speed_estimate_period=_SPEED_PERIOD,
        disable=not shown,
    )


# --- command line


@dataclass
class Options:
    """Lets agents play duplicate deals against each other, and reports how strong they are.

    Every two agents meet on the same deals, in every seat; with 3 or 4 players one of each kind sits alone against
    the other kind. Ctrl-C keeps what is done, and the same command goes on from there.
    """

    agents: tyro.conf.Positional[tuple[str, ...]]
    """Two names or more, such as: random greedy mcts:200. The same name twice is a mirror match."""
    players: int = 2
    """2, 3 or 4 at a table."""
    deals: int = 500
    """How many deals every table plays, each of them in every seating."""
    seed: int = 0
    """Same seed, same deals, same games."""
    ruleset: str = ""
    """Settings of the game that differ from the default, such as refill=short,target=30, or a JSON file of them."""
    folder: Path | None = None
    """Where results, tables and pictures go; default: a folder of its own for these settings in runs/arena."""
    records: int = 0
    """Of how many deals all games are recorded, as JSON, in the folder."""
    adjust: bool = False
    """Report results without the luck of draws, too: unbiased, with narrower intervals between strong agents."""
    value_model: Path | None = None
    """With --adjust: a model file whose values measure luck; default: that of alphazero."""
    until: str = ""
    """A claim, such as "mcts:200 beats greedy by 10 Elo": stop when it is decided, after --deals at the latest."""
    alpha: float = ALPHA
    """With --until: how often equals may pass for better, and how often a true claim may be rejected."""
    dataset: Path | None = None
    """A folder for all decisions of all games, as compressed NumPy shards to learn from."""
    ray: bool = False
    """Play on the Ray cluster that this machine belongs to, or on a local one; the games are the same."""


def main() -> None:
    """Reads the command line, plays, prints the tables and writes the files."""
    with quiet_pipe():
        options = tyro.cli(Options, prog="python -m montecristo_agents.arena")
        try:
            _run(options, options.folder or _default_folder(options))
        except BrokenPipeError:
            raise
        except (MonteCristoError, ImportError, OSError) as error:
            print(f"arena: {error}", file=sys.stderr)
            sys.exit(BAD_INPUT)
        except KeyboardInterrupt as stop:
            print(f"Stopped {stop or 'before the first deal'}: the same command goes on.", file=sys.stderr)
            sys.exit(INTERRUPTED)


def _run(options: Options, folder: Path) -> None:
    """Plays and reports; after Ctrl-C too, what is done until then."""
    settings = asdict(options) | {"folder": folder}
    del settings["ray"]
    model = settings.pop("value_model")
    if options.adjust and model is not None:
        settings["adjust"] = LuckMeter.load(model)
    run = Run(**settings)
    interrupted = False
    try:
        run.play(ray=options.ray)
    except KeyboardInterrupt:
        interrupted = True
    if run.deals:
        report = run.report()
        report.save(folder)
        report.print(Console())
        print(f"The results are in {folder}.")
    if interrupted:
        raise KeyboardInterrupt(f"after {run.deals} of {options.deals} deals")


def _default_folder(options: Options) -> Path:
    """A folder of its own for these settings: a readable name and a hash."""
    rules = str(Ruleset.parse(options.ruleset))  # however they are written
    settings = {**asdict(options), "ruleset": rules, "folder": None, "version": montecristo_env.__version__}
    settings |= {"value_model": str(options.value_model or ""), "dataset": str(options.dataset or "")}
    del settings["ray"]  # the same run, wherever it is played
    digest = hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:8]
    name = re.sub(r"[^\w.]+", "-", "-".join(options.agents))[:_FOLDER_NAME_LENGTH]
    return Path("runs", "arena", f"{name}-{options.players}p-{digest}")


if __name__ == "__main__":
    main()
