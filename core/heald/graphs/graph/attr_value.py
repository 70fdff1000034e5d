"""Attributes: AttrValue in a file, plain Python values in a graph.

    s -> bytes    i -> int    f -> float    b -> bool    type -> DType (of a reference type: its value type)
    tensor -> TensorValue    func -> Func    placeholder -> AttrPlaceholder    list -> tuple
    shape -> Shape: a ShapeAttr, or None where the rank is unknown    no value set -> UNSET

Values are immutable, so nodes share them. Writing takes every value that reading returns, and also text, lists, arrays,
NumPy's scalars and dtypes. A plain tuple among the items of a list is a shape, and so is a list of numbers and None.

A node does not know its op's declaration: a plain tuple of sizes is written as a list, the name of a type as text.
heald reads both as the declaration says (`compiler/attribute_forms.py`). Other readers need a ShapeAttr and a DType.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any

from ...errors import HealdError, InvalidArgument
from ...runtime.support.records import NamedTuple
from ...runtime.values import dtypes, wire
from ...runtime.values.attribute_values import Func, ShapeAttr, as_shape
from ...runtime.values.dtypes import DType
from ...runtime.values.tensor import Shape
from ...runtime.values.tensor_proto import LEAST_SIZE, TensorValue, put_shape, read_shape
from ...runtime.values.wire import Buffer

_MEMO_BYTES = 128  # longer entries are seldom equal to another


class Unset(Enum):
    """The value of an attribute that has only a name."""

    UNSET = 0


UNSET = Unset.UNSET


@dataclass(frozen=True, slots=True)
class AttrPlaceholder:
    """Stands for the attribute `name` of the function that contains the node."""

    name: str


class AttrSource:
    """The bytes that messages are read from, and the values read so far: equal bytes return the same value object."""

    __slots__ = ("attributes", "entries", "shapes", "view")

    def __init__(self, view: memoryview) -> None:
        self.view = view
        self.attributes: dict[bytes, Mapping[str, Any]] = {}  # by the bytes of all attributes of a node
        self.entries: dict[bytes, tuple[str, Any]] = {}
        self.shapes: dict[bytes, Shape] = {}


def read_entry(source: AttrSource, start: int, stop: int, depth: int) -> tuple[str, Any]:
    """Name and value of the map entry at [start, stop), `depth` messages deep.

    Raises DataLoss for malformed bytes, InvalidArgument for a value that no attribute can have. Both name the
    attribute.
    """
    key = bytes(source.view[start:stop]) if stop - start <= _MEMO_BYTES else b""
    entry = source.entries.get(key)
    if entry is None:
        entry = _read_entry(source, start, stop, depth)
        if key:
            source.entries[key] = entry
    return entry


def _read_entry(source: AttrSource, start: int, stop: int, depth: int) -> tuple[str, Any]:
    buf, name = source.view, ""
    values = []
    for number, kind, at, end in wire.fields(buf, start, stop):
        if number <= 2:
            wire.expect(kind, wire.BYTES, at, "an attribute's name or value")
        if number == 1:
            name = wire.text(buf, at, end)
        elif number == 2:
            values.append((at, end))
    try:
        if len(values) == 1:
            value = _read(source, *values[0], depth + 1)
        else:
            merged = AttrSource(memoryview(b"".join(buf[at:end] for at, end in values)))
            value = _read(merged, 0, len(merged.view), depth + 1)
        if not name.startswith("_"):
            _check_sizes(value)
        return name, value
    except HealdError as error:
        raise type(error)(f"attribute '{name}': {error.message}", node=error.node, op=error.op) from None


def _check_sizes(value: Any) -> None:
    """Raises InvalidArgument for a shape, or a list of them, with a size below -1.

    Names with an underscore are notes that no kernel sees: `_output_shapes` may have such sizes, as in TensorFlow.
    """
    if not isinstance(value, tuple) or not value:
        return
    shapes = (value,) if isinstance(value, ShapeAttr) else value if isinstance(value[0], ShapeAttr | None) else ()
    size = next((dim for shape in shapes for dim in shape or () if dim is not None and dim < 0), None)
    if size is not None:
        raise InvalidArgument(f"{size} is not the size of a dimension")


def read_value(raw: Buffer) -> Any:
    """The Python value of an AttrValue. Raises DataLoss, InvalidArgument."""
    value = _read(AttrSource(memoryview(raw)), 0, len(raw), 0)
    _check_sizes(value)
    return value


def _read(source: AttrSource, start: int, stop: int, depth: int) -> Any:
    wire.check_nesting(depth, start)
    last = 0
    parts: list[tuple[int, int]] = []
    for number, kind, at, end in wire.fields(source.view, start, stop):
        if number in _KINDS:
            wire.expect(kind, _KINDS[number].wire, at, f"a value of kind {_KINDS[number].name}")
            # the last field of a oneof counts, but messages of one number are merged
            parts = [*parts, (at, end)] if number == last and number in _MESSAGES else [(at, end)]
            last = number
    if not last:
        return UNSET
    if len(parts) > 1:
        source = AttrSource(memoryview(b"".join(source.view[at:end] for at, end in parts)))
        parts = [(0, len(source.view))]
    return _KINDS[last].read(source, *parts[0], depth)


def _read_list(source: AttrSource, start: int, stop: int, depth: int) -> tuple[Any, ...]:
    wire.check_nesting(depth + 1, start)
    items: list[Any] = []
    numbers = set()
    for number, kind, at, end in wire.fields(source.view, start, stop):
        if number not in _ITEMS:
            continue
        numbers.add(number)
        what = f"an item of kind {_ITEMS[number].name}"
        if number == _FLOAT:
            items += wire.floats(source.view, kind, at, end, what)
        elif number in _NUMBERS:
            items += map(_NUMBERS[number], wire.integers(source.view, kind, at, end, what))
        else:
            wire.expect(kind, wire.BYTES, at, what)
            items.append(_ITEMS[number].read(source, at, end, depth + 1))
    if len(numbers) > 1:
        kinds = " and of ".join(_ITEMS[n].name for n in sorted(numbers))
        raise InvalidArgument(f"a list has items of {kinds} (byte {start})")
    return tuple(items)


def _read_func(source: AttrSource, start: int, stop: int, depth: int) -> Func:
    wire.check_nesting(depth + 1, start)
    name, attrs = "", {}
    for number, kind, at, end in wire.fields(source.view, start, stop):
        if number <= 2:
            wire.expect(kind, wire.BYTES, at, "a function's name or attribute")
        if number == 1:
            name = wire.text(source.view, at, end)
        elif number == 2:
            # not through the memo, which does not know the depth of an entry
            key, attrs[key] = _read_entry(source, at, end, depth + 2)
    return Func(name, MappingProxyType(attrs))


def _read_shape(source: AttrSource, start: int, stop: int, _: int) -> Shape:
    shape = read_shape(source.view, start, stop, smallest=LEAST_SIZE)
    return None if shape is None else ShapeAttr(shape)


class _Kind(NamedTuple):
    wire: int
    name: str
    read: Callable[[AttrSource, int, int, int], Any]


_KINDS = {  # by field of AttrValue
    1: _Kind(wire.BYTES, "list", _read_list),
    2: _Kind(wire.BYTES, "string", lambda s, at, end, _: bytes(s.view[at:end])),
    3: _Kind(wire.VARINT, "int", lambda s, at, end, _: wire.integer(s.view, at, end)),
    4: _Kind(wire.FIXED32, "float", lambda s, at, _, __: wire.float32(s.view, at)),
    5: _Kind(wire.VARINT, "bool", lambda s, at, end, _: wire.integer(s.view, at, end) != 0),
    6: _Kind(wire.VARINT, "type", lambda s, at, end, _: dtypes.numbered(wire.integer(s.view, at, end))),
    7: _Kind(wire.BYTES, "shape", _read_shape),
    8: _Kind(wire.BYTES, "tensor", lambda s, at, end, _: TensorValue.read(s.view, at, end, s.shapes)),
    9: _Kind(wire.BYTES, "placeholder", lambda s, at, end, _: AttrPlaceholder(wire.text(s.view, at, end))),
    10: _Kind(wire.BYTES, "func", _read_func),
}
_MESSAGES = frozenset((1, 7, 8, 10))
_FLOAT = 4
_ITEMS = {n: _KINDS[n] for n in range(2, 9)} | {9: _KINDS[10]}  # by field of AttrValue.ListValue
_NUMBERS: dict[int, Callable[[int], Any]] = {3: int, 5: bool, 6: dtypes.numbered}


def canonical(value: Any, depth: int = 0) -> Any:
    """`value` as reading returns it. Raises InvalidArgument for a value that no attribute can hold."""
    if depth > wire.NESTING:
        raise InvalidArgument(f"nesting: an attribute is more than {wire.NESTING} messages deep")
    if value is None or isinstance(value, _FINAL):
        return value
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise InvalidArgument(f"{value} does not fit into 64 bits")
        return int(value)
    if isinstance(value, float):
        return wire.as_float32(value)
    if isinstance(value, str):
        return wire.utf8(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if isinstance(value, Func):
        attrs = {k: canonical(v, depth + 3) for k, v in value.attrs.items()}
        return Func(value.name, MappingProxyType(attrs))
    if isinstance(value, list | tuple):
        is_shape = {type(dim) for dim in value} == {int, type(None)}
        return as_shape(value) if is_shape else _canonical_list(value, depth + 1)
    if isinstance(value, type) or hasattr(value, "newbyteorder"):  # NumPy's scalar types and dtypes
        return dtypes.from_numpy(value)
    if hasattr(value, "__array__"):
        return _canonical_array(value)
    raise InvalidArgument(f"a value of type {type(value).__name__} cannot be an attribute: {value!r:.80}")


_FINAL = (bool, DType, ShapeAttr, TensorValue, AttrPlaceholder, Unset)


def _canonical_array(value: Any) -> Any:
    import numpy as np

    return canonical(value.item()) if isinstance(value, np.generic) else TensorValue(np.asarray(value))


def _canonical_list(values: Sequence[Any], depth: int) -> tuple[Any, ...]:
    items: list[Any] = [as_shape(v) if isinstance(v, list | tuple) else canonical(v, depth) for v in values]
    types = {type(item) for item in items}
    if types == {int, float}:
        return tuple(wire.as_float32(item) for item in items)
    if types == {bytes, DType}:
        return tuple(dtypes.named(item.decode("utf-8", "replace")) if type(item) is bytes else item for item in items)
    numbers = {_WRITERS[t].item if t in _WRITERS else 0 for t in types}
    if len(numbers) > 1 or 0 in numbers:
        kinds = " and of ".join(sorted(t.__name__ for t in types))
        raise InvalidArgument(f"a list of {kinds} cannot be an attribute")
    return tuple(items)


def put_entry(name: str, value: Any) -> bytes:
    """The map entry of an attribute with a canonical value, as bytes."""
    return wire.put_bytes(1, name) + wire.put_bytes(2, put_value(value))


def attr_bytes(value: Any) -> bytes:
    """The AttrValue of any value that an attribute can hold, as bytes. Raises InvalidArgument for another value."""
    return put_value(canonical(value))


def put_value(value: Any) -> bytes:
    """The AttrValue of a canonical value, as bytes."""
    if value is UNSET:
        return b""
    if isinstance(value, tuple) and not isinstance(value, ShapeAttr):
        return wire.put_bytes(1, _put_list(value))
    writer = _WRITERS[type(value)]
    return writer.write(writer.number, value)


def _put_list(items: tuple[Any, ...]) -> bytes:
    if not items:
        return b""
    writer = _WRITERS[type(items[0])]
    if writer.pack is not None:
        return wire.put_bytes(writer.item, b"".join(map(writer.pack, items)))
    return b"".join(writer.write(writer.item, item) for item in items)


def _put_func(number: int, func: Func) -> bytes:
    attrs = b"".join(wire.put_bytes(2, put_entry(k, v)) for k, v in func.attrs.items())
    return wire.put_bytes(number, wire.put_bytes(1, func.name) + attrs)


def _put_shape(number: int, shape: Shape) -> bytes:
    return wire.put_bytes(number, put_shape(shape))


class _Writer(NamedTuple):
    number: int  # field of AttrValue
    item: int  # field of AttrValue.ListValue; 0: none
    write: Callable[[int, Any], bytes]
    pack: Callable[[Any], bytes] | None = None


_WRITERS: dict[type, _Writer] = {
    bytes: _Writer(2, 2, wire.put_bytes),
    int: _Writer(3, 3, wire.put_integer, wire.put_varint),
    float: _Writer(4, 4, wire.put_float, wire.pack_float),
    bool: _Writer(5, 5, wire.put_integer, wire.put_varint),
    DType: _Writer(6, 6, lambda n, v: wire.put_integer(n, v.number), lambda v: wire.put_varint(v.number)),
    ShapeAttr: _Writer(7, 7, _put_shape),
    type(None): _Writer(7, 7, _put_shape),
    TensorValue: _Writer(8, 8, lambda n, v: wire.put_bytes(n, v.raw)),
    AttrPlaceholder: _Writer(9, 0, lambda n, v: wire.put_bytes(n, v.name)),
    Func: _Writer(10, 9, _put_func),
}
