"""Part views: a kernel that copies parts of an input is left out where its results may show the input instead.

A bound kernel offers that by its attribute `shows`. Its copy is kept in three cases. A result leaves the order of calls
(the user, a copy to another memory, a host kernel, a kernel that retains it). A part does not begin at a multiple of
the memory's alignment. The memory is that of a device without parts.

The alignment is ALIGNMENT bytes in host memory, and the limit `part_alignment` of another device. A part on a device is
a buffer of its own, over the bytes of another (`Device.part`). The memory plan ends neither before the other.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ...errors import PluginError
from ..contract.allocator import ALIGNMENT
from ..contract.device_limits import DeviceLimits
from ..executor.calls.bound_call import BoundCall
from ..executor.calls.kernel_call import KernelCall
from ..executor.calls.part_view_call import PartViewCall
from ..program.host_program import HOST
from ..support.remedy import kernel_remedy
from ..values.tensor import TensorMetadata


def replace_with_part_views(
    bound_calls: Sequence[BoundCall], metas: Sequence[TensorMetadata], results: Collection[int],
    memory: Mapping[int, int],
) -> list[BoundCall]:
    """Return the calls, with views in the place of kernels that offer them.

    `results`: those of the function. `memory`: the stream whose memory holds each register.
    """
    if not any(isinstance(bound, KernelCall) and hasattr(bound.bound, "shows") for bound in bound_calls):
        return [*bound_calls]
    leaving = {*results}
    calls: list[BoundCall] = []
    for bound in reversed(bound_calls):
        call = bound.call
        offers = getattr(bound.bound, "shows", None) is not None if isinstance(bound, KernelCall) else False
        is_free = offers and not bound.stateful and leaving.isdisjoint(call.results)
        view = _part_view(bound, metas, memory) if is_free else None  # type: ignore[arg-type]
        calls.append(bound if view is None else view)
        leaving.update(call.args[i] for output, i in bound.alias.items() if call.results[output] in leaving)
        leaving.update(call.args[i] for i in bound.retained)
        if bound.kernel is None or bound.is_host_kernel or bound.reads_after_return:
            leaving.update(call.args)
    return calls[::-1]


def _part_view(
    bound: KernelCall, metas: Sequence[TensorMetadata], memory: Mapping[int, int]
) -> PartViewCall | None:
    """Return the view in the place of this call, or None where its kernel offers none that is aligned."""
    shows, call, alignment = bound.bound.shows, bound.call, _alignment(bound)  # type: ignore[union-attr]
    if alignment is None:
        return None
    starts = []
    for output, register in enumerate(call.results):
        source, start = _checked_part(shows, output, bound)
        whole, part = metas[call.args[source]], metas[register]
        if not (whole.is_static and part.is_static and whole.dtype is part.dtype and whole.dtype.itemsize):
            return None
        if start + part.size > whole.size:
            raise _fault(bound, f"result {output} of {part} begins at element {start} of {whole}")
        if memory[call.args[source]] != bound.memory or (bound.memory != HOST and not part.size):
            return None
        if start * part.dtype.itemsize % alignment:
            return None
        starts.append(start)
    alias = {output: source for output, (source, _) in shows.items()}
    return PartViewCall(call, bound.device, bound.memory, bound.kernel, tuple(starts), alias=alias)


def _alignment(bound: KernelCall) -> int | None:
    """Return the bytes at whose multiples parts begin in the memory of a call's results, None without parts."""
    if bound.sees_host:
        return ALIGNMENT
    return None if bound.memory == HOST else DeviceLimits.of(bound.device.attributes).part_alignment


def _checked_part(shows: Any, output: int, bound: KernelCall) -> tuple[int, int]:
    try:
        source, start = shows[output]
    except (KeyError, TypeError, ValueError, IndexError):
        raise _fault(bound, f"it has no (input, element) for result {output}") from None
    if type(source) is not int or type(start) is not int or not 0 <= source < len(bound.call.args) or start < 0:
        raise _fault(bound, f"it has {(source, start)!r} for result {output}")
    return source, start


def _fault(bound: KernelCall, what: str) -> PluginError:
    pack, op = bound.kernel.pack, bound.kernel.op
    return PluginError(f"'shows' of {pack}'s kernel for {op} is wrong: {what}", node=bound.call.node, op=op,
                       hint=kernel_remedy(pack, op, is_fusion=bound.kernel.is_fusion))
