"""Compiled code is kept safely: tested on a toy package with the real `_jit.py`, which compiles in a second or two."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import montecristo_env.core

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
    assert run(toy, TMPDIR=str(tmp_path / "tmp"), **settings) == ("42", "")


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


def test_a_folder_that_others_may_write_to_is_not_trusted(toy: Path) -> None:
    cache = toy.parent.parent / "cache"
    cache.mkdir(mode=0o777)
    cache.chmod(0o777)
    run(toy, TMPDIR=str(toy.parent.parent), XDG_CACHE_HOME=str(toy.parent.parent / "home"))
    assert list(cache.iterdir()) == []
