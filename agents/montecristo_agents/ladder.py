"""The standard ladder, and the page that shows how its agents stand to each other.

```sh
python -m montecristo_agents.ladder
```

plays what is missing and writes `docs/ladder.md` with its pictures. Same agents and seed, same page, except for times.
"""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path

from montecristo_agents.arena import BAD_INPUT, Run
from montecristo_agents.extras import tyro
from montecristo_agents.report import Report, draw_pairs, draw_ratings, markdown, percent, png
from montecristo_env import MonteCristoError
from montecristo_env.agent import GROUP
from montecristo_env.commands import INTERRUPTED, quiet_pipe
from montecristo_env.core.constants import MIN_PLAYERS
from montecristo_env.files import write_whole

LADDER = ("random", "greedy", "mcts:50", "mcts:200", "ppo")
"""The agents that others are measured against."""
ONLY_FOR_TWO = ("mcts:200",)  # on the page: with more players a search of so many simulations takes hours

COMMAND = "python -m montecristo_agents.ladder"


def split_installed(names: Iterable[str]) -> tuple[list[str], list[str]]:
    """The names of agents that are installed here, and the others."""
    names = list(names)
    installed = [name for name in names if _is_installed(name)]
    return installed, [name for name in names if name not in installed]


def _is_installed(name: str) -> bool:
    """Whether the agent is announced, and what it needs is there too."""
    found = entry_points(group=GROUP, name=name.partition(":")[0])
    try:
        for point in found:
            point.load()
    except ImportError:
        return False
    return len(found) > 0


# --- the page


def write_page(path: Path, reports: Sequence[Report], missing: Sequence[str]) -> None:
    """Writes the page and, in `images` beside it, two pictures per report."""
    (path.parent / "images").mkdir(parents=True, exist_ok=True)
    for report in reports:
        write_whole(path.parent / _picture(report), png(draw_ratings(report)))
        write_whole(path.parent / _picture(report, "-pairs"), png(draw_pairs(report)))
    write_whole(path, _page(reports, missing).encode())


def _page(reports: Sequence[Report], missing: Sequence[str]) -> str:
    settings = reports[0].settings
    parts = [
        "# The ladder",
        "How the standard agents stand to each other. To measure yours against them, call "
        "`montecristo_agents.benchmark.benchmark(my_agent)`.",
        f"This page is written by `{COMMAND}`: do not edit it. Version {settings['version']} played "
        f"{settings['deals']} deals with seed {settings['seed']}, rules: {reports[0].rules}. The same command "
        "gives the same page, but for times.",
        *([f"Not installed, so not played: {', '.join(missing)}."] if missing else []),
        *_model_files(reports[0]),
    ]
    for report in reports:
        parts += _chapter(report)
    parts += ["## How to read it", "\n".join(f"- {note}" for note in reports[0].explanations())]
    return "\n\n".join(parts) + "\n"


def _model_files(report: Report) -> list[str]:
    hashed = [agent for agent in report.settings["agents"] if agent["sha256"]]
    if not hashed:
        return []
    return [markdown(["agent", "SHA-256 of its model file"], [[x["name"], f"`{x['sha256']}`"] for x in hashed])]


def _chapter(report: Report) -> list[str]:
    players = report.settings["players"]
    standing, *pairs = report.markdown_tables()
    return [
        f"## {players} players",
        " ".join([f"{report.games:,} games. Equals win {percent(report.null_rate)} %.", *report.caveats()]),
        standing,
        f"![Elo and win rates of the agents with {players} players]({_picture(report)})",
        *pairs,
        f"![Win rates of every agent against every other with {players} players]({_picture(report, '-pairs')})",
    ]


def _picture(report: Report, kind: str = "") -> Path:
    return Path("images", f"ladder-{report.settings['players']}{kind}.png")


# --- command line


@dataclass
class Options:
    """Plays the ladder with 2, 3 and 4 players, and writes its page. Ctrl-C keeps what is done."""

    agents: tuple[str, ...] = LADDER
    """Names of the agents; those that are not installed are left out, and the page says so. With 3 and 4 players
    mcts:200 is left out, too."""
    players: tuple[int, ...] = (2, 3, 4)
    """Numbers of players at a table."""
    deals: int = 40
    """How many deals every table plays, each of them in every seating."""
    seed: int = 0
    """Same seed, same deals, same games."""
    ruleset: str = ""
    """Settings of the game that differ from the default, such as refill=short,target=30, or a JSON file of them."""
    page: Path = Path("docs", "ladder.md")
    """Where to write."""
    folder: Path = Path("runs", "ladder")
    """Where to keep what is done."""


def main() -> None:
    """Reads the command line, plays and writes."""
    with quiet_pipe():
        options = tyro.cli(Options, prog=COMMAND)
        try:
            _run(options)
        except (MonteCristoError, OSError) as error:
            print(f"ladder: {error}", file=sys.stderr)
            sys.exit(BAD_INPUT)
        except KeyboardInterrupt:
            print("ladder: stopped; the same command goes on.", file=sys.stderr)
            sys.exit(INTERRUPTED)
        print(f"The ladder is in {options.page}.")


def _run(options: Options) -> None:
    agents, missing = split_installed(options.agents)
    runs = []
    for players in options.players:
        folder = options.folder / f"{players}-players"
        there = [name for name in agents if players == MIN_PLAYERS or name not in ONLY_FOR_TWO]
        runs.append(Run(there, players, options.deals, options.seed, ruleset=options.ruleset, folder=folder))
    for run in runs:
        run.play()
    write_page(options.page, [run.report() for run in runs], missing)


if __name__ == "__main__":
    main()
