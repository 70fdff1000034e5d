"""Op handlers: calls through a handler have the results and errors of the device's own, and never wait for an input.

Every call names the handler in front of the default chain. Pending inputs come from a handler of this module, which the
cases register: it promises a result and settles it when the case says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

import heald
import numpy as np
from heald.api import API, AsyncValue, OpHandler, OpHandlerContext, OpInvocation, errors, hookimpl

from ..arrays import generator
from ..case import sentence
from ..hook_subject import PROMPT, HookSubject, expect_raises, faults_of_threads, run_within
from ..subject import REFERENCE, whatever_comes
from ..verdict import expect, expect_close, expect_same_bits

TOLERANCE = (1e-4, 1e-5)  # relative, absolute: a handler may fuse or batch float32
PENDING = "heald-conformance-pending"


class Call(NamedTuple):
    op: str
    inputs: tuple[Any, ...]
    attrs: dict[str, Any]


def matrix(*seed: object, shape: tuple[int, ...] = (4, 4)) -> Any:
    return generator("handler", *seed).normal(size=shape).astype(np.float32)


CALLS = {
    "AddV2": Call("AddV2", (matrix(1), matrix(2)), {}), "Neg": Call("Neg", (matrix(3),), {}),
    "MatMul": Call("MatMul", (matrix(4), matrix(5)), {}),
    "MatMul transposed": Call("MatMul", (matrix(6), matrix(7)), {"transpose_a": True}),
    "Sum": Call("Sum", (matrix(8), np.array([0], np.int32)), {"keep_dims": True}),
    "ConcatV2": Call("ConcatV2", ([matrix(9), matrix(10)], np.int32(0)), {}),
    "Split": Call("Split", (np.int32(1), matrix(11)), {"num_split": 2}),
    "Cast": Call("Cast", (matrix(12),), {"DstT": "int32"}),
    "Softmax": Call("Softmax", (matrix(13),), {}), "Greater": Call("Greater", (matrix(14), matrix(15)), {}),
    "no elements": Call("Mul", (np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32)), {}),
}
FAULTS = {
    "shapes that do not fit": Call("AddV2", (matrix(1), matrix(2, shape=(3,))), {}),
    "a product that does not fit": Call("MatMul", (matrix(1), matrix(2, shape=(3, 4))), {}),
    "an axis out of range": Call("Sum", (matrix(1), np.array([7], np.int32)), {}),
}


def chain_of(on: HookSubject) -> Any:
    return [on.name, REFERENCE]


def execute(call: Call, handler: Any, **options: Any) -> list[Any]:
    """The handles of a call's results."""
    handles = heald.execute(call.op, *call.inputs, attrs=call.attrs, handler=handler, host=heald.default_host(),
                            **options)
    return list(handles) if isinstance(handles, Sequence) else [handles]


def arrays(handles: Sequence[Any]) -> list[Any]:
    return run_within(4 * PROMPT, lambda: [handle.numpy() for handle in handles], "the results are read",
                      "handler.pending")


@sentence(over=lambda _: list(CALLS))
def results_are_those_of_the_device(on: HookSubject, name: str) -> None:
    want = arrays(execute(CALLS[name], REFERENCE))
    with whatever_comes(f"{name} through the handler", expected="results", rule="handler.results"):
        handles = execute(CALLS[name], chain_of(on))
        got = arrays(handles)
    expect(len(got) == len(want), name, expected=f"{len(want)} results", got=len(got), rule="handler.results")
    for number, (handle, result, right) in enumerate(zip(handles, got, want, strict=True)):
        expect_close(np.asarray(result), np.asarray(right), TOLERANCE, f"result {number} of {name}", "handler.results")
        expect(tuple(handle.shape) == right.shape, f"the shape of result {number} of {name}", expected=right.shape,
               got=handle.shape, rule="handler.results")


@sentence(over=lambda _: list(FAULTS))
def errors_are_those_of_the_device(on: HookSubject, name: str) -> None:
    def run() -> None:
        arrays(execute(FAULTS[name], chain_of(on)))

    expect_raises((errors.InvalidArgument,), run, name, "handler.errors")


