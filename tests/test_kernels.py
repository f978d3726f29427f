"""The compiled kernels: loaded if they fit their sources and this machine, built anew or refused with advice if not."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from helpers import INTERPRETED
from montecristo_env import GameBatch
from montecristo_env.core import batch, build, jit, library
from montecristo_env.core.chance import one_way, stream
from montecristo_env.core.layout import STATE
from montecristo_env.core.rules import play

pytestmark = pytest.mark.skipif(INTERPRETED, reason="plain Python has no kernels")
ROOT = Path(__file__).resolve().parent.parent


def run_python(code: str, **more: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | more
    return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)


# --- calling them


def test_neither_the_game_nor_agents_import_the_compiler() -> None:
    code = (
        "import sys, numpy as np\n"
        "from montecristo_env import GameBatch, PublicView, make_agent\n"
        "games = GameBatch(2, 3, seed=0)\n"
        "for name in ('random', 'greedy', 'flat-mc:1', 'mcts:4', 'ppo', 'alphazero:4'):\n"
        "    games.step(make_agent(name).act(PublicView(games), np.arange(2)))\n"
        "print(sorted({'numba', 'llvmlite'} & set(sys.modules)))\n"
    )
    done = run_python(code)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_functions_that_users_compile_call_kernels_and_intrinsics() -> None:
    numba = pytest.importorskip("numba", reason="users who compile functions have it")

    @numba.njit
    def play_first_choices(states: np.ndarray, rows: int, decisions: int) -> int:
        made = 0
        for k in range(rows):
            s = states[k]
            for _ in range(decisions):
                if s.legal != np.uint64(0):
                    choice = 0
                    while s.legal >> np.uint64(choice) & np.uint64(1) == np.uint64(0):
                        choice += 1
                    play(s, choice)
                    made += 1
        return made

    games, others = (GameBatch(3, [2, 3, 4], seed=0) for _ in range(2))
    assert play_first_choices(games.states, 3, 20) == 60
    for _ in range(20):
        others.step(others.action_mask().argmax(axis=1))
    assert games.states.tobytes() == others.states.tobytes()
    assert int(numba.njit(lambda key: stream(key, 1))(np.uint64(5))) != 5


def test_python_cannot_call_kernels() -> None:
    with pytest.raises(TypeError, match="one_way is a kernel: compiled code can call it, Python cannot"):
        one_way(np.uint64(0), np.uint64(0))


STATES, ROWS, OUT = np.zeros(2, STATE), np.arange(2), np.zeros(2, np.int64)
READ_ONLY = np.zeros(2, np.int64)
READ_ONLY.flags.writeable = False


@pytest.mark.parametrize(
    "args",
    [
        (STATES, ROWS.astype(np.int32), OUT),
        (STATES, ROWS, OUT.astype(np.uint64)),
        (STATES, np.arange(4)[::2], OUT),
        (STATES, ROWS[None], OUT),
        (STATES, ROWS, READ_ONLY),
        (STATES, ROWS, [0, 0]),
        (STATES["seed"], ROWS, OUT),
    ],
)
def test_arrays_of_another_kind_are_refused(args: tuple[np.ndarray, ...]) -> None:
    with pytest.raises(TypeError, match=r"batch_sample_actions takes \(states: .*, rows: int64 in 1D, .* but got \("):
        batch.sample_actions(*args, 0, 2)
    with pytest.raises(TypeError, match="batch_sample_actions takes"):
        jit.bind(batch.sample_actions, *args)


def test_numbers_of_another_kind_and_missing_ones_are_refused() -> None:
    with pytest.raises(TypeError, match="batch_sample_actions takes"):
        batch.sample_actions(STATES, ROWS, OUT, 0, 1.5)  # type: ignore[arg-type]
    with pytest.raises((TypeError, ValueError), match="argument"):
        batch.sample_actions(STATES, ROWS, OUT, 0)  # type: ignore[call-arg]


# --- finding them


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A copy of the project with its kernels, apart from this one."""
    home = tmp_path / "project"
    ignored = shutil.ignore_patterns("__pycache__", "kernels_checked", "models")
    for package in ("montecristo_env", "agents/montecristo_agents", "train/montecristo_train"):
        shutil.copytree(ROOT / package, home / package, ignore=ignored)
    shutil.copytree(ROOT / "agents/montecristo_agents/models", home / "agents/montecristo_agents/models")
    shutil.copytree(library.FOLDER, home / "montecristo_env/core" / library.FOLDER.name, dirs_exist_ok=True)
    return home


