"""What other systems lack or do otherwise, as far as it can be played through on this one."""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import montecristo_env.util.files
from montecristo_env import GameBatch, GameRecord, InvalidArgument, montecristo_v0

pytestmark = pytest.mark.portable

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = {"montecristo_env": ROOT, "montecristo_agents": ROOT / "agents", "montecristo_train": ROOT / "train"}
ODD_NAME = "Zwölf Räuber & eine Höhle — 宝"
"""A folder as people have them: spaces, letters beyond ASCII, a sign that shells know."""


# --- Windows: locks, and files that others have open ------------------------------------------------------------------


class FakeMsvcrt(ModuleType):
    """Locks as Windows has them: the first byte of a file, for one handle at a time."""

    LK_NBLCK = 2

    def __init__(self) -> None:
        super().__init__("msvcrt")
        self.held: dict[tuple[int, int], int] = {}

    def locking(self, handle: int, mode: int, size: int) -> None:
        assert (mode, size) == (self.LK_NBLCK, 1)
        about = os.fstat(handle)
        holder = self.held.get((about.st_dev, about.st_ino))
        if holder is not None and holder != handle and _is_open(holder):
            raise PermissionError(13, "Permission denied")
        self.held[about.st_dev, about.st_ino] = handle


def _is_open(handle: int) -> bool:
    try:
        os.fstat(handle)
    except OSError:
        return False
    return True


@pytest.fixture
def on_windows(monkeypatch: pytest.MonkeyPatch) -> Any:
    """`files.py` as it is imported on Windows: no fcntl, another lock."""
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.setitem(sys.modules, "msvcrt", FakeMsvcrt())
    spec = importlib.util.spec_from_file_location("files_on_windows", montecristo_env.util.files.__file__)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_folder_is_locked_without_fcntl(on_windows: Any, tmp_path: Path) -> None:
    with (
        on_windows.locked(tmp_path),
        pytest.raises(InvalidArgument, match="another process works in"),
        on_windows.locked(tmp_path),
    ):
        pytest.fail("both have the folder")
    with on_windows.locked(tmp_path):
        pass


