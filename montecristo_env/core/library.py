"""Where the compiled kernels are, and how they are loaded: at the first call, in milliseconds.

They come with the wheel. Beside them stands what they were built from and what is in them; in an editable installation
they are built again when a source has changed.
"""

import ctypes
import hashlib
import importlib.util
import json
import os
import platform
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from montecristo_env.util.files import atomic_write

BOUNDSCHECK = os.environ.get("MONTECRISTO_BOUNDSCHECK", "0") not in ("", "0")
"""Whether to use, and if need be to build, kernels that check every array index: they are slow, and for tests."""
FOLDER = Path(__file__).parent / ("kernels_checked" if BOUNDSCHECK else "kernels")
MANIFEST = "manifest.json"
SUFFIXES = {"linux": ".so", "windows": ".dll", "macos": ".dylib", "wasm32": ".wasm"}
BUILD = "python -m montecristo_env.core.build"
PACKAGES = ("montecristo_env", "montecristo_agents", "montecristo_train")
"""Those that have kernels."""
_TOOLS = ("numba", "llvmlite")  # that building needs
_lock = threading.Lock()


def _forget_threads() -> None:
    """A forked child has none of the threads that could release the lock, and none of the library's."""
    global _lock
    _lock = threading.Lock()
    if _library.cache_info().currsize:
        _library().forget_helpers()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)


class KernelsMissing(ImportError):
    """The compiled kernels are missing, foreign, or older than their sources; the message says what to do."""


def native_target() -> str:
    """The name of this machine among the targets, such as x86_64-linux."""
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine().lower())
    system = {"darwin": "macos"}.get(platform.system().lower(), platform.system().lower())
    return f"{machine}-{system}"


def file_name(target: str, level: str = "") -> str:
    """The library for a target; processors of some targets have levels, and the lowest has no name."""
    return f"kernels-{target}{level and '-' + level}{SUFFIXES.get(target.rpartition('-')[2], '.so')}"


@cache
def package_folder(package: str) -> Path:
    """Where a package of ours is installed; it is not imported."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise KernelsMissing(f"{package} is not installed: install montecristo-env again")
    return Path(spec.origin).parent


def fingerprint(sources: list[str]) -> str:
    """A hash of these files, whose names begin with that of their package."""
    digest = hashlib.sha256()
    for source in sources:
        package, _, name = source.partition("/")
        path = package_folder(package) / name
        digest.update(source.encode() + b"\0" + (path.read_bytes() if path.is_file() else b"") + b"\0")
    return digest.hexdigest()


def write_manifest(folder: Path, sources: list[str], made_from: str, files: list[str]) -> None:
    """Says beside libraries which sources they are made from and what is in them; others from the same ones stay."""
    before = read_manifest(folder)
    libraries = before["libraries"] if before and before["hash"] == made_from else {}
    libraries |= {file: _checksum(folder / file) for file in files}
    content = json.dumps({"hash": made_from, "sources": sources, "libraries": libraries}, indent=1)
    atomic_write(folder / MANIFEST, content.encode())


def read_manifest(folder: Path) -> dict[str, Any]:
    """What `write_manifest` has said there; empty if that is missing or damaged."""
    try:
        found = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        return {
            "hash": str(found["hash"]),
            "sources": [*map(str, found["sources"])],
            "libraries": {**found["libraries"]},
        }
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def problem_of(folder: Path, files: list[str]) -> str:
    """Why these libraries cannot be used, or an empty text."""
    manifest = read_manifest(folder)
    if not manifest:
        return f"{MANIFEST} is missing or damaged"
    if manifest["hash"] != fingerprint(manifest["sources"]):
        return "their sources have changed"
    damaged = [file for file in files if manifest["libraries"].get(file) != _checksum(folder / file)]
    return f"{' and '.join(damaged)} {'is' if len(damaged) == 1 else 'are'} missing or damaged" if damaged else ""


def function(name: str) -> Callable[[Any], int]:
    """An entry point of the library."""
    try:
        found = getattr(load(), name)
    except AttributeError:  # it was added in a file that has had none
        with _lock:
            _build(f"{name} is not among them")
            _library.cache_clear()
        found = getattr(load(), name)
    found.argtypes, found.restype = [ctypes.c_void_p], ctypes.c_int64
    entry: Callable[[Any], int] = found
    return entry


def load() -> ctypes.CDLL:
    """The library, built first if it is missing or older than its sources."""
    with _lock:
        return _library()


@cache
def _library() -> ctypes.CDLL:
    if problem := _problem():
        _build(problem)
    lowest: ctypes.CDLL = _open(FOLDER / file_name(native_target()))
    better = FOLDER / file_name(native_target(), "v3")
    if better.is_file() and lowest.supports_v3():
        lowest = _open(better)
    return lowest


def _problem() -> str:
    """Why the kernels cannot be used, or an empty text."""
    target = native_target()
    if not (FOLDER / file_name(target)).is_file():
        others = sorted(path.stem.removeprefix("kernels-") for path in FOLDER.glob("kernels-*"))
        return f"there are none for {target}" + (f", only for {', '.join(others)}" if others else "")
    better = file_name(target, "v3")
    return problem_of(FOLDER, [file_name(target), *([better] if (FOLDER / better).is_file() else [])])


def _build(problem: str) -> None:
    """Builds them anew for this machine."""
    missing = [tool for tool in _TOOLS if importlib.util.find_spec(tool) is None]
    if missing:
        raise KernelsMissing(
            f"the compiled kernels in {FOLDER} cannot be used: {problem}. Install montecristo-env again, for this "
            f"machine; or build them: pip install 'montecristo-env[build]', then {BUILD} "
            f"({' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing here)"
        )
    print(f"montecristo_env: compiling the kernels ({problem}), which takes a minute…", file=sys.stderr, flush=True)
    paths = [str(package_folder(package).parent) for package in PACKAGES]  # these, wherever it would find others
    env = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-P", *BUILD.split()[1:], "--if-stale"]  # another process may build them, too
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    left = _problem() if done.returncode == 0 else f"it ended with {done.returncode}"
    if left:
        raise KernelsMissing(f"the kernels could not be compiled ({left}); `{BUILD}` said:\n{done.stderr.strip()}")


def _open(path: Path) -> ctypes.CDLL:
    """Loads a library, unless somebody else could have written it."""
    for place in (path, path.parent):
        facts = place.stat()
        if hasattr(os, "getuid") and facts.st_mode & stat.S_IWOTH:
            raise KernelsMissing(f"{place} is not used, since every user can write it: chmod o-w {place}")
    try:
        return ctypes.CDLL(str(path))
    except OSError as problem:
        raise KernelsMissing(
            f"the compiled kernels in {path} cannot be loaded on this machine ({problem}). "
            f"Install montecristo-env again, or build them: {BUILD}"
        ) from None
