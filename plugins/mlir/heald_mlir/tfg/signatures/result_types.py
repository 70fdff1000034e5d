"""Types of the results of nodes, from the declaration of the op and the attributes of the node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from heald.api import ShapeAttr, errors, wire
from heald.graphs.graph import attr_bytes
from heald.runtime.contract import REQUIRED
from heald.runtime.values import Buffer

from ..values.element_types import OPAQUE, TEXTS
from .signature import Argument, Signature

REGISTERED = frozenset((*(f"{kind}{op}" for op in ("If", "Case", "While") for kind in ("", "Stateless", "Stateful")),
                        "For"))  # ops that TensorFlow's dialect declares: their results have a name of their own
_MAX_RESULTS = 1 << 16
_INT, _TYPE, _LIST, _TYPES = 3, 6, 1, 6  # fields of AttrValue and of its ListValue


class Result(NamedTuple):
    """A group of results: an output argument of the op, and the text of the type of each of its tensors."""

    argument: str
    types: tuple[str, ...]


class Declarations:
    """The ops of a graph: the registry's ops, and the functions of its library."""

    def __init__(self, ops: Any, signatures: Callable[[str], Signature | None]) -> None:
        """`signatures`: the signature of a function by its name."""
        self._ops = ops
        self._signatures = signatures
        self._known: dict[str, Declaration | None] = {}

    def get(self, op: str) -> Declaration | None:
        """The declaration of an op; None for an unknown one."""
        if op not in self._known:
            self._known[op] = self._find(op)
        return self._known[op]

    def _find(self, op: str) -> Declaration | None:
        if op in self._ops:
            try:
                op_def = self._ops.get(op)
            except errors.HealdError:
                return None
            defaults = {name: encoded for name, attr in op_def.attrs.items() if (encoded := _default(attr)) is not None}
            return Declaration(tuple(op_def.outputs), defaults)
        signature = self._signatures(op)
        if signature is None:
            return None
        defaults = {name: attr_def.default for name, attr_def in signature.attr_defs.items()
                    if attr_def.default is not None}
        return Declaration(signature.outputs, defaults)


def _default(attr: Any) -> bytes | None:
    """The AttrValue of a declared attribute's default; None where it has none."""
    value = attr.default
    if value is REQUIRED:
        return None
    if attr.type == "shape" and value is not None:
        value = ShapeAttr(value)
    if attr.type.startswith("list("):
        return attr_bytes(tuple(value))
    return attr_bytes(value)


class Declaration(NamedTuple):
    """Output arguments of an op, and the AttrValue of each attribute's default."""

    outputs: tuple[Any, ...]
    defaults: Mapping[str, bytes]

    def results(self, values: Mapping[str, Buffer]) -> tuple[Result, ...]:
        """The results of a node with these attributes."""
        return tuple(Result(argument.name, self._types(argument, values)) for argument in self.outputs)

    def _types(self, argument: Any, values: Mapping[str, Buffer]) -> tuple[str, ...]:
        if argument.type_list_attr:
            return tuple(map(tensor_type, type_numbers(self.value(argument.type_list_attr, values))))
        if argument.type_attr:
            number = type_number(self.value(argument.type_attr, values))
        elif isinstance(argument, Argument):
            number = argument.type
        else:
            number = argument.dtype.number if argument.dtype is not None else 0
        count = 1
        if argument.number_attr:
            count = max(0, min(_MAX_RESULTS, integer(self.value(argument.number_attr, values))))
        return (tensor_type(number),) * count

    def value(self, name: str, values: Mapping[str, Buffer]) -> Buffer:
        """The AttrValue of an attribute, or of its default."""
        value = values.get(name)
        return self.defaults.get(name, b"") if value is None else value

    def missing(self, values: Mapping[str, Buffer]) -> dict[str, bytes]:
        """The default values of attributes that a node lacks."""
        return {name: value for name, value in self.defaults.items() if name not in values}

    def flat_index(self, argument: str, index: int, values: Mapping[str, Buffer]) -> int | None:
        """The index among all results of tensor `index` of an output argument; None if there is none."""
        start = 0
        for result in self.results(values):
            if result.argument == argument:
                return start + index if index < len(result.types) else None
            start += len(result.types)
        return None


def tensor_type(number: int) -> str:
    return _TENSORS.get(number, OPAQUE)


_TENSORS = {number: f"tensor<*x{text}>" for number, text in TEXTS.items()}


def type_number(value: Buffer) -> int:
    """The type in an AttrValue; 0 where it has none."""
    return next((wire.integer(value, at, end) for number, kind, at, end in wire.fields(value, 0, len(value))
                 if number == _TYPE and kind == wire.VARINT), 0)


def integer(value: Buffer) -> int:
    """The integer in an AttrValue; 0 where it has none."""
    return next((wire.integer(value, at, end) for number, kind, at, end in wire.fields(value, 0, len(value))
                 if number == _INT and kind == wire.VARINT), 0)


def type_numbers(value: Buffer) -> list[int]:
    """The types of a list in an AttrValue."""
    return [type_number for number, kind, at, end in wire.fields(value, 0, len(value))
            if number == _LIST and kind == wire.BYTES
            for inner, how, first, last in wire.fields(value, at, end) if inner == _TYPES
            for type_number in wire.integers(value, how, first, last, "types")]
