"""Node: one operation of a graph. Read from a NodeDef or made; immutable; written back byte for byte."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from types import EllipsisType, MappingProxyType
from typing import Any, NoReturn, TypeVar

from ...errors import DataLoss, HealdError, InvalidArgument
from ...runtime.support.mapped_file import check_unchanged, lasting_bytes
from ...runtime.support.records import NamedTuple
from ...runtime.values import wire
from ...runtime.values.wire import Buffer, Key
from .attr_value import AttrSource, canonical, put_entry, read_entry

T = TypeVar("T")
NAME, OP, INPUT, DEVICE, ATTR = 1, 2, 3, 4, 5  # fields of NodeDef
_KNOWN = frozenset((NAME, OP, INPUT, DEVICE, ATTR))
_LARGEST_PORT = 2**31 - 1
_MEMO_BYTES = 512  # longer attributes are seldom equal to those of another node
LARGEST_KEPT_RAW_BYTES = 1 << 12  # of an edited node or function: larger ones are written again at each request
_OUTPUT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAME_TAG, _OP_TAG, _INPUT_TAG, _DEVICE_TAG, _ATTR_TAG = (number << 3 | wire.BYTES for number in sorted(_KNOWN))


class Input(NamedTuple):
    """A tensor that a node consumes: output `index` of `node`. In functions, element `index` of the output argument
    `output`.

    Written `n` (index 0) or `n:1` in graphs, `n:output:0` in functions, where a bare `n` is an argument.
    """

    node: str
    output: str | None = None
    index: int = 0  # type: ignore[assignment]

    def __str__(self) -> str:
        if self.output is not None:
            return f"{self.node}:{self.output}:{self.index}"
        return f"{self.node}:{self.index}" if self.index else self.node


def parse_input(text: str) -> Input:
    """The Input that `text` denotes. Raises InvalidArgument for an impossible port."""
    if ":" not in text:
        return Input(text, None, 0)
    node, *port = text.split(":")
    output = None if port[0].isdecimal() else port.pop(0)
    index = port.pop(0) if port else "0"
    named = output is None or _OUTPUT.fullmatch(output)
    if port or not named or not (index.isdecimal() and index.isascii()):
        raise InvalidArgument(f"input '{text}' has an invalid port", hint="write n, n:1 or n:output:0")
    if len(index) > 10 or int(index) > _LARGEST_PORT:
        raise InvalidArgument(f"input '{text}' has a port beyond 2**31")
    return Input(node, output, int(index))


class Node:
    """An operation. Two nodes are equal when they are the same object: graphs share the nodes that a pass did not
    change.

    `name`, `op`: Its name, and the name of its op.
    `inputs`: The tensors that it consumes.
    `controls`: The names of the nodes that run before it.
    `device`: The requested device, as text.
    `assigned_device`: The device that the placer chose; not part of files.
    `attrs`: Its attributes, read-only, with values as in `graph/attr_value.py`.
    """

    __slots__ = (
        "_base", "_edited_raw", "_touched", "assigned_device", "attrs", "controls", "device", "inputs", "name", "op",
    )

    name: str
    op: str
    inputs: tuple[Input, ...]
    controls: tuple[str, ...]
    device: str
    assigned_device: str | None
    attrs: Mapping[str, Any]
    _base: Buffer  # the message that the node was read from
    _touched: frozenset[Key]  # fields of `_base` that are replaced
    _edited_raw: Buffer  # the message of an edited node, kept at the first request if it is short

    def __init__(
        self, name: str, op: str, inputs: Iterable[str | Input] = (), *, controls: Iterable[str] = (),
        device: str = "", attrs: Mapping[str, Any] | None = None, assigned_device: str | None = None,
        extra: bytes = b"",
    ) -> None:
        """Make a node. `inputs` may hold text, also `^c` for control inputs. `extra` has further fields of NodeDef as
        bytes.

        Raises InvalidArgument for invalid inputs and attribute values.
        """
        try:
            data, more = parse_inputs(inputs)
        except HealdError as error:
            raise error.at(node=name, op=op) from None
        after = (*map(_control_name, controls), *more)
        attributes = canonical_attrs(attrs or {}, name, op)
        touched = frozenset(((NAME, ""), (OP, ""), (INPUT, ""), (DEVICE, ""), *((ATTR, k) for k in attributes)))
        _fill(self, name, op, data, after, device, MappingProxyType(attributes), assigned_device, extra, touched)

    @classmethod
    def read(cls, raw: Buffer) -> Node:
        """The node that a NodeDef describes. Raises DataLoss, InvalidArgument."""
        return read_node(AttrSource(memoryview(raw)), 0, len(raw))

    @property
    def raw(self) -> Buffer:
        """The node as a NodeDef. A node that was read and never edited returns the bytes it was read from.

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

    @property
    def extra(self) -> bytes:
        """The fields of NodeDef that Node has no name for, such as debug information and unknown fields."""
        return wire.splice(self._base, {(n, ""): b"" for n in _KNOWN})

    def replace(
        self, *, name: str | None = None, op: str | None = None, inputs: Iterable[str | Input] | None = None,
        controls: Iterable[str] | None = None, device: str | None = None,
        attrs: Mapping[str, Any] | None = None, without_attrs: Iterable[str] = (),
        assigned_device: str | EllipsisType | None = ...,
    ) -> Node:
        """This node with other fields; the rest keeps its bytes and order. `attrs` are merged into its own.

        `inputs` are data inputs only. Raises InvalidArgument for invalid inputs and attribute values.
        """
        touched = set(self._touched)
        touched |= {(n, "") for n, v in ((NAME, name), (OP, op), (DEVICE, device)) if v is not None}
        data, after, attributes = self.inputs, self.controls, self.attrs
        if inputs is not None:
            data = _data_inputs(inputs, self)
        if controls is not None:
            after = tuple(map(_control_name, controls))
        if inputs is not None or controls is not None:
            touched.add((INPUT, ""))
        removed = frozenset(without_attrs)
        if attrs or removed:
            new = canonical_attrs(attrs or {}, self.name, self.op)
            attributes = MappingProxyType({k: v for k, v in self.attrs.items() if k not in removed} | new)
            touched |= {(ATTR, k) for k in (*new, *removed)}
        chosen_device = self.assigned_device if assigned_device is ... else assigned_device
        node = Node.__new__(Node)
        _fill(
            node, self.name if name is None else name, self.op if op is None else op, data, after,
            self.device if device is None else device, attributes, chosen_device, self._base, frozenset(touched),
        )
        return node

    def _field(self, number: int, key: str) -> bytes:
        if number == ATTR:
            return wire.put_bytes(ATTR, put_entry(key, self.attrs[key])) if key in self.attrs else b""
        if number == INPUT:
            written = _spellings(self._base)
            data = [written.get(i) or str(i) for i in self.inputs]
            return b"".join(wire.put_bytes(INPUT, i) for i in (*data, *(f"^{c}" for c in self.controls)))
        text = {NAME: self.name, OP: self.op, DEVICE: self.device}[number]
        return wire.put_bytes(number, text) if text else b""

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a Node is immutable: use node.replace({name}=...)")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("a Node is immutable")

    def __repr__(self) -> str:
        return f"<Node {self.name!r} ({self.op})>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (bytes(self.raw), self.assigned_device)