@sentence(over=lambda _: list(CALLS))
def inputs_stay_as_they_are(on: HookSubject, name: str) -> None:
    handles = [[heald.TensorHandle(x) for x in value] if isinstance(value, list) else heald.TensorHandle(value)
               for value in CALLS[name].inputs]
    leaves = [x for value in handles for x in (value if isinstance(value, list) else [value])]
    before = [np.array(handle) for handle in leaves]
    arrays(execute(CALLS[name]._replace(inputs=tuple(handles)), chain_of(on)))
    for number, (handle, copy) in enumerate(zip(leaves, before, strict=True)):
        expect_same_bits(np.asarray(handle), copy, f"input {number} of {name} after the call", "handler.inputs")


@sentence()
def many_calls_are_told_apart(on: HookSubject) -> None:
    weights = heald.TensorHandle(matrix("w"))
    rows = [matrix("row", number, shape=(1 + number % 3, 4)) for number in range(on.size(60, 20))]
    pending = [execute(Call("MatMul", (row, weights), {}), chain_of(on))[0] for row in rows]
    for number in reversed(range(len(rows))):
        expect_close(arrays([pending[number]])[0], rows[number] @ matrix("w"), TOLERANCE,
                     f"product {number} of {len(rows)} with the same weights", "handler.results")


@sentence()
def threads_execute_at_once(on: HookSubject) -> None:
    def work(mark: int, faults: list[Any]) -> None:
        for turn in range(on.size(100, 20)):
            x = np.full((2, 2), mark * 1000 + turn, np.float32)
            (result,) = arrays(execute(Call("MatMul", (x, np.eye(2, dtype=np.float32)), {}), chain_of(on)))
            if not np.array_equal(result, x):
                faults.append(f"{result.reshape(-1)[:1]} in place of {x[0, 0]}")

    faults = faults_of_threads(work, 4 * PROMPT)
    expect(not faults, "four threads execute MatMul", expected="no fault", got=faults[:1], rule="handler.threads")


@sentence(over=lambda _: ["AddV2", "MatMul", "Neg"])
def a_call_does_not_wait_for_a_pending_input(on: HookSubject, op: str) -> None:
    x, (handle, value) = matrix("pending"), pending_handle(matrix("pending"))
    inputs = (handle,) if op == "Neg" else (handle, np.eye(4, dtype=np.float32))
    results = run_within(PROMPT, lambda: execute(Call(op, inputs, {}), chain_of(on)), f"{op} of a pending input",
                         "handler.pending")
    value.emplace([heald.TensorHandle(x)])
    want = {"AddV2": x + np.eye(4, dtype=np.float32), "MatMul": x, "Neg": -x}[op]
    expect_close(arrays(results)[0], want, TOLERANCE, f"{op} of an input that came later", "handler.pending")


@sentence()
def a_failed_input_fails_the_result(on: HookSubject) -> None:
    handle, value = pending_handle(matrix("failing"))
    results = run_within(PROMPT, lambda: execute(Call("MatMul", (handle, matrix("w")), {}), chain_of(on)),
                         "MatMul of a pending input", "handler.pending")
    value.set_error(errors.DataLoss("planted by heald_conformance"))
    expect_raises((errors.DataLoss,), lambda: arrays(results), "MatMul of an input that failed", "handler.errors")


def pending_handle(array: Any) -> tuple[Any, AsyncValue]:
    """A pending handle of this array's type and shape, and the value that settles it."""
    promises = _register_pending_handler(heald.default_host())
    handle = heald.execute("Identity", array, handler=[PENDING, REFERENCE], host=heald.default_host())
    return handle, promises.pop()


@cache
def _register_pending_handler(_host: Any) -> list[AsyncValue]:
    """Register the handler that leaves Identity pending, once for a host of the process.

    Returns the list to which the handler adds its promises.
    """
    module, promises = ModuleType("heald_conformance_pending"), list[AsyncValue]()

    class Pending:
        def __init__(self, context: OpHandlerContext) -> None:
            self._context = context

        def make_op(self, op: str) -> Callable[[OpInvocation], Sequence[Any]] | None:
            return self._promise if op == "Identity" else None

        def _promise(self, call: OpInvocation) -> Sequence[Any]:
            metas = self._context.metadata(call)
            assert metas is not None
            handles, value = self._context.promise(metas, lambda: None)
            promises.append(value)
            return handles

    def make(context: OpHandlerContext, _fallback: OpHandler) -> OpHandler:
        return Pending(context)

    @hookimpl
    def heald_op_handlers(registry: Any) -> None:
        registry.add(PENDING, make)

    vars(module).update(HEALD_API=API, heald_op_handlers=heald_op_handlers)
    heald.register(module)
    return promises
