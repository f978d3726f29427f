"""What users get: the built wheel, installed into an empty environment far away from the sources."""

import os
import shutil
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = {"montecristo_env", "montecristo_agents", "montecristo_train"}

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


def test_wheel_holds_the_three_typed_packages_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        files = [name for name in archive.namelist() if ".dist-info/" not in name]
    assert {name.split("/")[0] for name in files} == PACKAGES
    assert {f"{package}/py.typed" for package in PACKAGES} <= set(files)
    pages = {path.name for path in (ROOT / "montecristo_env/web/static").iterdir()}
    assert {f"montecristo_env/web/static/{name}" for name in pages} <= set(files)
    assert not [name for name in files if "tests/" in name or "test_" in name]


def test_installed_wheel_plays_a_game(wheel: Path, tmp_path: Path) -> None:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "NUMBA_"))}
    env["MONTECRISTO_CACHE_DIR"] = str(tmp_path / "cache")
    venv = tmp_path / "venv"
    run(sys.executable, "-m", "venv", venv, cwd=tmp_path, env=env)
    python = venv / ("Scripts" if os.name == "nt" else "bin") / "python"
    install = ["-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", wheel]
    run(python, *install, cwd=tmp_path, env=env)

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    imported_from = run(python, "-I", "-c", textwrap.dedent(ONE_GAME), cwd=elsewhere, env=env)
    assert Path(imported_from.strip()).is_relative_to(venv)
