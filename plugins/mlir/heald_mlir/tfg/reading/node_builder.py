"""NodeDefs from parsed nodes: the bytes that the text stands for, and the bytes that `_heald.*` attributes kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from heald.api import errors, wire
from heald.graphs.graph import parse_input
from heald.runtime.values import Buffer

from ... import attributes as a
from ..signatures.node_texts import spelled_inputs
from ..values import dialect_attributes as d
from ..values.attribute_forms import NoForm, are_bytes, encode_tensor_value, field, full_type_form
from ..values.attribute_values import NoValue, attr_value
from ..values.faults import FaultReporter
from ..values.node_section import (
    ENCODING,
    FIELDS,
    FULL_TYPE,
    FULL_TYPE_NAME,
    INPUTS,
    NODE,
    ORDER,
    RESULTS,
    VALUES,
    prefix,
    read_section,
    safe_form,
    section_buffers,
)
from .debug_info import debug_info
from .parsed_body import ASSIGNED, DEVICE, NAME, ParsedNode, Tail

KEPT = frozenset((ORDER, ENCODING, VALUES, FIELDS, INPUTS, NODE, RESULTS))
_KEYWORDS = (DEVICE, ASSIGNED, NAME)
_LARGEST_JOINED_BYTES = 1024


class BuiltSection(NamedTuple):
    """The bytes of a node behind its device.

    `buffers`: as `section_buffers` makes them. `joined`: the same in one buffer, where they are short.
    `values`: AttrValues by name, in TensorFlow's encoding. `heald_attributes`: the attributes `_heald.*`.
    """

    buffers: list[Buffer]
    joined: list[Buffer]
    values: Mapping[str, Buffer]
    heald_attributes: Mapping[str, a.Attribute]


class NodeBuilder:
    """Makes NodeDefs. Nodes with one tail share its bytes."""

    def __init__(self, reader: FaultReporter) -> None:
        self._reader = reader
        self._sections: dict[int, BuiltSection] = {}  # by the identity of a tail
        self._tails: list[Tail] = []  # the tails whose identity is in use

    def section(self, node: ParsedNode) -> BuiltSection:
        """The section of a node. Raises MalformedText for an attribute that no NodeDef holds."""
        section = self._sections.get(id(node.tail))
        if section is None:
            section = self._sections[id(node.tail)] = self._section(node)
            self._tails.append(node.tail)
        return section

    def _section(self, node: ParsedNode) -> BuiltSection:
        values: dict[str, Buffer] = {}
        heald_attributes: dict[str, a.Attribute] = {}
        full_type = b""
        for name, attribute in node.tail.attributes.items():
            if name == FULL_TYPE_NAME:
                if not isinstance(attribute, d.FullTypeAttr):
                    continue  # as TensorFlow does
                if attribute.unsupported:
                    self._report(f"Unsupported attr kind in FullType:{attribute.unsupported}", name, node)
                full_type = b"".join(field(wire.BYTES, FULL_TYPE, [attribute.raw]))
            elif name in KEPT:
                heald_attributes[name] = attribute
            elif name not in _KEYWORDS:
                values[name] = self.value(name, attribute, node)
        buffers = _kept_section(values, full_type, heald_attributes)
        joined: list[Buffer] = [b"".join(buffers)] if sum(map(len, buffers)) <= _LARGEST_JOINED_BYTES else buffers
        return BuiltSection(buffers, joined, values, heald_attributes)

    def value(self, name: str, attribute: a.Attribute, node: ParsedNode) -> Buffer:
        try:
            buffers = attr_value(attribute)
        except NoValue as reason:
            self._report(str(reason), name, node)
            return b""
        return buffers[0] if len(buffers) == 1 else b"".join(buffers)

    def _report(self, reason: str, name: str, node: ParsedNode) -> None:
        self._reader.report_export(reason, node.at, f"attribute '{name}' of '{node.name}'")

    def message(self, node: ParsedNode, inputs: Sequence[str]) -> list[Buffer]:
        """The buffers of a node's NodeDef. `inputs`: its inputs as the text spells them."""
        section = self.section(node)
        heald_attributes = section.heald_attributes
        if heald_attributes:
            if INPUTS in heald_attributes:
                inputs = _kept_inputs(heald_attributes[INPUTS], inputs)
            if NODE in heald_attributes:
                return _kept_node(heald_attributes[NODE], node, inputs, section)
        start = prefix(node.name, node.op, inputs, node.device)
        if node.location is None or FIELDS in heald_attributes:
            return [start, *section.joined]
        *entries, before, full_type, behind = section.buffers
        return [start, *entries, before, debug_info(node.location), full_type, behind]


