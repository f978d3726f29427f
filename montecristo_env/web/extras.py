"""What the server and the command lines need besides the environment itself, all from one extra."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

try:
    import h11
    import tyro
    import uvicorn
    import websockets  # what uvicorn needs for play over a WebSocket
    from starlette.applications import Starlette
    from starlette.datastructures import Headers
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route, WebSocketRoute
    from starlette.types import ASGIApp, Receive, Scope, Send
    from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState
    from uvicorn.protocols.http.h11_impl import H11Protocol
except ImportError as error:
    raise ImportError(f"this needs {error.name}: pip install 'montecristo-env[web]'") from error

__all__ = [
    "ASGIApp",
    "ClientDisconnect",
    "H11Protocol",
    "Headers",
    "JSONResponse",
    "Receive",
    "Request",
    "Response",
    "Route",
    "Scope",
    "Send",
    "Starlette",
    "WebSocket",
    "WebSocketDisconnect",
    "WebSocketRoute",
    "WebSocketState",
    "end_quietly",
    "h11",
    "tyro",
    "uvicorn",
    "websockets",
]


@contextmanager
def end_quietly() -> Iterator[None]:
    """Ends the program without a complaint when whoever reads what it prints, such as `head`, has gone away."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what Python still flushes at its end
        sys.exit(1)
