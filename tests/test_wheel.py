"""What users get: the built wheel in an empty environment, and each extra alone, with what the README promises."""

import ast
import inspect
import os
import re
import shutil
import subprocess
import sys
import tarfile
import textwrap
import venv
import zipfile
from importlib.metadata import Distribution, PathDistribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from montecristo_env.core import library
from montecristo_env.core.jit import INTERPRETED
from test_frozen import FROZEN_MANY, MANY, signature
from test_readme import BLOCKS

pytest.importorskip("build.__main__", reason="it builds wheels")  # `build` alone may be a folder of ours

ROOT = Path(__file__).resolve().parent.parent
LARGEST = 15_000_000  # bytes of a wheel or an sdist
SCRIPTS = "Scripts" if os.name == "nt" else "bin"
PACKAGES = {"montecristo_env", "montecristo_agents", "montecristo_train", "montecristo_verifiers"}

EVERY_AGENT = """
    import importlib.util

    import numpy as np

    import montecristo_env
    from montecristo_env import GameBatch, PublicView, make_agent

    for agent in ("random", "greedy", "flat-mc:2", "mcts:20", "ppo", "ppo:lookahead=1", "alphazero:8"):
        player, games = make_agent(agent), GameBatch(3, [2, 3, 4], seed=0)
        while not games.over.all():
            rows = np.flatnonzero(~games.over)
            games.step(player.act(PublicView(games), rows), rows)
        assert games.winners.any(axis=1).all()
    assert importlib.util.find_spec("numba") is None and importlib.util.find_spec("llvmlite") is None
    print(montecristo_env.__file__)
"""
FROZEN_IMPORTS = """
import hashlib
from montecristo_env import Ruleset
from montecristo_env.core.layout import HIDDEN_FIELDS, STATE
from montecristo_env.ruleset import VARIANTS
Signature = dict
ALL_VARIANTS = Ruleset(**{name: values[-1] for name, values in VARIANTS.items()})
PUBLIC_FIELDS = sorted(set(STATE.names or ()) - set(HIDDEN_FIELDS))
"""


