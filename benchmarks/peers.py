"""Random legal play here and in other projects, in one run: `python benchmarks/peers.py [--json FILE] [--write]`.

Every other project comes from PyPI into an environment of its own below .peers, which later runs use again. What does
not install or does not run is skipped, and the reason is told. All games are measured in turn, round by round, so that
the noise of the machine hits them alike. `make peers` does all of it and fills in docs/benchmarks.md and its picture.
"""

import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import threading
import venv
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from engine import machine, save, summary
from matplotlib.figure import Figure

from montecristo_agents.report import markdown, png
from montecristo_env.util.files import atomic_write

ROOT = Path(__file__).resolve().parent.parent
WORKER = Path(__file__).with_name("peer_workers.py")
FOLDER = ROOT / ".peers"
PATIENCE = 600  # seconds to wait for a worker: compiling takes a minute or two
OURS = "montecristo-env"
_PART = re.compile(r"(<!-- peers: (\w+) -->\n).*?(<!-- end of peers -->)", re.DOTALL)


@dataclass(frozen=True)
class Peer:
    title: str
    workers: tuple[str, ...]  # names in peer_workers.py; a process each
    packages: tuple[str, ...] = ()  # what pip installs; nothing for this project, which is here already


PEERS = {
    "montecristo": Peer(OURS, ("montecristo",)),
    "pettingzoo": Peer("PettingZoo classic", ("pettingzoo",), ("pettingzoo[classic]==1.27.0", "numpy==2.4.6")),
    "openspiel": Peer("OpenSpiel", ("openspiel",), ("open_spiel==2.0.2", "numpy==2.4.6")),
    "pgx": Peer("Pgx", ("pgx", "pgx-2-threads"), ("pgx==2.6.0", "jax==0.10.2", "numpy==2.4.6")),
    "rlcard": Peer("RLCard", ("rlcard",), ("rlcard==1.2.0", "numpy==2.4.6")),
    "catanatron": Peer("Catanatron", ("catanatron",), ("catanatron==3.2.1", "catanatron_gym==4.0.0", "numpy==2.4.6")),
}


class Skipped(Exception):
    """Why something is not measured."""


# --- environments and workers


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def last_line(text: str) -> str:
    """What went wrong, from what a program has said; without the place of this folder."""
    lines = [line.strip() for line in text.splitlines() if line.strip()] or ["it said nothing"]
    errors = [line for line in lines if line.startswith("ERROR:")]  # pip adds notices after them
    return (errors or lines)[-1].replace(str(ROOT), ".")


def environment(name: str) -> Path:
    """The Python of a peer, with everything installed."""
    peer, folder = PEERS[name], FOLDER / name
    if not peer.packages:
        return Path(sys.executable)
    python = folder / "bin" / "python"
    ready, wanted = folder / "ready.txt", "\n".join((sys.version, *peer.packages))
    if not (ready.exists() and ready.read_text() == wanted):
        tell(f"installing {' '.join(peer.packages)} …")
        venv.create(folder, clear=True, with_pip=True)
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *peer.packages]
        done = subprocess.run(install, capture_output=True, text=True)
        if done.returncode:
            raise Skipped(f"pip: {last_line(done.stderr)}")
        ready.write_text(wanted)
    return python


