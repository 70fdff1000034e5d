"""RegisterTable: the registers of a linked function, as far as all of its frames share them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import InvalidArgument
from ..contract.device import Device
from ..program.host_program import HOST, ProgramFunction
from ..support.records import record
from ..values.tensor import TensorMetadata
from .call_order import OrderedCalls
from .calls.bound_call import BoundCall
from .host_array import check_payload


@record
class RegisterTable:
    """The registers of a function, by number.

    `metas`: the linked metadata of each register.
    `presets`: the payloads of constants.
    `arguments`, `results`: the registers of the function's arguments and results.
    `opaque`: the registers whose values are no tensors.
    `root`: for each register the register whose buffer it shows, itself unless it is an alias.
    `parts`: the registers that show a part of their root.
    `producer`: the call that fills a register.
    `device_of`: the device in whose memory a register is; none for host memory.
    """

    metas: Sequence[TensorMetadata]
    presets: Mapping[int, Any]
    arguments: range
    results: Sequence[int]
    opaque: frozenset[int]
    root: Sequence[int]
    parts: frozenset[int]
    producer: Mapping[int, BoundCall]
    device_of: Mapping[int, Device]

    def has_size(self, register: int) -> bool:
        return self.metas[register].is_static and self.metas[register].dtype.itemsize > 0

    def check_payload(self, register: int, value: Any) -> Any:
        """Convert the payload of an asynchronous kernel's result to the form that the register holds."""
        if register in self.opaque:
            return value
        producer = self.producer.get(register)
        if producer is None:
            return check_payload(value, self.metas[register], "an argument")
        return producer.check_payload(value, self.metas[register])

    def check_arguments(self, function: ProgramFunction, arguments: Sequence[Any]) -> list[Any]:
        """Return the arguments of a call in the form that registers hold.

        Raises InvalidArgument for another number of them, and for tensors of other types and shapes.
        """
        if len(arguments) != len(function.arg_names):
            raise InvalidArgument(f"function '{function.name}' takes {len(function.arg_names)} arguments, "
                                  f"{len(arguments)} are given", location=function.location)
        caller = f"a call of function '{function.name}'"
        return [value if i in self.opaque else check_payload(value, self.metas[i], caller)
                for i, value in enumerate(arguments)]


def register_table(
    function: ProgramFunction, metas: Sequence[TensorMetadata], presets: Mapping[int, Any], order: OrderedCalls
) -> RegisterTable:
    """Return the registers of a function with these calls.

    Raises InvalidArgument when a result is not as large as the argument that it shows, or is a copy of.
    """
    for bound in order.calls:
        _check_same_size(bound, metas)
    producer = {r: bound for bound in order.calls for r in bound.returned_registers}
    return RegisterTable(
        metas, presets, range(len(function.arg_names)), function.results,
        frozenset(r for r, kind in enumerate(function.register_types) if isinstance(kind, str)),
        _roots(order.calls, len(metas)), _parts(order.calls), producer,
        {r: bound.device for r, bound in producer.items() if bound.memory != HOST and bound.device is not None})


def _check_same_size(bound: BoundCall, metas: Sequence[TensorMetadata]) -> None:
    for output, argument in bound.same_size_pairs:
        result, source = metas[bound.call.results[output]], metas[bound.call.args[argument]]
        if result.is_static and source.is_static and _extent(result) != _extent(source):
            raise InvalidArgument(f"{bound.call.op or bound.call.code} shows {source} as {result}, which differs in "
                                  "size", node=bound.call.node or None, op=bound.call.op or None,
                                  hint="compile the file again from its model")


def _extent(meta: TensorMetadata) -> tuple[int, bool]:
    """The bytes of a value. Elements without a size in bytes are counted."""
    return (meta.nbytes, True) if meta.dtype.itemsize else (meta.size, False)


def _roots(calls: Sequence[BoundCall], count: int) -> list[int]:
    root = list(range(count))
    for bound in calls:
        for output, argument in bound.alias.items():
            root[bound.call.results[output]] = root[bound.call.args[argument]]
    return root


def _parts(calls: Sequence[BoundCall]) -> frozenset[int]:
    parts: set[int] = set()
    for bound in calls:
        for output, argument in bound.alias.items():
            if bound.shows_parts or bound.call.args[argument] in parts:
                parts.add(bound.call.results[output])
    return frozenset(parts)