def test_a_lock_that_cannot_be_removed_while_it_is_open_may_stay(
    on_windows: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_open(path: Path) -> None:
        raise PermissionError(13, "The process cannot access the file", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", is_open)
        with on_windows.locked(tmp_path):
            pass
    assert [path.name for path in tmp_path.iterdir()] == [on_windows.LOCK] and on_windows.is_empty(tmp_path)
    with on_windows.locked(tmp_path):
        pass


@pytest.mark.parametrize(
    ("system", "refusals", "written"), [("nt", 3, True), ("nt", 10**6, False), ("posix", 1, False)]
)
def test_a_file_that_somebody_reads_is_replaced_on_windows_as_soon_as_they_are_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, system: str, refusals: int, written: bool
) -> None:
    files, replace = montecristo_env.util.files, os.replace
    left = refusals

    def busy(source: Path, target: Path) -> None:
        nonlocal left
        left -= 1
        if left >= 0:
            raise PermissionError(13, "Access is denied")
        replace(source, target)

    files.atomic_write(tmp_path / "file", b"old")
    path = tmp_path / "file"  # made before: pathlib asks for the system, too
    with monkeypatch.context() as patch:
        patch.setattr(files, "_PATIENCE", 0.2)
        patch.setattr(files, "SYSTEM", system)
        patch.setattr(os, "replace", busy)
        if written:
            files.atomic_write(path, b"new")
        else:
            with pytest.raises(PermissionError):
                files.atomic_write(path, b"new")
    assert path.read_bytes() == (b"new" if written else b"old")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


NO_POSIX = """
import os, platform, signal, sys
import gymnasium, numpy, pettingzoo.utils  # which ask for themselves what there is
platform.uname()  # likewise; it remembers
for name in [name for name in dir(os) if name.startswith("EX_")]:
    delattr(os, name)
for name in ("fork", "getuid", "geteuid", "sched_getaffinity", "uname", "killpg", "setsid"):
    if hasattr(os, name):
        delattr(os, name)
for name in ("SIGKILL", "SIGHUP", "SIGALRM", "SIGUSR1", "SIGPIPE"):
    if hasattr(signal, name):
        delattr(signal, name)
for name in ("pwd", "grp", "resource", "termios", "tty", "pty"):
    sys.modules[name] = None
"""


def play(program: str, folder: Path, **env: str) -> str:
    """What a program prints in a process of its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    path = os.pathsep.join(map(str, dict.fromkeys([*PACKAGES.values()])))
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env={**kept, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8", **env},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


ONE_GAME = """
from montecristo_env import GameBatch, GameRecord
games = GameBatch(3, [2, 3, 4], seed=7, threads=2)
record = GameRecord.record(games, 1)
games.play_random(100_000)
assert games.over.all()
record.save("game.json")
assert GameRecord.load("game.json") == record
print(games.scores.tolist())
"""


@pytest.fixture(scope="module")
def scores() -> str:
    games = GameBatch(3, [2, 3, 4], seed=7)
    games.play_random(100_000)
    return f"{games.scores.tolist()}\n"


def test_games_are_played_without_what_only_posix_has(tmp_path: Path, scores: str) -> None:
    assert play(NO_POSIX + ONE_GAME, tmp_path) == scores


def test_bad_input_ends_a_command_with_one_line_without_the_names_of_posix(tmp_path: Path) -> None:
    program = (
        f"{NO_POSIX}\nfrom montecristo_env.util.commands import run_command\n"
        "from montecristo_env import GameBatch\n"
        "try:\n    run_command(lambda arguments: GameBatch(0, 2), [])\n"
        "except SystemExit as stop:\n    print(stop.code)\n"
    )
    assert play(program, tmp_path) == "64\n"


def test_output_is_written_where_the_encoding_lacks_letters(tmp_path: Path) -> None:
    """As on Windows, when it goes to a file."""
    program = "from montecristo_env.util.commands import run_command\nrun_command(lambda _: print('2 × 3 – § ★'), [])"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [sys.executable, "-c", program], env={**kept, "PYTHONIOENCODING": "cp1252"}, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode("cp1252").strip() == "2 × 3 – § ?"


@pytest.mark.parametrize(
    ("system", "error", "quiet"),
    [
        ("win32", OSError(22, "Invalid argument"), True),
        ("win32", OSError(22, "Invalid argument", "agent?.json"), False),
        ("win32", BrokenPipeError(32, "Broken pipe"), True),
        ("linux", OSError(22, "Invalid argument"), False),
    ],
    ids=str,
)
def test_a_pipe_that_nobody_reads_ends_a_command_quietly(system: str, error: OSError, quiet: bool) -> None:
    program = (
        "import sys\nfrom montecristo_env.util.commands import run_command\n"
        f"sys.platform = {system!r}\n"
        "def command(arguments):\n"
        f"    raise {type(error).__name__}{(*error.args, *filter(None, [error.filename]))!r}\n"
        "run_command(command, [])\n"
    )
    path = os.pathsep.join(map(str, PACKAGES.values()))
    done = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True
    )
    assert (done.returncode == 141, done.stderr == "") == (quiet, quiet)


# --- Folders ---------------------------------------------------------------------------------------------------------


def test_games_are_played_and_kept_in_a_folder_with_an_odd_name(tmp_path: Path, scores: str) -> None:
    folder = tmp_path / ODD_NAME
    folder.mkdir()
    assert play(ONE_GAME, folder) == scores
    assert GameRecord.load(folder / "game.json").result is not None


def test_the_package_works_from_a_folder_with_an_odd_name(tmp_path: Path, scores: str) -> None:
    for name, folder in PACKAGES.items():
        shutil.copytree(folder / name, tmp_path / ODD_NAME / name, ignore=shutil.ignore_patterns("__pycache__"))
    program = f"import montecristo_env\nprint({ODD_NAME!r} in montecristo_env.__file__)\n{ONE_GAME}"
    assert play(program, tmp_path, PYTHONPATH=str(tmp_path / ODD_NAME)) == f"True\n{scores}"


def test_nothing_needs_a_home_that_can_be_written(tmp_path: Path, scores: str) -> None:
    nowhere = str(tmp_path / "nowhere" / "file")
    (tmp_path / "nowhere").touch()  # a file: no folder can be made in it, by nobody
    home = {"HOME": nowhere, "USERPROFILE": nowhere, "XDG_CACHE_HOME": nowhere, "XDG_CONFIG_HOME": nowhere}
    assert play(ONE_GAME, tmp_path, **home) == scores


def test_no_two_files_differ_only_in_the_case_of_letters() -> None:
    names = [
        str(path.relative_to(ROOT))
        for folder in ("montecristo_env", "montecristo_verifiers", "agents", "train", "tests", "docs", "benchmarks")
        for path in (ROOT / folder).rglob("*")
        if "__pycache__" not in path.parts
    ]
    assert len({name.casefold() for name in names}) == len(names) > 100
    reserved = {"con", "prn", "aux", "nul", *(f"{name}{number}" for name in ("com", "lpt") for number in range(1, 10))}
    for name in names:
        assert Path(name).name.split(".")[0].casefold() not in reserved, name
        assert not set(Path(name).name) & set('<>:"|?*\\'), name


# --- Processes that are spawned, not forked ---------------------------------------------------------------------------


def _step_in_child(games: GameBatch) -> tuple[bytes, list[list[int]]]:
    games.play_random(30)
    return games.states.tobytes(), games.scores.tolist()


def _play_aec_in_child(env: Any) -> list[float]:
    while env.agents:
        mask = env.observe(env.agent_selection)["action_mask"]
        done = env.terminations[env.agent_selection] or env.truncations[env.agent_selection]
        env.step(None if done else int(np.flatnonzero(mask)[0]))
    return [float(score) for score in env.unwrapped._cumulative_rewards.values()]


@pytest.mark.parametrize("start", ["spawn", "forkserver"])
def test_games_go_on_in_processes_that_share_nothing(start: str) -> None:
    if start not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system has no {start}")
    games = GameBatch(5, [2, 3, 4, 3, 2], seed=1)
    games.play_random(20)
    with multiprocessing.get_context(start).Pool(1) as pool:
        there = pool.apply(_step_in_child, (games,))
    assert there == _step_in_child(games)


def test_an_environment_goes_on_in_a_spawned_process() -> None:
    env = montecristo_v0.env(num_players=2)
    env.reset(seed=3)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        there = pool.apply(_play_aec_in_child, (env,))
    assert there == _play_aec_in_child(env)
