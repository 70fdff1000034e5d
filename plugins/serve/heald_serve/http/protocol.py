"""A connection: uvicorn's protocol with limits.

uvicorn bounds neither the time of a request that arrives byte by byte, nor the bytes of a head, nor the time of a
client that does not read its answer. A connection is here in one of three states:

    reading   from the connection, or from the first byte of a request, to the end of its body: `read_seconds`
    waiting   between requests: uvicorn's keep-alive timer
    writing   bytes of an answer are in the transport's buffer: `write_seconds`

A reading connection that is too late gets the status 408, or ends when its answer has begun. A refused one stays for a
moment, and what it sends is dropped. One that does not read
ends. A request is told of the end of its connection by the callbacks in its scope.

A request that `answer_directly` answers never reaches uvicorn: it arrives and is answered while the connection waits.
Where its answer comes later, further bytes are held until then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

from heald.errors import HealdError
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from ..later import Later
from .direct import DirectAnswers

LINGER_SECONDS = 1.0
ON_DISCONNECT = "heald.on_disconnect"  # in the scope's extensions: a list of functions


class ConnectionLimits(NamedTuple):
    connections: int = 1000
    read_seconds: float = 60.0
    write_seconds: float = 60.0
    head_bytes: int = 64 << 10


class LimitedProtocol(HttpToolsProtocol):
    def __init__(
        self, *args: Any, limits: ConnectionLimits, answer_directly: DirectAnswers | None = None, **keywords: Any
    ) -> None:
        super().__init__(*args, **keywords)
        self._limits = limits
        self._answer_directly = answer_directly
        self._last_direct_answer = 0.0
        self._reading: asyncio.TimerHandle | None = None
        self._writing: asyncio.TimerHandle | None = None
        self._is_answering_later = self._ends_after_answer = False
        self._held = b""  # received before that answer
        self._is_refused = False
        self._is_in_head = True
        self._head_bytes = 0
        self._milestones = 0  # ends of heads and of bodies
        self._on_disconnect: list[Callable[[], object]] = []

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if transport.get_extra_info("sslcontext") is None:  # TLS never resumes with this limit, and ends late closes
            transport.set_write_buffer_limits(high=0)  # so that `pause_writing` tells of every byte that waits
        if len(self.connections) > self._limits.connections:
            self._refuse(503, "the server has too many connections")
            return
        self._begin_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_reading()
        self._end_writing()
        super().connection_lost(exc)
        callbacks, self._on_disconnect = self._on_disconnect, []
        for callback in callbacks:
            callback()

    def data_received(self, data: bytes) -> None:
        if self._is_refused or self.transport.is_closing():
            return
        if self._is_answering_later:  # a further request would overtake the answer
            self._held += data
            self.transport.pause_reading()
            return
        if self._answer_directly is not None and self._is_between_requests():
            answer = self._answer_directly(data, self.server_state.default_headers)
            if answer is not None:
                self._begin_direct_answer(answer)
                return
        milestones = self._milestones
        super().data_received(data)
        if self._is_in_head and self._milestones == milestones:
            self._head_bytes += len(data)
            if self._head_bytes > self._limits.head_bytes and not self.transport.is_closing():
                self._refuse(431, "the head of the request is too large")

    def _is_between_requests(self) -> bool:
        """True where a new piece of data begins a request, and its answer can be written."""
        return (self._is_in_head and not self._head_bytes and not self.flow.write_paused
                and (self.cycle is None or self.cycle.response_complete))

    def _begin_direct_answer(self, answer: bytes | Later[bytes]) -> None:
        self._end_reading()
        self.server_state.total_requests += 1
        self._last_direct_answer = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self._wait_for_request(self.timeout_keep_alive)
        if isinstance(answer, Later):
            self._is_answering_later = True
            answer.then(self._send_later)
        else:
            self.transport.write(answer)

    def _send_later(self, answer: bytes | HealdError) -> None:
        self._is_answering_later = False
        if self.transport.is_closing():
            return
        if isinstance(answer, HealdError):  # it could not be written
            self._abort()
            return
        self.transport.write(answer)
        if self._ends_after_answer:
            self.transport.close()
        elif self._held:
            data, self._held = self._held, b""
            self.transport.resume_reading()
            self.data_received(data)

    def shutdown(self) -> None:
        """End the connection after the answer that is under way, if any."""
        if self._is_answering_later:
            self._ends_after_answer = True
        else:
            super().shutdown()

    def _wait_for_request(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(seconds, self.timeout_keep_alive_handler)

    def timeout_keep_alive_handler(self) -> None:
        """End a connection that has waited for its time. A direct answer leaves the timer alone, so it may be early."""
        seconds = self._last_direct_answer + self.timeout_keep_alive - self.loop.time()
        if seconds > 0 or self._is_answering_later:
            self._wait_for_request(seconds if seconds > 0 else LINGER_SECONDS)
        else:
            super().timeout_keep_alive_handler()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._begin_reading()
        self._is_in_head, self._head_bytes = True, 0
        self.scope["extensions"] = {ON_DISCONNECT: {"callbacks": self._on_disconnect}}

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        self._milestones += 1
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._end_reading()
        self._milestones += 1
        self._is_in_head, self._head_bytes = True, 0
        super().on_message_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._writing is None:
            self._writing = self.loop.call_later(self._limits.write_seconds, self._abort)

    def resume_writing(self) -> None:
        self._end_writing()
        super().resume_writing()

    def _begin_reading(self) -> None:
        if self._reading is None:
            self._reading = self.loop.call_later(self._limits.read_seconds, self._end_late_request)

    def _end_reading(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _end_writing(self) -> None:
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None

    def _end_late_request(self) -> None:
        has_begun = not self._is_in_head and self.cycle is not None and self.cycle.response_started
        if has_begun or self.transport.is_closing():
            self._abort()
        else:
            self._refuse(408, "the request took too long to arrive")

    def _refuse(self, status: int, text: str) -> None:
        body = b'{"error": "%s"}' % text.encode("ascii")
        self.transport.write(b"".join([
            STATUS_LINE[status], b"content-type: application/json\r\nconnection: close\r\ncontent-length: ",
            str(len(body)).encode(), b"\r\n\r\n", body]))
        self._linger()

    def _linger(self) -> None:
        """End the connection so that its client can read the answer: bytes that arrive after a close would reset it."""
        self._end_reading()
        self.connections.discard(self)
        self._is_refused = True
        if self.transport.can_write_eof():
            self.transport.write_eof()
            self._reading = self.loop.call_later(LINGER_SECONDS, self._abort)
        else:
            self.transport.close()

    def _abort(self) -> None:
        self.transport.abort()
