"""uvicorn's server with this server's limits: it logs nothing, and a signal ends it as any other end.

uvicorn raises the signal again after its end; the process would die before its threads and models have ended.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from ssl import SSLContext
from typing import Any

import uvicorn

from .direct import DirectAnswers
from .ports import BACKLOG
from .protocol import ConnectionLimits, LimitedProtocol

MOST_ACCEPTED = 64  # at a time; other processes may share the socket
KEEP_ALIVE_SECONDS = 75


class HttpListener(uvicorn.Server):
    """Serves an application on sockets, from `run` until a signal or `should_exit`.

    `on_start` is called in the event loop before it serves. `on_end` is called when the end begins, before running
    requests are waited for. It must not wait.
    """

    on_start: Callable[[], object] = staticmethod(lambda: None)
    on_end: Callable[[], object] | None = None
    loop: asyncio.AbstractEventLoop | None = None
    handshake_seconds = 60.0  # of TLS
    signals: Sequence[int] = (signal.SIGINT, signal.SIGTERM)

    async def shutdown(self, sockets: list[Any] | None = None) -> None:
        if self.on_end is not None:
            self.on_end()
        await super().shutdown(sockets)

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._sockets: Sequence[socket.socket] = ()
        self._accepting: set[asyncio.Task[Any]] = set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self.loop = asyncio.get_running_loop()
        self.on_start()
        self._sockets = sockets or ()
        if self.config.ssl is None:
            await super().startup(sockets)
            return
        await super().startup([])  # uvicorn sets no limit for the handshake
        for listener in self._sockets:
            self.servers.append(await self.loop.create_server(
                self._make_protocol, sock=listener, ssl=self.config.ssl, backlog=self.config.backlog,
                ssl_handshake_timeout=self.handshake_seconds))

    def accept_waiting(self) -> None:
        """Accept connections of the backlog, MOST_ACCEPTED of each socket."""
        if self.should_exit:
            return
        loop = asyncio.get_running_loop()
        for listener in self._sockets:
            for _ in range(MOST_ACCEPTED):
                try:
                    connection, _ = listener.accept()
                except OSError:  # none waits, or the process has too many files
                    break
                connection.setblocking(False)
                task = loop.create_task(self._begin_connection(loop, connection))
                self._accepting.add(task)
                task.add_done_callback(self._accepting.discard)

    async def _begin_connection(self, loop: asyncio.AbstractEventLoop, connection: socket.socket) -> None:
        try:
            await loop.connect_accepted_socket(
                self._make_protocol, connection, ssl=self.config.ssl,
                ssl_handshake_timeout=None if self.config.ssl is None else self.handshake_seconds)
        except (OSError, ssl.SSLError):  # the client is gone
            connection.close()

    def _make_protocol(self) -> Any:
        make: Any = self.config.http_protocol_class
        return make(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        handlers = {number: signal.signal(number, self.handle_exit) for number in self.signals}
        try:
            yield
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)


def make_listener(
    application: Any, limits: ConnectionLimits, *, drain_seconds: int, context: SSLContext | None = None,
    answer_directly: DirectAnswers | None = None,
) -> HttpListener:
    """The listener of an application. `context` has it speak TLS."""
    config = uvicorn.Config(
        application, ws="none", lifespan="off",
        http=partial(LimitedProtocol, limits=limits, answer_directly=answer_directly),  # type: ignore[arg-type]
        log_config=None, access_log=False, server_header=False, proxy_headers=False, backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_SECONDS, timeout_graceful_shutdown=drain_seconds)
    config.load()
    config.ssl = context
    listener = HttpListener(config)
    listener.handshake_seconds = limits.read_seconds
    if answer_directly is not None:
        answer_directly.on_long_turn = listener.accept_waiting
    return listener
