"""A request and an answer, as routes see them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from heald.errors import HealdError

JSON_TYPE = "application/json"
# By canonical code, as TensorFlow Serving maps them; 500 for the rest.
STATUS_OF_CODE = {0: 200, 1: 499, 3: 400, 4: 504, 5: 404, 6: 409, 7: 403, 8: 429, 9: 400, 10: 409, 11: 400, 12: 501,
                  14: 503, 16: 401}
CODE_NAMES = ("OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
              "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE",
              "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED")


class Request(NamedTuple):
    """`target`: the path and the query as they came. `headers`: by lower-case name; the first of each counts.

    `body()` reads the body. `reserve(nbytes)` counts memory until the request's end. `on_disconnect`: functions that
    are called when the client is gone.
    """

    method: str
    target: str
    headers: Mapping[bytes, bytes]
    body: Callable[[], Awaitable[bytes]]
    reserve: Callable[[int], None]
    on_disconnect: list[Callable[[], object]]


class Response(NamedTuple):
    """`model`: the name of the model, for metrics and log. `code`: the canonical code."""

    status: int
    body: bytes
    content_type: str = JSON_TYPE
    headers: tuple[tuple[bytes, bytes], ...] = ()
    model: str = ""
    code: int = 0


def error_response(error: HealdError, model: str = "") -> Response:
    """The answer of an error: its status, its own or that of its code, and its text in JSON."""
    status: int = getattr(error, "http_status", 0) or STATUS_OF_CODE.get(error.code, 500)
    headers: tuple[tuple[bytes, bytes], ...] = ((b"retry-after", b"1"),) if status == 503 else ()
    if status == 401:
        headers = ((b"www-authenticate", b"Bearer"),)
    return Response(status, error_body(str(error)), JSON_TYPE, headers, model, error.code)


def error_body(text: str) -> bytes:
    import orjson

    return b'{ "error": %s }' % orjson.dumps(text.encode("utf-8", "replace").decode())


Route = Callable[[Request], Awaitable[Response]]
Headers = dict[bytes, bytes]


def headers_of(pairs: Any) -> Headers:
    headers: Headers = {}
    for name, value in pairs:
        headers.setdefault(name, value)
    return headers
