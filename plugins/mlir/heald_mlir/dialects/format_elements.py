"""The elements of an assembly format: each parses its part of an operation's text, and prints it.

Blanks are printed by MLIR's rule: before each element, except behind an opening bracket and before a closing one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from .. import attributes as a
from .. import types as t
from ..ir import Operation, Region, Value
from ..parser import Argument, Parser
from .declaration import AttributeDeclaration, Declaration, Operand, is_symbol, is_symbols

if TYPE_CHECKING:
    from ..printer import Printer

ALL = "operands"
_TIGHT = frozenset("<>(){}[],")  # no blank stands before these, behind a word or a value
_CLOSING = frozenset(">)}],")  # nor before these, behind a punctuation
_OPENING = frozenset("<({[")
_ELEMENTS_OF_NUMBERS = (a.IntegerAttr, a.FloatAttr)
Use = tuple[str, int, int]  # the name of a value, its index in a pack, its position


class Span(NamedTuple):
    """Operands of a name, or ALL: the operands of an operation from `start` up to `stop`."""

    name: str
    start: int
    stop: int | None

    def of(self, operation: Operation) -> Sequence[Value]:
        return operation.operands[self.start:self.stop]


class Parsed:
    """The parts of an operation that have been read. `uses` and `types` are by the name of the operand, or ALL."""

    __slots__ = ("attributes", "declaration", "parser", "regions", "results", "types", "uses")

    def __init__(self, parser: Parser, declaration: Declaration) -> None:
        self.parser = parser
        self.declaration = declaration
        self.uses: dict[str, list[Use]] = {}
        self.types: dict[str, Sequence[t.Type]] = {}
        self.results: Sequence[t.Type] | None = None
        self.attributes: dict[str, a.Attribute] = {}
        self.regions: list[Region] = []


class Printed:
    """An operation that is being printed. `tight`: a bracket is open; `punctuated`: the last element was one."""

    __slots__ = ("operation", "printer", "punctuated", "tight")

    def __init__(self, printer: Printer, operation: Operation) -> None:
        self.printer = printer
        self.operation = operation
        self.tight = self.punctuated = False

    def write(self, text: str) -> None:
        """Write a value, an attribute or a type."""
        self.printer.write(text if self.tight and self.punctuated else f" {text}")
        self.tight = self.punctuated = False


class Element:
    """One element. `operand_names`: the operands that it reads."""

    operand_names: tuple[str, ...] = ()

    def parse(self, parsed: Parsed) -> None:
        """Read this part. Raises MalformedText."""
        raise NotImplementedError

    def print(self, printed: Printed) -> None:
        raise NotImplementedError

    def begins(self, parser: Parser) -> bool:
        """True where the text has this element, for the first element of a group."""
        raise NotImplementedError

    def is_present(self, operation: Operation) -> bool:
        """True when the operation has this part, for the anchor of a group."""
        raise NotImplementedError


class Literal(Element):
    def __init__(self, text: str) -> None:
        self.text = text

    def parse(self, parsed: Parsed) -> None:
        parsed.parser.expect(self.text)

    def print(self, printed: Printed) -> None:
        text = self.text
        joined = len(text) == 1 and text in (_CLOSING if printed.punctuated else _TIGHT)
        printed.printer.write(text if printed.tight or joined else f" {text}")
        printed.tight = text in _OPENING
        printed.punctuated = not (text[0].isalpha() or text[0] == "_")

    def begins(self, parser: Parser) -> bool:
        return parser.text == self.text and parser.kind != "string"


class OneOperand(Element):
    def __init__(self, operand: Operand, index: int) -> None:
        self.operand_names = (operand.name,)
        self._name, self._index = operand.name, index

    def parse(self, parsed: Parsed) -> None:
        parsed.uses[self._name] = [parsed.parser.use()]

    def print(self, printed: Printed) -> None:
        printed.write(printed.printer.operand(printed.operation.operands[self._index]))


class Operands(Element):
    """Operands from `start` on, with commas."""

    def __init__(self, operand: Operand | None, start: int) -> None:
        self.name = ALL if operand is None else operand.name
        self.operand_names = (self.name,)
        self._start = start

    def parse(self, parsed: Parsed) -> None:
        parsed.uses[self.name] = uses(parsed.parser)

    def print(self, printed: Printed) -> None:
        values = printed.operation.operands[self._start:]
        if values:
            printed.write(printed.printer.operands(values))

    def begins(self, parser: Parser) -> bool:
        return parser.kind == "value"

    def is_present(self, operation: Operation) -> bool:
        return len(operation.operands) > self._start


class AllOperands(Operands):
    def __init__(self) -> None:
        super().__init__(None, 0)

    def parse(self, parsed: Parsed) -> None:
        if parsed.declaration.operands or parsed.declaration.variadic is not None:
            super().parse(parsed)
        else:
            parsed.uses[ALL] = []  # a value that follows belongs to the next operation


class AttributeElement(Element):
    """An attribute of the declaration, without the type that the declaration knows."""

    def __init__(self, attribute: AttributeDeclaration) -> None:
        self.name = attribute.name
        self._type = None if attribute.constraint is None else attribute.constraint.type

    def parse(self, parsed: Parsed) -> None:
        parser = parsed.parser
        parsed.attributes[self.name] = parser.attribute() if self._type is None else typed_number(parser, self._type)

    def print(self, printed: Printed) -> None:
        value = printed.operation.attributes[self.name]
        elided = isinstance(value, _ELEMENTS_OF_NUMBERS) and value.type == self._type
        printed.write(printed.printer.attribute(value, typed=not elided))

    def is_present(self, operation: Operation) -> bool:
        return self.name in operation.attributes


class SymbolElement(Element):
    """A function that the operation calls, or an array of them."""

    def __init__(self, name: str, is_array: bool) -> None:
        self.name = name
        self._is_array = is_array

    def parse(self, parsed: Parsed) -> None:
        parser = parsed.parser
        at, value = parser.at, parser.attribute()
        if not (is_symbols(value) if self._is_array else is_symbol(value)):
            what = "an array of symbol references" if self._is_array else "a symbol reference"
            raise parser.error(f"invalid kind of attribute specified, expected {what}", at)
        parsed.attributes[self.name] = value

    def print(self, printed: Printed) -> None:
        printed.write(printed.printer.attribute(printed.operation.attributes[self.name]))


class AttributeDictionary(Element):
    """The attributes that no other element has, behind a keyword where a region would be taken for them."""

    def __init__(self, keyword: str = "") -> None:
        self.elided: frozenset[str] = frozenset()
        self._keyword = keyword

    def parse(self, parsed: Parsed) -> None:
        parser = parsed.parser
        if parser.accept(self._keyword) if self._keyword else parser.text == "{" and parser.kind == "punctuation":
            at, entries = parser.at, parser.dictionary()
            for name in entries.keys() & self.elided:
                raise parser.error(f"'{name}' is given by the syntax of '{parsed.declaration.name}'", at)
            parsed.attributes |= entries

    def print(self, printed: Printed) -> None:
        if printed.operation.attributes:
            printed.printer.dictionary(printed.operation.attributes, self.elided, self._keyword)
        printed.punctuated = False


class OperandTypes(Element):
    """The types of operands, with commas. `are_results`: True where the results have them, too."""

    def __init__(self, span: Span, are_results: bool) -> None:
        self._span = span
        self.are_results = are_results

    def parse(self, parsed: Parsed) -> None:
        name = self._span.name
        parsed.types[name] = parsed.parser.types_list() if parsed.uses.get(name) else ()
        if self.are_results:
            parsed.results = parsed.types[name]

    def print(self, printed: Printed) -> None:
        values = self._span.of(printed.operation)
        if values:
            printed.write(", ".join(str(value.type) for value in values))

    def is_present(self, operation: Operation) -> bool:
        return bool(self._span.of(operation))


class ResultTypes(Element):
    """The types of the results, with commas."""

    def parse(self, parsed: Parsed) -> None:
        parsed.results = parsed.parser.types_list()

    def print(self, printed: Printed) -> None:
        printed.write(", ".join(str(result.type) for result in printed.operation.results))


class FunctionalType(Element):
    """The types of operands and of the results: `(i32) -> (i32, i32)`."""

    def __init__(self, span: Span) -> None:
        self._span = span

    def parse(self, parsed: Parsed) -> None:
        parser = parsed.parser
        if parser.text != "(":
            raise parser.error("expected function type")
        function_type = parser.function_type()
        parsed.types[self._span.name], parsed.results = function_type.inputs, function_type.results

    def print(self, printed: Printed) -> None:
        operation = printed.operation
        inputs = tuple(value.type for value in self._span.of(operation))
        printed.write(str(t.FunctionType(inputs, tuple(result.type for result in operation.results))))


class RegionElement(Element):
    """A region that sees no value from outside: the arguments of its entry have the names of operands."""

    def __init__(self, index: int, spans: list[Span]) -> None:
        self._index = index
        self._spans = spans

    def parse(self, parsed: Parsed) -> None:
        parser = parsed.parser
        arguments = []
        for name, _, _ in self._spans:
            region_uses = parsed.uses.get(name, [])
            for (value, index, at), of in zip(region_uses, types_of(parsed, name, region_uses), strict=True):
                if index:
                    raise parser.error(f"'{value}#{index}' cannot name an argument of a region", at,
                                       hint="give the result a name of its own: %a, %b = ...")
                arguments.append(Argument(value, of, at, a.FileLineColLoc(parser.file, *parser.place(at))))
        parsed.regions.append(parser.region(arguments, isolated=True))

    def print(self, printed: Printed) -> None:
        region, printer = printed.operation.regions[self._index], printed.printer
        values = [value for span in self._spans for value in span.of(printed.operation)]
        if region.blocks:
            printer.shadow(region, values)
        printed.write("")
        printer.region(region, print_arguments=False)

    def begins(self, parser: Parser) -> bool:
        return parser.text == "{" and parser.kind == "punctuation"

    def is_present(self, operation: Operation) -> bool:
        return len(operation.regions) > self._index


class Group(Element):
    """Elements that are all there, or all missing."""

    def __init__(self, elements: list[Element], first: Element, anchor: Element) -> None:
        self.elements = elements
        self._first = first
        self._anchor = anchor

    def parse(self, parsed: Parsed) -> None:
        if self._first.begins(parsed.parser):
            for element in self.elements:
                element.parse(parsed)

    def print(self, printed: Printed) -> None:
        if self._anchor.is_present(printed.operation):
            for element in self.elements:
                element.print(printed)


def flat(elements: Iterable[Element]) -> Iterator[Element]:
    """Yield elements, and the elements of groups."""
    for element in elements:
        if isinstance(element, Group):
            yield from flat(element.elements)
        else:
            yield element


def uses(parser: Parser) -> list[Use]:
    """Parse operands with commas; none where no value stands."""
    if parser.kind != "value":
        return []
    operands = [parser.use()]
    while parser.accept(","):
        operands.append(parser.use())
    return operands


def typed_number(parser: Parser, of: t.Type) -> a.Attribute:
    """Parse a number of a type that the text does not tell, or true or false."""
    at = parser.at
    if of == t.I1 and parser.text in ("true", "false"):
        return a.TRUE if parser.take("word", "a boolean") == "true" else a.FALSE
    is_negative = parser.accept("-")
    return parser.number_of(parser.take("number", "attribute value"), is_negative, of, at)


def types_of(parsed: Parsed, name: str, operand_uses: Sequence[Use]) -> Sequence[t.Type]:
    """The types of operands, as the text tells them or the declaration. Raises MalformedText for another number."""
    types = parsed.types.get(name)
    if types is None:
        types = _declared_types(parsed.declaration, name, len(operand_uses))
    if len(types) != len(operand_uses):
        at = operand_uses[0][2] if operand_uses else parsed.parser.at
        raise parsed.parser.error(f"number of operands and types do not match: got {len(operand_uses)} operands and "
                                  f"{len(types)} types", at)
    return types


def _declared_types(declaration: Declaration, name: str, count: int) -> list[t.Type]:
    """The types of `count` operands from the declaration, which has no type for the others."""
    if name == ALL:
        types = [operand.type for operand in declaration.operands if operand.is_required or count]
        least = sum(operand.is_required for operand in declaration.operands)
        if least <= count <= len(types):
            types = types[:count]
    else:
        types = [operand.type for operand in declaration.operands if operand.name == name]
    if declaration.variadic is not None and name in (ALL, declaration.variadic.name):
        types += [declaration.variadic.type] * (count - len(types))
    return [of for of in types if of is not None]

