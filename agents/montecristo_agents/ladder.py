"""The standard ladder: how its agents stand to each other, and the pages that say so.

```sh
python -m montecristo_agents.ladder
```

plays what is missing, writes `docs/ladder.md` with its pictures and `docs/ladder.json`, and fills in the figures of the
README, of the pages beside it and of the model cards: between
`<!-- ladder: alphazero against greedy with 2, ppo against greedy with 3 -->` and `<!-- end of ladder -->` stands a
table of these agents, opponents and numbers of players. It stays if a pair has not met. `--fill` does that alone, from
the ladder that was played last. Same agents and seed, same page, but for times.
"""

import json
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from montecristo_agents.arena import BAD_INPUT, Run
from montecristo_agents.extras import tyro
from montecristo_agents.luck import VALUE_MODEL
from montecristo_agents.report import Report, draw_pairs, draw_ratings, markdown, percent, png
from montecristo_env import InvalidArgument, MonteCristoError
from montecristo_env.agent import GROUP
from montecristo_env.core.constants import MAX_PLAYERS, MIN_PLAYERS
from montecristo_env.util.commands import INTERRUPTED, quiet_pipe
from montecristo_env.util.files import atomic_write

STANDARD = ("random", "greedy", "ppo", "mcts:50", "mcts:200", "alphazero")
"""The agents that policies are measured against."""
LADDER = (*STANDARD, "flat-mc:8", "alphazero:64")
"""All agents of the page."""
DEALS = {2: 150, 3: 30, 4: 20}
"""By number of players: all of it takes less than two hours on two cores. With more players there are more games to a
deal, and more tables."""

COMMAND = "python -m montecristo_agents.ladder"
FIGURES = "ladder.json"
_BLOCK = re.compile(r"(<!-- ladder: ([^>]+?) -->\n)(.*?)(<!-- end of ladder -->)", re.DOTALL)
_ROW = re.compile(r"(?P<agent>.+) against (?P<opponent>.+) with (?P<players>[2-4])")


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


# --- the pages


def write_page(path: Path, reports: Sequence[Report], missing: Sequence[str]) -> None:
    """Writes the page, its figures as JSON and, in `images` beside it, two pictures per report."""
    (path.parent / "images").mkdir(parents=True, exist_ok=True)
    for report in reports:
        atomic_write(path.parent / _picture(report), png(draw_ratings(report)))
        atomic_write(path.parent / _picture(report, "-pairs"), png(draw_pairs(report)))
    figures = json.dumps([report.to_dict() for report in reports], indent=1, ensure_ascii=False)
    atomic_write(path.parent / FIGURES, f"{figures}\n".encode())
    atomic_write(path, _page(reports, missing).encode())


def fill(text: str, figures: Sequence[dict[str, Any]]) -> str:
    """The text of a page, its tables of the ladder written anew; those of which a pair has not met stay as they are.

    Args:
        text: of the page, with any number of such tables.
        figures: what `docs/ladder.json` holds.
    """

    def table(found: re.Match[str]) -> str:
        rows = []
        for name in found[2].split(", "):
            row = _ROW.fullmatch(name)
            if row is None:
                raise InvalidArgument(f"{name!r} in a table of the ladder must be AGENT against OPPONENT with PLAYERS")
            cells = _figures_of(figures, row["agent"], row["opponent"], int(row["players"]))
            if cells is None:
                return found[0]
            rows.append(cells)
        head = ["agent", "against", "players", "games", "win rate %", "without luck %", "equals win"]
        return f"{found[1]}\n{markdown(head, rows)}\n\n{found[4]}"

    return _BLOCK.sub(table, text)


def _figures_of(figures: Sequence[dict[str, Any]], agent: str, opponent: str, players: int) -> list[str] | None:
    """The row of a pair; None if it has not met."""
    for report in figures:
        if report["settings"]["players"] != players:
            continue
        for pair in report["pairs"]:
            if (pair["agent"], pair["opponent"]) == (agent, opponent):
                others = "" if players == MIN_PLAYERS else {3: "two ", MAX_PLAYERS: "three "}[players]
                rates = [_rate(pair[name]) for name in ("win_rate", "adjusted_win_rate")]
                games, null = f"{pair['games']:,}", percent(report["null_rate"])
                return [f"`{agent}`", f"{others}`{opponent}`", str(players), games, *rates, null]
    return None


