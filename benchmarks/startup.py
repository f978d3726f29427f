"""How long the first start takes: `python benchmarks/startup.py [--json FILE] [--repeats 5]`.

Makes the wheel, installs it into a new environment, and measures first processes. Each runs
the import, a batch of 1,024 games for 4, one step with observation and mask, and then agents. Medians, with the
lowest and highest. With `--editable` it also installs a fresh clone so, which compiles the kernels.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import tyro
from engine import JsonFile, machine, save

ROOT = Path(__file__).resolve().parent.parent
Wheel: TypeAlias = Annotated[Path | None, tyro.conf.arg(help="measure this wheel instead of making one")]
Editable: TypeAlias = Annotated[bool, tyro.conf.arg(help="also measure an editable installation")]
AGENTS = ("greedy", "mcts:8", "ppo", "alphazero:8")
FIRST = """
import time
start = time.perf_counter()
import gymnasium, numpy, pettingzoo
others = time.perf_counter()
from montecristo_env import GameBatch, PublicView, actions, make_agent, observation
games = GameBatch(1024, 4, seed=0)
seen = numpy.empty((1024, observation.SIZE), numpy.int8)
masks = numpy.empty((1024, actions.COUNT), numpy.int8)
games.step(games.sample_actions(), observations=seen, masks=masks)
first = time.perf_counter()
found = {"first step": first - start, "own part of it": first - others}
for name in AGENTS:
    start = time.perf_counter()
    agent = make_agent(name)
    agent.act(PublicView(games), numpy.arange(1))
    found[name] = time.perf_counter() - start
import json
print(json.dumps(found))
"""


def run(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{command} failed:\n{done.stderr}")
    if "-c" in command and done.stderr:
        raise SystemExit(f"the first process said:\n{done.stderr}")
    return done.stdout


def environment(home: Path, *install: str | Path) -> Path:
    """The Python of a new environment."""
    run(sys.executable, "-m", "venv", home)
    python = home / "bin" / "python"
    if install:
        run(python, "-m", "pip", "install", "--quiet", *install)
    return python


def measure_first(python: Path, repeats: int) -> dict[str, list[float]]:
    """Seconds of first processes, by what they do."""
    times: dict[str, list[float]] = {}
    for _ in range(repeats):
        done = json.loads(run(python, "-I", "-c", FIRST.replace("AGENTS", repr(AGENTS))))
        for name, seconds in done.items():
            times.setdefault(name, []).append(seconds)
    return times


def main(json: JsonFile = None, repeats: int = 5, wheel: Wheel = None, editable: Editable = False) -> None:
    results: dict[str, Any] = {"machine": machine(), "repeats": repeats}
    with tempfile.TemporaryDirectory() as folder:
        if wheel is None:
            run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT)
            (wheel,) = Path(folder).glob("*.whl")
        python = environment(Path(folder, "first"), f"{wheel}[web]")
        results["seconds"] = measure_first(python, repeats)
        for name, values in results["seconds"].items():
            print(f"{name:16s}{statistics.median(values):7.3f} s ({min(values):.3f} to {max(values):.3f})", flush=True)
        if editable:
            run("git", "clone", "--quiet", ROOT, Path(folder, "clone"))
            python = environment(Path(folder, "second"))
            start = time.perf_counter()
            run(python, "-m", "pip", "install", "--quiet", "--editable", Path(folder, "clone"))
            results["editable"] = time.perf_counter() - start
            print(f"{'editable':16s}{results['editable']:7.1f} s")
    save(json, results)


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
