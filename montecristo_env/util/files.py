"""Files that appear whole or not at all, and folders that one process at a time works in."""

import errno
import os
import re
import secrets
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from montecristo_env.errors import InvalidArgument

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

LOCK = ".montecristo-lock"
"""The file in a folder that a process holds while it works there; it is no content of the folder."""
STALE = 24 * 3600.0  # seconds after which nobody is still writing a file
SYSTEM = os.name
_PATIENCE = 2.0  # seconds that a file may be open elsewhere
_BETWEEN_TRIES = 0.2  # seconds
_UNFINISHED = re.compile(r"\..+\.[0-9a-f]{8}\.montecristo-tmp", re.DOTALL)
_EVERYBODY, _OWNER = 0o666, 0o600  # the umask takes away what the user keeps from others
_HELD_BY_ANOTHER = (errno.EACCES, errno.EAGAIN, errno.EDEADLK)


def atomic_write(path: str | os.PathLike[str], content: bytes, *, private: bool = False) -> None:
    """Writes a file under a temporary name and moves it; if anything fails, what was there before stays.

    Args:
        path: where to.
        content: all of it.
        private: whether only the owner may read it; else whoever the umask lets.
    """
    path = Path(path)
    temporary = path.parent / f".{path.name}.{secrets.token_hex(4)}.montecristo-tmp"
    handle = os.open(temporary, _NEW, _OWNER if private else _EVERYBODY)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        _replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _replace(source: Path, target: Path) -> None:
    """Moves a file; Windows may have to wait until whoever reads the older one has closed it."""
    end = time.monotonic() + (_PATIENCE if SYSTEM == "nt" else 0)
    while True:
        try:
            return os.replace(source, target)
        except PermissionError:
            if time.monotonic() >= end:
                raise
        time.sleep(0.01)


_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


def sweep(folder: Path) -> None:
    """Removes what `atomic_write` left unfinished in or below a folder when it was killed, once that is a day old."""
    oldest = time.time() - STALE
    for path in folder.rglob(".*.montecristo-tmp"):
        if _UNFINISHED.fullmatch(path.name):
            with suppress(OSError):  # gone meanwhile, or not ours to remove
                about = path.lstat()
                if stat.S_ISREG(about.st_mode) and about.st_mtime < oldest:
                    path.unlink()


def is_empty(folder: Path) -> bool:
    """Whether nothing is in a folder but, perhaps, its lock and what was left unfinished."""
    return all(path.name == LOCK or _UNFINISHED.fullmatch(path.name) for path in folder.iterdir())


@contextmanager
def locked(folder: Path, *, wait: bool = False) -> Iterator[None]:
    """Keeps other processes from working in a folder; if one does, `InvalidArgument` says so at once, or this waits.

    The system releases the lock when a process ends, however that happens. Where files cannot be locked, as on some
    network drives, nobody is kept away.
    """
    path = folder / LOCK
    while True:
        try:
            file = path.open("ab")
        except OSError as error:
            raise InvalidArgument(f"cannot write to {folder}: {error.strerror}") from None
        with file:
            try:
                _take(file)
            except OSError as error:
                if error.errno in _HELD_BY_ANOTHER and wait:
                    time.sleep(_BETWEEN_TRIES)
                    continue
                if error.errno in _HELD_BY_ANOTHER:
                    raise InvalidArgument(f"another process works in {folder}: wait for its end, or stop it") from None
            if not _is_still_there(file, path):  # whoever had it has removed it meanwhile
                continue
            sweep(folder)
            try:
                yield
            finally:
                with suppress(OSError):  # Windows removes no open file; it may stay
                    path.unlink()
            return


def _take(file: BinaryIO) -> None:
    if sys.platform == "win32":
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is_still_there(file: BinaryIO, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
