"""What users get: the built wheel in an empty environment, and each extra alone, with what the README promises."""

import os
import shutil
import subprocess
import sys
import textwrap
import venv
import zipfile
from importlib.metadata import Distribution, PathDistribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from test_readme import BLOCKS

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = "Scripts" if os.name == "nt" else "bin"
PACKAGES = {"montecristo_env", "montecristo_agents", "montecristo_train", "montecristo_verifiers"}

ONE_GAME = """
    import numpy as np

    import montecristo_env
    from montecristo_env import GameBatch

    rng = np.random.default_rng(0)
    g = GameBatch(num_games=1, num_players=3, seed=0)
    while not (g.terminated[0] or g.truncated[0]):
        g.step(rng.choice(np.flatnonzero(g.action_mask()[0]), size=1))
    assert g.winners[0].any()
    print(montecristo_env.__file__)
"""


def run(*command: str | Path, cwd: Path, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command} failed:\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # Built from a copy: nothing is left behind among the sources, and no stale build folder slips into the wheel.
    sources = tmp_path_factory.mktemp("sources") / "project"
    ignored = shutil.ignore_patterns(".git", ".venv", "build", "dist", "runs", "*.egg-info", "__pycache__", ".*_cache")
    shutil.copytree(ROOT, sources, ignore=ignored)
    folder = tmp_path_factory.mktemp("wheel")
    pip_wheel = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder]
    run(*pip_wheel, sources, cwd=sources)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the contents of the wheel."""
    folder = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def test_wheel_holds_the_typed_packages_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        files = [name for name in archive.namelist() if ".dist-info/" not in name]
    assert {name.split("/")[0] for name in files} == PACKAGES
    assert {f"{package}/py.typed" for package in PACKAGES} <= set(files)
    pages = {path.name for path in (ROOT / "montecristo_env/web/static").iterdir()}
    assert {f"montecristo_env/web/static/{name}" for name in pages} <= set(files)
    assert {f"montecristo_agents/models/{name}.safetensors" for name in ("ppo", "alphazero")} <= set(files)
    assert not [name for name in files if "tests/" in name or "test_" in name]


def test_installed_wheel_plays_a_game(wheel: Path, tmp_path: Path) -> None:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "NUMBA_"))}
    env["MONTECRISTO_CACHE_DIR"] = str(tmp_path / "cache")
    home = tmp_path / "venv"
    run(sys.executable, "-m", "venv", home, cwd=tmp_path, env=env)
    python = home / SCRIPTS / "python"
    install = ["-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", wheel]
    run(python, *install, cwd=tmp_path, env=env)

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    imported_from = run(python, "-I", "-c", textwrap.dedent(ONE_GAME), cwd=elsewhere, env=env)
    assert Path(imported_from.strip()).is_relative_to(home)


# --- Each extra alone -------------------------------------------------------------------------------------------------

PETTINGZOO, SB3, BATCH, ARENA = BLOCKS

RENDER = """
from montecristo_env import montecristo_v0

env = montecristo_v0.env(render_mode="rgb_array")
env.reset(seed=0)
assert env.render().ndim == 3
"""

SAVE_A_RECORD = """
from montecristo_env import GameBatch, GameRecord

games = GameBatch(1, 2, seed=0)
record = GameRecord.follow(games)
games.play_random(5)
record.save("game.json")
"""

SERVE = """
import json, re, subprocess, sys, urllib.request

command = [sys.executable, "-m", "montecristo_env.table", "--no-browser", "--port", "0", "--folder", "tables"]
server = subprocess.Popen([*command, "--players", "human", "greedy", "ppo"], stdout=subprocess.PIPE, text=True)
try:
    address = re.search(r"http://[^/]+", server.stdout.readline())[0]
    tables = json.load(urllib.request.urlopen(address + "/tables"))["tables"]
    assert [table["players"] for table in tables] == [["human", "greedy", "ppo"]]
finally:
    server.kill()
