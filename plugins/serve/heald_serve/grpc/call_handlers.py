"""From bytes to a method of a service and back: guards, the budget of memory, parsing, errors.

Messages of runs are read once there is room (`message_reading`). The event loop of the calls parses small ones; a
thread has the large ones. The bytes of a message are counted in the budget of heald's programs until the call ends. A
caller that cancels, or whose deadline passes, has its handler cancelled by gRPC; the method then cancels its run.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from time import monotonic
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import grpc
from google.protobuf.message import DecodeError
from heald.errors import HealdError, InvalidArgument, typed_error

from ..http.guards import Guards
from ..later import Later, value_of
from ..messages import message_class
from .message_reading import READING_BYTES, MessageReader
from .services import INFERENCE, SERVICES, SERVING, Signature

LONGEST_ERROR_BYTES = 1024
LARGEST_ON_LOOP_BYTES = 64 << 10
COUNTED_FROM_BYTES = 64 << 10  # a smaller message costs less than its counting
STATUS_CODES = {code.value[0]: code for code in grpc.StatusCode}
UNGUARDED = ("grpc.health.",)
RUNS = frozenset({f"{SERVING}.{name}Request" for name in ("Predict", "Classification", "Regression", "MultiInference")}
                 | {f"{INFERENCE}.ModelInferRequest"})


class RpcCall(NamedTuple):
    """`deadline`: of the caller, on the clock of `time.monotonic`; None without one. `nbytes`: of the message.

    `convert`: runs a conversion of so many bytes here, or in a thread.
    """

    deadline: float | None
    nbytes: int
    convert: Callable[[int, Callable[[], Any]], Awaitable[Any]]


Method = Callable[[Any, RpcCall], Any]  # to an awaitable of a message, or an asynchronous iterator of messages
DirectMethod = Callable[[Any], bytes | Later[bytes] | None]  # of a small message; None where `Method` answers it
NO_DIRECT_METHODS: Mapping[str, DirectMethod] = MappingProxyType({})


class Room(Protocol):
    """The places of runs."""

    def check_room(self) -> None:
        """Raises Unavailable while a run would be refused."""

    def admission(self) -> AbstractContextManager[None]:
        """A place for a run. Raises Unavailable."""


class _NoLimit:
    def check_room(self) -> None:
        """There is always room."""

    def admission(self) -> AbstractContextManager[None]:
        return nullcontext()


NO_LIMIT = _NoLimit()


class CallHandlers:
    """Makes the handlers of services. `memory`: the budget, with `take` and `give_back`.

    `room`: the places of runs. A call of RUNS without one is refused before its message is read.
    `read_seconds`: the time of such a message.
    """

    def __init__(
        self, guards: Guards, memory: Any, conversions: Executor, room: Room = NO_LIMIT, read_seconds: float = 60.0
    ) -> None:
        self._guards, self._memory, self._conversions, self._room = guards, memory, conversions, room
        limit = getattr(memory, "limit", None)
        self._reader = MessageReader(
            room.check_room, READING_BYTES if limit is None else min(READING_BYTES, limit // 4), read_seconds)

    def of_service(
        self, service: str, methods: Mapping[str, Method], direct: Mapping[str, DirectMethod] = NO_DIRECT_METHODS
    ) -> grpc.GenericRpcHandler:
        """The handler of a service. `direct` has the methods that are tried first, for small messages."""
        handlers = {name: self._make_handler(service, SERVICES[service][name], method, direct.get(name))
                    for name, method in methods.items()}
        return grpc.method_handlers_generic_handler(service, handlers)

    def _make_handler(
        self, service: str, signature: Signature, method: Method, directly: DirectMethod | None
    ) -> grpc.RpcMethodHandler[Any, Any]:
        needs_token = not service.startswith(UNGUARDED)
        if signature.takes_stream:
            return grpc.stream_stream_rpc_method_handler(
                self._make_stream_handler(signature, method, needs_token=needs_token))
        if signature.gives_stream:
            return grpc.unary_stream_rpc_method_handler(
                self._make_watch_handler(signature, method, needs_token=needs_token))
        if signature.request in RUNS:
            return grpc.stream_unary_rpc_method_handler(
                self._make_run_handler(signature, method, directly, needs_token=needs_token))
        return grpc.unary_unary_rpc_method_handler(self._make_unary_handler(signature, method, needs_token=needs_token))

    def _make_unary_handler(self, signature: Signature, method: Method, *, needs_token: bool) -> Any:
        return self._make_guarded_handler(partial(self._answer, signature, method), needs_token=needs_token)

    def _make_run_handler(
        self, signature: Signature, method: Method, directly: DirectMethod | None, *, needs_token: bool
    ) -> Any:
        """The handler of a unary call that runs a model. It reads the message itself."""
        async def answer(_: Any, context: Any) -> bytes:
            data = await self._reader.read(context)
            if directly is not None and len(data) <= LARGEST_ON_LOOP_BYTES:
                direct_answer = directly(parse_request(signature.request, data))
                if direct_answer is not None:
                    return await value_of(direct_answer) if isinstance(direct_answer, Later) else direct_answer
            with self._room.admission():
                return await self._answer(signature, method, data, context)

        return self._make_guarded_handler(answer, needs_token=needs_token)

    def _make_guarded_handler(self, answer: Callable[[Any, Any], Awaitable[bytes]], *, needs_token: bool) -> Any:
        """The handler of a call with one answer: its caller is checked, and a fault ends the call with its status."""
        async def handle(request: Any, context: Any) -> bytes:
            try:
                self._check_caller(context, needs_token=needs_token)
                return await answer(request, context)
            except Exception as error:  # noqa: BLE001 - a fault of a method is a status, and the server goes on
                status = status_of(error)
            await context.abort(*status)
            raise AssertionError("abort raises")

        return handle

    async def _answer(self, signature: Signature, method: Method, data: bytes, context: Any) -> bytes:
        with self.counted(data):
            call = self._call_of(data, context)
            message = await call.convert(len(data), partial(parse_request, signature.request, data))
            answer = await method(message, call)
            written: bytes = await call.convert(answer.ByteSize(), answer.SerializeToString)
            return written

    def _make_watch_handler(self, signature: Signature, method: Method, *, needs_token: bool) -> Any:
        async def handle(data: bytes, context: Any) -> AsyncIterator[bytes]:
            try:
                self._check_caller(context, needs_token=needs_token)
                async for answer in method(parse_request(signature.request, data), self._call_of(data, context)):
                    yield answer.SerializeToString()
            except Exception as error:  # noqa: BLE001 - as above
                status = status_of(error)
            else:
                return
            await context.abort(*status)

        return handle

    def _make_stream_handler(self, signature: Signature, method: Method, *, needs_token: bool) -> Any:
        async def handle(requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
            try:
                self._check_caller(context, needs_token=needs_token)
                async for data in requests:
                    with self.counted(data):
                        call = self._call_of(data, context)
                        message = await call.convert(len(data), partial(parse_request, signature.request, data))
                        answer = await method(message, call)
                    yield answer.SerializeToString()
            except Exception as error:  # noqa: BLE001 - as above
                status = status_of(error)
            else:
                return
            await context.abort(*status)

        return handle

    def _check_caller(self, context: Any, *, needs_token: bool) -> None:
        if self._guards.are_open:
            return
        headers = {name.encode(): value if isinstance(value, bytes) else value.encode()
                   for name, value in context.invocation_metadata() or ()}
        refusal = self._guards.refusal(headers, is_open=not needs_token)
        if refusal is not None:
            raise refusal

    @contextmanager
    def counted(self, data: bytes) -> Iterator[None]:
        """Count the bytes of a message while its call goes on. Raises ResourceExhausted."""
        if len(data) < COUNTED_FROM_BYTES:
            yield
            return
        self._memory.take(len(data), "the message of a call")
        try:
            yield
        finally:
            self._memory.give_back(len(data))

    def _call_of(self, data: bytes, context: Any) -> RpcCall:
        seconds = context.time_remaining()
        return RpcCall(None if seconds is None else monotonic() + seconds, len(data), self._convert)

    async def _convert(self, size: int, convert: Callable[[], Any]) -> Any:
        if size <= LARGEST_ON_LOOP_BYTES:
            return convert()
        return await asyncio.get_running_loop().run_in_executor(self._conversions, convert)


def parse_request(name: str, data: bytes) -> Any:
    try:
        return message_class(name).FromString(data)
    except DecodeError as error:
        raise InvalidArgument(f"this is no {name}: {error}") from None


def status_of(error: Exception) -> tuple[grpc.StatusCode, str]:
    """The status of an error: its code, and its text, cut as TensorFlow Serving cuts it."""
    typed = error if isinstance(error, HealdError) else typed_error(error)
    text = str(typed).encode("utf-8", "replace")
    if len(text) > LONGEST_ERROR_BYTES:
        text = text[:LONGEST_ERROR_BYTES] + b"...TRUNCATED"
    return STATUS_CODES.get(typed.code, grpc.StatusCode.UNKNOWN), text.decode("utf-8", "ignore")
