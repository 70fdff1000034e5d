"""Primitives as kernels: one call of the library over arrays, with the Arguments that concurrent calls cannot share.

A primitive serves several threads at once. Its Arguments serve one call at a time: memory objects, scratch memory, a
stream. A frame has its own Arguments over its fixed arrays. A call outside a frame takes idle Arguments and points them
to its arrays; their number is the largest number of such calls at once.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from typing import Any, Protocol

import numpy as np
from heald.api import Attachable, errors

from .attributes import Eltwise, PostOp, attributes, number
from .library import library
from .memory import FLOAT, Array, Layout, Operand, aligned_bytes, dense, row_major
from .primitive_call import PrimitiveCall, look_when_due
from .spinning import SpinSwitch, involuntary_switches
from .team import new_threads

SOURCE, SECOND_SOURCE, RESULT, WEIGHTS, BIAS, SCRATCH = 1, 2, 17, 33, 41, 80  # the library's argument numbers
MEAN, VARIANCE, SCALE, SHIFT = 49, 50, 51, 52
SCALES = 4096  # combined with the number of the scaled argument
INFERENCE = number("dnnl_forward_inference")


TEAM_ELEMENTS = 1 << 18  # of a call that several threads share
CODE = 56 << 10  # bytes of a primitive in the library, about; most of them are generated machine code


class NativeKernel(Attachable, Protocol):
    """A bound kernel that tells which memory its calls touch."""

    @property
    def extents(self) -> Mapping[int, int]:
        """The bytes of each input and output that its native calls touch, by the indices of the operands."""


class LibraryKernel:
    """A bound kernel that calls the library. `extents`: see NativeKernel."""

    nbytes = CODE
    prefers_fixed_arrays = True  # pointing a primitive to an array takes 0.3 us, and only attached calls are joined
    extents: Mapping[int, int]

    @property
    def reads(self) -> Collection[int]:
        return self.extents.keys()

    @property
    def fills_cores(self) -> bool:
        return library().threads > 1


class DescribedKernel(LibraryKernel):
    """A bound kernel with a primitive's description, which names the library's implementation."""

    def __init__(self, description: Any) -> None:
        self._description = description

    @property
    def how(self) -> str:
        return implementation(self._description)


class Primitive(DescribedKernel):
    """A primitive of the library. `operands`: by the library's argument numbers."""

    def __init__(self, description: Any, operands: Mapping[int, tuple[Layout, Operand]]) -> None:
        super().__init__(description)
        c, ffi = library().c, library().ffi
        self.handle = library().make("primitive", c.dnnl_primitive_create, description)
        self.operands = dict(operands)
        self.extents = extents_of(operands)
        self.scratch = Layout.like(c.dnnl_primitive_desc_query_md(description, c.dnnl_query_scratchpad_md, 0))
        self._execute, self._point = c.dnnl_primitive_execute, c.dnnl_memory_set_data_handle
        self._from_buffer = ffi.from_buffer
        self._idle: deque[Arguments] = deque()

    def attach(self, inputs: tuple[Array, ...], outputs: tuple[Array, ...]) -> PrimitiveCall:
        arguments = Arguments(self, (*inputs, *outputs))
        nbytes = sum(layout.extent for layout, _ in self.operands.values())
        return PrimitiveCall(self.handle, arguments.stream, arguments.count, arguments.exec_args, nbytes,
                             (self, arguments), spin_switch())

    def run(self, *arrays: Array) -> None:
        try:
            arguments = self._idle.pop()
        except IndexError:
            arguments = Arguments(self, None)
        switch = spin_switch()
        if switch is not None:
            look_when_due(switch)
        point, from_buffer = self._point, self._from_buffer
        for memory, array_index in arguments.movable:
            point(memory, from_buffer(arrays[array_index]))
        status = self._execute(self.handle, arguments.stream, arguments.count, arguments.exec_args)
        self._idle.append(arguments)
        if status:
            library().check(status, "call")


def spin_switch() -> SpinSwitch | None:
    """The switch for calls that several threads share; None for calls of one thread."""
    shares = library().spins_by_load and library().c.omp_get_max_threads() > 1
    return _spin_switch() if shares else None


