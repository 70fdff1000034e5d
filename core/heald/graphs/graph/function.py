"""Function: a graph with arguments that nodes call by name. Read from a FunctionDef or made; immutable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NoReturn

from ...errors import HealdError
from ...runtime.contract.op import ArgDef
from ...runtime.support.mapped_file import check_unchanged, lasting_bytes
from ...runtime.values import dtypes, wire
from ...runtime.values.wire import Buffer, Key
from .attr_value import AttrSource, put_entry, read_entry
from .node import LARGEST_KEPT_RAW_BYTES, Input, Node, by_name, canonical_attrs, check_members, parse_input, read_node

SIGNATURE, NODE, RET, ATTR, CONTROL_RET, ARG_ATTR = 1, 3, 4, 5, 6, 7  # fields of FunctionDef
_NAME, _INPUT_ARG, _OUTPUT_ARG, _STATEFUL, _CONTROL_OUTPUT = 1, 2, 3, 17, 20  # fields of OpDef


class Function:
    """A function. Immutable; equal only to itself.

    `name`: The name that nodes call.
    `inputs`, `outputs`: The ArgDefs of its arguments and results.
    `nodes`: The nodes of its body, by name.
    `ret`: By output name, the tensor that is the output: an Input, whose node may be an argument.
    `control_outputs`, `control_ret`: The names of its control outputs, and the node of each.
    `attrs`, `arg_attrs`: The function's attributes; the attributes of its arguments by argument index.
    `stateful`: True when a call may have effects.
    """

    __slots__ = (
        "_base", "_edited_raw", "_touched", "arg_attrs", "attrs", "control_outputs", "control_ret", "inputs", "name",
        "nodes", "outputs", "ret", "stateful",
    )

    name: str
    inputs: tuple[ArgDef, ...]
    outputs: tuple[ArgDef, ...]
    control_outputs: tuple[str, ...]
    stateful: bool
    nodes: Mapping[str, Node]
    ret: Mapping[str, Input]
    control_ret: Mapping[str, str]
    attrs: Mapping[str, Any]
    arg_attrs: Mapping[int, Mapping[str, Any]]
    _base: Buffer
    _touched: frozenset[Key]
    _edited_raw: Buffer  # as that of a Node

    def __init__(
        self, name: str, inputs: Iterable[ArgDef] = (), outputs: Iterable[ArgDef] = (),
        nodes: Iterable[Node] = (), ret: Mapping[str, str | Input] | None = None, *,
        control_ret: Mapping[str, str] | None = None, attrs: Mapping[str, Any] | None = None,
        stateful: bool = False,
    ) -> None:
        """Make a function. Raises InvalidArgument when two nodes have the same name, and for invalid attribute
        values."""
        control_ret = dict(control_ret or {})
        _fill(
            self, name=name, inputs=tuple(check_members(inputs, ArgDef)), outputs=tuple(check_members(outputs, ArgDef)),
            control_outputs=tuple(control_ret), stateful=stateful, nodes=by_name(nodes), ret=_parse_ret(ret or {}),
            control_ret=control_ret,
            attrs=canonical_attrs(attrs or {}, name, None), arg_attrs={}, _base=b"",
        )
        _set_touched(self, frozenset((*_ALL_FIELDS, *((ATTR, key) for key in self.attrs))))

    @property
    def raw(self) -> Buffer:
        """The function as a FunctionDef. A function that was read and never edited returns the bytes it was read from.

        Raises FailedPrecondition when these bytes are in a file that has changed.
        """
        check_unchanged((self._base,))
        if not self._touched:
            return self._base
        try:
            return self._edited_raw
        except AttributeError:
            raw = wire.splice(self._base, {key: self._field(*key) for key in self._touched}, maps=(ATTR,))
        if len(raw) <= LARGEST_KEPT_RAW_BYTES:
            _set_edited_raw(self, raw)
        return raw

    def replace(
        self, *, name: str | None = None, inputs: Iterable[ArgDef] | None = None,
        outputs: Iterable[ArgDef] | None = None, nodes: Iterable[Node] | None = None,
        ret: Mapping[str, str | Input] | None = None, control_ret: Mapping[str, str] | None = None,
        attrs: Mapping[str, Any] | None = None, stateful: bool | None = None,
    ) -> Function:
        """This function with other parts; the rest keeps its bytes. `attrs` are merged into its own, `nodes` replace
        all its nodes."""
        parts: dict[str, tuple[int, Any]] = {
            "name": (SIGNATURE, name),
            "inputs": (SIGNATURE, None if inputs is None else tuple(check_members(inputs, ArgDef))),
            "outputs": (SIGNATURE, None if outputs is None else tuple(check_members(outputs, ArgDef))),
            "control_outputs": (SIGNATURE, None if control_ret is None else tuple(control_ret)),
            "stateful": (SIGNATURE, stateful),
            "nodes": (NODE, None if nodes is None else by_name(nodes)),
            "ret": (RET, None if ret is None else _parse_ret(ret)),
            "control_ret": (CONTROL_RET, None if control_ret is None else dict(control_ret)),
        }
        values = {slot: getattr(self, slot) for slot in _SETTERS}
        values |= {slot: value for slot, (_, value) in parts.items() if value is not None}
        touched = {(number, "") for number, value in parts.values() if value is not None}
        if attrs:
            new = canonical_attrs(attrs, self.name, None)
            values["attrs"] = {**self.attrs, **new}
            touched |= {(ATTR, key) for key in new}
        function = Function.__new__(Function)
        _fill(function, **values)
        _set_touched(function, self._touched | touched)
        return function

    def _field(self, number: int, key: str) -> bytes:
        if number == ATTR:
            return wire.put_bytes(ATTR, put_entry(key, self.attrs[key]))
        if number == SIGNATURE:
            return wire.put_bytes(SIGNATURE, self._signature())
        if number == NODE:
            return b"".join(wire.put_bytes(NODE, node.raw) for node in self.nodes.values())
        pairs = self.control_ret if number == CONTROL_RET else {k: str(v) for k, v in self.ret.items()}
        entries = (wire.put_bytes(1, k) + wire.put_bytes(2, v) for k, v in pairs.items())
        return b"".join(wire.put_bytes(number, entry) for entry in entries)

    def _signature(self) -> bytes:
        base = b"".join(self._base[at:end] for n, _, at, end in _message_fields(self._base) if n == SIGNATURE)
        arg_bytes = {_read_arg(base, at, end): base[at:end] for n, _, at, end in _message_fields(base)
                     if n in (_INPUT_ARG, _OUTPUT_ARG)}

        def args_bytes(number: int, args: Iterable[ArgDef]) -> bytes:
            return b"".join(wire.put_bytes(number, arg_bytes.get(a) or _put_arg(a)) for a in args)

        new = {
            (_NAME, ""): wire.put_bytes(_NAME, self.name),
            (_INPUT_ARG, ""): args_bytes(_INPUT_ARG, self.inputs),
            (_OUTPUT_ARG, ""): args_bytes(_OUTPUT_ARG, self.outputs),
            (_STATEFUL, ""): wire.put_integer(_STATEFUL, 1) if self.stateful else b"",
            (_CONTROL_OUTPUT, ""): b"".join(wire.put_bytes(_CONTROL_OUTPUT, c) for c in self.control_outputs),
        }
        return wire.splice(base, new)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a Function is immutable: use function.replace({name}=...)")

    def __repr__(self) -> str:
        return f"<Function {self.name!r} of {len(self.nodes)} nodes>"


_ALL_FIELDS = ((SIGNATURE, ""), (NODE, ""), (RET, ""), (CONTROL_RET, ""))
_SETTERS = {slot: getattr(Function, slot).__set__ for slot in Function.__slots__}
_set_touched, _set_edited_raw = _SETTERS.pop("_touched"), _SETTERS.pop("_edited_raw")


def _fill(function: Function, **values: Any) -> None:
    for slot, value in values.items():
        _SETTERS[slot](function, MappingProxyType(value) if isinstance(value, dict) else value)


def _message_fields(buf: Buffer) -> Iterator[tuple[int, int, int, int]]:
    return wire.fields(buf, 0, len(buf))


def _parse_ret(ret: Mapping[str, str | Input]) -> dict[str, Input]:
    return {name: parse_input(value) if isinstance(value, str) else value for name, value in ret.items()}


_READ = (SIGNATURE, NODE, RET, ATTR, CONTROL_RET, ARG_ATTR)


def read_function(source: AttrSource, start: int, stop: int, depth: int = 0) -> Function:
    """The FunctionDef at [start, stop), `depth` messages deep.

    Raises DataLoss for malformed bytes, InvalidArgument for two nodes of the same name and for invalid nodes and
    attributes.
    """
    spans: dict[int, list[tuple[int, int]]] = {n: [] for n in _READ}
    for number, kind, at, end in wire.fields(source.view, start, stop):
        if number in spans:
            wire.expect(kind, wire.BYTES, at, "a field of a function")
            spans[number].append((at, end))
    signature = _read_signature(source.view, spans[SIGNATURE])
    try:
        function = Function.__new__(Function)
        pairs = [dict(_read_pair(source.view, *span) for span in spans[n]) for n in (RET, CONTROL_RET)]
        _fill(
            function, **signature, _base=lasting_bytes(source.view, start, stop),
            nodes=by_name(read_node(source, at, end, depth + 1) for at, end in spans[NODE]),
            ret=_parse_ret(pairs[0]), control_ret=pairs[1],
            attrs=dict(read_entry(source, at, end, depth + 1) for at, end in spans[ATTR]),
            arg_attrs=dict(_read_arg_attrs(source, at, end, depth + 1) for at, end in spans[ARG_ATTR]),
        )
    except HealdError as error:
        raise type(error)(f"function '{signature['name']}': {error.message}", node=error.node, op=error.op,
                          hint=error.hint) from None
    _set_touched(function, frozenset())
    return function


def _read_pair(buf: Buffer, start: int, stop: int) -> tuple[str, str]:
    pair = {1: "", 2: ""}
    for number, kind, at, end in wire.fields(buf, start, stop):
        if number in pair:
            wire.expect(kind, wire.BYTES, at, "a returned value")
            pair[number] = wire.text(buf, at, end)
    return pair[1], pair[2]


def _read_signature(buf: Buffer, spans: list[tuple[int, int]]) -> dict[str, Any]:
    name, stateful = "", False
    args: dict[int, list[ArgDef]] = {_INPUT_ARG: [], _OUTPUT_ARG: []}
    controls: list[str] = []
    for span in spans:
        for number, kind, at, end in wire.fields(buf, *span):
            if number in (_NAME, _INPUT_ARG, _OUTPUT_ARG, _CONTROL_OUTPUT):
                wire.expect(kind, wire.BYTES, at, "a field of a function's signature")
            if number in args:
                args[number].append(_read_arg(buf, at, end))
            elif number == _NAME:
                name = wire.text(buf, at, end)
            elif number == _CONTROL_OUTPUT:
                controls.append(wire.text(buf, at, end))
            elif number == _STATEFUL:
                wire.expect(kind, wire.VARINT, at, "is_stateful")
                stateful = wire.integer(buf, at, end) != 0
    return {"name": name, "stateful": stateful, "control_outputs": tuple(controls),
            "inputs": tuple(args[_INPUT_ARG]), "outputs": tuple(args[_OUTPUT_ARG])}


_ARG_TEXTS = {1: "name", 4: "type_attr", 5: "number_attr", 6: "type_list_attr"}
_ARG_TYPE, _ARG_IS_REF = 3, 16


def _read_arg(buf: Buffer, start: int, stop: int) -> ArgDef:
    values: dict[str, Any] = {"name": ""}
    for number, kind, at, end in wire.fields(buf, start, stop):
        if number in _ARG_TEXTS:
            wire.expect(kind, wire.BYTES, at, "a field of an argument")
            values[_ARG_TEXTS[number]] = wire.text(buf, at, end) or None
        elif number in (_ARG_TYPE, _ARG_IS_REF):
            wire.expect(kind, wire.VARINT, at, "an argument's type")
            value = wire.integer(buf, at, end)
            if number == _ARG_IS_REF:
                values["is_ref"] = value != 0
            elif value:
                values["dtype"] = dtypes.numbered(value)
    return ArgDef(**(values | {"name": values["name"] or ""}))


def _put_arg(arg: ArgDef) -> bytes:
    texts = {n: getattr(arg, slot) for n, slot in _ARG_TEXTS.items()}
    parts = {n: wire.put_bytes(n, text) for n, text in texts.items() if text}
    if arg.dtype is not None:
        parts[_ARG_TYPE] = wire.put_integer(_ARG_TYPE, arg.dtype.number)
    if arg.is_ref:
        parts[_ARG_IS_REF] = wire.put_integer(_ARG_IS_REF, 1)
    return b"".join(parts[n] for n in sorted(parts))


def _read_arg_attrs(source: AttrSource, start: int, stop: int, depth: int) -> tuple[int, Mapping[str, Any]]:
    index, attrs = 0, {}
    for number, kind, at, end in wire.fields(source.view, start, stop):
        if number == 1:
            wire.expect(kind, wire.VARINT, at, "an argument's index")
            index = wire.integer(source.view, at, end)
        elif number == 2:
            wire.expect(kind, wire.BYTES, at, "an argument's attributes")
            for inner, wire_type, first, last in wire.fields(source.view, at, end):
                if inner == 1:
                    wire.expect(wire_type, wire.BYTES, first, "an argument's attribute")
                    key, value = read_entry(source, first, last, depth + 2)
                    attrs[key] = value
    return index, MappingProxyType(attrs)
