"""What our command lines share: how they end when a package is missing, when nobody reads on, and after Ctrl-C."""

import errno
import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from montecristo_env.errors import MonteCristoError

USAGE = 64
"""The exit status after bad input: what BSD calls EX_USAGE; not every system has the name."""
CANNOT_WRITE = 74
"""The exit status where a file cannot be written, EX_IOERR."""
INTERRUPTED = 130
"""The exit status after Ctrl-C, as shells have it."""
_UNREAD = 141  # likewise, after a broken pipe


class MissingPackage(ImportError):
    """A package of an extra is not installed; the message names the extra."""


@contextmanager
def quiet_pipe() -> Iterator[None]:
    """Ends the program quietly when nobody reads on what it prints, as in `--help | head`.

    What the encoding of the output lacks, as on Windows when it goes to a file, becomes a question mark.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except OSError as error:
        if not _is_broken_pipe(error):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left, which Python writes at its end
        sys.exit(_UNREAD)


def _is_broken_pipe(error: OSError) -> bool:
    """Windows calls it an invalid argument; where a file is meant, that has its name."""
    on_windows = sys.platform == "win32" and error.errno == errno.EINVAL and error.filename is None
    return isinstance(error, BrokenPipeError) or on_windows


@contextmanager
def resumable(how: str) -> Iterator[None]:
    """Lets Ctrl-C say how to go on with what it stops."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"stopped; to go on: {how}") from None


def run_command(command: Callable[[list[str]], None], arguments: list[str]) -> None:
    """Runs a command line; bad input, a missing package, a full disk and Ctrl-C end it with a line, not a traceback."""
    with quiet_pipe():
        try:
            command(arguments)
        except (MonteCristoError, MissingPackage) as error:
            print(error, file=sys.stderr)
            sys.exit(getattr(error, "exit_status", USAGE))
        except KeyboardInterrupt as stop:
            print(stop if stop.args else "stopped", file=sys.stderr)
            sys.exit(INTERRUPTED)


def missing(what: str, package: str | None, extra: str) -> MissingPackage:
    """The error to raise where a package of an extra is missing; a command that just starts ends with that line alone.

    Args:
        what: what cannot be done without it.
        package: which one it is.
        extra: the one of ours that it belongs to.
    """
    message = f"{what} needs {package}: pip install 'montecristo-env[{extra}]'"
    if _is_starting():
        sys.exit(message)
    return MissingPackage(message, name=package)


def _is_starting() -> bool:
    """Whether `python -m` is loading a command of ours: looking for its module, or in the middle of that."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    return sys.argv[:1] == ["-m"] or (
        spec is not None and spec.name.startswith("montecristo_") and not hasattr(main, "main")
    )
