"""The ASGI application: guards, then the route of the path, then the answer, the metrics and a line of the log.

TensorFlow Serving's own paths begin with /v1/. An unknown path gets the status 404 and a page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from time import perf_counter
from typing import Any

from heald.errors import HealdError, typed_error

from ..access_log import AccessRecord
from .body import BodyReader
from .guards import Guards
from .messages import Request, Response, Route, error_response, headers_of
from .protocol import ON_DISCONNECT

NOT_FOUND_PAGE = b"<HTML><HEAD><TITLE>404 Not Found</TITLE></HEAD><BODY><H1>Not Found</H1></BODY></HTML>\n"
NOT_MODIFIED = 304
TRACE_HEADERS = (b"x-request-id", b"traceparent")
_TRACE = re.compile(rb"[\x21-\x7e]{1,200}")
PROBES = frozenset(("/livez", "/readyz"))
CORS = ((b"access-control-allow-origin", b"*"), (b"access-control-allow-methods", b"POST, GET"),
        (b"access-control-allow-headers", b"Content-Type"))


def is_trace(value: bytes) -> bool:
    """True for a trace id that may go into an answer."""
    return _TRACE.fullmatch(value) is not None


class Application:
    """`routes`: by exact path, or by prefix where the key ends in a slash; the longest key counts.

    `memory`: the budget of bodies, with `take` and `give_back`. `on_answer` gets an AccessRecord of each request.
    `open_paths` need no token.
    """

    def __init__(
        self, routes: Mapping[str, Route], guards: Guards, *, memory: Any, most_body_bytes: int,
        allows_origins: bool = False, on_answer: Callable[[AccessRecord], None] | None = None,
        open_paths: Collection[str] = PROBES,
    ) -> None:
        self._exact = {path: route for path, route in routes.items() if not path.endswith("/") or path == "/"}
        self._prefixes = sorted(((path, route) for path, route in routes.items() if path.endswith("/") and path != "/"),
                                key=lambda row: -len(row[0]))
        self._guards, self.memory, self._most_body_bytes = guards, memory, most_body_bytes
        self._allows_origins, self._on_answer, self._open_paths = allows_origins, on_answer, open_paths

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        start = perf_counter()
        headers = headers_of(scope["headers"])
        query = scope["query_string"]
        target = scope["raw_path"].decode("latin-1") + (f"?{query.decode('latin-1')}" if query else "")
        reader = BodyReader(receive, headers, self._most_body_bytes, self.memory)
        callbacks = scope.get("extensions", {}).get(ON_DISCONNECT, {"callbacks": []})["callbacks"]
        request = Request(scope["method"], target, headers, reader.read, reader.reserve, callbacks)
        try:
            response = await self._answer(request)
            await self._send(send, response, request)
        finally:
            reader.close()
        if self._on_answer is not None:
            client = scope.get("client")
            self._on_answer(AccessRecord(
                client[0] if client else "", request.method, target, response.status, perf_counter() - start,
                response.model, headers.get(b"traceparent", headers.get(b"x-request-id", b"")).decode("latin-1")))

    async def _answer(self, request: Request) -> Response:
        path = request.target.partition("?")[0]
        refusal = self._guards.refusal(request.headers, is_open=path in self._open_paths)
        if refusal is not None:
            return error_response(refusal)
        if request.method == "OPTIONS":
            origin = request.headers.get(b"origin", b"").lower()
            return Response(200 if b"http://" in origin or b"https://" in origin else 400, b"")
        route = self._route(path)
        if route is None:
            return Response(404, NOT_FOUND_PAGE, "text/html")
        try:
            return await route(request)
        except HealdError as error:
            return error_response(error)
        except Exception as error:  # noqa: BLE001 - a fault of a route is an answer, and the server goes on
            return error_response(typed_error(error))

    def _route(self, path: str) -> Route | None:
        route = self._exact.get(path)
        if route is not None:
            return route
        lowered = path.lower()
        return next((route for prefix, route in self._prefixes if lowered.startswith(prefix)), None)

    async def _send(self, send: Any, response: Response, request: Request) -> None:
        headers = [(b"content-type", response.content_type.encode()), *response.headers]
        if response.status != NOT_MODIFIED:  # its length would be that of the body it leaves out
            headers.append((b"content-length", str(len(response.body)).encode()))
        if self._allows_origins:
            headers += CORS
        headers += [(name, request.headers[name]) for name in TRACE_HEADERS
                    if is_trace(request.headers.get(name, b""))]
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if request.method == "HEAD" else response.body})
