"""What the server and the command lines need besides the environment itself, all from one extra."""

try:
    import tyro
    import uvicorn
    from starlette.applications import Starlette
    from starlette.datastructures import Headers
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route, WebSocketRoute
    from starlette.types import ASGIApp, Receive, Scope, Send
    from starlette.websockets import WebSocket, WebSocketDisconnect
except ImportError as error:
    raise ImportError(f"this needs {error.name}: pip install 'montecristo-env[web]'") from error

__all__ = [
    "ASGIApp",
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
    "tyro",
    "uvicorn",
]