def start(home: Path, *hidden: str) -> subprocess.CompletedProcess[str]:
    """One step in a process that finds the packages there, and these not at all."""
    code = (
        f"import sys; sys.path[:0] = {[str(home / part) for part in ('', 'agents', 'train')]}\n"
        "import importlib.util as util; found = util.find_spec\n"
        f"util.find_spec = lambda name, *more: None if name in {hidden} else found(name, *more)\n"
        "from montecristo_env import GameBatch\n"
        "games = GameBatch(4, 2, seed=0); games.step(games.sample_actions()); print(games.states['decisions'].sum())\n"
    )
    return run_python(code, PYTHONDONTWRITEBYTECODE="1")


def kernels(home: Path) -> Path:
    return home / "montecristo_env/core" / library.FOLDER.name


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode != 0
    return done.stderr.splitlines()[-1]


def test_kernels_that_fit_are_used_in_silence(elsewhere: Path) -> None:
    done = start(elsewhere, "numba")
    assert (done.stdout, done.stderr) == ("4\n", "")


def test_without_a_compiler_a_changed_source_and_missing_kernels_are_named_with_advice(elsewhere: Path) -> None:
    rules = elsewhere / "montecristo_env/core/rules.py"
    rules.write_text(rules.read_text(encoding="utf-8") + "\n# changed\n", encoding="utf-8")
    said = last_line(start(elsewhere, "numba"))
    assert "their sources have changed" in said and "pip install 'montecristo-env[build]'" in said
    assert library.BUILD in said and "numba is missing here" in said
    (kernels(elsewhere) / library.MANIFEST).write_text("{}", encoding="utf-8")
    assert "manifest.json is missing or damaged" in last_line(start(elsewhere, "numba"))
    own = library.native_target()
    for path in kernels(elsewhere).glob(f"kernels-{own}*"):
        path.rename(path.with_name(path.name.replace(own, "riscv64-plan9")))
    assert f"there are none for {own}, only for riscv64-plan9" in last_line(start(elsewhere, "numba"))


@pytest.mark.parametrize("level", ["", "v3"])
def test_a_library_that_was_cut_off_is_refused_with_advice(elsewhere: Path, level: str) -> None:
    """Its lowest pages alone would be loaded, and the first call would kill the process."""
    path = kernels(elsewhere) / library.file_name(library.native_target(), level)
    if level not in build.TARGETS[library.native_target()].levels:
        pytest.skip("this system has no such level")
    os.truncate(path, path.stat().st_size // 2)
    said = last_line(start(elsewhere, "numba"))
    assert f"{path.name} is missing or damaged" in said and "Install montecristo-env again" in said


def test_a_library_of_another_system_is_refused_with_advice(elsewhere: Path) -> None:
    folder = kernels(elsewhere)
    manifest = library.read_manifest(folder)
    files = [path.name for path in folder.glob(f"kernels-{library.native_target()}*")]
    for file in files:
        (folder / file).write_bytes(b"not a library")
    library.write_manifest(folder, manifest["sources"], manifest["hash"], files)
    assert re.search("cannot be loaded on this machine .* Install montecristo-env again", last_line(start(elsewhere)))


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"hash": "0", "sources": 1, "libraries": {}}', "\x00"])
def test_a_damaged_manifest_is_no_manifest(tmp_path: Path, content: str) -> None:
    (tmp_path / library.MANIFEST).write_text(content, encoding="utf-8")
    assert library.read_manifest(tmp_path) == {}
    assert library.problem_of(tmp_path, []) == "manifest.json is missing or damaged"


def test_the_manifest_keeps_libraries_made_from_the_same_sources(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"1")
    (tmp_path / "two").write_bytes(b"2")
    sources = ["montecristo_env/core/rules.py"]
    made_from = library.fingerprint(sources)
    library.write_manifest(tmp_path, sources, made_from, ["one"])
    library.write_manifest(tmp_path, sources, made_from, ["two"])
    assert library.problem_of(tmp_path, ["one", "two"]) == ""
    (tmp_path / "one").write_bytes(b"other")
    (tmp_path / "two").unlink()
    assert library.problem_of(tmp_path, ["one", "two"]) == "one and two are missing or damaged"
    library.write_manifest(tmp_path, sources, "other sources", ["one"])
    assert [*library.read_manifest(tmp_path)["libraries"]] == ["one"]
    assert library.problem_of(tmp_path, ["one"]) == "their sources have changed"


