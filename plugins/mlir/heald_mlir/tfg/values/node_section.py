"""The fields of a NodeDef behind its inputs and device: attributes, full type, and fields that have no text.

A section knows its text, and the `_heald.*` attributes that lead from the text back to its bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from heald.api import wire
from heald.runtime.values import Buffer

from ...attribute_text import name_text
from ...lexer import escaped_bytes, escaped_text
from .attribute_forms import (
    Form,
    NoForm,
    are_bytes,
    encoding_of,
    entry_buffers,
    entry_of,
    field,
    form_of,
    full_type_form,
)

NAME, OP, INPUT, DEVICE, ATTR, DEBUG_INFO, FULL_TYPE = range(1, 8)  # fields of NodeDef
FULL_TYPE_NAME = "_mlir_fulltype"
ORDER, ENCODING, VALUES, FIELDS, INPUTS, NODE, RESULTS = (
    f"_heald.{name}" for name in ("order", "encoding", "values", "fields", "inputs", "node", "results"))
_UNIT = Form(["unit"], [b""])


class Section(NamedTuple):
    """`values`: the AttrValue of each attribute by name. `texts`: the text of each, in fragments.

    `raw`: the bytes of the section. `heald_texts`: the texts of `_heald.*` attributes; None where they do not suffice.
    """

    values: Mapping[str, Buffer]
    texts: Mapping[str, list[str]]
    raw: Buffer
    heald_texts: Mapping[str, str] | None


def read_section(node: Buffer) -> Section:
    """The section of a NodeDef. Raises DataLoss for malformed bytes."""
    values: dict[str, Buffer] = {}
    extra: list[Buffer] = []
    full_type: Buffer | None = None
    before, start, plain = 0, len(node), True
    for number, kind, at, end in wire.fields(node, 0, len(node)):
        if number > DEVICE:
            start = min(start, before)
        elif start < before:
            plain = False
        if number == ATTR:
            key, value, in_form = _entry(node[at:end])
            plain = plain and in_form and key not in values
            values[key] = value
        elif number == FULL_TYPE and kind == wire.BYTES and full_type is None:
            full_type = node[at:end]
        elif number > DEVICE:
            extra.append(node[before:end])
        before = end
    forms = {name: safe_form(value) for name, value in values.items()}
    texts, heald_texts = {name: form.text for name, form in forms.items()}, _heald_texts(values, forms, extra)
    if full_type is not None:
        try:
            shown, usual = full_type_form(full_type)
            texts[FULL_TYPE_NAME] = [f"#tf_type.full_type<{shown}>"]
            plain = plain and usual == full_type
        except NoForm:
            plain = False
    raw = node[start:]
    typed = b"" if full_type is None else wire.put_bytes(FULL_TYPE, full_type)
    plain = plain and are_bytes(section_buffers(values.items(), typed, b"".join(extra)), raw)
    return Section(values, texts, raw, heald_texts if plain else None)


def read_values(node: Buffer) -> dict[str, Buffer]:
    """The values of a NodeDef's section, without the work for its texts. Raises DataLoss for malformed bytes."""
    entries = [_entry(node[at:end]) for number, _, at, end in wire.fields(node, 0, len(node)) if number == ATTR]
    return {key: value for key, value, _ in entries}


def _entry(raw: Buffer) -> tuple[str, Buffer, bool]:
    """Key and value of an attribute, and whether the entry has the usual form."""
    try:
        return *entry_of(raw), True
    except NoForm:
        return wire.map_key(raw, 0, len(raw)), b"", False


def safe_form(value: Buffer) -> Form:
    """The form of an AttrValue; that of an attribute without value where the dialect has no text for it."""
    try:
        return form_of(value)
    except NoForm:
        return _UNIT


def _heald_texts(values: Mapping[str, Buffer], forms: Mapping[str, Form], extra: Sequence[Buffer]) -> dict[str, str]:
    """The attributes that lead from the text of `values` to their bytes."""
    heald_texts = {}
    if list(values) != sorted(values):
        heald_texts[ORDER] = f"[{', '.join([quoted_text(name) for name in values])}]"
    differing = {name: value for name, value in values.items() if not are_bytes(forms[name].raw, value)}
    encodings = {name: encoding for name, value in differing.items() if (encoding := encoding_of(value)) is not None}
    if encodings:
        pairs = [f"{name_text(name)} = {quoted_text(encodings[name])}" for name in sorted(encodings)]
        heald_texts[ENCODING] = f"{{{', '.join(pairs)}}}"
    differing = {name: value for name, value in differing.items() if name not in encodings}
    if differing:
        pairs = [f'{name_text(name)} = "{escaped_bytes(bytes(differing[name]))}"' for name in sorted(differing)]
        heald_texts[VALUES] = f"{{{', '.join(pairs)}}}"
    if extra:
        heald_texts[FIELDS] = f'"{escaped_bytes(b"".join(extra))}"'
    return heald_texts


def quoted_text(text: str) -> str:
    return f'"{escaped_text(text)}"'


def section_buffers(entries: Iterable[tuple[str, Buffer]], full_type: Buffer, fields: bytes) -> list[Buffer]:
    """The bytes of a section: entries in this order, the full type and further fields by their numbers."""
    buffers: list[Buffer] = []
    for key, value in entries:
        buffers += field(wire.BYTES, ATTR, entry_buffers(key, [value]))
    split = 0
    for number, _, _, end in wire.fields(fields, 0, len(fields)):
        if number < FULL_TYPE:
            split = end
    return [*buffers, fields[:split], full_type, fields[split:]]


def prefix(name: str, op: str, inputs: Sequence[str], device: str) -> bytes:
    """The first fields of a NodeDef. `inputs`: data and control inputs as they are written."""
    if name and op and not device:  # texts in ASCII are encoded at once; the length of a long one is no ASCII
        texts = "".join([f"\x1a{chr(len(text))}{text}" for text in inputs])
        texts = f"\n{chr(len(name))}{name}\x12{chr(len(op))}{op}{texts}"
        if texts.isascii():
            return texts.encode()
    parts = [wire.put_bytes(NAME, name) if name else b"", wire.put_bytes(OP, op) if op else b"",
             *(wire.put_bytes(INPUT, text) for text in inputs), wire.put_bytes(DEVICE, device) if device else b""]
    return b"".join(parts)