# Node refuses assignment; the setters of its slots are the quickest way around that
_set_name, _set_op, _set_device = (getattr(Node, slot).__set__ for slot in ("name", "op", "device"))
_set_inputs, _set_controls, _set_attrs = (getattr(Node, slot).__set__ for slot in ("inputs", "controls", "attrs"))
_set_assigned, _set_base, _set_touched, _set_edited_raw = (
    getattr(Node, slot).__set__ for slot in ("assigned_device", "_base", "_touched", "_edited_raw")
)
_UNTOUCHED: frozenset[Key] = frozenset()


def _fill(
    node: Node, name: str, op: str, inputs: tuple[Input, ...], controls: tuple[str, ...], device: str,
    attrs: Mapping[str, Any], assigned_device: str | None, base: Buffer, touched: frozenset[Key],
) -> None:
    _set_name(node, name)
    _set_op(node, op)
    _set_inputs(node, inputs)
    _set_controls(node, controls)
    _set_device(node, device)
    _set_attrs(node, attrs)
    _set_assigned(node, assigned_device)
    _set_base(node, base)
    _set_touched(node, touched)


def _restore(raw: bytes, assigned_device: str | None) -> Node:
    return Node.read(raw).replace(assigned_device=assigned_device)


def read_node(source: AttrSource, start: int, stop: int, depth: int = 0) -> Node:
    """The NodeDef at [start, stop), `depth` messages deep.

    Raises DataLoss and InvalidArgument, which name the node where its name can be read.
    """
    buf = source.view
    if source.attributes and stop - start <= 2 * _MEMO_BYTES:
        similar = _read_similar_node(source, bytes(buf[start:stop]))
        if similar is not None:
            return similar
    name = op = device = ""
    inputs: list[str] = []
    attrs: dict[str, Any] = {}
    before, attribute_bytes = start, None  # where this field begins; the bytes from the first attribute on, if few
    try:
        for number, kind, at, end in wire.fields(buf, start, stop):
            if number == ATTR and attribute_bytes is None:
                attribute_bytes = bytes(buf[before:stop]) if stop - before <= _MEMO_BYTES else b""
                if attribute_bytes in source.attributes:
                    break
            elif number < ATTR and attribute_bytes:
                attribute_bytes = b""  # other fields follow the attributes
            before = end
            if number > ATTR:
                continue
            if kind != wire.BYTES:
                wire.expect(kind, wire.BYTES, at, "a field of a node")
            if number == ATTR:
                key, attrs[key] = read_entry(source, at, end, depth + 1)
            elif number == INPUT:
                inputs.append(str(buf[at:end], "utf-8"))
            elif number == NAME:
                name = str(buf[at:end], "utf-8")
            elif number == OP:
                op = str(buf[at:end], "utf-8")
            else:
                device = str(buf[at:end], "utf-8")
        data, controls = parse_inputs(inputs)
    except UnicodeDecodeError as error:
        raise DataLoss(f"bad UTF-8 at byte {at + error.start}", node=name or None, op=op or None) from None
    except HealdError as error:
        raise error.at(node=name or _name_of(buf, start, stop), op=op or None) from None
    attributes: Mapping[str, Any] = MappingProxyType(attrs)
    if attribute_bytes:
        attributes = source.attributes.setdefault(attribute_bytes, attributes)
    node = Node.__new__(Node)
    _fill(node, name, op, data, controls, device, attributes, None, lasting_bytes(buf, start, stop), _UNTOUCHED)
    return node


