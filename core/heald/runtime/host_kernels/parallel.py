"""Parallel loops: kernels that divide a range of integers into blocks of equal size, each a call of a function.

The first block runs at once, the others as tasks of the work queue. A task that has several blocks hands half of them
on: so the number of blocks costs nothing up front.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from threading import Lock
from typing import Any

from ...errors import HealdError, InvalidArgument
from ..contract.host_kernel import Callee, FunctionTypes, HostKernels, Types
from ..contract.host_type import CHAIN, I32, Chain
from ..executor.step import Step
from ..values.async_value import AsyncValue, failed
from .waiting import Turns, await_payloads, run_or_promise

_BOUNDS_SYNTAX = "$start `to` $end `fixed` $block"


def register(kernels: HostKernels) -> None:
    kernels.kernel("tfrt.parallel_for.i32", step=True, calls=_block_body, syntax=f"{_BOUNDS_SYNTAX} "
                   "(`,` $arguments^ `:` type($arguments))? attr-dict-with-keyword region($start, $end, $arguments)")(
        parallel_for)
    kernels.kernel("tfrt.parallel_call.i32", step=True, calls=_block_body, syntax=f"{_BOUNDS_SYNTAX} "
                   "$callee `(` $arguments `)` attr-dict (`:` type($arguments)^)?")(parallel_call)


def parallel_for(step: Step, start: I32, end: I32, block: I32, *arguments: Any, body: Callee) -> Chain:
    """Return a chain that is filled when the body was called for all blocks of [start, end).

    The body takes the bounds of a block and the arguments. It returns a chain, which is waited for, or nothing. The
    first error of a block is the chain's. A cancelled run starts no further blocks.

    Raises InvalidArgument for a block size below 1.
    """
    (chain,) = run_or_promise(step, _parallel_for(step, [start, end, block], arguments, body), 1)
    return chain  # type: ignore[no-any-return]


def parallel_call(step: Step, start: I32, end: I32, block: I32, *arguments: Any, callee: Callee) -> Chain:
    """Like `tfrt.parallel_for.i32`, with a function of the program."""
    return parallel_for(step, start, end, block, *arguments, body=callee)


def _parallel_for(step: Step, bounds: list[Any], arguments: Sequence[Any], body: Callee) -> Turns:
    start, end, block = yield from await_payloads(bounds)  # a call with `nonstrict` may begin before it has them
    if block < 1:
        raise InvalidArgument(f"the block size is {block}, not 1 or more")
    if start >= end:
        return [None]
    blocks = _Blocks(step, range(start, end, block), end, body, arguments)
    blocks.run(0, len(blocks.starts))
    return [blocks.chain]


class _Blocks:
    """The blocks of a parallel loop that have yet to end. Any thread may call."""

    def __init__(self, step: Step, starts: range, end: int, body: Callee, arguments: Sequence[Any]) -> None:
        self.chain = AsyncValue()
        self.starts = starts
        self._step = step
        self._end = end
        self._body = body
        self._arguments = arguments
        self._left = len(starts)
        self._error: HealdError | None = None
        self._lock = Lock()

    def run(self, first: int, last: int) -> None:
        """Run the block with the index `first`, and enqueue those behind it, below `last`."""
        while last - first > 1:
            middle = first + (last - first) // 2
            self._hand_on(middle, last)
            last = middle
        start = self.starts[first]
        bounds = start, min(start + self.starts.step, self._end)
        try:
            (ended,) = self._step.begin(self._body, [*bounds, *self._arguments])
        except HealdError as error:
            ended = failed(error)
        ended.and_then(partial(self._has_ended, ended, 1))

    def _hand_on(self, first: int, last: int) -> None:
        try:
            task = self._step.enqueue(partial(self.run, first, last))
        except HealdError as error:  # the queue is closed
            task = failed(error)
        task.and_then(partial(self._has_run, task, last - first))

    def _has_run(self, task: AsyncValue, count: int) -> None:
        """Count the blocks of a task that never began."""
        if task.is_error():
            self._has_ended(task, count)

    def _has_ended(self, value: AsyncValue, count: int) -> None:
        with self._lock:
            self._left -= count
            self._error = self._error or value.error
            is_last = not self._left
        if is_last:
            if self._error is None:
                self.chain.emplace(None)
            else:
                self.chain.set_error(self._error)


def _block_body(arguments: Types, _results: Types) -> Sequence[FunctionTypes]:
    parameters = ("i32", "i32", *arguments[3:])
    return (parameters, (CHAIN,)), (parameters, ())
