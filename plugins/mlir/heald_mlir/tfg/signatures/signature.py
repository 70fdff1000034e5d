"""The signature of a function, between a FunctionDef and text: all of it but the nodes of the body."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from heald.api import wire
from heald.graphs.graph import parse_input
from heald.runtime.values import Buffer

from ..values.attribute_forms import NoForm, entry_of, full_type_form
from ..values.node_section import safe_form
from ..values.tensor_forms import shape_bytes, shape_of

SIGNATURE, NODE, RET, ATTR, CONTROL_RET, ARG_ATTR, UNIQUE_ID = 1, 3, 4, 5, 6, 7, 8  # fields of FunctionDef
HEAD, TAIL, FUNCTION = "_heald.head", "_heald.tail", "_heald.function"  # attributes of the text of a function
_NAME, _INPUT, _OUTPUT, _ATTR, _DESCRIPTION, _STATEFUL, _CONTROL = 1, 2, 3, 4, 6, 17, 20  # fields of OpDef
Values = dict[str, bytes]  # AttrValues in TensorFlow's encoding, by name
HandleData = tuple[int, tuple[int, ...] | None]  # number of a DataType, shape


@dataclass(frozen=True)
class Argument:
    """An argument or a result. `type` is the number of a DataType, 0 where attributes give it."""

    name: str = ""
    description: str = ""
    type: int = 0
    type_attr: str = ""
    number_attr: str = ""
    type_list_attr: str = ""
    handle_data: tuple[HandleData, ...] = ()
    is_ref: bool = False
    full_type: bytes = b""
    attrs: Values = field(default_factory=dict)


@dataclass(frozen=True)
class AttrDef:
    """The declaration of an attribute: its type, and AttrValues."""

    type: str = ""
    default: bytes | None = None
    description: str = ""
    minimum: int | None = None
    allowed: bytes | None = None


@dataclass(frozen=True)
class Signature:
    """A function without its nodes. `ret` and `control_ret` have the tensor or node of each result."""

    name: str
    inputs: tuple[Argument, ...] = ()
    outputs: tuple[Argument, ...] = ()
    attr_defs: Mapping[str, AttrDef] = field(default_factory=dict)
    description: str = ""
    is_stateful: bool = False
    control_outputs: tuple[str, ...] = ()
    ret: Mapping[str, str] = field(default_factory=dict)
    control_ret: Mapping[str, str] = field(default_factory=dict)
    attrs: Values = field(default_factory=dict)
    unique_ids: Mapping[int, int] = field(default_factory=dict)

    def is_generic(self) -> bool:
        """True when an attribute of a call gives the type of an argument or the number of its tensors."""
        return any(argument.type_attr or argument.number_attr or argument.type_list_attr
                   for argument in (*self.inputs, *self.outputs))

    def printed_signature(self, generic: bool) -> Signature:
        """The signature as its text has it.

        A concrete function shows no declarations of attributes, a generic one no attribute of an argument without a
        name.
        """
        if not generic:
            return replace(self, attr_defs={})
        inputs = [replace(argument, attrs={name: value for name, value in argument.attrs.items() if name})
                  for argument in self.inputs]
        return replace(self, inputs=tuple(inputs))


def _fields(raw: Buffer) -> Iterator[tuple[int, Buffer, int]]:
    """Number, bytes and integer of each field; the integer of a varint."""
    for number, kind, at, end in wire.fields(raw, 0, len(raw)):
        yield number, raw[at:end], wire.integer(raw, at, end) if kind == wire.VARINT else 0


def _text(raw: Buffer) -> str:
    return wire.text(raw, 0, len(raw))


def read_signature(raw: Buffer) -> Signature:
    """The signature of a FunctionDef, in which values have TensorFlow's encoding. Raises DataLoss."""
    op_def = Signature("")
    ret: dict[str, str] = {}
    control_ret: dict[str, str] = {}
    attrs: Values = {}
    ids: dict[int, int] = {}
    argument_attrs: dict[int, Values] = {}
    for number, value, _ in _fields(raw):
        if number == SIGNATURE:
            op_def = read_op_def(value)
        elif number in (RET, CONTROL_RET):
            pair = {n: _text(part) for n, part, _ in _fields(value)}
            (ret if number == RET else control_ret)[pair.get(1, "")] = pair.get(2, "")
        elif number == ATTR:
            attrs |= _read_entry(value)
        elif number in (ARG_ATTR, UNIQUE_ID):
            key, count = 0, 0
            data: Buffer = b""
            for inner, part, integer in _fields(value):
                key, data, count = (integer, data, count) if inner == 1 else (key, part, integer)
            if number == UNIQUE_ID:
                ids[key] = count
            else:
                argument_attrs[key] = {}
                for _, entry, _ in _fields(data):
                    argument_attrs[key] |= _read_entry(entry)
    inputs = tuple(replace(argument, attrs=argument_attrs.get(index, {}))
                   for index, argument in enumerate(op_def.inputs))
    returned_tensors = {output.name: _tensor_text(ret[output.name]) for output in op_def.outputs if output.name in ret}
    controls = {name: control_ret[name] for name in op_def.control_outputs if name in control_ret}
    return replace(op_def, inputs=inputs, ret=returned_tensors, control_ret=controls, attrs=attrs, unique_ids=ids)


