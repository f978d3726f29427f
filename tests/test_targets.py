"""Libraries for other systems, built here: they play the same games under an emulator, or have at least the symbols."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

from montecristo_env import GameBatch, actions, observation
from montecristo_env.core import library
from montecristo_env.core.build import TARGETS
from montecristo_env.core.constants import MAX_PLAYERS
from montecristo_env.core.jit import INTERPRETED, EntryPoint
from montecristo_env.core.layout import STATE

pytestmark = [
    pytest.mark.skipif(INTERPRETED, reason="plain Python has no kernels"),
    pytest.mark.skipif(
        library.native_target() != "x86_64-linux", reason="other systems are emulated on Linux with x86-64"
    ),
]
SOURCE = Path(__file__).parent / "native" / "replay.c"
GAMES = 200
EMULATED = ("aarch64-linux", "x86_64-windows")
MACOS = ("x86_64-macos", "aarch64-macos")
KIND_OF_FILE = {  # how a library begins, and what stands before the names of functions
    "linux": (b"\x7fELF\x02\x01", ""),
    "windows": (b"MZ", ""),
    "macos": (b"\xcf\xfa\xed\xfe", "_"),
}


def run(*command: str | Path, **more: str) -> str:
    done = subprocess.run(command, env=os.environ | more, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command} failed ({done.returncode}):\n{done.stdout}\n{done.stderr}"
    return done.stdout


def needed(program: str, package: str) -> str:
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed: apt-get install {package}")
    return found


def zig(*arguments: str | Path) -> None:
    pytest.importorskip("ziglang", reason="it links for other systems")
    run(sys.executable, "-m", "ziglang", "cc", "-O2", *arguments)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The libraries of other systems, and the object file of aarch64."""
    pytest.importorskip("ziglang", reason="it links for other systems")
    made = tmp_path_factory.mktemp("kernels")
    targets = [f"--target={name}" for name in (*EMULATED, *MACOS)]
    run(sys.executable, "-m", "montecristo_env.core.build", *targets, "--folder", made, "--keep-objects")
    return made


@pytest.fixture(scope="module")
def games(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], str]:
    """The arguments of the program, and what it should print."""
    batch = GameBatch(GAMES, 2 + np.arange(GAMES) % 3, seed=2011, threads=1)
    rows = tmp_path_factory.mktemp("games") / "rows.bin"
    rows.write_bytes(batch.states.tobytes())
    counts, masks = np.zeros((GAMES, observation.SIZE), np.int8), np.zeros((GAMES, actions.COUNT), np.int8)
    codes, checksum = batch.sample_actions(), 0
    while (codes >= 0).any():
        checksum = zlib.crc32(codes.tobytes(), checksum)
        batch.step(codes, observations=counts, masks=masks, samples=codes)
        for array in (batch.states, counts, masks, batch.rewards):
            checksum = zlib.crc32(array.tobytes(), checksum)
    sizes = (GAMES, STATE.itemsize, observation.SIZE, actions.COUNT, MAX_PLAYERS)
    return [str(rows), *map(str, sizes)], f"{checksum:08x}"


def test_aarch64_linux_plays_the_same_games(folder: Path, games: tuple[list[str], str]) -> None:
    """Linked with the kernels into one static program, so that it needs no libraries of that system."""
    emulator, program = needed("qemu-aarch64", "qemu-user"), folder / "replay"
    zig("-target", "aarch64-linux-musl", "-static", "-o", program, SOURCE, folder / "kernels-aarch64-linux.o")
    assert run(emulator, program, *games[0]).strip() == games[1]


def test_windows_plays_the_same_games(folder: Path, games: tuple[list[str], str], tmp_path: Path) -> None:
    """The libraries of both levels are loaded, as Python does it."""
    emulator, program = needed("wine", "wine"), tmp_path / "replay.exe"
    zig("-target", "x86_64-windows-gnu", '-DLIBRARY="kernels.dll"', "-o", program, SOURCE)
    shutil.copy(games[0][0], tmp_path / "rows.bin")
    for level in TARGETS["x86_64-windows"].levels:
        shutil.copy(folder / library.file_name("x86_64-windows", level), tmp_path / "kernels.dll")
        done = subprocess.run(
            [emulator, program, "rows.bin", *games[0][1:]],
            env=os.environ | {"WINEDEBUG": "-all", "WINEPREFIX": str(tmp_path / "wine")},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout.strip()) == (0, games[1]), done.stderr


@pytest.mark.parametrize("target", [*EMULATED, *MACOS])
def test_libraries_are_for_their_systems_and_have_all_entry_points(folder: Path, target: str) -> None:
    """Those for macOS are not run."""
    begins, prefix = KIND_OF_FILE[target.rpartition("-")[2]]
    for level in TARGETS[target].levels:
        content = (folder / library.file_name(target, level)).read_bytes()
        assert content.startswith(begins)
        for name in (*EntryPoint.ALL, "supports_v3"):
            assert f"\0{prefix}{name}\0".encode() in content, name
