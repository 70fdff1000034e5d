"""An operation's syntax, as the elements of its format give it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heald.api import errors

from .. import types as t
from ..ir import Operation, Value
from ..parser import Parser
from . import format_elements as f
from .declaration import Declaration

if TYPE_CHECKING:
    from ..printer import Printer


class FormattedSyntax:
    """Parses and prints the operations of a declaration, element by element."""

    def __init__(self, declaration: Declaration, elements: list[f.Element]) -> None:
        self._declaration = declaration
        self._elements = elements
        results = [result.type for result in declaration.results or ()]
        self._results = None if declaration.results is None or None in results else tuple(
            of for of in results if of is not None)
        names = [operand.name for operand in declaration.operands]
        self._order = [f.ALL, *names] + ([declaration.variadic.name] if declaration.variadic is not None else [])
        flat = list(f.flat(elements))
        shown = frozenset(element.name for element in flat if isinstance(element, f.AttributeElement | f.SymbolElement))
        for element in flat:
            if isinstance(element, f.AttributeDictionary):
                element.elided = shown

    def parse(self, parser: Parser, name: str) -> Operation:
        """Parse all behind the operation's name. Raises MalformedText."""
        at = parser.at
        parsed = f.Parsed(parser, self._declaration)
        for element in self._elements:
            element.parse(parsed)
        operands: list[Value] = []
        for span in self._order:
            span_uses = parsed.uses.get(span)
            if span_uses is None:
                continue
            operands += [parser.resolve(*use, of) for use, of in zip(
                span_uses, f.types_of(parsed, span, span_uses), strict=True)]
        return Operation(name, operands, self._result_types(parsed, at), parsed.attributes, parsed.regions)

    def _result_types(self, parsed: f.Parsed, at: int) -> tuple[t.Type, ...]:
        if parsed.results is None:
            return self._results or ()  # none: a group that gives their types is missing
        result_types = tuple(parsed.results)
        if self._results is not None and result_types != self._results:
            raise parsed.parser.error(f"'{self._declaration.name}' has results of other types than "
                                      f"'{t.result_list(self._results)}'", at)
        return result_types

    def print(self, printer: Printer, operation: Operation) -> None:
        """Write all behind the operation's name. Raises InvalidArgument for one that is not as it was declared."""
        printed = f.Printed(printer, operation)
        try:
            for element in self._elements:
                element.print(printed)
        except (IndexError, KeyError) as error:
            raise errors.InvalidArgument(
                f"the operation lacks what its syntax '{self._declaration.syntax}' prints", op=operation.name,
                hint="verify it first, or print its generic form") from error