def _tensor_text(source: str) -> str:
    """A tensor's name as the text of a graph spells it."""
    return str(parse_input(source))


def _read_entry(raw: Buffer) -> Values:
    try:
        key, value = entry_of(raw)
    except NoForm:
        return {wire.map_key(raw, 0, len(raw)): b""}
    return {key: b"".join(safe_form(value).raw)}


def read_op_def(raw: Buffer) -> Signature:
    """The signature in an OpDef: names, arguments, results and declarations. Raises DataLoss."""
    name = description = ""
    inputs: list[Argument] = []
    outputs: list[Argument] = []
    controls: list[str] = []
    defs: dict[str, AttrDef] = {}
    stateful = False
    for number, value, integer in _fields(raw):
        if number == _NAME:
            name = _text(value)
        elif number in (_INPUT, _OUTPUT):
            (inputs if number == _INPUT else outputs).append(_read_argument(value))
        elif number == _ATTR:
            defs |= _read_attr_def(value)
        elif number == _DESCRIPTION:
            description = _text(value)
        elif number == _STATEFUL:
            stateful = integer != 0
        elif number == _CONTROL:
            controls.append(_text(value))
    return Signature(name, tuple(inputs), tuple(outputs), defs, description, stateful, tuple(controls))


_ARGUMENT_TEXTS = {1: "name", 2: "description", 4: "type_attr", 5: "number_attr", 6: "type_list_attr"}
_ARGUMENT_TYPE, _HANDLE_DATA, _IS_REF, _FULL_TYPE = 3, 7, 16, 17


def _read_argument(raw: Buffer) -> Argument:
    fields: dict[str, object] = {}
    handles: list[HandleData] = []
    for number, value, integer in _fields(raw):
        if number in _ARGUMENT_TEXTS:
            fields[_ARGUMENT_TEXTS[number]] = _text(value)
        elif number == _ARGUMENT_TYPE:
            fields["type"] = integer
        elif number == _HANDLE_DATA:
            handles.append(_read_handle(value))
        elif number == _IS_REF:
            fields["is_ref"] = integer != 0
        elif number == _FULL_TYPE:
            fields["full_type"] = _full_type(value)
    return Argument(**fields, handle_data=tuple(handles))  # type: ignore[arg-type]


def _full_type(raw: Buffer) -> bytes:
    """A full type as its text has it; nothing for one without text."""
    try:
        return full_type_form(raw)[1]
    except NoForm:
        return b""


def _read_handle(raw: Buffer) -> HandleData:
    dtype = 0
    shape: Buffer = b""
    for number, value, integer in _fields(raw):
        dtype, shape = (integer, shape) if number == 1 else (dtype, value)
    unknown = any(number == 3 and integer for number, _, integer in _fields(shape))
    return dtype, None if unknown else shape_of(shape, 0, len(shape))


def _read_attr_def(raw: Buffer) -> dict[str, AttrDef]:
    name, attr_def = "", AttrDef()
    has_minimum, minimum = False, 0
    for number, value, integer in _fields(raw):
        if number == 1:
            name = _text(value)
        elif number == 2:
            attr_def = replace(attr_def, type=_text(value))
        elif number == 3:
            attr_def = replace(attr_def, default=b"".join(safe_form(value).raw))
        elif number == 4:
            attr_def = replace(attr_def, description=_text(value))
        elif number == 5:
            has_minimum = integer != 0
        elif number == 6:
            minimum = (integer + 2**31) % 2**32 - 2**31  # TensorFlow's text has 32 bits of it
        elif number == 7:
            attr_def = replace(attr_def, allowed=b"".join(safe_form(value).raw))
    return {name: replace(attr_def, minimum=minimum) if has_minimum else attr_def}


