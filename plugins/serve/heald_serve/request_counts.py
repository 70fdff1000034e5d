"""Counts of requests, for every front: one place decides their labels.

    form                API            entrypoint
    REST                Predict, ...   predict, ...; for states and metadata GetModelStatus and none
    gRPC                Predict, ...   GRPC
    version 2, HTTP     ModelInfer     infer
    version 2, gRPC     ModelInfer     GRPC

A stranger's names of models would fill the memory, so they are counted under the empty name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter
from urllib.parse import unquote

from heald.errors import HealdError, typed_error

from .http.messages import CODE_NAMES
from .metrics import Metrics

CANCELLED = CODE_NAMES.index("CANCELLED")
GRPC_ENTRY, INFER_API, INFER_ENTRY = "GRPC", "ModelInfer", "infer"
# The model of the request that this task answers; a record of the request's end has it.
answered_model: ContextVar[str] = ContextVar("answered_model", default="")


def code_of(error: BaseException) -> int:
    """The canonical code of a request that ends with this error."""
    if isinstance(error, asyncio.CancelledError):
        return CANCELLED
    if isinstance(error, HealdError):
        return error.code
    return typed_error(error).code if isinstance(error, Exception) else CANCELLED


class RequestCounts:
    """`has_model`: True for the name of a model that is, or was, served. Any thread may call."""

    def __init__(self, metrics: Metrics, has_model: Callable[[str], bool]) -> None:
        self._metrics, self._has_model = metrics, has_model

    @contextmanager
    def measure(self, model: str, api: str, entrypoint: str) -> Iterator[None]:
        """Count a request, by the error that leaves the block."""
        answered_model.set(model)
        start, code = perf_counter(), 0
        try:
            yield
        except BaseException as error:
            code = code_of(error)
            raise
        finally:
            self.add(model, api, entrypoint, code, perf_counter() - start)

    def add(self, model: str, api: str, entrypoint: str, code: int, seconds: float) -> None:
        """Count a request. TensorFlow Serving has the time of each that succeeds."""
        name = model if self._has_model(model) else ""
        self._metrics.request_count.add(name, CODE_NAMES[code])
        if code == 0:
            self._metrics.request_latency.add(name, api, entrypoint, amount=1e6 * seconds)

    def add_refusal(self, target: str) -> None:
        """Count a request for a path below /models/ that was refused before it was read."""
        model = unquote(target.split("/", 3)[3].partition("/")[0].partition(":")[0])
        self._metrics.request_count.add(model if self._has_model(model) else "", "UNAVAILABLE")
