"""Folding: a call with known inputs is computed at link time or before, instead of in every run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...errors import HealdError
from ..contract.kernel import run_of
from ..executor.array_contract import check_returned, checked_run_function, poison_array
from ..executor.host_array import view
from ..host.kernel_context import KernelContext
from ..support.aligned_array import solid
from ..values.computed_info import ComputedInfo
from ..values.tensor import TensorMetadata, ValueInfo
from .binder import Binder

Compute = Callable[[Sequence[ValueInfo]], list[Any] | None]  # known inputs to results; None when the kernel fails
POINTER_BYTES = 8  # bytes
LARGEST_FOLDED_BYTES = 64 << 10  # a folded value may have this size, or the size of the inputs that it is computed from
LARGEST_SPREAD_BYTES = 16 << 20  # splat inputs, one element in memory, are laid out up to this size


def is_worth_folding(inputs: Sequence[ValueInfo], outputs: Sequence[ValueInfo]) -> bool:
    """True when all inputs are known, outputs are not, and computing them takes little memory and time.

    The outputs may not be much larger than the memory of the inputs. Nor may the inputs be as the kernel reads them: a
    splat is one element in memory, and up to 2**48 for a kernel.
    """
    for info in inputs:  # first, since most nodes fail this test
        if not info.is_known:
            return False
    if all(o.is_known for o in outputs) or not all(o.meta.is_static and o.dtype.itemsize for o in outputs):
        return False
    input_bytes = sum(map(_held_bytes, inputs))
    if sum(laid_out_bytes(i.meta) for i in inputs) > max(LARGEST_SPREAD_BYTES, input_bytes):
        return False
    return sum(o.meta.nbytes for o in outputs) <= max(LARGEST_FOLDED_BYTES, input_bytes)


def laid_out_bytes(meta: TensorMetadata) -> int:
    """Bytes of a static tensor's array, in which a string is a pointer."""
    return meta.size * (meta.dtype.itemsize or POINTER_BYTES)


def _held_bytes(info: ValueInfo) -> int:
    """Bytes that a known value takes in memory; a splat takes one element."""
    if isinstance(info, ComputedInfo):
        return info.bytes_before_computing
    value = info.value
    assert value is not None
    return value.itemsize if value.size > 1 and 0 in value.strides else value.nbytes


def fold_call(binder: Binder, inputs: Sequence[ValueInfo], outputs: Sequence[ValueInfo]) -> list[Any] | None:
    """Return the call's results, or None when no kernel takes the call or the kernel fails.

    A failure then repeats in the run that needs the call.
    """
    compute = folding_function(binder, inputs, outputs)
    return None if compute is None else compute(inputs)


def folding_function(binder: Binder, inputs: Sequence[ValueInfo], outputs: Sequence[ValueInfo]) -> Compute | None:
    """Return a function from known inputs to the call's results, or None when no kernel takes the call.

    If `inputs` have no elements, the function serves all inputs of their metadata.
    """
    metas = [o.meta for o in outputs]
    try:
        kernel, bound, _ = binder.ask_candidates(inputs, metas)
    except HealdError:
        return None
    if kernel is None or kernel.returns or kernel.step:
        return None
    run = None if bound is None else run_of(bound)
    if run is not None and binder.checks:
        run = checked_run_function(run, [poison_array] * len(metas), kernel)

    def compute(infos: Sequence[ValueInfo]) -> list[Any] | None:
        try:
            arrays = [solid(i.value) for i in infos]
            if run is None:
                alias = kernel.aliases(binder.call.attrs)
                return [view(arrays[alias[i]], meta) for i, meta in enumerate(metas)]
            results = [np.empty(meta.dims, meta.dtype.numpy) for meta in metas]
            check_returned(KernelContext().run(run, *arrays, *results), results, kernel)
        except (HealdError, ArithmeticError, ValueError, MemoryError):
            return None
        return results

    return compute
