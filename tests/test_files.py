"""Files that appear whole or not at all, and folders that one process at a time works in."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from montecristo_env import InvalidArgument
from montecristo_env.util.files import LOCK, STALE, atomic_write, is_empty, locked, sweep

POSIX = pytest.mark.skipif(os.name != "posix", reason="other systems have no such rights")


@POSIX
@pytest.mark.parametrize(("umask", "rights"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_files_have_the_rights_that_the_umask_leaves(tmp_path: Path, umask: int, rights: int) -> None:
    before = os.umask(umask)
    try:
        atomic_write(tmp_path / "file", b"content")
        atomic_write(tmp_path / "secret", b"content", private=True)
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == rights
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600


@POSIX
def test_a_private_file_takes_the_place_of_one_that_all_could_read(tmp_path: Path) -> None:
    atomic_write(tmp_path / "file", b"open")
    atomic_write(tmp_path / "file", b"secret", private=True)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "file").read_bytes() == b"secret"


def killed_while_writing(folder: Path) -> Path:
    """What a process leaves that is killed just before it moves its file."""
    program = (
        "import os, sys\nfrom pathlib import Path\nfrom montecristo_env.util.files import atomic_write\n"
        f"os.replace = lambda *_: os.kill(os.getpid(), {int(signal.SIGKILL)})\n"
        "atomic_write(Path(sys.argv[1]) / 'file', b'half')"
    )
    subprocess.run([sys.executable, "-c", program, str(folder)], check=False)
    (left,) = folder.iterdir()
    return left


@POSIX
def test_only_old_unfinished_files_of_ours_are_swept(tmp_path: Path) -> None:
    ours = killed_while_writing(tmp_path)
    sweep(tmp_path)
    assert ours.exists() and is_empty(tmp_path)  # somebody may still be writing it
    others = [".file.1234abcd", ".file.1234abcd.tmp", "file.1234abcd.montecristo-tmp", ".gitignore", "notes.txt"]
    folder = tmp_path / ours.name.replace("file", "folder")
    folder.mkdir()
    link = tmp_path / ours.name.replace("file", "link")
    link.symlink_to(ours)
    for path in [ours, folder, *(tmp_path / name for name in others)]:
        if path.parent == tmp_path and not path.exists():
            path.touch()
        os.utime(path, (path.stat().st_atime, path.stat().st_mtime - STALE - 60))
    sweep(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {*others, folder.name, link.name}


def test_a_folder_is_locked_for_others_until_it_is_left(tmp_path: Path) -> None:
    with locked(tmp_path):
        assert is_empty(tmp_path)
        with pytest.raises(InvalidArgument, match=f"another process works in {tmp_path}"), locked(tmp_path):
            pytest.fail("both have the folder")
    with locked(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


@POSIX
def test_the_lock_of_a_killed_process_is_free_for_who_waits(tmp_path: Path) -> None:
    program = (
        "import sys, time\nfrom pathlib import Path\nfrom montecristo_env.util.files import locked\n"
        "with locked(Path(sys.argv[1])):\n    print('locked', flush=True)\n    time.sleep(600)"
    )
    process = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "locked\n"
    with pytest.raises(InvalidArgument, match="another process works in"), locked(tmp_path):
        pass
    killer = threading.Timer(1, process.kill)
    killer.start()
    with locked(tmp_path, wait=True):
        assert process.wait() == -signal.SIGKILL
    assert not (tmp_path / LOCK).exists()
    process.communicate()


def test_a_lock_is_released_by_an_error(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), locked(tmp_path):
        raise RuntimeError
    with locked(tmp_path):
        pass


def test_a_folder_that_cannot_be_locked_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name, why in (("missing", "No such file or directory"), ("file", "Not a directory")):
        with pytest.raises(InvalidArgument, match=f"cannot write to {tmp_path / name}: {why}"), locked(tmp_path / name):
            pass
