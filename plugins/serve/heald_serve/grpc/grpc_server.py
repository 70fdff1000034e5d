"""The gRPC server: its ports, and a thread whose event loop has the calls.

Runs are in the threads of the predictor, so a call that waits holds no thread, and health answers under load.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import grpc
import grpc.aio
from heald.errors import InvalidArgument, Unavailable

from ..settings import TlsTexts

LARGEST_MESSAGE_BYTES = (1 << 31) - 1
# The probe of a connection's bandwidth lets each call send megabytes ahead, which no limit counts. Without it a call
# that is not read yet sends 64 KB.
BANDWIDTH_PROBE = "grpc.http2.bdp_probe"
# Calls that this process has not yet taken: gRPC's core refuses more and more of them between these numbers, without a
# step in Python. Its refusals have the code CANCELLED. A refusal in Python has a better code, but costs nearly as much
# as an answer of a small model, whose time it takes in an overload. Large models never come to these numbers.
PENDING_CALLS, FIRST_REFUSED_CALLS, LAST_PENDING_CALLS = "grpc.server.max_pending_requests", 512, 1024
# Connections without a call are ended after IDLE_SECONDS; a client opens another one by itself.
IDLE_SECONDS, PING_SECONDS, PONG_SECONDS = 1800, 60, 20


class GrpcSettings(NamedTuple):
    """`port`: None for none, 0 for any. `socket_path`: of a Unix socket, or "". `arguments`: NAME=VALUE,...

    `is_port_shared`: other processes listen on the port, too. `handshake_seconds`: until a connection's first frame.
    """

    host: str
    port: int | None
    socket_path: str = ""
    arguments: str = ""
    tls: TlsTexts | None = None
    most_calls: int | None = None
    drain_seconds: float = 1.0
    memory_limit: int | None = None
    is_port_shared: bool = False
    most_connections: int | None = None
    handshake_seconds: float = 60.0


def channel_arguments(text: str) -> list[tuple[str, Any]]:
    """The arguments of NAME=VALUE,... with numbers as numbers. Raises InvalidArgument."""
    arguments: list[tuple[str, Any]] = []
    for part in filter(None, text.split(",")):
        name, equals, value = part.partition("=")
        if not (equals and name.strip()):
            raise InvalidArgument(f"--grpc_channel_arguments has '{part}', not NAME=VALUE")
        is_number = value.removeprefix("-").isascii() and value.removeprefix("-").isdecimal()
        if is_number and not -(1 << 31) <= int(value) < 1 << 31:
            raise InvalidArgument(f"--grpc_channel_arguments has '{part}', a number beyond 32 bits")
        arguments.append((name.strip(), int(value) if is_number else value))
    return arguments


def connection_arguments(most_connections: int | None, handshake_seconds: float) -> list[tuple[str, Any]]:
    """The arguments that bound the connections: their number, their silence before the first frame, and their idleness.

    A peer that vanished without a word is found by a ping. Versions of grpcio that lack an argument ignore it.
    """
    handshake = max(1, int(1000 * handshake_seconds))
    return [("grpc.server_handshake_timeout_ms", handshake), ("grpc.http2.settings_timeout", handshake),
            ("grpc.max_connection_idle_ms", 1000 * IDLE_SECONDS), ("grpc.keepalive_time_ms", 1000 * PING_SECONDS),
            ("grpc.keepalive_timeout_ms", 1000 * PONG_SECONDS), ("grpc.keepalive_permit_without_calls", 1),
            *([("grpc.max_allowed_incoming_connections", most_connections)] if most_connections else [])]


def event_loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's, which takes a third less time for a call; None, for the standard one, where it is not installed."""
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


class GrpcServer:
    """Serves handlers from `start` until `close`. `port` is the port that the system gave."""

    def __init__(
        self, handlers: Sequence[grpc.GenericRpcHandler], settings: GrpcSettings, ending: threading.Event
    ) -> None:
        """`ending` is set when the server begins to end, for calls that would go on for ever.

        `on_start` is called in the event loop before it serves.
        """
        self.on_start: Callable[[], object] = lambda: None
        self._handlers, self._settings, self._ending = handlers, settings, ending
        self.port: int | None = None
        self.loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="heald-serve-grpc", daemon=True)
        self._is_started = threading.Event()
        self._error: Exception | None = None
        self._end = asyncio.Event()

    def start(self) -> None:
        """Bind the ports and serve. Raises the typed error of a port that cannot be had."""
        self._thread.start()
        self._is_started.wait()
        if self._error is not None:
            self._thread.join()
            raise self._error

    @property
    def is_taking_calls(self) -> bool:
        return not self._ending.is_set()

    def begin_end(self) -> None:
        """Take no further call, and give running ones their time, without waiting for them."""
        self._ending.set()
        if self._thread.is_alive():
            assert self.loop is not None
            with suppress(RuntimeError):  # the loop has ended since
                self.loop.call_soon_threadsafe(self._end.set)

    def close(self) -> None:
        """End, and wait for running calls as long as they have time."""
        self.begin_end()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=event_loop_factory()) as runner:
                runner.run(self._serve())
        finally:
            self._is_started.set()

    async def _serve(self) -> None:
        settings, self.loop = self._settings, asyncio.get_running_loop()
        self.on_start()
        try:
            server = grpc.aio.server(options=self._options(), maximum_concurrent_rpcs=settings.most_calls)
            server.add_generic_rpc_handlers(tuple(self._handlers))
            self._bind(server)
            await server.start()
        except Exception as error:  # noqa: BLE001 - `start` raises it in the caller's thread
            self._error = error
            return
        self._is_started.set()
        await self._end.wait()
        await server.stop(settings.drain_seconds)

    def _options(self) -> list[tuple[str, Any]]:
        most_bytes = min(self._settings.memory_limit or LARGEST_MESSAGE_BYTES, LARGEST_MESSAGE_BYTES)
        own_arguments = [
            ("grpc.max_receive_message_length", most_bytes), ("grpc.max_send_message_length", -1),
            ("grpc.so_reuseport", int(self._settings.is_port_shared)), (BANDWIDTH_PROBE, 0),
            (PENDING_CALLS, FIRST_REFUSED_CALLS), (f"{PENDING_CALLS}_hard_limit", LAST_PENDING_CALLS),
            *connection_arguments(self._settings.most_connections, self._settings.handshake_seconds)]
        # gRPC takes the first of two equal names, and the caller's are to count.
        return [*dict([*own_arguments, *channel_arguments(self._settings.arguments)]).items()]

    def _bind(self, server: Any) -> None:
        settings = self._settings
        credentials = None if settings.tls is None else _credentials(settings.tls)
        if settings.port is not None:
            host = f"[{settings.host}]" if ":" in settings.host else settings.host
            self.port = _add_port(server, f"{host}:{settings.port}", credentials)
        if settings.socket_path:
            _add_port(server, f"unix:{settings.socket_path}", None)


def _add_port(server: Any, address: str, credentials: Any) -> int:
    try:
        port: int = (server.add_insecure_port(address) if credentials is None
                     else server.add_secure_port(address, credentials))
    except (RuntimeError, ValueError) as error:
        raise Unavailable(f"gRPC cannot listen on {address}: {error}", hint="--port takes another port") from None
    return port


def _credentials(texts: TlsTexts) -> Any:
    if texts.verifies_clients and not texts.authorities:
        raise InvalidArgument("client_verify needs custom_ca: gRPC has no other authorities")
    return grpc.ssl_server_credentials(
        [(texts.key.encode(), texts.certificate.encode())], texts.authorities.encode() or None,
        texts.verifies_clients)
