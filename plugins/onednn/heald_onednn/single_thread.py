"""Single-threaded execution of small kernels, whose work is less than waking another thread.

The digits' network takes 0.92 of the time on two cores. After pauses it takes a tenth, on a virtual machine that wakes
the other thread on the same core.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any

from heald.api import Attachable, Bind, FusedOp, geometry

from .library import library
from .memory import Array
from .primitive_call import PrimitiveCall, SinglePrimitiveCall

LARGEST_WORK_ELEMENTS = 50_000  # elements read and written: about 10 us of one core
# The same for a product of one row, which waits for memory: one thread takes 13 us for 131,000 elements. Two take 9 us
# while both are awake, and 45 to 60 us when the second has to be woken.
LARGEST_ROW_ELEMENTS = 150_000
# The same for one step of a sequence: its threads meet several times, and the weights stay in the caches from step to
# step. For 420,000 elements one thread takes 11 us a step. Two take 6 while `spinning` keeps them awake and apart. Two
# take 6 to 10 beside a busy process.
LARGEST_STEP_ELEMENTS = 300_000
MULTIPLICATIONS_PER_ELEMENT = 16  # per element: they take as long as reading or writing it
Dims = tuple[int, ...]
RECURRENT = frozenset({"BlockLSTM", "BlockLSTMV2", "LSTMBlockCell"})
HIDDEN, WEIGHTS = -6, -5  # indices of their inputs, of [batch, cells] and [inputs + cells, 4 * cells]
SEQUENCE_WEIGHTS = {"_GRUSequence": 3, "_LSTMSequence": 4, "_RNNSequence": 3}  # the index of w, in front of u
SEQUENCE_HIDDEN = 2
# Multiplications for each element of a product's result, at most, by the dimensions of the second operand and the last
# dimension of the result.
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
    """True where these nodes are faster on one thread."""
    if library().threads == 1:
        return False
    if b.op in RECURRENT or b.op in SEQUENCE_WEIGHTS:
        return _work_of_step(b) < LARGEST_STEP_ELEMENTS
    moved = sum(operand.meta.size for operand in b.inputs) + sum(operand.size for operand in b.outputs)
    work = moved + sum(_multiplications(b, node) for node in nodes) / MULTIPLICATIONS_PER_ELEMENT
    return work < (LARGEST_ROW_ELEMENTS if any(map(_is_row, nodes)) else LARGEST_WORK_ELEMENTS)


def _work_of_step(b: Bind) -> float:
    """The elements that a step of an LSTM reads, and its multiplications as elements."""
    weights, hidden = b.inputs[WEIGHTS : WEIGHTS + 1], b.inputs[HIDDEN]
    if b.op in SEQUENCE_WEIGHTS:
        index = SEQUENCE_WEIGHTS[b.op]
        weights, hidden = b.inputs[index : index + 2], b.inputs[SEQUENCE_HIDDEN]
    batch = hidden.meta.dims[0]
    return sum(operand.size for operand in weights) * (1 + batch / MULTIPLICATIONS_PER_ELEMENT)


def _is_row(node: FusedOp) -> bool:
    """True for a matrix product of one row."""
    result = node.outputs[0]
    return node.op == "MatMul" and result.dims[0] == 1


def _multiplications(b: Bind, node: FusedOp) -> float:
    if node.op == "Einsum":
        return _multiplications_of_einsum(node.attrs["equation"], [b.inputs[a].meta.dims for a in node.args])
    depth, result = DEPTH.get(node.op), node.outputs[0]
    if depth is None or not result.size:
        return 0
    return result.size * depth(b.inputs[node.args[1]].meta.dims, result.dims[-1])


def _multiplications_of_einsum(equation: str, shapes: Sequence[Dims]) -> float:
    """One multiplication for each combination of the labels' values; 0 for an einsum that no kernel takes."""
    labels = geometry.einsum_labels(equation, [len(shape) for shape in shapes])
    if labels is None:
        return 0
    lengths = {label: n for group, shape in zip(labels[0], shapes, strict=True)
               for label, n in zip(group, shape, strict=True)}
    return prod(lengths.values())


@contextmanager
def single_thread() -> Iterator[None]:
    """Inside the block, oneDNN uses the calling thread only."""
    set_threads, threads = library().c.omp_set_num_threads, library().threads
    set_threads(1)
    try:
        yield
    finally:
        set_threads(threads)


class SingleThread:
    """A bound kernel that was made for one thread and runs on one. oneDNN may choose another algorithm for several."""

    fills_cores = False

    def __init__(self, kernel: Attachable) -> None:
        self._kernel = kernel
        self._set_threads, self._threads = library().c.omp_set_num_threads, library().threads

    def __getattr__(self, name: str) -> Any:  # how, inplace, reads
        return getattr(self._kernel, name)

    def attach(self, inputs: tuple[Array, ...], outputs: tuple[Array, ...]) -> Callable[[], Any]:
        with single_thread():
            work = self._kernel.attach(inputs, outputs)
        if isinstance(work, PrimitiveCall):
            return SinglePrimitiveCall(work)
        set_threads, threads = self._set_threads, self._threads

        def call() -> None:  # inlined, as in `run`: the context manager takes as long as some of the work
            set_threads(1)
            try:
                work()
            finally:
                set_threads(threads)

        return call

    def run(self, *arrays: Array) -> None:
        self._set_threads(1)
        try:
            self._kernel.run(*arrays)
        finally:
            self._set_threads(self._threads)


def meets_often(b: Bind) -> bool:
    """True for work whose threads meet many times in a call. Beside a busy process each meeting may wait for a core."""
    return library().threads > 1 and (b.op in RECURRENT or b.op in SEQUENCE_WEIGHTS)
