"""Throughput: figures for the report, which never pass or fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, NamedTuple

import heald
import numpy as np
from heald.api import Node, dtypes

from ..case import sentence
from ..elementwise import Chain, ops_of
from ..injection import replace_methods
from ..subject import Array, Subject, constant, placeholder
from ..verdict import NotApplicable

REPEATS = 5
CONSTANTS = 8
LARGE_CONSTANT = 50_000  # elements: too many to be folded or fused into a kernel's text


class Figure(NamedTuple):
    """A measured number: the best of several runs, the one that other work on the machine disturbed least."""

    what: str
    value: float
    unit: str

    def __str__(self) -> str:
        return f"{self.what}: {self.value:.3g} {self.unit}"


@sentence()
def launches_are_timed(on: Subject) -> list[Figure]:
    length = on.size(1000, 100)
    chain = Chain(on, length)
    with on.session(chain.nodes) as session:
        step, x = session.make_callable(chain.last, ["x"]), np.ones(4, np.float32)
        return [Figure(f"a launch, in a chain of {length} kernels of 4 elements",
                       best(lambda: step(x)) / length * 1e6, "us")]


@sentence()
def copies_are_timed(on: Subject) -> list[Figure]:
    host = np.zeros(on.size(64 << 20, 1 << 20), np.uint8)
    with on.buffers(host.nbytes) as (buffer,):

        def copy_in() -> None:
            on.enqueue_in(host, buffer)
            on.finish()

        def copy_out() -> None:
            on.enqueue_out(buffer, host)
            on.finish()

        size = f"{host.nbytes >> 20} MiB"
        return [Figure(f"a copy in of {size}", host.nbytes / best(copy_in) / 1e9, "GB/s"),
                Figure(f"a copy out of {size}", host.nbytes / best(copy_out) / 1e9, "GB/s")]


@sentence()
def waits_for_constants_are_counted(on: Subject) -> list[Figure]:
    """The calls of `synchronize` while a session uploads constants. One is enough for all constants of a device."""
    if on.host_visible:
        raise NotApplicable("its buffers are host memory: constants are not copied")
    op = next((op for op in ops_of(on) if op.arity == 2), None)
    if op is None:
        raise NotApplicable(f"{on.type} has no kernel of two inputs")
    nodes = [placeholder("x"), *(constant(f"c{i}", np.full(LARGE_CONSTANT, i, np.float32)) for i in range(CONSTANTS))]
    nodes += [Node(f"n{i}", op.name, [f"n{i - 1}" if i else "x", f"c{i}"], attrs={"T": dtypes.float32}, device=on.name)
              for i in range(CONSTANTS)]
    waits: list[Any] = []
    wait = on.device.synchronize

    def count_wait(event: Any) -> None:
        waits.append(event)
        wait(event)

    with on.session(nodes) as session, replace_methods(on, {"synchronize": count_wait}):
        step = session.make_callable(f"n{CONSTANTS - 1}", ["x"])
        step(np.ones(LARGE_CONSTANT, np.float32))
        at_link = len(waits)
        step(np.ones(LARGE_CONSTANT, np.float32))
        return [Figure(f"waits while {CONSTANTS} constants are uploaded", 2 * at_link - len(waits), "")]


@sentence()
def elementwise_kernels_are_timed(on: Subject) -> list[Figure]:
    count, length = on.size(1 << 22, 1 << 16), 16
    chain = Chain(on, length)
    seconds = of_kernels(on, chain.nodes, chain.last, np.ones(count, np.float32))
    return [Figure(f"elementwise float32, {count} elements a kernel", length * count / seconds / 1e9, "G elements/s")]


@sentence()
def matrix_products_are_timed(on: Subject) -> list[Figure]:
    if not on.has_kernel("MatMul", T=dtypes.float32, transpose_a=False, transpose_b=False):
        raise NotApplicable(f"{on.type} has no float32 kernel for MatMul")
    n = on.size(1024, 128)
    attrs = {"T": dtypes.float32, "transpose_a": False, "transpose_b": False}
    nodes = [placeholder("x"), constant("w", np.ones((n, n), np.float32)),
             Node("y", "MatMul", ["x", "w"], attrs=attrs, device=on.name)]
    seconds = of_kernels(on, nodes, "y", np.ones((n, n), np.float32))
    return [Figure(f"matmul float32 {n}x{n}x{n}", 2 * n**3 / seconds / 1e9, "GFLOP/s")]


def of_kernels(on: Subject, nodes: Sequence[Node], fetch: str, x: Array) -> float:
    """The seconds of the device's kernels in the fastest of several runs, by the clock of the device, or awaited.

    Raises NotApplicable when no clock resolves them.
    """
    times = []
    with on.session(nodes) as session:
        session.run(fetch, {"x": x})
        on.expect_placed(session)
        for _ in range(REPEATS):
            metadata = heald.RunMetadata()
            session.run(fetch, {"x": x}, options=heald.RunOptions(trace=True), metadata=metadata)
            assert metadata.trace is not None
            times.append(sum(event.duration_ns for event, _ in metadata.trace.calls() if event.call.op != "copy"))
    if min(times) <= 0:
        raise NotApplicable(f"the clock of {on.name} does not resolve these kernels")
    return min(times) / 1e9


def best(run: Callable[[], object]) -> float:
    """The seconds of the fastest of several runs, after one that does not count."""
    times = []
    for _ in range(REPEATS + 1):
        started = perf_counter()
        run()
        times.append(perf_counter() - started)
    return min(times[1:])