def _read_similar_node(source: AttrSource, raw: bytes) -> Node | None:
    """The node of a short message whose attributes are those of a node before it, in a third of the usual time.

    None for another message: `read_node` takes it, or tells its fault and the place.
    """
    name = op = device = ""
    inputs: list[str] = []
    at = 0
    try:
        while (tag := raw[at]) != _ATTR_TAG:
            start, size = at + 2, raw[at + 1]
            at = start + size
            text = raw[start:at].decode()
            if size > 127:
                return None
            if tag == _INPUT_TAG:
                inputs.append(text)
            elif tag == _NAME_TAG:
                name = text
            elif tag == _OP_TAG:
                op = text
            elif tag == _DEVICE_TAG:
                device = text
            else:
                return None
        attributes = source.attributes.get(raw[at:])
        if attributes is None:
            return None
        data, controls = parse_inputs(inputs)
    except (IndexError, UnicodeDecodeError, HealdError):
        return None
    node = Node.__new__(Node)
    _fill(node, name, op, data, controls, device, attributes, None, raw, _UNTOUCHED)
    return node


_new = tuple.__new__  # half the time of calling Input


def parse_inputs(inputs: Iterable[str | Input]) -> tuple[tuple[Input, ...], tuple[str, ...]]:
    """Data inputs and control inputs, in the order that TensorFlow demands. Raises InvalidArgument."""
    data: list[Input] = []
    controls: list[str] = []
    for text in inputs:
        if text[:1] == "^":
            controls.append(text[1:])  # type: ignore[arg-type]
            continue
        if controls:
            raise InvalidArgument(f"data input '{text}' comes after a control input")
        if isinstance(text, Input):
            data.append(text)
        else:
            data.append(parse_input(text) if ":" in text else _new(Input, (text, None, 0)))
    return tuple(data), tuple(controls)


def _data_inputs(inputs: Iterable[str | Input], node: Node) -> tuple[Input, ...]:
    try:
        data, controls = parse_inputs(inputs)
    except HealdError as error:
        raise error.at(node=node.name, op=node.op) from None
    if controls:
        raise InvalidArgument(f"control input '^{controls[0]}' among the data inputs", node=node.name,
                              op=node.op, hint="pass control inputs as controls=")
    return data


def _control_name(text: str) -> str:
    return text.removeprefix("^")


def canonical_attrs(attrs: Mapping[str, Any], name: str, op: str | None) -> dict[str, Any]:
    """Attributes as reading returns them. Raises InvalidArgument, which names the attribute."""
    attributes = {}
    for key, value in attrs.items():
        try:
            attributes[key] = canonical(value)
        except HealdError as error:
            raise type(error)(f"attribute '{key}': {error.message}", node=name, op=op) from None
    return attributes


def _spellings(base: Buffer) -> dict[Input, str]:
    """The spelling of each data input in a message: `n` and `n:0` are the same Input."""
    fields = wire.fields(base, 0, len(base))
    texts = [wire.text(base, at, end) for number, _, at, end in fields if number == INPUT]
    return {parse_input(text): text for text in texts if not text.startswith("^")}


def _name_of(buf: Buffer, start: int, stop: int) -> str | None:
    """The node's name in a message that may be malformed, or None."""
    try:
        for number, kind, at, end in wire.fields(buf, start, stop):
            if number == NAME and kind == wire.BYTES:
                return wire.text(buf, at, end)
    except DataLoss:
        pass
    return None


def check_members(items: Iterable[T], kind: type[T]) -> Iterator[T]:
    """Yield the items of a caller's collection. Raises InvalidArgument for one that is no collection of this class."""
    what = kind.__name__
    if not isinstance(items, Iterable):
        raise InvalidArgument(f"{type(items).__name__} is no list of {what} objects", hint=f"pass [{what}(...), ...]")
    for item in items:
        if not isinstance(item, kind):
            hint = ("pass the mapping's values: mapping.values()" if isinstance(items, Mapping) else
                    f"pass [{what}(...), ...]")
            raise InvalidArgument(f"a list of {what} objects has an item of type {type(item).__name__}", hint=hint)
        yield item


def by_name(nodes: Iterable[Node]) -> dict[str, Node]:
    """Nodes by name. Raises InvalidArgument when two nodes have the same name, and for items that are no nodes."""
    nodes_by_name: dict[str, Node] = {}
    for node in check_members(nodes, Node):
        if node.name in nodes_by_name:
            raise InvalidArgument(f"two nodes are called '{node.name}'", node=node.name, op=node.op)
        nodes_by_name[node.name] = node
    return nodes_by_name