class Worker:
    """A process that plays the games of one project and is asked, line by line, how fast it is."""

    def __init__(self, name: str, python: Path, isolated: bool) -> None:
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - as long as the process lives
        self._process = subprocess.Popen(
            [python, *(["-I"] if isolated else []), WORKER, name],  # -I: nothing of ours, not even by PYTHONPATH
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        hello = self._answer()
        self.versions: dict[str, str] = hello["versions"]
        self.cases: list[dict[str, Any]] = hello["cases"]

    def ask(self, case: int, seconds: float) -> dict[str, Any]:
        with suppress(BrokenPipeError):  # `_answer` finds out why
            print(json.dumps({"case": case, "seconds": seconds}), file=self._process.stdin, flush=True)
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        clock = threading.Timer(PATIENCE, self._process.kill)
        clock.daemon = True  # Ctrl-C need not wait for it
        clock.start()
        line = self._process.stdout.readline()
        late = not clock.is_alive()
        clock.cancel()
        if not line:
            self._errors.seek(0)
            raise Skipped(f"no answer for {PATIENCE} s" if late else last_line(self._errors.read()))
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise Skipped(last_line(answer["error"]))
        return answer

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()
        self._errors.close()


# --- measuring


def start(names: Sequence[str], skipped: list[dict[str, str]]) -> list[tuple[Peer, Worker]]:
    workers = []
    for name in names:
        peer = PEERS[name]
        try:
            python = environment(name)
            workers += [(peer, Worker(worker, python, isolated=bool(peer.packages))) for worker in peer.workers]
        except Skipped as error:
            skipped.append({"what": peer.title, "reason": str(error)})
    return workers


def measure(names: Sequence[str], rounds: int, seconds: float) -> dict[str, Any]:
    load = os.getloadavg()[0]  # what others do here: it should be near 0
    skipped: list[dict[str, str]] = []
    workers = start(names, skipped)
    rows = [
        {"project": peer.title, **case, "rates": [], "worker": worker, "case": number}
        for peer, worker in workers
        for number, case in enumerate(worker.cases)
    ]
    for turn in range(rounds + 1):
        for row in list(rows):
            tell(f"round {turn} of {rounds}: {row['project']}, {label(row)}")
            try:
                answer = row["worker"].ask(row["case"], seconds if turn else 0.0)  # round 0 compiles and warms up
            except Skipped as error:
                rows.remove(row)
                skipped.append({"what": f"{row['project']}, {label(row)}", "reason": str(error)})
                continue
            row |= {key: answer[key] for key in ("observation", "actions")}
            row["rates"] += [answer["rate"]] if turn else []
    versions = {peer.title: worker.versions for peer, worker in workers}
    for _, worker in workers:
        worker.close()
    for row in rows:
        row["rate"] = summary(row.pop("rates"))
        del row["worker"], row["case"]
    kept = ("cpu", "cores", "python")
    return {
        "machine": {key: value for key, value in machine().items() if key in kept} | {"load": load},
        "rounds": rounds,
        "seconds": seconds,
        "versions": versions,
        "rows": rows,
        "skipped": skipped,
    }


# --- showing


def label(row: dict[str, Any]) -> str:
    """A row in a few words, without its project."""
    name = f"{row['interface']}, {row['players']} players" if row["project"] == OURS else row["game"]
    name += f", {row['players']} players" if row["project"] == "Catanatron" else ""
    name += f", batch of {row['batch']}" if row["batch"] > 1 else ""
    return name + (f", {row['threads']} threads" if row["threads"] > 1 else "")


def rounded(rate: float) -> str:
    """Three digits that count."""
    return f"{float(f'{rate:.3g}'):,.0f}"


def spread(rate: dict[str, float]) -> str:
    return f"{rounded(rate['lowest'])} to {rounded(rate['highest'])}"


def report(results: dict[str, Any]) -> None:
    info = results["machine"]
    print(f"\n{info['cpu']}, {info['cores']} cores, load before the run {info['load']:.1f}")
    print(f"decisions/s, medians of {results['rounds']} rounds of {results['seconds']:g} s (lowest to highest)")
    for project, rows in groupby(results["rows"], key=lambda row: row["project"]):
        print(f"\n{project} ({versions_of(results, project)})")
        for row in rows:
            rate, sizes = row["rate"], f"{row['observation']:5d} numbers, {row['actions']:5d} actions"
            print(f"  {label(row):48s}{sizes}{rounded(rate['median']):>12s} ({spread(rate)})")
    for entry in results["skipped"]:
        print(f"\nskipped {entry['what']}: {entry['reason']}")


def versions_of(results: dict[str, Any], project: str) -> str:
    return ", ".join(f"{name} {number}" for name, number in results["versions"][project].items())


def draw(results: dict[str, Any]) -> Figure:
    """One bar per row, with its spread, grouped by project and not sorted: it is no ranking."""
    ink, faint, ours, others = "#333333", "#888888", "#D55E00", "#56B4E9"  # Okabe and Ito's colours
    rows = results["rows"]
    left = 10 ** math.floor(math.log10(min(row["rate"]["lowest"] for row in rows)))
    heights, titles, y = [], {}, 0.0
    for row in rows:
        if row["project"] not in titles:
            y += 0.6 if titles else 0.0
            titles[row["project"]] = y
            y += 1
        heights.append(y)
        y += 1
    figure = Figure(figsize=(8, 0.9 + 0.235 * y), layout="constrained")
    axes = figure.subplots()
    axes.set_xscale("log")
    for title, y in titles.items():
        axes.text(left, y, title, color=ink, fontsize=10, fontweight="bold", va="center")
    for row, y in zip(rows, heights, strict=True):
        rate = row["rate"]
        axes.barh(y, rate["median"] - left, left=left, height=0.76, color=ours if row["project"] == OURS else others)
        axes.plot([rate["lowest"], rate["highest"]], [y, y], color=ink, linewidth=1.2, marker="|", markersize=5)
        axes.annotate(
            rounded(rate["median"]), (rate["highest"], y), (5, 0), textcoords="offset points", va="center",
            fontsize=8, color=ink,
        )  # fmt: skip
    axes.set_yticks(heights, [label(row) for row in rows], fontsize=9, color=ink)
    axes.set_ylim(heights[-1] + 0.8, -0.8)
    axes.set_xlim(left, 8 * max(row["rate"]["highest"] for row in rows))
    axes.set_xlabel("decisions per second (logarithmic)", color=ink)
    axes.grid(axis="x", color=faint, alpha=0.25)
    axes.set_axisbelow(True)
    axes.tick_params(axis="y", length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    return figure


def filled_parts(results: dict[str, Any]) -> dict[str, str]:
    """What stands between `<!-- peers: NAME -->` and `<!-- end of peers -->` in the page, by name."""
    info = results["machine"]
    figures = [
        [
            row["project"], row["game"], row["interface"], str(row["players"]), str(row["batch"]), str(row["threads"]),
            f"{row['observation']:,}", f"{row['actions']:,}", rounded(row["rate"]["median"]), spread(row["rate"]),
        ]
        for row in results["rows"]
    ]  # fmt: skip
    head = ["project", "game", "interface", "players", "batch", "threads", "observation", "actions"]
    skipped = [f"- {entry['what']}: `{entry['reason']}`" for entry in results["skipped"]]
    return {
        "run": f"{results['rounds']} rounds of {results['seconds']:g} s each on {info['cpu']}, {info['cores']} cores, "
        f"of which other programs kept {info['load']:.1f} busy just before; Python {info['python']}.",
        "figures": markdown([*head, "decisions/s", "lowest to highest"], figures, left=3),
        "skipped": "\n".join(skipped) or "Nothing.",
        "versions": "\n".join(f"- {project}: {versions_of(results, project)}" for project in results["versions"]),
    }


def write(path: Path, results: dict[str, Any]) -> None:
    """Fills in the page, and draws its picture in `images` beside it."""
    parts = filled_parts(results)
    text = _PART.sub(lambda found: f"{found[1]}\n{parts[found[2]]}\n\n{found[3]}", path.read_text(encoding="utf-8"))
    (path.parent / "images").mkdir(parents=True, exist_ok=True)
    atomic_write(path.parent / "images" / "peers.png", png(draw(results)))
    atomic_write(path, text.encode())


# --- command line


def read_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--write", action="store_true", help="fill in the page, and draw its picture")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "benchmarks.md", help="which page")
    parser.add_argument("--read", type=Path, help="take the figures from such a file, and measure nothing")
    parser.add_argument("--only", nargs="+", choices=PEERS, default=list(PEERS), help="measure these projects")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="per game and round")
    options = parser.parse_args(arguments)
    if options.rounds < 1:
        parser.error(f"--rounds must be at least 1, but is {options.rounds}")
    if not 0 < options.seconds < PATIENCE:
        parser.error(f"--seconds must be more than 0 and less than {PATIENCE}, but is {options.seconds:g}")
    if options.read and not options.read.is_file():
        parser.error(f"--read: there is no file {options.read}")
    return options


def main() -> None:
    options = read_options()
    if options.read:
        results = json.loads(options.read.read_text())
    else:
        results = measure(options.only, options.rounds, options.seconds)
        left_out = [peer.title for name, peer in PEERS.items() if name not in options.only]
        results["skipped"] += [{"what": title, "reason": "left out by --only"} for title in left_out]
    report(results)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        save(options.json, results)
    if options.write:
        if not results["rows"]:
            sys.exit("peers: nothing could be measured, so nothing is written")
        write(options.page, results)


if __name__ == "__main__":
    main()
