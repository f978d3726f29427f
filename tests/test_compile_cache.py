"""Compiled code is kept safely: tested on a toy package with the real `_jit.py`, which compiles in a second or two."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

import montecristo_env.core
from helpers import NOBODY, without_the_rights_of_root
from montecristo_env.core import _jit

JIT = Path(montecristo_env.core.__file__).parent / "_jit.py"
COMPILING = "compiling the rules, once…"
PROGRAM = "import toy.batch as b; b.compile_all(); print(b.answer(1))"


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """A package whose entry point uses a constant and a callee of other files."""
    package = tmp_path / "install" / "toy"
    package.mkdir(parents=True)
    shutil.copy(JIT, package / "_jit.py")
    (package / "__init__.py").touch()
    (package / "constants.py").write_text("BONUS = 40\n")
    (package / "rules.py").write_text(
        "from toy._jit import kernel\nfrom toy.constants import BONUS\n\n"
        "@kernel\ndef add(x):\n    return x + BONUS + 1\n"
    )
    (package / "batch.py").write_text(
        "from toy._jit import compile_once, entry_point\nfrom toy.rules import add\n\n"
        "@entry_point\ndef answer(x):\n    return add(x)\n\n"
        "def compile_all():\n    compile_once(lambda: answer(0))\n"
    )
    return package


def environment(toy: Path, **settings: str) -> dict[str, str]:
    base = {key: value for key, value in os.environ.items() if not key.startswith("NUMBA_")}
    return base | {"PYTHONPATH": str(toy.parent), "MONTECRISTO_CACHE_DIR": str(toy.parent.parent / "cache")} | settings


def run(toy: Path, program: str = PROGRAM, **settings: str) -> tuple[str, str]:
    command = [sys.executable, "-B", "-c", program]
    done = subprocess.run(command, env=environment(toy, **settings), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr


def finished_caches(toy: Path) -> list[Path]:
    return [folder for folder in (toy.parent.parent / "cache").iterdir() if "." not in folder.name]


def test_first_use_compiles_once_and_says_so(toy: Path) -> None:
    answer, messages = run(toy)
    assert answer == "42" and COMPILING in messages
    answer, messages = run(toy)
    assert answer == "42" and messages == ""


@pytest.mark.parametrize("changed", ["constants.py", "rules.py"])
def test_a_changed_source_file_never_runs_stale_code(toy: Path, changed: str) -> None:
    run(toy)
    text = (toy / changed).read_text()
    facts = (toy / changed).stat()
    (toy / changed).write_text(text.replace("40", "50").replace("+ 1", "+ 2"))
    os.utime(toy / changed, ns=(facts.st_atime_ns, facts.st_mtime_ns))  # not even the time of the file tells
    answer, messages = run(toy)
    assert answer == ("52" if changed == "constants.py" else "43")
    assert COMPILING in messages


def test_other_settings_of_numba_have_their_own_code(toy: Path) -> None:
    run(toy)
    _, messages = run(toy, NUMBA_BOUNDSCHECK="1")
    assert COMPILING in messages


def test_without_compilation_nothing_is_cached(toy: Path) -> None:
    assert run(toy, NUMBA_DISABLE_JIT="1") == ("42", "")
    assert not (toy.parent.parent / "cache").exists()


def test_processes_that_start_together_do_not_break_each_other(toy: Path) -> None:
    started = [
        subprocess.Popen([sys.executable, "-c", PROGRAM], env=environment(toy), stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    assert [process.communicate(timeout=300)[0].strip() for process in started] == ["42"] * 4
    assert len(finished_caches(toy)) == 1
    assert [folder.name for folder in (toy.parent.parent / "cache").iterdir()] == [finished_caches(toy)[0].name]
    assert run(toy) == ("42", "")


def test_nothing_is_written_beside_the_sources(toy: Path) -> None:
    """So an install that is read-only works."""
    before = sorted(path.name for path in toy.iterdir())
    run(toy)
    assert sorted(path.name for path in toy.iterdir()) == before


def test_a_cache_folder_that_cannot_be_made_is_passed_over(toy: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    impossible = str(tmp_path / "file" / "cache")
    settings = {"MONTECRISTO_CACHE_DIR": impossible, "XDG_CACHE_HOME": impossible}
    (tmp_path / "tmp").mkdir()
    answer, messages = run(toy, TMPDIR=str(tmp_path / "tmp"), **settings)
    assert answer == "42" and COMPILING in messages
    answer, messages = run(toy, TMPDIR=str(tmp_path / "tmp"), **settings)
    assert answer == "42" and COMPILING not in messages
    assert "MONTECRISTO_CACHE_DIR is not used" in messages and impossible in messages


def test_without_any_cache_folder_every_process_compiles(toy: Path) -> None:
    program = "import tempfile; tempfile.mkdtemp = lambda *a, **k: (_ for _ in ()).throw(OSError('no')); " + PROGRAM
    for _ in range(2):
        answer, messages = run(toy, program)
        assert answer == "42" and COMPILING in messages


def test_a_full_disk_only_costs_the_cache(toy: Path) -> None:
    program = (
        "import toy.batch as b, toy._jit as j, shutil\n"
        "find = j._find_cache\n"
        "def no_room(name):\n"
        "    finished, building = find(name)\n"
        "    shutil.rmtree(building); building.touch()\n"  # nothing can be saved there now
        "    return finished, building\n"
        "j._find_cache = no_room\n"
        "b.compile_all(); print(b.answer(1))"
    )
    answer, messages = run(toy, program)
    assert answer == "42" and "for this process only" in messages
    assert finished_caches(toy) == []


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
def test_a_damaged_cache_is_replaced(toy: Path, suffix: str) -> None:
    run(toy)
    for file in finished_caches(toy)[0].rglob(f"*.{suffix}"):
        file.write_bytes(b"damaged")
    assert run(toy)[0] == "42"
    assert run(toy)[0] == "42"
    assert run(toy) == ("42", "")


def refused(toy: Path, chosen: Path) -> str:
    """What is said of a chosen folder that is not used; the code is kept elsewhere."""
    elsewhere = toy.parent.parent / "home"
    settings = {"MONTECRISTO_CACHE_DIR": str(chosen), "XDG_CACHE_HOME": str(elsewhere)}
    answer, messages = run(toy, **settings)
    assert answer == "42" and COMPILING in messages
    assert run(toy, **settings)[0] == "42"
    assert len(list((elsewhere / "montecristo-env").iterdir())) == 1
    return messages


def test_a_folder_that_others_may_write_to_is_not_trusted(toy: Path) -> None:
    cache = toy.parent.parent / "cache"
    cache.mkdir(mode=0o777)
    cache.chmod(0o777)
    assert f"MONTECRISTO_CACHE_DIR is not used: {cache} can be written by other users" in refused(toy, cache)
    assert list(cache.iterdir()) == []


def test_a_link_to_a_folder_is_not_trusted(toy: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    link = tmp_path / "link"
    assert f"MONTECRISTO_CACHE_DIR is not used: {link} is a symbolic link" in refused(toy, link)
    assert list((tmp_path / "real").iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="this system has other rights")
def test_a_folder_that_may_not_be_searched_is_passed_over() -> None:
    with tempfile.TemporaryDirectory() as name:  # not below `tmp_path`, where nobody else may look
        closed, free = Path(name, "closed"), Path(name, "free")
        closed.mkdir()
        free.mkdir()
        Path(name).chmod(0o755)
        free.chmod(0o777)
        closed.chmod(0o600)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("MONTECRISTO_CACHE_DIR", str(closed / "cache"))
            patch.setenv("XDG_CACHE_HOME", str(free))
            if os.geteuid() == 0:
                patch.setattr(os, "getuid", lambda: NOBODY)
            with without_the_rights_of_root():
                finished, building = _jit._find_cache("montecristo-0123456789abcdef")
        closed.chmod(0o700)
        assert finished == free / "montecristo-env" / "montecristo-0123456789abcdef"
        assert building is not None and building.parent == finished.parent


def test_only_old_folders_of_its_own_are_deleted(toy: Path) -> None:
    cache = toy.parent.parent / "cache"
    old = time.time() - 100 * 24 * 3600
    foreign = ["thesis", "montecristo", "0123456789abcdef", "montecristo-0123456789abcdef-thesis", "montecristo-notes"]
    own = ["montecristo-0123456789abcdef", "montecristo-0123456789abcdef.a_b1c2d3"]
    for name in [*foreign, *own]:
        (cache / name).mkdir(parents=True)
        os.utime(cache / name, (old, old))
    (cache / "montecristo-fedcba9876543210").mkdir()  # of yesterday, so to speak
    run(toy)
    kept = {folder.name for folder in cache.iterdir()}
    assert kept >= {*foreign, "montecristo-fedcba9876543210"} and not kept & set(own)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_fork_during_the_first_use_does_not_hang_the_child(toy: Path) -> None:
    program = (
        "import os, signal, threading, time, toy.batch as b\n"
        "begun = threading.Event()\n"
        "def slowly():\n"
        "    begun.set(); time.sleep(0.3); b.answer(0)\n"
        "first = threading.Thread(target=lambda: b.compile_once(slowly)); first.start()\n"
        "begun.wait()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    signal.alarm(60)\n"  # ends a child that hangs
        "    b.compile_all(); print(b.answer(1), flush=True); os._exit(0)\n"
        "first.join(); b.compile_all()\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), b.answer(1))"
    )
    assert run(toy, program)[0].split() == ["42", "0", "42"]
