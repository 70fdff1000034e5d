"""Spans: the parts of an MLIR text, as the parsers of programs and of graphs meet them.

A text with a fault has the spans before it, so that an edited text can be edited again.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

from heald.errors import HealdError
from heald_mlir import attributes as a
from heald_mlir import types as t
from heald_mlir.attribute_parser import AttributeParser
from heald_mlir.ir import Operation, Region, Value
from heald_mlir.parser import FUNCTION, MODULE, Parser
from heald_mlir.program_reader import RETURN
from heald_mlir.text_file import dialects
from heald_mlir.tfg.reading import parsed_body
from heald_mlir.tfg.reading.module_reader import GraphReader

OPERATION, TYPE, ATTRIBUTE, REGION, OPERAND, SYMBOL = "operation", "type", "attribute", "region", "operand", "symbol"
_OTHERS = (FUNCTION, MODULE, RETURN)  # operations that stand in one place
_GRAPH = re.compile(r"^\s*(?:tfg\.|module\b[^\n]*\{\s*tfg\.)", re.MULTILINE)


class Span(NamedTuple):
    """A part of a text. `alike` is equal for parts of a kind that may stand for each other: the class of an attribute,
    the type of an operand, the types of an operation."""

    kind: str
    begin: int
    end: int
    alike: str = ""


@lru_cache(512)
def spans(text: str) -> tuple[Span, ...]:
    """The spans of a program or a graph."""
    is_graph = _GRAPH.search(text) is not None
    parts: list[Span] = []
    try:
        reader: Any = _GraphSpans(text, parts) if is_graph else _ProgramSpans(text, parts, dialects=dialects())
        reader.module()
    except (HealdError, MemoryError):  # the spans so far count; the door tells of faults
        pass
    return tuple(parts)


class _Noting(AttributeParser):
    """A parser that notes the parts that it takes, each by itself."""

    def __init__(self, text: str, parts: list[Span], **options: Any) -> None:
        self._parts = parts
        super().__init__(text, **options)

    def note(self, kind: str, begin: int, alike: str = "") -> None:
        """Note the text from `begin` to the end of the last token."""
        self._parts.append(Span(kind, begin, len(self.source[: self.at].rstrip()), alike))

    def plain_type(self) -> t.Type:
        begin = self.at
        of = super().plain_type()
        self.note(TYPE, begin, type(of).__name__)
        return of

    def attribute(self) -> a.Attribute:
        begin = self.at
        attribute = super().attribute()
        self.note(ATTRIBUTE, begin, type(attribute).__name__)
        return attribute

    def symbol_name(self) -> str:
        begin = self.at
        name = super().symbol_name()
        self.note(SYMBOL, begin)
        return name


class _ProgramSpans(_Noting, Parser):
    """The parser of programs."""

    def line(self) -> None:
        """No operation is taken at once."""

    def operation(self) -> Operation:
        begin = self.at
        operation = super().operation()
        if operation.name not in _OTHERS:
            self.note(OPERATION, begin, f"{_types(operation.operands)} -> {_types(operation.results)}")
        return operation

    def resolve(self, name: str, index: int, at: int, of: t.Type) -> Value:
        self._parts.append(Span(OPERAND, at, at + len(name), str(of)))
        return super().resolve(name, index, at, of)

    def region(self, arguments: Any = None, isolated: bool = False) -> Region:
        begin = self.at
        region = super().region(arguments, isolated)
        self.note(REGION, begin)
        return region


def _types(values: list[Value]) -> list[str]:
    return [str(value.type) for value in values]


class _GraphSpans(_Noting, GraphReader):
    """The parser of graphs."""

    def lines(self) -> list[parsed_body.ParsedNode]:
        """No node is taken at once."""
        return []

    def use(self) -> parsed_body.Use:
        use = super().use()
        self._parts.append(Span(OPERAND, use.at, use.at + len(use.name)))
        return use

    def operation(self) -> Any:
        begin = self.at
        operation = super().operation()
        if isinstance(operation, parsed_body.ParsedNode):
            self.note(OPERATION, begin, f"{len(operation.inputs)} -> {operation.results and operation.results[0][1]}")
        return operation

    def region_of(self) -> parsed_body.Region:
        begin = self.at
        region = super().region_of()
        self.note(REGION, begin)
        return region