@cache
def _spin_switch() -> SpinSwitch:
    return SpinSwitch(_start_team, involuntary_switches, find_helpers=_find_helpers)


def _start_team() -> None:
    """Make the calling thread the first of as many OpenMP threads as make more than there are cores, with the team of
    the kernels' calls."""
    library().c.omp_set_num_threads(max(2, len(os.sched_getaffinity(0)) - library().threads + 2))
    _shared_call()()


def _find_helpers() -> Collection[int]:
    """The OpenMP threads of the calling thread; none where others may have started at the same time."""
    threads = new_threads(_call_of_helpers())
    return threads if len(threads) == library().threads - 1 else ()


@cache
def _call_of_helpers() -> Callable[[], None]:
    return _shared_call()


def _shared_call() -> Callable[[], None]:
    """A call that all threads share, for one caller at a time."""
    size = (TEAM_ELEMENTS,)
    layout = dense(size, FLOAT)
    description = eltwise_description(Eltwise(number("dnnl_eltwise_relu"), 0.0), layout, layout)
    array = np.zeros(size, np.float32)
    primitive = Primitive(description, {SOURCE: (layout, 0), RESULT: (layout, 1)})
    arguments, execute = Arguments(primitive, (array, array)), library().c.dnnl_primitive_execute

    def call() -> None:
        status = execute(primitive.handle, arguments.stream, arguments.count, arguments.exec_args)
        library().check(status, "call")

    return call


def extents_of(operands: Mapping[int, tuple[Layout, Operand]]) -> dict[int, int]:
    """The bytes that the library touches of each input and output among these operands, by their indices."""
    extents: dict[int, int] = {}
    for layout, operand in operands.values():
        if isinstance(operand, int):
            extents[operand] = max(layout.extent, extents.get(operand, 0))
    return extents


class Accumulating(DescribedKernel):
    """A product that adds the input at `input_index`, and may write its result over that input.

    The primitive `over` does so, with this `description`; `apart` writes into other memory. Each is made at first use.
    """

    def __init__(
        self, apart: Callable[[], Primitive], over: Callable[[], Primitive], input_index: int,
        extents: Mapping[int, int], description: Any,
    ) -> None:
        super().__init__(description)
        self.inplace = {0: input_index}
        self.extents = extents
        self._apart, self._over, self._place = cache(apart), cache(over), input_index

    def attach(self, inputs: tuple[Array, ...], outputs: tuple[Array, ...]) -> PrimitiveCall:
        is_over = inputs[self._place].ctypes.data == outputs[0].ctypes.data
        return (self._over() if is_over else self._apart()).attach(inputs, outputs)

    def run(self, *arrays: Array) -> None:
        self._apart().run(*arrays)


class KernelAroundPrimitive(LibraryKernel):
    """A bound kernel that runs a primitive and further work."""

    def __init__(self, primitive: Primitive | Accumulating) -> None:
        self._primitive = primitive
        self.extents = primitive.extents

    @property
    def how(self) -> str:
        return self._primitive.how


class PrimitiveThenPrimitive(KernelAroundPrimitive):
    """A primitive, and then a second one in place on its result, the array at `result_index`."""

    def __init__(self, first: Primitive | Accumulating, second: Primitive, result_index: int) -> None:
        super().__init__(first)
        self.inplace: dict[int, int] = getattr(first, "inplace", {})
        self.extents = {**first.extents, result_index: max(first.extents[result_index], second.extents[0])}
        self._second, self._place = second, result_index

    def attach(self, inputs: tuple[Array, ...], outputs: tuple[Array, ...]) -> Callable[[], None]:
        first = self._primitive.attach(inputs, outputs)
        second = self._second.attach(((*inputs, *outputs)[self._place],), ())

        def call() -> None:
            first()
            second()

        return call

    def run(self, *arrays: Array) -> None:
        self._primitive.run(*arrays)
        self._second.run(arrays[self._place])


