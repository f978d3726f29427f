"""The server of the tables: pages over HTTP, play over a WebSocket.

Whatever a browser sends is checked; what is wrong gets an answer that says so and changes nothing. All changes happen
in the event loop, one after the other; agents think and files are written in threads. Agents that give hints have a few
threads of their own, so that bots can always move.

A browser sends JSON objects: first `{"do": "resume", "tokens": […]}`, with the tokens of the seats that it holds, then
`{"do": "sit", "seat": 0}`, `{"do": "leave"}`, `{"do": "move", "action": "enter A", "at": 17}`, `{"do": "undo"}`,
`{"do": "hint", "agent": "greedy"}`, `{"do": "pace", "seconds": 0.7}` and `{"do": "rematch"}`.

It gets `{"type": "table", …}` whenever something has changed (see `Session.view`; parts of the board that it has
already are left out, and `log` follows `log_from` lines that it has), `{"type": "seat", …}`, `{"type": "hint", …}` and
`{"type": "error", "message": …}`.
"""

import asyncio
import contextlib
import ipaddress
import json
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar
from urllib.parse import urlsplit

from montecristo_env.errors import MonteCristoError
from montecristo_env.web.extras import (
    ASGIApp,
    ClientDisconnect,
    Headers,
    JSONResponse,
    Receive,
    Request,
    Response,
    Route,
    Scope,
    Send,
    Starlette,
    WebSocket,
    WebSocketDisconnect,
    WebSocketRoute,
    WebSocketState,
)
from montecristo_env.web.replay_page import ReplayPage, static
from montecristo_env.web.sessions import PACES, Refused, Session, SessionStore

T = TypeVar("T")

LONGEST_MESSAGE = 4096  # characters
HINTS_AT_ONCE = 2  # that agents think about
MOST_HINTS = 16  # that agents think about or have not begun with
STYLE, SCRIPT = "text/css", "text/javascript"
FILES = {"style.css": STYLE} | dict.fromkeys(
    ["backend.js", "board.js", "changes.js", "end.js", "lobby.js", "table.js", "teach.js"], SCRIPT
)
SAFE_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}
REPLAY_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; frame-ancestors 'none'"


def make_app(store: SessionStore, hosts: Sequence[str] = ()) -> ASGIApp:
    """The application.

    Args:
        store: the tables.
        hosts: names, besides "localhost" and plain addresses, under which the server may be reached.
    """
    return Guard(Server(store).app, hosts)