"""

# What Python is called with, by extra. Training and Ray are only started: other tests let them work.
PROMISED: dict[str, list[list[str]]] = {
    "": [["-c", PETTINGZOO], ["-c", BATCH]],
    "sb3": [
        ["-c", SB3],
        *(["-m", f"montecristo_train.{recipe}", "--help"] for recipe in ("ppo", "alphazero", "exploit")),
    ],
    "arena": [
        ["-c", ARENA],
        ["-m", "montecristo_agents.arena", "random", "greedy", "ppo", "--players", "2", "--deals", "1"],
        ["-m", "montecristo_agents.arena", "alphazero", "alphazero:8", "--players", "2", "--deals", "1"],
    ],
    "rllib": [["-m", "montecristo_train.rllib", "--help"], ["-c", "import montecristo_agents.cluster"]],
    "render": [["-c", RENDER]],
    "web": [["-c", SERVE], ["-c", SAVE_A_RECORD], ["-m", "montecristo_env.replay", "game.json", "--annotate", "ppo"]],
    "llm": [["-c", "from montecristo_env import make_agent; make_agent('llm:any:base_url=http://127.0.0.1:9/v1')"]],
    "textarena": [
        ["-c", "import montecristo_env.text.textarena, textarena; textarena.make('MonteCristo-v0').reset(2)"]
    ],
    "verifiers": [["-c", "import montecristo_verifiers"]],
}

MISSING = {
    "sb3": ["-c", "import montecristo_env.sb3"],
    "arena": ["-m", "montecristo_agents.arena", "random", "greedy"],
    "rllib": ["-c", "import montecristo_agents.cluster"],
    "render": ["-c", RENDER],
    "web": ["-m", "montecristo_env.table"],
    "llm": ["-c", "import montecristo_agents.llm"],
    "textarena": ["-c", "import montecristo_env.text.textarena"],
    "verifiers": ["-c", "import montecristo_verifiers"],
    "openenv": ["-c", "import montecristo_env.text.openenv"],
}


def required(project: Distribution, extra: str) -> dict[str, Distribution]:
    """The distributions that a project needs with an extra, by name."""
    found: dict[str, Distribution] = {}
    seen: set[tuple[str, str]] = set()
    waiting = [(project, name) for name in {"", extra}]
    while waiting:
        dist, extra = waiting.pop()
        for requirement in map(Requirement, dist.requires or ()):
            if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
                continue
            name = canonicalize_name(requirement.name)
            needed = project if name == canonicalize_name(project.name) else distribution(name)
            assert requirement.specifier.contains(needed.version, prereleases=True), requirement
            if needed is not project:
                found[name] = needed
            for wanted in {"", *requirement.extras}:
                if (name, wanted) not in seen:
                    seen.add((name, wanted))
                    waiting.append((needed, wanted))
    return found


def link(dist: Distribution, folder: Path) -> None:
    """Links what a distribution has installed into another folder for packages."""
    tops = {file.parts[0] for file in dist.files or ()} - {"..", "__pycache__"}
    assert tops, f"{dist.name} does not say which files it has"
    for top in tops:
        place = folder / top
        if not place.is_symlink():  # packages may share a folder
            place.symlink_to(Path(str(dist.locate_file(top))))


@pytest.fixture(scope="module", params=PROMISED)
def alone(request: pytest.FixtureRequest, unpacked: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """An extra, and the Python of an environment that has it and nothing else.

    The environment is empty but for links to the distributions that the wheel asks for with this extra, and to those
    that these ask for: the ones installed here, so nothing is downloaded. The project itself has the metadata of the
    wheel and the sources of this folder, whose compiled code the other tests have made already.
    """
    home = tmp_path_factory.mktemp("alone")
    venv.create(home, symlinks=os.name != "nt")
    (packages,) = home.rglob("site-packages")
    (metadata,) = unpacked.glob("*.dist-info")
    for dist in required(PathDistribution(metadata), request.param).values():
        link(dist, packages)
    (packages / metadata.name).symlink_to(metadata)
    (packages / "montecristo.pth").write_text("\n".join(str(ROOT / part) for part in ("", "agents", "train")))
    return request.param, home / SCRIPTS / "python"


ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def test_what_the_readme_promises_works_with_its_extra_alone(alone: tuple[str, Path], tmp_path: Path) -> None:
    extra, python = alone
    for command in PROMISED[extra]:
        run(python, *command, cwd=tmp_path, env=ENVIRONMENT)


def test_what_an_extra_lacks_is_named(alone: tuple[str, Path], tmp_path: Path) -> None:
    extra, python = alone
    more = {"sb3": ("arena",), "rllib": ("sb3", "arena"), "textarena": ("llm",), "verifiers": ("llm",)}
    brought = (extra, *more.get(extra, ()))
    for other, command in MISSING.items():
        if other in brought:
            continue
        done = subprocess.run([python, *command], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True)
        assert done.returncode != 0
        assert f"pip install 'montecristo-env[{other}]'" in done.stderr.splitlines()[-1]
