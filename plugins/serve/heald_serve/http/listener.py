"""uvicorn's server with this server's limits: it logs nothing, and a signal ends it as any other end.

uvicorn raises the signal again after its end; the process would die before its threads and models have ended.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from ssl import SSLContext
from typing import Any

import uvicorn

from .ports import BACKLOG
from .protocol import ConnectionLimits, LimitedProtocol

KEEP_ALIVE_SECONDS = 75


class HttpListener(uvicorn.Server):
    """Serves an application on sockets, from `run` until a signal or `should_exit`.

    `on_end` is called when the end begins, before running requests are waited for. It must not wait.
    """

    on_end: Callable[[], object] | None = None
    signals: Sequence[int] = (signal.SIGINT, signal.SIGTERM)

    async def shutdown(self, sockets: list[Any] | None = None) -> None:
        if self.on_end is not None:
            self.on_end()
        await super().shutdown(sockets)

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
    application: Any, limits: ConnectionLimits, *, drain_seconds: int, context: SSLContext | None = None
) -> HttpListener:
    """The listener of an application. `context` has it speak TLS."""
    config = uvicorn.Config(
        application, http=partial(LimitedProtocol, limits=limits), ws="none", lifespan="off",  # type: ignore[arg-type]
        log_config=None, access_log=False, server_header=False, proxy_headers=False, backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_SECONDS, timeout_graceful_shutdown=drain_seconds)
    config.load()
    config.ssl = context
    return HttpListener(config)
