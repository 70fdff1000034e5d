"""Part views: a kernel that copies parts of an input is left out where its results may show the input instead.

A bound kernel offers that by its attribute `shows`. Its copy is kept in two cases: a result leaves the order of calls
(the user, a host kernel, a kernel that retains it), or a part does not begin at a multiple of ALIGNMENT bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ...errors import PluginError
from ..contract.allocator import ALIGNMENT
from ..executor.calls.bound_call import BoundCall
from ..executor.calls.kernel_call import KernelCall
from ..executor.calls.part_view_call import PartViewCall
from ..support.remedy import kernel_remedy
from ..values.tensor import TensorMetadata


def show_parts(
    bound_calls: Sequence[BoundCall], metas: Sequence[TensorMetadata], results: Collection[int]
) -> list[BoundCall]:
    """Return the calls, with views in the place of kernels that offer them. `results`: those of the function."""
    if not any(isinstance(bound, KernelCall) and hasattr(bound.bound, "shows") for bound in bound_calls):
        return [*bound_calls]
    leaving = {*results}
    calls: list[BoundCall] = []
    for bound in reversed(bound_calls):
        call = bound.call
        offers = isinstance(bound, KernelCall) and bound.sees_host and not bound.stateful
        view = _part_view(bound, metas) if offers and leaving.isdisjoint(call.results) else None  # type: ignore[arg-type]
        calls.append(bound if view is None else view)
        leaving.update(call.args[i] for output, i in bound.alias.items() if call.results[output] in leaving)
        leaving.update(call.args[i] for i in bound.retained)
        if bound.kernel is None or bound.is_host_kernel or bound.reads_after_return:
            leaving.update(call.args)
    return calls[::-1]


def _part_view(bound: KernelCall, metas: Sequence[TensorMetadata]) -> PartViewCall | None:
    """Return the view in the place of this call, or None where its kernel offers none that is aligned."""
    shows: Mapping[int, tuple[int, int]] | None = getattr(bound.bound, "shows", None)
    if shows is None:
        return None
    call = bound.call
    starts = []
    for output, register in enumerate(call.results):
        source, start = _checked_part(shows, output, bound)
        whole, part = metas[call.args[source]], metas[register]
        if not (whole.is_static and part.is_static and whole.dtype is part.dtype and whole.dtype.itemsize):
            return None
        if start + part.size > whole.size:
            raise _fault(bound, f"result {output} of {part} begins at element {start} of {whole}")
        if start * part.dtype.itemsize % ALIGNMENT:
            return None
        starts.append(start)
    alias = {output: source for output, (source, _) in shows.items()}
    return PartViewCall(call, bound.device, bound.memory, bound.kernel, tuple(starts), alias=alias)


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
