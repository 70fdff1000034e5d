"""Requests that are answered without a task: a whole POST in one piece of data, for a route that needs no thread.

A task, its events and messages cost more than a small model's run. `DirectAnswers` reads such a request itself. Its
grammar is narrower than HTTP's: it returns None for anything unusual, and uvicorn's parser reads that as ever. A
request that joins a batch has its answer at the end of the loop's turn.

It also sheds load. Requests that wait for this event loop are in the sockets, where no queue counts them. A turn of the
loop reads all sockets that are ready, so a request waits as long as the turn lasts. A turn that has answered
`most_requests` and lasts for TURN_SECONDS refuses the rest of its requests, before they are parsed. So the loop comes
around, and a refusal costs a few microseconds. uvloop accepts one connection in a turn; so `on_long_turn` is called,
which accepts those that wait in the backlog.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import NamedTuple

from heald.errors import HealdError
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from ..later import Later, convert_later
from .guards import Guards
from .messages import Headers, Response, error_body, error_response

TURN_SECONDS = 0.05
LONG_TURN_REQUESTS = 4
LARGEST_HEAD_BYTES = 8 << 10
MOST_HEADS = 256  # that are remembered
# Headers that change the reading of a request, or its answer.
UNUSUAL = frozenset({b"transfer-encoding", b"content-encoding", b"expect", b"upgrade", b"connection", b"x-request-id",
                     b"traceparent"})
_LENGTH = b"\r\ncontent-length:"
_LENGTH_TEXT = re.compile(rb"0|[1-9][0-9]{0,15}")
_START = re.compile(rb"POST (/v[12]/models/[\x21-\x7e]+) HTTP/1\.1\r\n")
_FIELDS = re.compile(rb"(?:[A-Za-z0-9-]+:[\x20-\x7e]*\r\n)+")

DirectRoute = Callable[[str, Headers, bytes], Response | Later[Response] | None]


class _Head(NamedTuple):
    """`headers`: the fields of the head. `body_bytes`: the length that it states."""

    route: DirectRoute
    target: str
    headers: Headers
    body_bytes: int


class DirectAnswers:
    """The answers of one event loop.

    `routes`: by prefix; each returns None for a request that needs a task. `is_full`: True while requests of the
    threads would be refused. `on_refusal` gets the target of each refused request.
    """

    def __init__(
        self, routes: Mapping[bytes, DirectRoute], guards: Guards, most_requests: int, is_full: Callable[[], bool],
        on_refusal: Callable[[str], object],
    ) -> None:
        self._routes, self._guards, self._most_requests = routes, guards, most_requests
        self._is_full, self._on_refusal = is_full, on_refusal
        self._heads: dict[bytes, _Head] = {}
        self._turn_start: float | None = None
        self._answered = 0  # in this turn
        self._refusal_headers: Sequence[tuple[bytes, bytes]] | None = None
        self._refusal_bytes = b""
        self.on_long_turn: Callable[[], object] = lambda: None

    @property
    def head_count(self) -> int:
        """The heads that are remembered."""
        return len(self._heads)

    def __call__(
        self, data: bytes, default_headers: Sequence[tuple[bytes, bytes]]
    ) -> bytes | Later[bytes] | None:
        """The answer to a request, now or at the end of the turn. None for a request that needs a task."""
        end = data.find(b"\r\n\r\n", 0, LARGEST_HEAD_BYTES) + 4
        if end < 4 or data[5:8] not in self._routes:
            return None
        if self._is_late() or self._is_full():
            start = _START.match(data)
            if start is not None and is_plain(data[start.end() - 2 : end - 2], len(data) - end):
                self._on_refusal(start[1].decode("latin-1"))
                return self._refusal(default_headers)
        head = self._head(data[:end])
        if head is None or head.body_bytes != len(data) - end:
            return None
        try:
            response = head.route(head.target, head.headers, data[end:])
        except Exception:  # noqa: BLE001 - the ordinary way meets the fault again, and tells it
            return None
        if isinstance(response, Later):
            return convert_later(response, lambda outcome: written(
                error_response(outcome) if isinstance(outcome, HealdError) else outcome, default_headers))
        return None if response is None else written(response, default_headers)

    def _head(self, data: bytes) -> _Head | None:
        """The parts of a head that the guards let pass; None for any other. Clients repeat their heads."""
        head = self._heads.get(data)
        if head is None:
            head = self._read_head(data)
            if head is not None:
                if len(self._heads) >= MOST_HEADS:
                    self._heads.clear()
                self._heads[data] = head
        return head

    def _read_head(self, data: bytes) -> _Head | None:
        start = _START.match(data)
        headers = None if start is None else fields_of(data[start.end() : -2])
        if start is None or headers is None or self._guards.refusal(headers) is not None:
            return None
        length = headers.get(b"content-length", b"")
        if _LENGTH_TEXT.fullmatch(length) is None:
            return None
        return _Head(self._routes[data[5:8]], start[1].decode("latin-1"), headers, int(length))

    def _refusal(self, default_headers: Sequence[tuple[bytes, bytes]]) -> bytes:
        """The bytes of REFUSAL. uvicorn makes new default headers each second."""
        if self._refusal_headers is not default_headers:
            self._refusal_headers, self._refusal_bytes = default_headers, written(REFUSAL, default_headers)
        return self._refusal_bytes

    def _is_late(self) -> bool:
        """Count a request of this turn. True for one that the turn is too long for."""
        now = monotonic()
        if self._turn_start is None:
            self._turn_start, self._answered = now, 0
            asyncio.get_running_loop().call_soon(self._end_turn)
        self._answered += 1
        return self._answered > self._most_requests and now - self._turn_start > TURN_SECONDS

    def _end_turn(self) -> None:
        self._turn_start = None
        if self._answered >= LONG_TURN_REQUESTS:
            self.on_long_turn()


REFUSAL = Response(503, error_body("too many requests wait already; try again later"),
                   headers=((b"retry-after", b"1"),))


def is_plain(head: bytes, size: int) -> bool:
    """True for a head, from a line's end on, that states one length, which is `size`: the body is whole."""
    head = head.lower()
    at = head.find(_LENGTH)
    end = head.find(b"\r\n", at + len(_LENGTH))
    return (at >= 0 and head.rfind(_LENGTH) == at and head[at + len(_LENGTH) : end].strip() == b"%d" % size
            and b"\r\ntransfer-encoding" not in head)


def fields_of(head: bytes) -> Headers | None:
    """The fields of a head by lower-case name; None for a head with anything unusual."""
    if _FIELDS.fullmatch(head) is None:
        return None
    headers: Headers = {}
    lines = head.split(b"\r\n")
    lines.pop()
    for line in lines:
        name, _, value = line.partition(b":")
        headers[name.lower()] = value.strip(b" ")
    return None if len(headers) < len(lines) or not headers.keys().isdisjoint(UNUSUAL) else headers


def written(response: Response, default_headers: Sequence[tuple[bytes, bytes]]) -> bytes:
    """The bytes of an answer."""
    parts = [STATUS_LINE[response.status], b"content-type: ", response.content_type.encode(), b"\r\ncontent-length: ",
             b"%d\r\n" % len(response.body)]
    for name, value in (*default_headers, *response.headers):
        parts += (name, b": ", value, b"\r\n")
    parts += (b"\r\n", response.body)
    return b"".join(parts)
