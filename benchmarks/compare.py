"""How fast the engine is against other commits: `python benchmarks/compare.py COMMIT [COMMIT …] [--repeats 25]`.

Every commit, and the tree as it is, gets a process of its own, with the `Loop` of its own `benchmarks/engine.py`. They
run in turn, repeat by repeat, and every repeat is compared with that of the first commit right before it. Times are CPU
times, which other work on the machine disturbs less. Starting the processes anew counts (`--starts`): where code and
arrays lie in memory matters by a few per cent.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
from contextlib import ExitStack
from io import BytesIO
from pathlib import Path

from engine import BATCH, machine

STEPS = 100
ROOT = Path(__file__).resolve().parent.parent
WORKER = """
import sys, time
from engine import BATCH, Loop
loops = {players: Loop(BATCH, players) for players in (2, 3, 4)}
for loop in loops.values():
    loop.run(5), loop.run_rules(5)
for line in sys.stdin:
    players, what, steps = line.split()
    start = time.process_time()
    decisions = getattr(loops[int(players)], what)(int(steps))
    print((time.process_time() - start) / decisions, flush=True)
"""


def unpack(commit: str, folder: Path) -> None:
    """The files of a commit."""
    packed = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    with tarfile.open(fileobj=BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")


def start(tree: Path) -> subprocess.Popen[str]:
    """A process that measures what it is asked to, with the engine of a tree; compiled code is kept as usual."""
    path = os.pathsep.join(str(tree / part) for part in (".", "agents", "train", "benchmarks"))
    command, environment = [sys.executable, "-c", WORKER], os.environ | {"PYTHONPATH": path}
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=tree, env=environment
    )


def seconds(process: subprocess.Popen[str], players: int, what: str) -> float:
    """CPU time per decision."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{players} {what} {STEPS}\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commits", nargs="+", help="the first is what all are compared with")
    parser.add_argument("--repeats", type=int, default=25)
    parser.add_argument("--starts", type=int, default=3, help="of the processes")
    options = parser.parse_args()
    times: dict[tuple[int, str], dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        trees = {commit: Path(folder) / str(number) for number, commit in enumerate(options.commits)}
        for commit, tree in trees.items():
            unpack(commit, tree)
        trees["this tree"] = ROOT
        for _ in range(options.starts):
            with ExitStack() as stack:
                processes = {name: stack.enter_context(start(tree)) for name, tree in trees.items()}
                for players in (2, 3, 4):
                    for what in ("run_rules", "run"):
                        found = times.setdefault((players, what), {name: [] for name in trees})
                        for _ in range(options.repeats):
                            for name, process in processes.items():
                                found[name].append(seconds(process, players, what))
                for process in processes.values():
                    process.communicate()
    first = options.commits[0]
    print(f"{machine()['cpu']}; N = {BATCH}, one thread, ns of CPU time per decision; decisions/s against {first}:")
    print(f"medians of {options.starts} starts with {options.repeats} repeats each (lowest to highest start)")
    for (players, what), found in times.items():
        print(f"{players} players, {'rules alone' if what == 'run_rules' else 'with observation and mask'}")
        for name, values in found.items():
            ratios = [before / after for before, after in zip(found[first], values, strict=True)]
            starts = [
                statistics.median(ratios[begin : begin + options.repeats])
                for begin in range(0, len(ratios), options.repeats)
            ]
            median, spread = statistics.median(ratios), f"({min(starts):.3f} to {max(starts):.3f})"
            print(f"  {name:20s}{1e9 * statistics.median(values):8.1f} ns   x {median:.3f} {spread}")


if __name__ == "__main__":
    main()
