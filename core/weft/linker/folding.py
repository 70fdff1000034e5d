"""Folding: a call whose inputs are known is computed when a program is linked, or before, instead of in every run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..contract.kernel import run_of
from ..errors import WeftError
from ..executor.array_contract import check_returned, poison_array, watched
from ..executor.host_array import view
from ..host.kernel_context import KernelContext
from ..support.aligned_array import solid
from ..values.tensor import MadeInfo, TensorMetadata, ValueInfo
from .binder import Binder

Compute = Callable[[Sequence[ValueInfo]], list[Any] | None]  # results of known inputs; None where that fails
POINTER = 8  # bytes
FOLDED_BYTES = 64 << 10  # a folded value may be this large, or as large as what it was made from
SPREAD_BYTES = 16 << 20  # inputs that are one element all over are laid out up to this size


def is_worth_folding(inputs: Sequence[ValueInfo], outputs: Sequence[ValueInfo]) -> bool:
    """Whether all inputs are known, and computing the outputs, which are not, takes little memory and time.

    The outputs may not be much larger than what the inputs take in memory, nor may the inputs as the kernel reads them:
    a splat is one element in memory, and up to 2**48 for a kernel.
    """
    for known in inputs:  # the test that most nodes fail
        if not known.is_known:
            return False
    if all(o.is_known for o in outputs) or not all(o.meta.is_static and o.dtype.itemsize for o in outputs):
        return False
    held = sum(map(_held, inputs))
    if sum(laid_out(i.meta) for i in inputs) > max(SPREAD_BYTES, held):
        return False
    return sum(o.meta.nbytes for o in outputs) <= max(FOLDED_BYTES, held)


def laid_out(meta: TensorMetadata) -> int:
    """The bytes of a static tensor's array, where a string is a pointer."""
    return meta.size * (meta.dtype.itemsize or POINTER)


def _held(known: ValueInfo) -> int:
    """The bytes that a known value takes: little where it is one element all over."""
    if isinstance(known, MadeInfo):
        return known.held
    value = known.value
    assert value is not None
    return value.itemsize if value.size > 1 and 0 in value.strides else value.nbytes


def folded(binder: Binder, inputs: Sequence[ValueInfo], outputs: Sequence[ValueInfo]) -> list[Any] | None:
    """The call's results, or None where no kernel takes it or it fails: then it fails in the run that needs it."""
    compute = folding(binder, inputs, outputs)
    return None if compute is None else compute(inputs)


def folding(binder: Binder, inputs: Sequence[ValueInfo], outputs: Sequence[ValueInfo]) -> Compute | None:
    """What computes the call's results, of inputs that are known; None where no kernel takes the call. If bind is told
    no elements of `inputs`, it does so for all inputs of their metadata."""
    metas = [o.meta for o in outputs]
    try:
        kernel, bound, _ = binder.bind(inputs, metas)
    except WeftError:
        return None
    if kernel is None or kernel.returns or kernel.step:
        return None
    run = None if bound is None else run_of(bound)
    if run is not None and binder.checks:
        run = watched(run, [poison_array] * len(metas), kernel)

    def compute(known: Sequence[ValueInfo]) -> list[Any] | None:
        try:
            arrays = [solid(i.value) for i in known]
            if run is None:
                alias = kernel.aliases(binder.call.attrs)
                return [view(arrays[alias[i]], meta) for i, meta in enumerate(metas)]
            results = [np.empty(meta.dims, meta.dtype.numpy) for meta in metas]
            check_returned(KernelContext().run(run, *arrays, *results), results, kernel)
        except (WeftError, ArithmeticError, ValueError, MemoryError):
            return None
        return results

    return compute
