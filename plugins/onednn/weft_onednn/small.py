"""Small work is done by one thread: handing a part of it to others takes as long and, where they sleep, many times as
long. The digits' network takes 0.92 of the time on two cores, and a tenth after pauses on a virtual machine that wakes
the other thread on the same core."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any

from weft.api import Attachable, Bind, FusedOp

from .library import library
from .memory import Array

MOST = 50_000  # elements that are read and written: what a core does in some 10 us
TOGETHER = 16  # multiplications that take as long as an element
Dims = tuple[int, ...]
OTHERS = frozenset({"BlockLSTM", "BlockLSTMV2", "Einsum", "LSTMBlockCell"})  # products that are not looked at
# How many multiplications an element of a product's result takes, or more, by the dimensions of the second operand and
# the last one of the result.
DEPTH: Mapping[str, Callable[[Dims, int], float]] = {
    "BatchMatMul": lambda right, columns: prod(right[-2:]) / columns,
    "BatchMatMulV2": lambda right, columns: prod(right[-2:]) / columns,
    "Conv2D": lambda filters, _: prod(filters[:-1]),
    "Conv2DBackpropInput": lambda filters, channels: prod(filters) / channels,
    "Conv3D": lambda filters, _: prod(filters[:-1]),
    "Conv3DBackpropInputV2": lambda filters, channels: prod(filters) / channels,
    "DepthwiseConv2dNative": lambda filters, _: prod(filters[:2]),
    "MatMul": lambda right, columns: prod(right) / columns,
}


def is_small(b: Bind, nodes: Sequence[FusedOp]) -> bool:
    """Whether one thread is to do what these nodes do."""
    if any(node.op in OTHERS for node in nodes):
        return False
    moved = sum(each.meta.size for each in b.inputs) + sum(each.size for each in b.outputs)
    return library().threads > 1 and moved + sum(_multiplied(b, node) for node in nodes) / TOGETHER < MOST


def _multiplied(b: Bind, node: FusedOp) -> float:
    depth, result = DEPTH.get(node.op), node.outputs[0]
    if depth is None or not result.size:
        return 0
    return result.size * depth(b.inputs[node.args[1]].meta.dims, result.dims[-1])


@contextmanager
def one_thread() -> Iterator[None]:
    """The library's work that is done inside is done by the thread that asks for it."""
    set_threads, threads = library().c.omp_set_num_threads, library().threads
    set_threads(1)
    try:
        yield
    finally:
        set_threads(threads)


class OnOneThread:
    """What has been made for one thread, done by one: the library may make it in another way for several."""

    fills_cores = False

    def __init__(self, made: Attachable) -> None:
        self._made = made

    def __getattr__(self, name: str) -> Any:  # how, inplace, reads
        return getattr(self._made, name)

    def attach(self, inputs: tuple[Array, ...], outputs: tuple[Array, ...]) -> Callable[[], Any]:
        set_threads, threads = library().c.omp_set_num_threads, library().threads
        with one_thread():
            work = self._made.attach(inputs, outputs)

        def call() -> None:  # `one_thread` takes as long as some of the work
            set_threads(1)
            try:
                work()
            finally:
                set_threads(threads)

        return call

    def run(self, *arrays: Array) -> None:
        with one_thread():
            self._made.run(*arrays)