def _rate(estimate: dict[str, Any] | None) -> str:
    """A win rate as pages have it; nothing where it was not measured."""
    if estimate is None:
        return "–"
    if estimate["low"] is None:  # one deal tells no interval
        return percent(estimate["value"])
    value, low, high = (percent(estimate[name]) for name in ("value", "low", "high"))
    return f"{value} ({low} to {high})"


def read_figures(page: Path) -> list[dict[str, Any]]:
    """What `write_page` has written beside a page."""
    try:
        figures: list[dict[str, Any]] = json.loads((page.parent / FIGURES).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidArgument(f"{page.parent / FIGURES} cannot be read ({error}): play the ladder first") from None
    return figures


def fill_pages(page: Path) -> list[Path]:
    """Writes the tables of the ladder anew: in the README, on the pages beside it, on the model cards; says which."""
    figures = read_figures(page)
    changed = []
    cards = (page.parent / "publishing").glob("*.md")
    for path in [page.parent.parent / "README.md", *sorted(page.parent.glob("*.md")), *sorted(cards)]:
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        if (filled := fill(text, figures)) != text:
            atomic_write(path, filled.encode())
            changed.append(path)
    return changed


def _page(reports: Sequence[Report], missing: Sequence[str]) -> str:
    settings = reports[0].settings
    parts = ["# The ladder"]
    for report in reports:
        parts += _chapter(report)
    deals = ", ".join(f"{report.deals} with {report.settings['players']}" for report in reports)
    adjusted = f", and results without luck as the network of `{VALUE_MODEL}` sees it" if settings["adjust"] else ""
    parts += [
        "## How to read it",
        "\n".join(f"- {note}" for note in reports[0].explanations()),
        "To measure your own agent against these, call `montecristo_agents.benchmark.benchmark(my_agent)`.",
        "## How it was played",
        f"`{COMMAND}` wrote this page: do not edit it. Version {settings['version']}, seed {settings['seed']}, rules: "
        f"{reports[0].rules}; deals: {deals} players{adjusted}. The same command gives the same page, but for times.",
        *([f"Not installed, so not played: {', '.join(missing)}."] if missing else []),
        *_model_files(reports[0]),
    ]
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
    """Plays the ladder with 2, 3 and 4 players, and writes its pages. Ctrl-C keeps what is done."""

    agents: tuple[str, ...] = LADDER
    """Names of the agents; those that are not installed are left out, and the page says so."""
    players: tuple[int, ...] = tuple(DEALS)
    """Numbers of players at a table."""
    deals: int | None = None
    """How many deals every table plays, each of them in every seating; default: 150, 30 and 20 with 2, 3 and 4
    players."""
    seed: int = 0
    """Same seed, same deals, same games."""
    ruleset: str = ""
    """Settings of the game that differ from the default, such as refill=short,target=30, or a JSON file of them."""
    adjust: bool = True
    """Report results without the luck of draws, too, and what decisions lose."""
    page: Path = Path("docs", "ladder.md")
    """Where to write; figures are filled in on the pages beside it, the model cards, and in the README above."""
    folder: Path = Path("runs", "ladder")
    """Where to keep what is done."""
    fill: bool = False
    """Play nothing: fill in the figures of the ladder that was played last."""


def main() -> None:
    """Reads the command line, plays and writes."""
    with quiet_pipe():
        options = tyro.cli(Options, prog=COMMAND)
        try:
            if not options.fill:
                _play(options)
                print(f"The ladder is in {options.page}.")
            for path in fill_pages(options.page):
                print(f"Its figures are filled in on {path}.")
        except (MonteCristoError, OSError) as error:
            print(f"ladder: {error}", file=sys.stderr)
            sys.exit(BAD_INPUT)
        except KeyboardInterrupt:
            print("ladder: stopped; the same command goes on.", file=sys.stderr)
            sys.exit(INTERRUPTED)


def _play(options: Options) -> None:
    agents, missing = split_installed(options.agents)
    runs = [
        Run(
            agents,
            players,
            DEALS.get(players, 1) if options.deals is None else options.deals,
            options.seed,
            ruleset=options.ruleset,
            folder=options.folder / f"{players}-players",
            adjust=options.adjust,
        )
        for players in options.players
    ]
    for run in runs:
        run.play()
    write_page(options.page, [run.report() for run in runs], missing)


if __name__ == "__main__":
    main()
