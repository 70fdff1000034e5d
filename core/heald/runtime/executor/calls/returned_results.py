"""Kernels that return their results instead of writing them: their run functions, which check the results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy import ndarray

from ....errors import PluginError
from ...contract.kernel import KernelDef
from ...host.allocators.array_maker import bytes_of
from ...host.host_memory import COUNTED_FROM_BYTES, HostMemory
from ...program.host_program import Call
from ...values.async_value import AsyncValue, available, payload_of
from ...values.tensor import TensorMetadata
from ..host_array import check_results


def make_run_on_list(
    run: Callable[..., Any], metas: Sequence[TensorMetadata], call: Call, kernel: KernelDef, memory: HostMemory
) -> Callable[[list[Any]], list[Any]]:
    """Return the run function of a kernel that returns its results, as a function of a list of inputs."""
    if kernel.asynchronous and call.chain is not None:
        return partial(_run_for_chain, run)
    run_and_check = partial(_run_and_check, run, metas, call.op, kernel, memory)
    if len(metas) != 1 or not metas[0].is_static or kernel.nonstrict:
        return run_and_check
    if bytes_of(metas[0].dims, metas[0].dtype.numpy) >= COUNTED_FROM_BYTES:
        return run_and_check
    return _make_list_run_for_one(run, metas[0], partial(_check_all, metas, call.op, kernel, memory))


def _make_list_run_for_one(
    run: Callable[..., Any], meta: TensorMetadata, check: Callable[[Any], list[Any]]
) -> Callable[[list[Any]], list[Any]]:
    """Return a run function of a kernel with one small result of static type. It calls `check` for any result that is
    not an array of just this type, so that most results take a quarter of the time of a check."""
    dims, dtype = meta.dims, np.dtype(meta.dtype.numpy)

    def run_it(inputs: list[Any]) -> list[Any]:
        value = run(*inputs)
        if (value.__class__ is ndarray and value.dtype is dtype and value.shape == dims
                and value.flags.c_contiguous):
            return [value]
        return check(value)

    return run_it


def _run_for_chain(run: Callable[..., Any], inputs: list[Any]) -> list[Any]:
    """Return the value of the chain of an asynchronous call without results: None when done, else an AsyncValue."""
    return [payload_of(run(*inputs))]


def _run_and_check(
    run: Callable[..., Any], metas: Sequence[TensorMetadata], op: str, kernel: KernelDef, memory: HostMemory,
    inputs: list[Any],
) -> list[Any]:
    """Run a kernel that returns its results: payloads where they are available, else AsyncValues."""
    if kernel.nonstrict:
        inputs = [x if isinstance(x, AsyncValue) else available(x) for x in inputs]
    return _check_all(metas, op, kernel, memory, run(*inputs))


def _check_all(
    metas: Sequence[TensorMetadata], op: str, kernel: KernelDef, memory: HostMemory, result: Any
) -> list[Any]:
    """Check the result of a kernel, and count its memory. Return a list of its values.

    Raises PluginError for AsyncValues from a kernel that is not declared asynchronous.
    """
    values = check_results(result, metas, op, kernel.pack)
    for value in values:
        if value.__class__ is ndarray:
            if value.nbytes >= COUNTED_FROM_BYTES:
                memory.hold(value, "a result")
        elif isinstance(value, AsyncValue) and not (kernel.asynchronous or kernel.nonstrict):
            raise PluginError(f"the kernel of {op} (plugin {kernel.pack}) returned an AsyncValue and is not declared "
                              "asynchronous", op=op, plugin=kernel.pack,
                              hint="declare the kernel with asynchronous=True")
    return values
