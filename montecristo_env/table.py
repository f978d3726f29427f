"""Tables in the browser, for people and agents.

```sh
python -m montecristo_env.table --players human greedy ppo
```

opens a table and its page. Games are kept in a folder and go on when the server is started again.
"""

import contextlib
import sys
import threading
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from montecristo_env.errors import InvalidArgument, MonteCristoError
from montecristo_env.web.extras import tyro, uvicorn
from montecristo_env.web.room import HUMAN, Room
from montecristo_env.web.server import make_app

BAD_INPUT = 2  # the exit code
HIGHEST_PORT = 65535
LONGEST_FRAME = 65536  # bytes that a browser may send at once; longer ones end its connection
SECONDS_TO_SAY_GOODBYE = 1


@dataclass
class Options:
    """Starts a server with tables, and opens a new one in the browser. Ctrl-C ends it; all games are kept."""

    players: tuple[str, ...] = (HUMAN, "greedy")
    """Two to four names in the order of the seats: human, or any agent, such as mcts:200; none to open no new table."""
    agents: tuple[str, ...] = ()
    """Agents for hints and new tables besides those who need no settings, such as policy:PATH."""
    host: str = "127.0.0.1"
    """The address to listen on; 0.0.0.0 lets others on the network play, too."""
    port: int = 8000
    """The port to listen on; 0 takes a free one."""
    allow: tuple[str, ...] = field(default_factory=tuple)
    """Names of this computer, besides localhost, that others type to reach it."""
    folder: Path = Path("runs", "tables")
    """Where games are kept."""
    seed: int | None = None
    """Same seed, same deal; by default it is unpredictable."""
    browser: bool = True
    """Open the page."""


def configure(room: Room, host: str, port: int, allow: Sequence[str] = ()) -> uvicorn.Config:
    """How the server runs; `uvicorn.Server` starts it."""
    return uvicorn.Config(
        make_app(room, allow),
        host,
        port,
        log_level="warning",
        ws_max_size=LONGEST_FRAME,
        timeout_graceful_shutdown=SECONDS_TO_SAY_GOODBYE,
        server_header=False,
    )


def main() -> None:
    """Reads the command line and serves until Ctrl-C."""
    options = tyro.cli(Options, prog="python -m montecristo_env.table")
    try:
        if not 0 <= options.port <= HIGHEST_PORT:
            raise InvalidArgument(f"port must be from 0 to {HIGHEST_PORT}, but is {options.port}")
        room = Room(options.folder)
        for name in (*options.agents, *options.players):
            room.admit(name)
        path = _open_table(room, options)
    except (MonteCristoError, ImportError, OSError) as error:
        print(f"table: {error}", file=sys.stderr)
        sys.exit(BAD_INPUT)
    for problem in room.problems:
        print(f"table: left alone: {problem}", file=sys.stderr)
    config = configure(room, options.host, options.port, options.allow)
    listening = config.bind_socket()
    listening.listen()  # from here on nobody is turned away, even if the server needs a moment to start
    address = f"http://{_reachable(options.host)}:{listening.getsockname()[1]}"
    print(f"Open {address}{path}\nAll tables: {address}/ (Ctrl-C ends the server; games are kept)", flush=True)
    if options.browser:
        threading.Timer(1, webbrowser.open, [address + path]).start()
    with contextlib.suppress(KeyboardInterrupt):
        uvicorn.Server(config).run([listening])


def _open_table(room: Room, options: Options) -> str:
    """Opens the table that is asked for; returns the path of the page to look at."""
    if not options.players:
        return "/"
    identity = room.open_table(options.players, options.seed)
    return f"/tables/{identity}#sit" if HUMAN in options.players else f"/tables/{identity}"


def _reachable(host: str) -> str:
    """An address that a browser on this computer can open."""
    if host in ("0.0.0.0", "::"):
        return "localhost"
    return f"[{host}]" if ":" in host else host


if __name__ == "__main__":
    main()