def _kept_section(values: Mapping[str, Buffer], full_type: bytes, heald_attributes: Mapping[str, a.Attribute],
                  ) -> list[Buffer]:
    names = sorted(values)
    if not heald_attributes:
        return section_buffers([(name, values[name]) for name in names], full_type, b"")
    order = strings(heald_attributes.get(ORDER))
    if sorted(order) == names:
        names = order
    encodings = {name: texts[0] for name, texts in _pairs(heald_attributes.get(ENCODING))}
    raws = {name: data(texts[0]) for name, texts in _pairs(heald_attributes.get(VALUES))}
    entries = []
    for name in names:
        value = values[name]
        if name in encodings:
            value = b"".join(encode_tensor_value(value, encodings[name]))
        elif name in raws and are_bytes(_canonical(raws[name]), value):
            value = raws[name]
        entries.append((name, value))
    fields = heald_attributes.get(FIELDS)
    extra = data(fields.value) if isinstance(fields, a.StringAttr) and _is_message(data(fields.value)) else b""
    return section_buffers(entries, full_type, extra)


def _canonical(raw: bytes) -> list[Buffer]:
    """The AttrValue that the text of an AttrValue stands for; nothing for malformed bytes."""
    try:
        return safe_form(raw).raw
    except errors.HealdError:
        return []


def _is_message(raw: bytes) -> bool:
    try:
        return all(number > 0 for number, _, _, _ in wire.fields(raw, 0, len(raw)))
    except errors.HealdError:
        return False


def data(text: str) -> bytes:
    """The bytes that a string attribute stands for."""
    return text.encode("utf-8", "surrogateescape")


def strings(attribute: a.Attribute | None) -> list[str]:
    """The strings of a list; none for another attribute."""
    items = attribute.items if isinstance(attribute, a.ArrayAttr) else ()
    return [item.value for item in items if isinstance(item, a.StringAttr)]


def _pairs(attribute: a.Attribute | None) -> Iterable[tuple[str, list[str]]]:
    items = attribute.items if isinstance(attribute, a.DictionaryAttr) else ()
    return ((name, [value.value]) for name, value in items if isinstance(value, a.StringAttr))


def _kept_inputs(attribute: a.Attribute, inputs: Sequence[str]) -> Sequence[str]:
    """Inputs in the kept spelling, unless they were edited since."""
    written = strings(attribute)
    try:
        same_inputs = [_canonical_input(text) for text in written] == list(inputs)
    except errors.HealdError:
        return inputs
    return written if same_inputs else inputs


def _canonical_input(text: str) -> str:
    return text if text.startswith("^") else str(parse_input(text))


def _kept_node(attribute: a.Attribute, node: ParsedNode, inputs: Sequence[str], section: BuiltSection) -> list[Buffer]:
    """A kept NodeDef, unless the text says something else since."""
    usual = [prefix(node.name, node.op, inputs, node.device), *section.buffers]
    if not isinstance(attribute, a.StringAttr):
        return usual
    raw = data(attribute.value)
    try:
        canonical_bytes = canonical_node(raw)
    except (errors.HealdError, NoForm):
        return usual
    return [raw] if are_bytes(canonical_bytes, b"".join(usual)) else usual


def canonical_node(raw: Buffer) -> list[Buffer]:
    """The NodeDef that the text of a NodeDef stands for."""
    texts = {1: "", 2: "", 4: ""}
    full_type = b""
    for number, kind, at, end in wire.fields(raw, 0, len(raw)):
        if number in texts:
            wire.expect(kind, wire.BYTES, at, "a field of a node")
            texts[number] = wire.text(raw, at, end)
        elif number == FULL_TYPE and kind == wire.BYTES and not full_type:
            full_type = bytes(raw[at:end])
    section = read_section(raw)
    entries = [(name, b"".join(safe_form(section.values[name]).raw)) for name in sorted(section.values)]
    shown = b""
    if FULL_TYPE_NAME in section.texts:
        shown = b"".join(field(wire.BYTES, FULL_TYPE, [full_type_form(full_type)[1]]))
    inputs = [_canonical_input(text) for text in spelled_inputs(raw)]
    return [prefix(texts[1], texts[2], inputs, texts[4]), *section_buffers(entries, shown, b"")]


