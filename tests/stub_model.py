"""A scripted language model: as a function, and behind a local server that speaks OpenAI's protocol, with faults."""

from __future__ import annotations

import json
import re
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from montecristo_env import GameBatch, actions
from montecristo_env.text import prompt


def pick(text: str) -> str:
    """The scripted choice: one of the moves that a prompt lists, by a checksum of the last position in it."""
    moves = moves_in(text)
    return moves[zlib.crc32(text[text.rindex("Round ") :].encode()) % len(moves)]


def moves_in(text: str) -> list[str]:
    """The legal moves that a prompt lists, in the compact or in the long form."""
    compact = re.findall(r"^Legal moves: (.*)$", text, re.MULTILINE)
    if compact:
        return [move.split(" ", 1)[1] for move in compact[-1].split("; ")]
    return re.findall(r"^[0-9]+\. ([^:\n]+): ", text.rpartition("Your legal moves:")[2], re.MULTILINE)


def scripted(text: str) -> str:
    """Answers in prose, with the move somewhere in it."""
    return f"Let me think about this.\nI choose: **{pick(text).upper()}**, of course."


def expected_game(num_players: int, seed: int, *, long: bool = False, **settings: Any) -> GameBatch:
    """The game that scripted models play, on `GameBatch` itself."""
    games = GameBatch(1, num_players, seed=seed, **settings)
    while not games.over[0]:
        games.step([actions.encode(actions.parse(pick(prompt(games, long=long))))])
    return games


Reply = Callable[[dict[str, Any]], Any]
"""What the server answers to the body of a request: a text, or an object of the classes below."""


class Status(Exception):
    """An answer with this HTTP status instead."""


class Raw(str):
    """This, as the whole body."""


class CutOff(str):
    """This answer, whose last words are missing by the limit of tokens."""


class Broken(str):
    """This part of the body, then the connection ends."""


class Slow(str):
    """This answer, after a second."""


class Trickling(str):
    """This answer, a byte every twentieth of a second."""


@contextmanager
def serving(reply: Reply, usage: bool = True) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A server on this computer: its address, and the bodies of all requests so far."""
    seen: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            seen.append(body)
            assert self.path == "/v1/chat/completions"
            status, answer = 200, reply(body)
            if isinstance(answer, Status):
                status, content = int(answer.args[0]), json.dumps({"error": {"message": "as told"}})
            elif isinstance(answer, Raw | Broken):
                content = str(answer)
            else:
                if isinstance(answer, Slow):
                    time.sleep(1.0)
                content = json.dumps(completion(answer, usage))
            data = content.encode()
            try:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data) + (100 if isinstance(answer, Broken) else 0)))
                self.send_header("Retry-After-Ms", "1")
                self.end_headers()
                if isinstance(answer, Trickling):
                    for byte in data:
                        self.wfile.write(bytes([byte]))
                        time.sleep(0.05)
                else:
                    self.wfile.write(data)
            except (BrokenPipeError, ConnectionResetError):
                pass  # whoever asked did not wait
            if isinstance(answer, Broken):
                self.close_connection = True

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1", seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def completion(answer: str, usage: bool) -> dict[str, Any]:
    """What the protocol says around an answer."""
    choice = {
        "index": 0,
        "finish_reason": "length" if isinstance(answer, CutOff) else "stop",
        "message": {"role": "assistant", "content": str(answer)},
    }
    whole = {"id": "1", "object": "chat.completion", "created": 0, "model": "stub", "choices": [choice]}
    return whole | ({"usage": {"prompt_tokens": 900, "completion_tokens": 20, "total_tokens": 920}} if usage else {})
