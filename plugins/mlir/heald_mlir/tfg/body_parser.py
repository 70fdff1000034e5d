"""The parser of the nodes in a graph or a function.

Values may be used before they are defined, so a body is parsed whole before its inputs are resolved. A node is one
line as a rule; the part of the line behind its name, which many nodes share, is parsed once.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .. import attributes as a
from ..lexer import SUFFIX, unescaped_text
from .attribute_reader import AttributeReader
from .element_types import CONTROL
from .names import DIALECT
from .region_forms import REGION_OPS

_VALUE = rf"%{SUFFIX}(?:\#\d{{1,9}})?"
_VALUES = rf"{_VALUE}(?:, {_VALUE})*"
_TEXT = r'"([^"\\\n]*)"'
_LINE = re.compile(  # the usual form of a node, up to its name
    rf"\s*(%{SUFFIX}(?::\d{{1,9}})?(?:, %{SUFFIX})?) = ([A-Za-z_][\w$.]*)(?:\(({_VALUES})\))?(?: \[({_VALUES})\])?"
    rf"(?: device\({_TEXT}\))?(?: assigned_device\({_TEXT}\))?(?: name\({_TEXT}\))?([^\n]*)\n", re.ASCII)
_MAX_SHARED_CHARACTERS = 1024  # characters of a shared part of a line
DEVICE, ASSIGNED, NAME = "_mlir_device", "_mlir_assigned_device", "_mlir_name"
_KEYWORDS = {"device": DEVICE, "assigned_device": ASSIGNED, "name": NAME}


class Use(NamedTuple):
    """A use of a value: its name, its number in a pack, its position."""

    name: str
    number: int
    at: int


class Tail(NamedTuple):
    """The part of an operation behind its name: attributes, and the types of operands and results as text.

    `typed`: False for the older form of operations in generic functions, which have no types.
    """

    attributes: dict[str, a.Attribute]
    operands: tuple[str, ...]
    results: tuple[str, ...]
    typed: bool


class ParsedNode:
    """An operation of a body, which begins at `at`, with its name at `where`.

    `results`: names of its values, and how many each stands for.
    """

    __slots__ = ("assigned_device", "at", "controls", "device", "inputs", "name", "op", "regions", "results", "tail",
                 "where")

    def __init__(
        self, op: str, at: int, where: int, results: list[tuple[str, int]], inputs: list[Use], controls: list[Use],
        device: str, assigned_device: str, name: str, tail: Tail, regions: tuple[Region, ...] = (),
    ) -> None:
        self.op = op
        self.at = at
        self.where = where
        self.results = results
        self.inputs = inputs
        self.controls = controls
        self.device = device
        self.assigned_device = assigned_device
        self.name = name
        self.tail = tail
        self.regions = regions


class GetResult(NamedTuple):
    """A `get_result` of a generic function: tensor `number` of an output argument."""

    result: str
    source: Use
    output: str
    number: int
    at: int


class Return(NamedTuple):
    """The terminator of a function or a region: results, control results and their attributes, types of the results.

    `condition`: the condition of a loop, and its type.
    """

    results: list[Use]
    controls: list[tuple[Use, dict[str, a.Attribute]]]
    types: tuple[str, ...]
    at: int
    op: str
    condition: tuple[Use, str] | None = None


class Body(NamedTuple):
    nodes: list[ParsedNode]
    get_results: list[GetResult]
    returned: Return | None


class Region(NamedTuple):
    """A region of a control flow op: its arguments with their types, its operations."""

    arguments: list[tuple[str, str, int]]
    body: Body


class BodyReader(AttributeReader):
    """A parser of bodies."""

    def __init__(self, text: str, file: str = "-", line: int = 1) -> None:
        self.tails: dict[str, Tail] = {}
        super().__init__(text, file, line)

    def body(self) -> Body:
        """Parse `{...}`."""
        self.expect("{", " to begin a region")
        return self.operations()

    def operations(self) -> Body:
        """Parse operations, and the brace behind them."""
        nodes: list[ParsedNode] = []
        get_results: list[GetResult] = []
        returned: Return | None = None
        while not self.accept("}"):
            if returned is not None:
                raise self.error(f"'tfg.{returned.op}' op must be the last operation in the parent block", returned.at)
            node = self.line()
            if node is not None:
                nodes.append(node)
                continue
            operation = self.operation()
            if isinstance(operation, GetResult):
                get_results.append(operation)
            elif isinstance(operation, Return):
                returned = operation
            else:
                nodes.append(operation)
        return Body(nodes, get_results, returned)

    def line(self) -> ParsedNode | None:
        """Parse a node in the usual form at once; None for another form, or one with a fault."""
        match = _LINE.match(self.source, self.at)
        if match is None:
            return None
        bound, op, inputs, controls, device, assigned, name, tail_text = match.groups()
        op = op.removeprefix(DIALECT)
        if op == "get_result" or op in REGION_OPS:
            return None
        tail = self.tails.get(tail_text)
        if tail is None:
            if tail_text[:2] not in ("", " {", " :"):
                return None
            self.jump(match.start(8))
            tail = self.tail()
            if self.at < match.end() and self.kind != "end":
                raise self.error("expected operation name in quotes")
            if len(tail_text) <= _MAX_SHARED_CHARACTERS:
                self.tails[tail_text] = tail
        first, _, control = bound.partition(", ")
        value, _, count = first.partition(":")
        results = [(value, int(count) if count else 1)]
        if control:
            results.append((control, 1))
        node = ParsedNode(op, match.start(1), match.start(2), results, _uses(inputs, match.start(3)),
                          _uses(controls, match.start(4)), device or "", assigned or "", name or "", tail)
        self.jump(match.end())
        return node

    def operation(self) -> ParsedNode | GetResult | Return:
        """Parse any operation of a body."""
        at = self.at
        results: list[tuple[str, int]] = []
        while self.kind == "value":
            name, count = self.text, 1
            self.advance()
            if self.accept(":"):
                count = self.count("integer number of results")
                if count < 1:
                    raise self.error("expected named operation to have at least 1 result", at)
            results.append((name, count))
            if not self.accept(","):
                self.expect("=", " after SSA name")
                break
        where = self.at
        if self.kind == "string":
            op = unescaped_text(self.text).removeprefix(DIALECT)
        elif self.kind == "word":
            op = self.text.removeprefix(DIALECT)
        else:
            raise self.error("expected operation name in quotes" if results or self.kind != "end"
                             else "expected '}' to end a region")
        if not op:
            raise self.error("empty operation name is invalid")
        self.advance()
        if op in ("return", "yield"):
            return self.parse_return(op, where)
        if op == "get_result":
            return self.get_result(results, where)
        if op == "condition":
            return self.condition(where)
        if op in REGION_OPS:
            return self.parse_nested(lambda: self.region_node(op, at, where, results))
        return self.node(op, at, where, results)

    def node(self, op: str, at: int, where: int, results: list[tuple[str, int]]) -> ParsedNode:
        """Parse `(inputs) [controls] device("") assigned_device("") name("") {...} : types` of a node."""
        inputs = self.comma_list("(", ")", self.use) if self.text == "(" and self.kind == "punctuation" else []
        controls = self.comma_list("[", "]", self.use) if self.text == "[" and self.kind == "punctuation" else []
        keywords = {}
        for word, key in _KEYWORDS.items():
            if self.kind == "word" and self.accept(word):
                self.expect("(")
                keywords[key] = unescaped_text(self.take("string", "a string in quotes"))
                self.expect(")")
        tail = self.tail()
        return ParsedNode(op, at, where, results, inputs, controls, keywords.get(DEVICE, ""),
                          keywords.get(ASSIGNED, ""), keywords.get(NAME, ""), tail)

    def tail(self, needs_results: bool = True) -> Tail:
        """Parse `{...} : (types) -> (types)`, all of it optional.

        `needs_results`: False for a For, which may end with the types of its operands.
        """
        attributes = self.dictionary() if self.text == "{" and self.kind == "punctuation" else {}
        operands: tuple[str, ...] = ()
        results: tuple[str, ...] = ()
        if typed := self.accept(":"):
            if self.text == "(" and self.kind == "punctuation":
                operands = tuple(map(str, self.comma_list("(", ")", self.type)))
                if needs_results or self.text == "->":
                    self.expect("->")
                    results = tuple(map(str, self.result_types()))
            else:
                operands = tuple(map(str, self.types_list()))
        return Tail(attributes, operands, tuple(of for of in results if of != CONTROL), typed)

    def use(self) -> Use:
        """Parse an operand."""
        return Use(*super().use())

    def get_result(self, results: list[tuple[str, int]], at: int) -> GetResult:
        """Parse `get_result(%value) "output" : 0`, or its older form without parentheses."""
        if self.accept("("):
            source = self.use()
            self.expect(")")
        else:
            source = self.use()
        output = unescaped_text(self.take("string", "the name of an output in quotes"))
        self.expect(":")
        index = self.int32("integer index of a result")
        if self.text == "{" and self.kind == "punctuation":
            self.dictionary()
        if [count for _, count in results] != [1]:
            raise self.error(f"operation defines 1 results but was provided {sum(n for _, n in results)} to bind", at)
        return GetResult(results[0][0], source, output, index, at)

    def parse_return(self, op: str, at: int) -> Return:
        """Parse `return(results) [controls] : types`, or a yield."""
        results = self.comma_list("(", ")", self.use) if self.text == "(" and self.kind == "punctuation" else []
        controls: list[tuple[Use, dict[str, a.Attribute]]] = []
        if self.text == "[" and self.kind == "punctuation":
            controls = self.comma_list("[", "]", self.control_result)
        if self.text == "{" and self.kind == "punctuation":
            self.dictionary()
        types = tuple(map(str, self.types_list())) if self.accept(":") else ()
        if len(types) != len(results):
            count = len(results)
            raise self.error(f"expected {count} operand type{'s' * (count != 1)} but had {len(types)}", at)
        return Return(results, controls, types, at, op)

    def condition(self, at: int) -> Return:
        """Parse `condition %value : type (results) [controls] : types`."""
        use = self.use()
        self.expect(":")
        of = str(self.plain_type())
        return self.parse_return("condition", at)._replace(condition=(use, of))

    def region_node(self, op: str, at: int, where: int, results: list[tuple[str, int]]) -> ParsedNode:
        """Parse a control flow op behind its name, up to its types."""
        kind = op.removesuffix("Region").removeprefix("Stateless").removeprefix("Stateful")
        inputs = [self.use()] if kind in ("If", "Case") else (
            self.comma_list("(", ")", self.use) if self.text == "(" and self.kind == "punctuation" else [])
        controls = self.comma_list("[", "]", self.use) if self.text == "[" and self.kind == "punctuation" else []
        if kind == "For":
            bounds = []
            for word in ("from", "to", "by"):
                self.expect(word)
                bounds.append(self.use())
            inputs = [*bounds, *inputs]
        if kind == "If":
            self.expect("then")
        regions = [self.region_of()]
        separator = {"If": "else", "While": "do", "Case": ","}.get(kind, "")
        while separator and (self.accept(separator) if kind == "Case" else len(regions) < 2):
            if kind != "Case":
                self.expect(separator)
            regions.append(self.region_of())
        tail = self.tail(kind != "For")
        named = tail.attributes.get(NAME)
        name = named.value if isinstance(named, a.StringAttr) else ""
        return ParsedNode(op, at, where, results, inputs, controls, "", "", name, tail, tuple(regions))

    def region_of(self) -> Region:
        """Parse `{...}` with the arguments that a label gives."""
        self.expect("{", " to begin a region")
        arguments: list[tuple[str, str, int]] = []
        if self.kind == "block":
            self.advance()
            if self.text == "(":
                arguments = self.comma_list("(", ")", self.block_argument)
            self.expect(":", " after block name")
        return Region(arguments, self.operations())

    def block_argument(self) -> tuple[str, str, int]:
        at, name = self.at, self.take("value", "SSA operand")
        self.expect(":")
        return name, str(self.type()), at

    def control_result(self) -> tuple[Use, dict[str, a.Attribute]]:
        use = self.use()
        return use, self.dictionary() if self.text == "{" and self.kind == "punctuation" else {}


def _uses(text: str | None, at: int) -> list[Use]:
    """The uses in a list with `, ` between them, which begins at a position."""
    uses = []
    for use_text in text.split(", ") if text else ():
        name, _, index = use_text.partition("#")
        uses.append(Use(name, int(index) if index else 0, at))
        at += len(use_text) + 2
    return uses