class Guard:
    """Refuses requests that another page has sent: by a name that leads here (DNS rebinding), or from its origin."""

    def __init__(self, app: ASGIApp, hosts: Sequence[str]) -> None:
        self.app = app
        self.hosts = {"localhost", *(host.lower() for host in hosts)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on if it comes from our own pages or from no page at all."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        reason = self._reason(headers, scope["type"] == "websocket" or scope["method"] not in ("GET", "HEAD"))
        if reason is None:
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": reason})
        else:
            await _error(reason, 403)(scope, receive, send)

    def _reason(self, headers: Headers, must_have_origin: bool) -> str | None:
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self._is_ours(host):
            return f"this server is not called {host!r}"
        if origin is None and must_have_origin:
            return "the request does not say from which page it comes"
        if origin is not None and _netloc(origin) != host.lower():
            return f"requests from {origin!r} are not answered"
        return None

    def _is_ours(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        if name in self.hosts:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


class Server:
    """The routes and who is connected."""

    def __init__(self, store: SessionStore) -> None:
        self.store = store
        self.connections: dict[str, set[Connection]] = {}
        self._players: dict[str, asyncio.Task[None]] = {}
        self._unsaved: dict[str, set[str]] = {}
        self._savers: dict[str, asyncio.Task[None]] = {}
        self._advisers = ThreadPoolExecutor(HINTS_AT_ONCE, thread_name_prefix="hint")
        self._free_hints = threading.Semaphore(MOST_HINTS)
        self.app = Starlette(
            routes=[
                Route("/", self.lobby),
                Route("/static/{name}", self.file),
                Route("/tables", self.list_tables, methods=["GET"]),
                Route("/tables", self.open_table, methods=["POST"]),
                Route("/tables/{identity}", self.table_page, methods=["GET"]),
                Route("/tables/{identity}", self.remove_table, methods=["DELETE"]),
                Route("/tables/{identity}/record", self.record),
                Route("/tables/{identity}/replay", self.replay),
                WebSocketRoute("/tables/{identity}/socket", self.socket),
            ],
            lifespan=self._lifespan,
            exception_handlers={
                404: lambda request, error: _missing(request, "there is no such page"),
                405: lambda request, error: _error("this cannot be done here", 405),
                Refused: lambda request, error: _missing(request, str(error)),
            },
        )

    @contextlib.asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        for identity in self.store.tables:
            self.wake(identity)
        yield
        for task in list(self._players.values()):
            task.cancel()
        self._advisers.shutdown(wait=False, cancel_futures=True)
        await asyncio.gather(*self._savers.values())

    # --- pages

    async def lobby(self, request: Request) -> Response:
        """The list of tables."""
        return _page("lobby.html")

    async def table_page(self, request: Request) -> Response:
        """The page of a table."""
        self.store.table(request.path_params["identity"])
        return _page("table.html")

    async def file(self, request: Request) -> Response:
        """A script or a style."""
        name = request.path_params["name"]
        if name not in FILES:
            return _error(f"there is no file {name!r}", 404)
        return Response(static(name), media_type=FILES[name], headers=SAFE_HEADERS)

    async def record(self, request: Request) -> Response:
        """The record of a table, to be kept."""
        identity = request.path_params["identity"]
        content = self.store.table(identity).public_record().to_json()
        keep = {"content-disposition": f'attachment; filename="montecristo-{identity}.json"'}
        return Response(content, media_type="application/json", headers=SAFE_HEADERS | keep)

    async def replay(self, request: Request) -> Response:
        """The replay of a table so far; `?by=greedy` lets an agent evaluate every decision."""
        record = self.store.table(request.path_params["identity"]).public_record()
        if name := request.query_params.get("by"):
            make_agent = self.store.agent(name)
            await self.advise(lambda: record.annotate(make_agent()))
        page = ReplayPage()
        await asyncio.to_thread(page.add, record)
        policy = {"content-security-policy": REPLAY_POLICY}
        return Response(page.html(), media_type="text/html", headers=SAFE_HEADERS | policy)

    async def list_tables(self, request: Request) -> Response:
        """All tables, and who can be asked to play."""
        tables = [
            {
                "id": identity,
                "players": table.names,
                "scores": table.record.result["scores"]
                if table.record.result
                else table.games.public_state()["scores"],
                "round": int(table.games.states["round_number"][0]),
                "over": table.record.result is not None,
                "changed_at": table.changed_at,
                "free": [seat for seat, agent in enumerate(table.agents) if agent is None and not table.holders[seat]],
            }
            for identity, table in list(self.store.tables.items())  # a thread may add one
        ]
        return JSONResponse({"tables": tables, "agents": self.store.agents}, headers=SAFE_HEADERS)

    async def open_table(self, request: Request) -> Response:
        """A new table: `{"players": ["human", "greedy"]}`, perhaps with a `seed`."""
        try:
            message = await _body(request)
            players, seed = _fields(message, players=list)["players"], message.get("seed")
            if not all(isinstance(name, str) for name in players):
                raise Refused("players must be a list of names")
            identity = await asyncio.to_thread(self.store.open_table, players, seed)
        except MonteCristoError as error:
            return _error(str(error), 413 if isinstance(error, TooLarge) else 400)
        except OSError as error:
            return _error(f"the table could not be saved: {error}", 500)
        self.wake(identity)
        return JSONResponse({"id": identity}, 201, headers=SAFE_HEADERS)

    async def remove_table(self, request: Request) -> Response:
        """Deletes a table: `{"tokens": […]}`, those of all seats that people hold there."""
        identity = request.path_params["identity"]
        try:
            tokens = _fields(await _body(request), tokens=list)["tokens"]
            await self.settled(identity)
            self.store.remove(identity, [token for token in tokens if isinstance(token, str)])
        except MonteCristoError as error:
            return _error(str(error), 413 if isinstance(error, TooLarge) else 400)
        for connection in self.connections.pop(identity, set()):
            await connection.close("this table was deleted")
        return JSONResponse({}, headers=SAFE_HEADERS)

    # --- play

    async def socket(self, websocket: WebSocket) -> None:
        """Somebody at a table, from now until they leave the page."""
        identity = websocket.path_params["identity"]
        await websocket.accept()
        if identity not in self.store.tables:
            with contextlib.suppress(WebSocketDisconnect):
                await websocket.send_json({"type": "gone", "message": f"there is no table {identity!r}"})
                await websocket.close(1008)
            return
        connection = Connection(self, identity, websocket)
        everybody = self.connections.setdefault(identity, set())
        everybody.add(connection)
        sending = asyncio.create_task(connection.keep_informed())
        try:
            await connection.listen()
        finally:
            everybody.discard(connection)
            sending.cancel()
            if connection.hint is not None:
                connection.hint.cancel()

    async def changed(self, identity: str, *kinds: str) -> None:
        """Writes these files of a table, then tells everybody what has changed, and lets bots go on."""
        self._unsaved.setdefault(identity, set()).update(kinds)
        saver = self._savers.get(identity)
        if saver is None or saver.done():
            saver = self._savers[identity] = asyncio.create_task(self._save(identity))
        await asyncio.shield(saver)

    async def settled(self, identity: str) -> None:
        """Waits until everything at a table is on disk."""
        if saver := self._savers.get(identity):
            await asyncio.shield(saver)

    async def _save(self, identity: str) -> None:
        while kinds := self._unsaved.pop(identity, None):
            table = self.store.tables.get(identity)
            if table is None:  # it was deleted meanwhile
                return
            try:
                await asyncio.to_thread(self.store.save(identity, table, kinds))
            except OSError as error:
                table.problem = f"the table could not be saved: {error}"
        self._tell_everybody(identity)
        self.wake(identity)

    def _tell_everybody(self, identity: str) -> None:
        for connection in self.connections.get(identity, ()):
            connection.stale.set()

    def wake(self, identity: str) -> None:
        """Lets the bots of a table play, if it is their turn."""
        task = self._players.get(identity)
        table = self.store.tables.get(identity)
        if table is not None and table.bot_is_due and (task is None or task.done()):
            self._players[identity] = asyncio.create_task(self._play(identity, table))

    def advise(self, ask: Callable[[], T]) -> asyncio.Future[T]:
        """Lets an agent think about a hint; one that is cancelled before it has begun costs nothing."""
        if not self._free_hints.acquire(blocking=False):
            raise Refused(f"{MOST_HINTS} hints are being thought about: ask again later")
        thinking = self._advisers.submit(ask)
        thinking.add_done_callback(lambda _: self._free_hints.release())
        return asyncio.wrap_future(thinking)

    async def _play(self, identity: str, table: Session) -> None:
        while table.bot_is_due and identity in self.store.tables:
            before = table.changes
            await asyncio.sleep(table.pace or 0)
            if not table.bot_is_due or table.changes != before:
                continue
            try:
                code = await asyncio.to_thread(table.ask_bot())
                if not table.bot_is_due or table.changes != before or identity not in self.store.tables:
                    continue
                table.step(code)
            except Exception as error:  # an agent may be anybody's: the server outlives it
                table.problem = f"{table.names[table.turn]} could not move: {error}"
                self._tell_everybody(identity)
                return
            await self.changed(identity, "json")


class Connection:
    """One page that shows a table."""

    def __init__(self, server: Server, identity: str, websocket: WebSocket) -> None:
        self.server = server
        self.identity = identity
        self.table = server.store.table(identity)
        self.websocket = websocket
        self.tokens: dict[int, str] = {}
        self.stale = asyncio.Event()
        self.hint: asyncio.Task[None] | None = None
        """The answer to the last request for a hint."""

    @property
    def seats(self) -> list[int]:
        """The seats that this page holds; one that was left elsewhere is no longer among them."""
        return [seat for seat, token in self.tokens.items() if self.table.holds(seat, token)]

    async def keep_informed(self) -> None:
        """Sends the table whenever it has changed, but only what this page does not have yet."""
        shown: dict[str, str] = {}
        log: list[Any] = []
        while True:
            await self.stale.wait()
            await self.server.settled(self.identity)
            self.stale.clear()
            view = self.table.view(self.seats)
            parts, lines = view["parts"], view["log"]
            known = next((i for i, (old, new) in enumerate(zip(log, lines, strict=False)) if old != new), len(log))
            known = min(known, len(lines))
            view["parts"] = {name: part for name, part in parts.items() if shown.get(name) != part}
            view |= {"log_from": known, "log": lines[known:], "agents": self.server.store.agents, "paces": PACES}
            shown, log = parts, lines
            await self._send(view)

    async def _send(self, message: dict[str, Any]) -> None:
        """Sends a message, unless the page has gone away; `listen` ends then."""
        if self.websocket.application_state is WebSocketState.CONNECTED:
            with contextlib.suppress(WebSocketDisconnect):
                await self.websocket.send_json(message)

    async def close(self, reason: str) -> None:
        """Says why, and ends the connection."""
        await self._send({"type": "gone", "message": reason})
        if self.websocket.application_state is WebSocketState.CONNECTED:
            await self.websocket.close(1000)

    async def listen(self) -> None:
        """Answers what the page asks, until it is closed."""
        while self.websocket.application_state is WebSocketState.CONNECTED:
            try:
                text = await self.websocket.receive_text()
            except WebSocketDisconnect:
                return
            except KeyError:
                text = ""  # bytes
            try:
                await self._obey(text)
            except MonteCristoError as error:
                await self._send({"type": "error", "message": str(error)})

    async def _obey(self, text: str) -> None:
        if len(text) > LONGEST_MESSAGE:
            raise Refused(f"a message may have {LONGEST_MESSAGE} characters, not {len(text)}")
        table, message = self.table, _parse(text)
        match _fields(message, do=str)["do"]:
            case "sit":
                seat = _fields(message, seat=int)["seat"]
                token = table.sit(seat, _fields({"name": ""} | message, name=str)["name"])
                await self.server.changed(self.identity, "seats")
                await self._send({"type": "seat", "seat": seat, "token": token})
                self.tokens[seat] = token  # only now: a page that shows the seat has the token, also after a reload
                self.stale.set()
            case "resume":
                self._resume(_fields(message, tokens=list)["tokens"])
            case "leave":
                for seat in self.seats:
                    table.leave(seat)
                self.tokens.clear()
                await self.server.changed(self.identity, "seats")
            case "move":
                asked = _fields(message, action=str, at=int)
                table.move(self.seats, asked["action"], asked["at"])
                await self.server.changed(self.identity, "json")
            case "undo":
                table.undo(self.seats)
                await self.server.changed(self.identity, "json")
            case "pace":
                table.set_pace(self.seats, _fields(message, seconds=float | int | None)["seconds"])
                await self.server.changed(self.identity, "seats")
            case "rematch":
                await asyncio.to_thread(self.server.store.rematch, self.identity, self.seats)
                self.server.wake(table.next_table)
                await self.server.changed(self.identity)
            case "hint":
                name = _fields(message, agent=str)["agent"]
                ask = table.ask_for_hint(self.server.store.agent(name))
                if self.hint is not None and not self.hint.done():
                    raise Refused("the hint that you asked for is still being thought about: one at a time")
                self.hint = asyncio.create_task(self._give_hint(name, self.server.advise(ask)))
            case other:
                raise Refused(
                    f"{other!r} is nothing that can be done: sit, resume, leave, move, undo, hint, pace, rematch"
                )

    async def _give_hint(self, agent: str, hint: asyncio.Future[dict[str, Any]]) -> None:
        """Sends a hint as soon as it is there; everything else goes on meanwhile."""
        try:
            answer = await hint
        except Exception as error:  # an agent may be anybody's
            answer = {"type": "error", "message": f"{agent} could not say: {error}"}
        await self._send(answer)

    def _resume(self, tokens: list[Any]) -> None:
        """Takes the seats that tokens hold; from now on the page is told what happens."""
        self.stale.set()
        for token in tokens:
            if not isinstance(token, str):
                raise Refused(f"tokens must be texts, but one is {token!r}")
            self.tokens[self.table.seat_of(token)] = token


class TooLarge(Refused):
    """A request with more bytes than any that makes sense."""


async def _body(request: Request) -> dict[str, Any]:
    """The JSON object that a request carries."""
    body = b""
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > LONGEST_MESSAGE:
                raise TooLarge(f"a request may have {LONGEST_MESSAGE} bytes")
    except ClientDisconnect:
        raise Refused("the request ended too early") from None  # nobody is there to read it
    return _parse(body.decode("utf-8", "replace"))


def _parse(text: str) -> dict[str, Any]:
    """A JSON object."""
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        message = None
    if not isinstance(message, dict):
        raise Refused("a message must be a JSON object")
    return message


def _fields(message: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """The message, whose fields are each of the type that they must have."""
    for name, kind in fields.items():
        value = message.get(name)
        if name not in message or not isinstance(value, kind) or isinstance(value, bool):
            wanted = getattr(kind, "__name__", str(kind))
            raise Refused(f"{name} must be given as {wanted}, but is {value!r}")
    return message


def _netloc(origin: str) -> str | None:
    """Host and port of an origin, None if it has none."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return None


def _page(name: str) -> Response:
    return Response(static(name), media_type="text/html", headers=SAFE_HEADERS)


def _missing(request: Request, message: str) -> Response:
    """A page for people, a JSON object for programs."""
    if "text/html" not in request.headers.get("accept", ""):
        return _error(message, 404)
    return Response(static("missing.html"), 404, media_type="text/html", headers=SAFE_HEADERS)


def _error(message: str, status: int) -> Response:
    return JSONResponse({"error": message}, status, headers=SAFE_HEADERS)