def test_a_machine_without_a_target_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(library.platform, "system", lambda: "FreeBSD")
    monkeypatch.setattr(library, "FOLDER", tmp_path)
    monkeypatch.setattr(library, "_TOOLS", ("nothing_like_it",))
    with pytest.raises(library.KernelsMissing, match=r"none for \w+-freebsd\. .*nothing_like_it is missing here"):
        library._library.__wrapped__()
    monkeypatch.setattr("sys.argv", ["build", "--folder", str(tmp_path)])
    with pytest.raises(SystemExit, match=r"there are no kernels for \w+-freebsd, only for x86_64-linux, "):
        build.main()


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="this system has no such rights")
@pytest.mark.parametrize("what", ["folder", "library"])
def test_nothing_is_loaded_that_every_user_can_write(elsewhere: Path, what: str) -> None:
    place = kernels(elsewhere) if what == "folder" else kernels(elsewhere) / library.file_name(library.native_target())
    place.chmod(0o777)
    assert re.search(f"{place} is not used, since every user can write it: chmod o-w", last_line(start(elsewhere)))


def test_a_changed_source_is_compiled_anew_with_one_line(elsewhere: Path) -> None:
    """The builder is a short one here; that of the project is what made the kernels of these tests."""
    rules = elsewhere / "montecristo_env/core/rules.py"
    rules.write_text(rules.read_text(encoding="utf-8") + "\n# changed\n", encoding="utf-8")
    (elsewhere / "montecristo_env/core/build.py").write_text(
        "from montecristo_env.core import library\n"
        "sources = library.read_manifest(library.FOLDER)['sources']\n"
        "files = [path.name for path in library.FOLDER.glob('kernels-*')]\n"
        "library.write_manifest(library.FOLDER, sources, library.fingerprint(sources), files)\n",
        encoding="utf-8",
    )
    done = start(elsewhere)
    assert done.stdout == "4\n"
    assert done.stderr == (
        "montecristo_env: compiling the kernels (their sources have changed), which takes a minute…\n"
    )
    assert start(elsewhere).stderr == ""


def test_a_compiler_that_does_not_get_through_is_an_error_with_what_it_said(elsewhere: Path) -> None:
    rules = elsewhere / "montecristo_env/core/rules.py"
    rules.write_text(rules.read_text(encoding="utf-8") + "\n# changed\n", encoding="utf-8")
    (elsewhere / "montecristo_env/core/build.py").write_text(
        "import os, sys\nprint('the disk is full', file=sys.stderr, flush=True)\nos._exit(9)\n", encoding="utf-8"
    )
    assert last_line(start(elsewhere)) == "the disk is full"
    assert "the kernels could not be compiled (it ended with 9); `python -m" in start(elsewhere).stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_child_forked_while_another_thread_loads_does_not_wait_for_it() -> None:
    done = run_python(
        "import os, signal\n"
        "from montecristo_env.core import library\n"
        "library._lock.acquire()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    signal.alarm(60)\n"
        "    library.load()\n"
        "    os._exit(0)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_the_manifest_names_every_file_that_kernels_come_from() -> None:
    sources = library.read_manifest(library.FOLDER)["sources"]
    for folder, package in (
        (ROOT, "montecristo_env"),
        (ROOT / "agents", "montecristo_agents"),
        (ROOT / "train", "montecristo_train"),
    ):
        for path in (folder / package).rglob("*.py"):
            if re.search(r"^@(kernel|inlined|intrinsic|entry_point)$", path.read_text(encoding="utf-8"), re.MULTILINE):
                assert path.relative_to(folder).as_posix() in sources


if library.BOUNDSCHECK:  # make boundscheck

    @pytest.mark.engine
    def test_every_index_is_checked() -> None:
        games = GameBatch(2, 2, seed=0)
        with pytest.raises(IndexError, match="an index is out of bounds in batch_sample_actions"):
            batch.sample_actions(games.states, np.array([0, 5]), np.zeros(2, np.int64), 0, 2)
