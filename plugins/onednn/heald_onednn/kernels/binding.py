"""Bind functions: they decline, with the reason, calls that the library cannot do or does no faster than NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from math import prod

from heald.api import Bind, Declined, FusedOp, dtypes, errors

from ..epilogue import Epilogue
from ..primitives import NativeKernel
from ..single_thread import SingleThread, is_small, meets_often, single_thread
from ..threads_by_load import ThreadsByLoad

Head = Callable[[Bind, FusedOp, Epilogue], NativeKernel]
NO_GAIN = "by itself it is no faster than NumPy's kernel"
MOST_ELEMENTS = 2**31 - 1
BindFunction = Callable[[Bind], NativeKernel | Declined]


def declining(bind: Callable[[Bind], NativeKernel]) -> BindFunction:
    """A bind function that declines where `bind` raises Unimplemented, and where the kernel would touch other memory
    than its operands'. Small work is bound for one thread, and work whose threads meet often for one thread, too."""

    @wraps(bind)
    def bind_or_decline(b: Bind) -> NativeKernel | Declined:
        try:
            _check_counts(b)
            if is_small(b, b.fused or [node_of(b)]):
                return _bind_for_one_thread(bind, b)
            kernel = _check_extents(bind(b), b)
            return ThreadsByLoad(kernel, _bind_for_one_thread(bind, b)) if meets_often(b) else kernel
        except errors.Unimplemented as error:
            return b.decline(error.message)

    return bind_or_decline


def _bind_for_one_thread(bind: Callable[[Bind], NativeKernel], b: Bind) -> SingleThread:
    with single_thread():
        return SingleThread(_check_extents(bind(b), b))


def _check_counts(b: Bind) -> None:
    """Raise Unimplemented for a tensor with more elements than the library counts: some of its code divides by lengths
    in 32 bits, which may be 0 then."""
    metas = [*(info.meta for info in b.inputs), *b.outputs, *(meta for node in b.fused for meta in node.outputs)]
    if any(meta.size > MOST_ELEMENTS for meta in metas):
        raise errors.Unimplemented(f"a tensor has more than {MOST_ELEMENTS:,} elements, which oneDNN counts in 32 bits")


def _check_extents(kernel: NativeKernel, b: Bind) -> NativeKernel:
    """Raise Unimplemented unless the kernel stays within its inputs and writes all of its outputs."""
    metas = [*(info.meta for info in b.inputs), *b.outputs]
    for operand_index, nbytes in kernel.extents.items():
        meta = metas[operand_index]
        if nbytes > meta.nbytes or (operand_index >= len(b.inputs) and nbytes < meta.nbytes):
            raise errors.Unimplemented(f"the types contradict each other: oneDNN touches {nbytes} bytes of operand "
                                       f"{operand_index}, {meta}, which has {meta.nbytes}")
    return kernel


def without_epilogue(head: Head) -> BindFunction:
    """The bind function of a head without an epilogue."""
    return declining(lambda b: head(b, node_of(b), Epilogue()))


def node_of(b: Bind) -> FusedOp:
    """A single node in the form of a node of a group."""
    count = len(b.inputs)
    return FusedOp(b.op, b.attrs, tuple(range(count)), tuple(range(count, count + len(b.outputs))), b.outputs)


def check_elements(*shapes: Sequence[int]) -> None:
    """Raise Unimplemented for shapes without elements, for the library has no memory objects without elements."""
    if not all(map(prod, shapes)):
        raise errors.Unimplemented("there are no elements")


def is_narrow(b: Bind) -> bool:
    """True for element types without fast functions in NumPy."""
    return b.inputs[0].meta.dtype is not dtypes.float32


def left_to_numpy(b: Bind) -> Declined:
    """The bind function of ops that this pack serves in groups only."""
    return b.decline(NO_GAIN)
