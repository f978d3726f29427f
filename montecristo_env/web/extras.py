"""What the server and the command lines need besides the environment itself, all from one extra."""

from montecristo_env.util.commands import missing

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
    raise missing("this", error.name, "web") from error

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
    "h11",
    "tyro",
    "uvicorn",
    "websockets",
]
