"""Texts of nodes: attributes and result types, shared by nodes with equal ones, and the attributes that keep bytes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from heald.api import Node, wire
from heald.runtime.values import Buffer

from ...attribute_text import name_text
from ...lexer import escaped_bytes
from ..values.attribute_forms import are_bytes
from ..values.node_section import (
    FULL_TYPE_NAME,
    INPUT,
    INPUTS,
    NODE,
    Section,
    prefix,
    quoted_text,
    read_section,
    safe_form,
)
from .full_types import added_full_type
from .result_types import Declarations, Result

Fragments = list[str]
_NONE: Mapping[str, str] = MappingProxyType({})


class NodeText(NamedTuple):
    """`braces`: the attributes in braces, in fragments.

    `results`: the results that the op declares; None if it is unknown. `types`: their types.
    """

    section: Section
    braces: Fragments
    results: tuple[Result, ...] | None
    types: tuple[str, ...]


class NodeTexts:
    """The texts of the nodes of a graph or a function.

    `canonical`: True for TensorFlow's own text, which keeps no bytes. `filled`: True for missing attributes too, with
    their defaults.
    """

    def __init__(self, declarations: Declarations, canonical: bool, filled: bool) -> None:
        self._declarations = declarations
        self._canonical = canonical
        self._filled = filled
        self._known: dict[tuple[str, int], NodeText] = {}  # by op, and by the attributes that nodes share
        self._used: list[Mapping[str, object]] = []  # attributes whose identity is in use

    def of(self, node: Node, inputs: list[str], more: Mapping[str, str] = _NONE) -> NodeText:
        """The text of a node.

        `inputs`: its data and control inputs as the text spells them. `more`: texts of further attributes.
        """
        key = (node.op, id(node.attrs))
        node_text = self._known.get(key)
        raw = node.raw
        if node_text is None:
            section = read_section(raw)
            node_text = self._known[key] = self._text(node, section, section.heald_texts or _NONE)
            self._used.append(node.attrs)
        if self._canonical:
            return node_text
        if _is_exactly(prefix(node.name, node.op, inputs, node.device), node_text.section, raw):
            texts = {**(node_text.section.heald_texts or _NONE), **more}
            return self._text(node, node_text.section, texts) if more else node_text
        return self._exact(node, inputs, raw, more)

    def _text(self, node: Node, section: Section, heald_texts: Mapping[str, str]) -> NodeText:
        declared = self._declarations.get(node.op)
        texts: dict[str, Fragments] = dict(section.texts)
        if self._filled and declared is not None:
            texts |= {name: safe_form(value).text for name, value in declared.missing(section.values).items()}
            full_type = added_full_type(node.op, lambda name: declared.value(name, section.values))
            if full_type is not None:
                texts.setdefault(FULL_TYPE_NAME, [f"#tf_type.full_type<{full_type}>"])
        if not self._canonical:
            texts |= {name: [text] for name, text in heald_texts.items()}
        results = None if declared is None else declared.results(section.values)
        types = tuple([of for result in results or () for of in result.types])
        return NodeText(section, braces(texts), results, types)

    def _exact(self, node: Node, inputs: list[str], raw: Buffer, more: Mapping[str, str]) -> NodeText:
        """The text of a node whose bytes its inputs and attributes alone do not give."""
        section = read_section(raw)
        written = spelled_inputs(raw)
        start = prefix(node.name, node.op, written, node.device)
        if section.heald_texts is not None and _is_exactly(start, section, raw):
            heald_texts = {**section.heald_texts, **more}
            if written != inputs:
                heald_texts[INPUTS] = f"[{', '.join(map(quoted_text, written))}]"
            return self._text(node, section, heald_texts)
        return self._text(node, section, {NODE: f'"{escaped_bytes(bytes(raw))}"', **more})


def spelled_inputs(raw: Buffer) -> list[str]:
    """The inputs of a NodeDef as they are written."""
    return [wire.text(raw, at, end) for number, _, at, end in wire.fields(raw, 0, len(raw)) if number == INPUT]


def _is_exactly(start: bytes, section: Section, raw: Buffer) -> bool:
    """True when a NodeDef is these fields and a section, and nothing has to be kept that is not."""
    return section.heald_texts is not None and are_bytes([start, section.raw], raw)


def braces(texts: Mapping[str, Fragments]) -> Fragments:
    """` {name = value, unit}` by name, or nothing."""
    if not texts:
        return []
    fragments: Fragments = []
    for name in sorted(texts):
        fragments.append(", " if fragments else " {")
        fragments.append(name_text(name))
        if texts[name] != ["unit"]:
            fragments += [" = ", *texts[name]]
    fragments.append("}")
    return ["".join(fragments)] if sum(map(len, fragments)) < 4096 else fragments
