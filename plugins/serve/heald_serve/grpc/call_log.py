"""The access log of gRPC, and trace ids: as HTTP has them, around the handlers of any service.

A call's line has its status by name. Its trace ids go back in the trailing metadata.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any
from urllib.parse import unquote

import grpc

from ..access_log import AccessRecord
from ..http.application import TRACE_HEADERS, is_trace
from ..request_counts import answered_model
from .call_handlers import STATUS_CODES

METHOD = "gRPC"  # in the place of HTTP's
_TRACE_NAMES = tuple(name.decode() for name in TRACE_HEADERS)


class LoggedHandlers(grpc.GenericRpcHandler):
    """The handlers of a service. `on_answer` gets a record of each call; None writes none."""

    def __init__(self, handlers: grpc.GenericRpcHandler, on_answer: Callable[[AccessRecord], None] | None) -> None:
        self._handlers, self._on_answer = handlers, on_answer
        self._logged: dict[str, Any] = {}  # by the path of a method

    def service(self, handler_call_details: Any) -> Any:
        path = handler_call_details.method
        handler = self._logged.get(path)
        if handler is None:
            handler = self._handlers.service(handler_call_details)
            if handler is None:
                return None
            self._logged[path] = handler = self._wrap(path, handler)
        return handler

    def _wrap(self, path: str, handler: Any) -> Any:
        if handler.unary_unary is not None:
            return grpc.unary_unary_rpc_method_handler(self._make_logged_unary(path, handler.unary_unary))
        if handler.stream_unary is not None:
            return grpc.stream_unary_rpc_method_handler(self._make_logged_unary(path, handler.stream_unary))
        if handler.stream_stream is not None:
            return grpc.stream_stream_rpc_method_handler(self._make_logged_stream(path, handler.stream_stream))
        return grpc.unary_stream_rpc_method_handler(self._make_logged_stream(path, handler.unary_stream))

    def _make_logged_unary(self, path: str, answer: Callable[[Any, Any], Any]) -> Any:
        async def answer_logged(request: Any, context: Any) -> bytes:
            with self._recorded(path, context):
                written: bytes = await answer(request, context)
                return written

        return answer_logged

    def _make_logged_stream(self, path: str, answer: Callable[[Any, Any], AsyncIterator[bytes]]) -> Any:
        async def answer_logged(request: Any, context: Any) -> AsyncIterator[bytes]:
            with self._recorded(path, context):
                async for part in answer(request, context):
                    yield part

        return answer_logged

    @contextmanager
    def _recorded(self, path: str, context: Any) -> Iterator[None]:
        start = perf_counter()
        traces = _send_traces_back(context)
        if self._on_answer is None:
            yield
            return
        status = "OK"
        answered_model.set("")
        try:
            yield
        except (asyncio.CancelledError, GeneratorExit):  # the caller is gone
            status = "CANCELLED"
            raise
        except BaseException:
            status = _status_name(context.code())
            raise
        finally:
            self._on_answer(AccessRecord(
                client_of(context.peer()), METHOD, path, status, perf_counter() - start, answered_model.get(),
                traces.get("traceparent", traces.get("x-request-id", ""))))


def _send_traces_back(context: Any) -> dict[str, str]:
    """The trace ids of a call, which its answer has, too."""
    traces = {name: value for name, value in context.invocation_metadata() or ()
              if name in _TRACE_NAMES and is_trace(value.encode())}
    if traces:
        context.set_trailing_metadata(tuple(traces.items()))
    return traces


def _status_name(code: grpc.StatusCode | int) -> str:
    """The name of a failed call's status. Older versions of grpcio have its number."""
    status = code if isinstance(code, grpc.StatusCode) else STATUS_CODES.get(code, grpc.StatusCode.OK)
    return status.name if status is not grpc.StatusCode.OK else "UNKNOWN"


def client_of(peer: str) -> str:
    """The address of a caller, such as 127.0.0.1 of ipv4:127.0.0.1:4000; "" for a caller at a Unix socket."""
    kind, _, address = unquote(peer).partition(":")
    return address.rpartition(":")[0].strip("[]") if kind in ("ipv4", "ipv6") else ""
