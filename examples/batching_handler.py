"""An op handler of a third party: products with one matrix of weights wait, and are computed as one product.

    import heald
    heald.register("examples/batching_handler.py")
    y = heald.execute("MatMul", x, weights, handler="batching")

Each call returns a pending handle. The first reader of one of the handles starts the product of all rows that wait for
the same weights. Nothing but heald.api is used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock
from typing import Any

from heald.api import (
    AsyncValue,
    OpFunction,
    OpHandler,
    OpHandlerContext,
    OpHandlerRegistrar,
    OpInvocation,
    errors,
    hookimpl,
)

HEALD_API = (1, 1)


@hookimpl
def heald_op_handlers(registry: OpHandlerRegistrar) -> None:
    registry.add("batching", BatchingHandler)


class Batch:
    """Calls that wait for one product with the same weights."""

    def __init__(self, context: OpHandlerContext, weights: Any, closed: Callable[[], object]) -> None:
        self.weights = weights
        self._closed = closed
        self._context = context
        self._waiting: list[tuple[Any, AsyncValue]] = []
        self._lock = Lock()

    def add(self, rows: Any, value: AsyncValue) -> None:
        with self._lock:
            self._waiting.append((rows, value))

    def run(self) -> None:
        """Compute all that waits: join the rows, multiply once, and divide the result."""
        self._closed()
        with self._lock:
            waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        try:
            results = self._products([rows for rows, _ in waiting])
        except errors.HealdError as error:  # no reader waits for ever
            for _, value in waiting:
                value.set_error(error)
            return
        for (_, value), result in zip(waiting, results, strict=True):
            value.emplace([result])

    def _products(self, rows: Sequence[Any]) -> Sequence[Any]:
        execute = self._context.execute
        if len(rows) == 1:
            return [execute("MatMul", rows[0], self.weights)]
        product = execute("MatMul", execute("ConcatV2", rows, 0), self.weights)
        results: Sequence[Any] = execute("SplitV", product, [r.shape[0] for r in rows], 0,
                                         attrs={"num_split": len(rows)})
        return results


class BatchingHandler:
    """Batches MatMul; every other op goes to the fallback."""

    def __init__(self, context: OpHandlerContext, fallback: OpHandler) -> None:
        self._context = context
        self._fallback = fallback
        self._batches: dict[int, Batch] = {}  # open ones, by id of the weights' handle

    def make_op(self, op: str) -> OpFunction | None:
        return self._multiply if op == "MatMul" else None

    def _multiply(self, call: OpInvocation) -> Sequence[Any]:
        rows, weights = call.inputs
        metas = self._context.metadata(call)
        if metas is None or call.attrs["transpose_a"] or call.attrs["transpose_b"] or call.after or call.donate:
            multiply = self._fallback.make_op("MatMul")
            assert multiply is not None
            return multiply(call)
        batch = self._batches.get(id(weights))
        if batch is None or batch.weights is not weights:
            batch = self._batches[id(weights)] = Batch(
                self._context, weights, partial(self._batches.pop, id(weights), None))
        handles, value = self._context.promise(metas, batch.run)
        batch.add(rows, value)
        return handles
