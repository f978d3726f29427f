"""Tables in the browser, for people and agents.

```sh
python -m montecristo_env.play --players human greedy ppo
```

opens a new table and its page; without `--players`, the list of all tables. Games are kept in a folder and go on when
the server is started again.
"""

import asyncio
import contextlib
import errno
import socket
import sys
import threading
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from montecristo_env.errors import InvalidArgument, MonteCristoError
from montecristo_env.ruleset import Ruleset
from montecristo_env.util.commands import quiet_pipe
from montecristo_env.web.extras import H11Protocol, h11, tyro, uvicorn
from montecristo_env.web.server import make_app
from montecristo_env.web.sessions import HUMAN, SessionStore, new_identity

BAD_INPUT = 2  # the exit code
HIGHEST_PORT = 65535
LONGEST_FRAME = 65536  # bytes that a browser may send at once; longer ones end its connection
SECONDS_TO_SAY_GOODBYE = 1
SECONDS_FOR_A_REQUEST = 20  # in which all of it must have come


@dataclass
class Options:
    """Starts a server with tables, and shows them in the browser. Ctrl-C ends it; all games are kept."""

    players: tuple[str, ...] = ()
    """Opens a new table for two to four names in the order of the seats: human, or any agent, such as mcts:200."""
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
    """Same seed, same deal, as in `GameBatch(1, seed=[SEED])`; by default it is unpredictable."""
    ruleset: str = ""
    """Settings of new games that differ from the default, such as refill=short,target=30, or a JSON file of them."""
    browser: bool = True
    """Open the page."""


class Protocol(H11Protocol):
    """HTTP for those who say in time what they want: whoever sends a request slowly, or none at all, is cut off."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Waits for the first request."""
        super().connection_made(transport)
        self._wait_for_a_request()

    def on_response_complete(self) -> None:
        """Waits for the next request."""
        self._wait_for_a_request()
        super().on_response_complete()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """Waits no longer: the connection is a WebSocket from now on."""
        self._stop_waiting()
        super().handle_websocket_upgrade(event)

    def connection_lost(self, exc: Exception | None) -> None:
        """Waits no longer: nobody is there."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait_for_a_request(self) -> None:
        self._stop_waiting()
        self._deadline = self.loop.call_later(SECONDS_FOR_A_REQUEST, self._cut_off)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()

    def _cut_off(self) -> None:
        if self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
            self.transport.close()


def configure(store: SessionStore, allow: Sequence[str] = ()) -> uvicorn.Config:
    """How the server runs; `uvicorn.Server` starts it on a socket."""
    return uvicorn.Config(
        make_app(store, allow),
        http=Protocol,
        log_level="warning",
        ws_max_size=LONGEST_FRAME,
        timeout_graceful_shutdown=SECONDS_TO_SAY_GOODBYE,
        server_header=False,
    )


def listen(host: str, port: int) -> socket.socket:
    """A socket for the server; from now on nobody is turned away, even if the server needs a moment to start."""
    if not 0 <= port <= HIGHEST_PORT:
        raise InvalidArgument(f"port must be from 0 to {HIGHEST_PORT}, but is {port}")
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        hint = "; --port 0 takes a free one" if error.errno == errno.EADDRINUSE else ""
        raise InvalidArgument(f"cannot listen on port {port} of {host}: {error.strerror}{hint}") from None


def main() -> None:
    """Reads the command line and serves until Ctrl-C."""
    with quiet_pipe():
        options = tyro.cli(Options, prog="python -m montecristo_env.play")
        try:
            _serve(options)
        except (MonteCristoError, ImportError, OSError) as error:
            print(f"play: {error}", file=sys.stderr)
            sys.exit(BAD_INPUT)


def _serve(options: Options) -> None:
    store = SessionStore(options.folder, ruleset=Ruleset.parse(options.ruleset))
    named = [name for name in (*options.agents, *options.players) if name != HUMAN]
    for name in named:
        store.admit(name)
    if options.players:
        store.check(options.players, options.seed)
    elif options.seed is not None:
        raise InvalidArgument("a seed is that of a new table: give --players, too")
    with listen(options.host, options.port) as listening:
        address = f"http://{_reachable(options.host)}:{listening.getsockname()[1]}"
        identity = new_identity()
        sit = "#sit" if HUMAN in options.players else ""
        page = f"{address}/tables/{identity}{sit}" if options.players else f"{address}/"
        # Said first: what follows may take a moment.
        print(f"Open {page}\nAll tables: {address}/ (Ctrl-C ends the server; games are kept)", flush=True)
        for name in named:
            store.agent(name)()
        store.load()
        for problem in store.problems:
            print(f"play: left alone: {problem}", file=sys.stderr)
        if options.players:
            store.open_table(options.players, options.seed, identity)
        if options.browser:
            threading.Timer(1, webbrowser.open, [page]).start()
        with contextlib.suppress(KeyboardInterrupt):
            uvicorn.Server(configure(store, options.allow)).run([listening])


def _reachable(host: str) -> str:
    """An address that a browser on this computer can open."""
    if host in ("0.0.0.0", "::"):
        return "localhost"
    return f"[{host}]" if ":" in host else host


if __name__ == "__main__":
    main()