# Back to bytes


def head(signature: Signature) -> bytes:
    """The fields of the FunctionDef before its nodes, as TensorFlow writes them."""
    parts = [_text_field(_NAME, signature.name)]
    parts += [wire.put_bytes(_INPUT, _argument(argument)) for argument in signature.inputs]
    parts += [wire.put_bytes(_OUTPUT, _argument(output)) for output in signature.outputs]
    attr_defs = sorted(signature.attr_defs.items())
    parts += [wire.put_bytes(_ATTR, _attr_def(name, attr_def)) for name, attr_def in attr_defs]
    parts.append(_text_field(_DESCRIPTION, signature.description))
    parts.append(wire.put_integer(_STATEFUL, 1) if signature.is_stateful else b"")
    parts += [wire.put_bytes(_CONTROL, name) for name in signature.control_outputs]
    return wire.put_bytes(SIGNATURE, b"".join(parts))


def tail(signature: Signature) -> bytes:
    """The fields of the FunctionDef behind its nodes, as TensorFlow writes them."""
    parts = [wire.put_bytes(RET, _pair(*pair)) for pair in sorted(signature.ret.items())]
    parts += [wire.put_bytes(ATTR, _entry(*pair)) for pair in sorted(signature.attrs.items())]
    parts += [wire.put_bytes(CONTROL_RET, _pair(*pair)) for pair in sorted(signature.control_ret.items())]
    for index, argument in enumerate(signature.inputs):
        if argument.attrs:
            entries = b"".join([wire.put_bytes(1, _entry(*pair)) for pair in sorted(argument.attrs.items())])
            parts.append(wire.put_bytes(ARG_ATTR, wire.put_integer(1, index) + wire.put_bytes(2, entries)))
    parts += [wire.put_bytes(UNIQUE_ID, wire.put_integer(1, key) + wire.put_integer(2, value))
              for key, value in sorted(signature.unique_ids.items())]
    return b"".join(parts)


def _text_field(number: int, text: str) -> bytes:
    return wire.put_bytes(number, text) if text else b""


def _pair(key: str, value: str) -> bytes:
    return wire.put_bytes(1, key) + wire.put_bytes(2, value)


def _entry(key: str, value: bytes) -> bytes:
    return wire.put_bytes(1, key) + wire.put_bytes(2, value)


def _argument(argument: Argument) -> bytes:
    parts: Iterable[bytes] = (
        _text_field(1, argument.name), _text_field(2, argument.description),
        wire.put_integer(_ARGUMENT_TYPE, argument.type) if argument.type else b"",
        _text_field(4, argument.type_attr), _text_field(5, argument.number_attr),
        _text_field(6, argument.type_list_attr),
        *(wire.put_bytes(_HANDLE_DATA, _handle(*handle)) for handle in argument.handle_data),
        wire.put_integer(_IS_REF, 1) if argument.is_ref else b"",
        wire.put_bytes(_FULL_TYPE, argument.full_type) if argument.full_type else b"",
    )
    return b"".join(parts)


def _handle(dtype: int, shape: tuple[int, ...] | None) -> bytes:
    encoded = wire.put_integer(3, 1) if shape is None else shape_bytes(shape)
    return wire.put_integer(1, dtype) + wire.put_bytes(2, encoded)


def _attr_def(name: str, attr_def: AttrDef) -> bytes:
    parts = [_text_field(1, name), _text_field(2, attr_def.type)]
    if attr_def.default is not None:
        parts.append(wire.put_bytes(3, attr_def.default))
    parts.append(_text_field(4, attr_def.description))
    if attr_def.minimum is not None:
        parts.append(wire.put_integer(5, 1) + (wire.put_integer(6, attr_def.minimum) if attr_def.minimum else b""))
    if attr_def.allowed is not None:
        parts.append(wire.put_bytes(7, attr_def.allowed))
    return b"".join(parts)