class Arguments:
    """The objects of one call at a time, over fixed arrays or over the arrays of each call.

    They hold no reference to their primitive, for the primitive keeps the idle ones.
    """

    def __init__(self, primitive: Primitive, arrays: tuple[Array, ...] | None) -> None:
        c, ffi = library().c, library().ffi
        self.movable: list[tuple[Any, int]] = []
        self.stream = library().make("stream", c.dnnl_stream_create, library().engine, c.dnnl_stream_in_order)
        memories: dict[int, Any] = {}
        self._kept: list[Any] = [memories]
        for role, (layout, operand) in primitive.operands.items():
            if isinstance(operand, int):
                array = None if arrays is None else arrays[operand]
            else:
                array = operand() if callable(operand) else operand
            memories[role] = layout.memory(array)
            self._kept.append(array)
            if isinstance(operand, int) and arrays is None:
                self.movable.append((memories[role], operand))
        if primitive.scratch.nbytes:
            self._kept.append(aligned_bytes(primitive.scratch.nbytes))
            memories[SCRATCH] = primitive.scratch.memory(self._kept[-1])
        self.count = len(memories)
        self.exec_args = ffi.new("dnnl_exec_arg_t[]", list(memories.items()))


def describe_primitive(create: Callable[..., int], *arguments: Any, with_reference: bool = False) -> Any:
    """A primitive's description. Raises Unimplemented if the library has none, or only its slow reference code.

    `with_reference`: Take the reference code, which is fast for recurrent layers: it multiplies by the library's GEMM.
    """
    description = library().make("primitive_desc", create, library().engine, *arguments)
    name = implementation(description)
    if name.startswith("ref") and not with_reference:
        raise errors.Unimplemented(f"oneDNN {library().version} has only '{name}' for this")
    return description


def eltwise_description(step: Eltwise, source: Layout, result: Layout) -> Any:
    """The description of an elementwise function."""
    return describe_primitive(library().c.dnnl_eltwise_forward_primitive_desc_create, INFERENCE, step.algorithm,
                              source.descriptor, result.descriptor, step.alpha, step.beta, attributes())


def matmul_description(
    left: Layout, right: Layout, result: Layout, bias: Layout | None = None, steps: Sequence[PostOp] = ()
) -> Any:
    """The description of a matrix product, or of a batch of them."""
    return describe_primitive(library().c.dnnl_matmul_primitive_desc_create, left.descriptor, right.descriptor,
                     library().ffi.NULL if bias is None else bias.descriptor, result.descriptor, attributes(steps))


def implementation(description: Any) -> str:
    """The name of the implementation that the library has chosen."""
    c, ffi = library().c, library().ffi
    name = ffi.new("const char **")
    library().check(c.dnnl_primitive_desc_query(description, c.dnnl_query_impl_info_str, 0, name), "primitive")
    return ffi.string(name[0]).decode()  # type: ignore[no-any-return]


def chosen_layout(description: Any, what: int, index: int = 0) -> Layout:
    """The layout that a description wants for an operand: the operand of query `what` with this index."""
    return Layout.like(library().c.dnnl_primitive_desc_query_md(description, what, index))


def pack_array(array: Array, source_layout: Layout, target_layout: Layout, mask: int = 0,
               factors: Array | None = None) -> Array:
    """An array's elements in the layout `target_layout`, as bytes, times `factors`: one for each index along the
    dimensions of `mask`."""
    result = aligned_bytes(target_layout.nbytes)  # the library writes zeros where a layout pads
    operands: dict[int, tuple[Layout, Operand]] = {SOURCE: (source_layout, 0), RESULT: (target_layout, 1)}
    if factors is not None:
        vector = np.ascontiguousarray(factors.reshape(-1), np.float32)
        operands[SCALES | SOURCE] = row_major(vector.shape), vector
    Primitive(reorder_description(source_layout, target_layout, 0 if factors is None else mask),
              operands).attach((array, result), ())()
    return result


def reorder_description(source_layout: Layout, target_layout: Layout, scaled: int = 0) -> Any:
    """The description of a copy to another layout or element type, with factors along the dimensions `scaled`."""
    engine = library().engine
    return library().make("primitive_desc", library().c.dnnl_reorder_primitive_desc_create, source_layout.descriptor,
                          engine,
                          target_layout.descriptor, engine, attributes(scaled=scaled))