def run(*command: str | Path, cwd: Path, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command} failed:\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy to build from: nothing is left behind among the sources, and no stale build slips into the wheel."""
    folder = tmp_path_factory.mktemp("sources") / "project"
    ignored = shutil.ignore_patterns(
        ".git", ".venv", "build", "dist", "runs", "*.egg-info", "__pycache__", ".*_cache", "kernels*"
    )
    shutil.copytree(ROOT, folder, ignore=ignored)
    return folder


def build(kind: str, sources: Path, folder: Path) -> Path:
    """The one file that is built; the kernels are those that the other tests run with, built from the same sources."""
    env = os.environ | {"MONTECRISTO_KERNELS": str(library.FOLDER), "MONTECRISTO_TARGET": library.native_target()}
    command = [sys.executable, "-m", "build", f"--{kind}", "--no-isolation", "--skip-dependency-check"]
    run(*command, "--outdir", folder, sources, cwd=sources, env=env)
    (built,) = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def wheel(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", sources, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sdist(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("sdist", sources, tmp_path_factory.mktemp("sdist"))


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
    kernels = {Path(name).name for name in files if "kernels/" in name}
    assert {library.MANIFEST, library.file_name(library.native_target())} <= kernels
    assert all(library.native_target() in name for name in kernels - {library.MANIFEST})
    assert "-py3-none-" in wheel.name and not wheel.name.endswith("-any.whl")


def test_the_readme_on_the_package_index_has_no_links_into_a_folder_of_sources(unpacked: Path) -> None:
    (metadata,) = unpacked.glob("*.dist-info")
    text = (metadata / "METADATA").read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)]+)\)", text)
    home = "https://github.com/montecristo-env/montecristo-env"
    assert {f"{home}/raw/HEAD/docs/images/game.gif", f"{home}/blob/HEAD/docs/rules.md"} <= set(targets)
    assert all(target.startswith("https://") for target in targets)


def contents(wheel: Path) -> dict[str, int]:
    """A checksum for every file but the one that lists them."""
    with zipfile.ZipFile(wheel) as archive:
        return {file.filename: file.CRC for file in archive.infolist() if not file.filename.endswith("/RECORD")}


def test_the_sdist_builds_the_same_wheel_and_holds_what_a_packager_needs(
    wheel: Path, sdist: Path, tmp_path: Path
) -> None:
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (source,) = (tmp_path / "unpacked").iterdir()
    assert (source / "LICENSE").is_file()
    for name in (
        "README.md",
        "CHANGELOG.md",
        "CITATION.cff",
        "constraints.txt",
        "tests/reference.py",
        ".github",
        ".ci",
    ):
        assert (source / name).exists(), name  # the tests read them, too
    again = build("wheel", source, tmp_path / "again")
    assert again.name == wheel.name
    assert contents(again) == contents(wheel)


def test_a_wheel_without_kernels_is_not_built(sources: Path, tmp_path: Path) -> None:
    env = os.environ | {"MONTECRISTO_KERNELS": str(tmp_path), "MONTECRISTO_TARGET": "x86_64-windows"}
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--skip-dependency-check"]
    done = subprocess.run([*command, "--outdir", tmp_path / "dist", sources], env=env, capture_output=True, text=True)
    assert done.returncode != 0 and "there are no kernels for x86_64-windows" in done.stdout + done.stderr


def test_wheel_and_sdist_are_small_and_pass_the_checks_of_the_package_index(wheel: Path, sdist: Path) -> None:
    for tool in ("twine", "check_wheel_contents"):
        pytest.importorskip(tool)
    assert max(wheel.stat().st_size, sdist.stat().st_size) < LARGEST
    run(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist, cwd=ROOT)
    run(sys.executable, "-m", "check_wheel_contents", wheel, cwd=ROOT)


@pytest.mark.skipif(INTERPRETED, reason="plain Python needs no wheel, which brings compiled kernels")
def test_the_wheel_in_an_empty_environment_plays_every_agent_and_the_frozen_games(wheel: Path, tmp_path: Path) -> None:
    """Without Numba; `safetensors` is for the networks."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "NUMBA_"))}
    home = tmp_path / "venv"
    run(sys.executable, "-m", "venv", home, cwd=tmp_path, env=env)
    python = home / SCRIPTS / "python"
    install = ["-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", wheel, "safetensors"]
    run(python, *install, cwd=tmp_path, env=env)

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    code = (
        textwrap.dedent(EVERY_AGENT) + FROZEN_IMPORTS + inspect.getsource(signature) + f"\nprint(signature({MANY}))\n"
    )
    done = subprocess.run([python, "-I", "-c", code], cwd=elsewhere, env=env, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    imported_from, found = done.stdout.splitlines()
    assert Path(imported_from).is_relative_to(home)
    assert ast.literal_eval(found) == FROZEN_MANY


# --- Each extra alone -------------------------------------------------------------------------------------------------

PETTINGZOO, ARENA = BLOCKS

SB3 = """
from montecristo_env.sb3 import MonteCristoVecEnv

assert MonteCristoVecEnv(2).reset().shape[0] == 2
"""

RENDER = """
from montecristo_env import montecristo_v0

env = montecristo_v0.env(render_mode="rgb_array")
env.reset(seed=0)
assert env.render().ndim == 3
"""

TORCHRL = """
from montecristo_env.torchrl import MonteCristoTorchEnv

assert MonteCristoTorchEnv(4).rollout(3).shape == (4, 3)
"""

SAVE_A_RECORD = """
from montecristo_env import GameBatch, GameRecord

games = GameBatch(1, 2, seed=0)
record = GameRecord.record(games)
games.play_random(5)
record.save("game.json")
"""

SERVE = """
import json, re, subprocess, sys, urllib.request

command = [sys.executable, "-m", "montecristo_env.play", "--no-browser", "--port", "0", "--folder", "tables"]
server = subprocess.Popen([*command, "--players", "human", "greedy", "ppo"], stdout=subprocess.PIPE, text=True)
try:
    address = re.search(r"http://[^/]+", server.stdout.readline())[0]
    tables = json.load(urllib.request.urlopen(address + "/tables"))["tables"]
    assert [table["players"] for table in tables] == [["human", "greedy", "ppo"]]
finally:
    server.kill()
"""

# What Python is called with, by extra. `make frameworks` tests verifiers and openenv in environments of their own.
# Training and Ray are only started: other tests let them work.
PROMISED: dict[str, list[list[str]]] = {
    "": [["-c", PETTINGZOO]],
    "sb3": [
        ["-c", SB3],
        *(["-m", f"montecristo_train.{recipe}", "--help"] for recipe in ("ppo", "alphazero", "exploit", "sb3_minimal")),
    ],
    "arena": [
        ["-c", ARENA],
        ["-m", "montecristo_agents.arena", "random", "greedy", "ppo", "--players", "2", "--deals", "1"],
        ["-m", "montecristo_agents.arena", "alphazero", "alphazero:8", "--players", "2", "--deals", "1"],
    ],
    "rllib": [["-m", "montecristo_train.rllib", "--help"], ["-c", "import montecristo_agents.cluster"]],
    "render": [["-c", RENDER]],
    "openspiel": [
        ["-c", "import montecristo_env.openspiel, pyspiel; pyspiel.load_game('python_montecristo').new_initial_state()"]
    ],
    "web": [["-c", SERVE], ["-c", SAVE_A_RECORD], ["-m", "montecristo_env.replay", "game.json", "--annotate", "ppo"]],
    "llm": [["-c", "from montecristo_env import make_agent; make_agent('llm:any:base_url=http://127.0.0.1:9/v1')"]],
    "textarena": [
        ["-c", "import montecristo_env.text.textarena, textarena; textarena.make('MonteCristo-v0').reset(2)"]
    ],
    "torchrl": [["-c", TORCHRL], ["-m", "montecristo_train.torchrl", "--help"]],
    "test": [["-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", str(ROOT / "tests")]],
}

MISSING = {
    "sb3": ["-c", "import montecristo_env.sb3"],
    "arena": ["-m", "montecristo_agents.arena", "random", "greedy"],
    "rllib": ["-c", "import montecristo_agents.cluster"],
    "render": ["-c", RENDER],
    "openspiel": ["-c", "import montecristo_env.openspiel"],
    "web": ["-m", "montecristo_env.play"],
    "llm": ["-c", "import montecristo_agents.llm"],
    "textarena": ["-c", "import montecristo_env.text.textarena"],
    "verifiers": ["-c", "import montecristo_verifiers"],
    "openenv": ["-c", "import montecristo_env.text.openenv"],
    "torchrl": ["-c", "import montecristo_env.torchrl"],
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


# Tests may be skipped there.
ENVIRONMENT = {
    name: value for name, value in os.environ.items() if not name.startswith("PYTHON") and name != "MONTECRISTO_CI"
}


def test_what_the_readme_promises_works_with_its_extra_alone(alone: tuple[str, Path], tmp_path: Path) -> None:
    extra, python = alone
    for command in PROMISED[extra]:
        run(python, *command, cwd=tmp_path, env=ENVIRONMENT)


def test_what_an_extra_lacks_is_named(alone: tuple[str, Path], tmp_path: Path) -> None:
    extra, python = alone
    more = {
        "sb3": ("arena",),
        "rllib": ("sb3", "arena"),
        "textarena": ("llm",),
        "torchrl": ("sb3", "arena"),
        "test": ("arena",),
    }
    brought = (extra, *more.get(extra, ()))
    for other, command in MISSING.items():
        if other in brought:
            continue
        done = subprocess.run([python, *command], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True)
        assert done.returncode != 0
        assert f"pip install 'montecristo-env[{other}]'" in done.stderr.splitlines()[-1]
