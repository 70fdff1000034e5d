"""The parser of the operations in a graph or a function.

Values may be used before they are defined, so a body is parsed whole before its inputs are resolved. Operations stand
in any layout, in the dialect's own form or in the generic form of MLIR, which `generic_form` turns into the same data.
A node is one line as a rule: `lines` takes each by one regular expression. The part behind its name, which many nodes
share, is parsed once. It leaves any other layout, and any fault, to `operation`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ... import attributes as a
from ... import types as t
from ...lexer import BLANK, SUFFIX, MalformedText, unescaped_text
from ..regions.region_forms import REGION_OPS
from ..values.element_types import CONTROL
from ..values.faults import FaultReporter
from ..values.names import BARE_OP, DIALECT
from .attribute_reader import AttributeReader
from .generic_form import GenericOperation, operation_of
from .inherent_attributes import inherent_attributes, property_fault
from .parsed_body import ASSIGNED, DEVICE, KEYWORDS, NAME, Body, GetResult, ParsedNode, Region, Return, Tail, Use
from .region_checks import attribute_fault, kind_of

_VALUE = rf"%{SUFFIX}(?:\#\d{{1,9}})?"
_VALUES = rf"{_VALUE}(?:, {_VALUE})*"
_TEXT = r'"([^"\\\n]*)"'
_LINE = re.compile(  # the usual form of a node, up to its name
    rf"(%{SUFFIX})(?::([1-9]\d{{0,8}}))?(?:, (%{SUFFIX}))? = (?:tfg\.)?([A-Za-z_][\w$]*)(?:\(({_VALUES})\))?+"
    rf"(?: \[({_VALUES})\])?+(?: device\({_TEXT}\))?+(?: assigned_device\({_TEXT}\))?+(?: name\({_TEXT}\))?+([^\n]*+)\n"
    r"[ \t\r\n]*+(?=[%}]|return)",  # the node does not go on there
    re.ASCII)
_END_OF_LINE = re.compile(BLANK)
LARGEST_INDEX = 2**31 - 1
_BOUNDS = 3  # operands of a For in front of its values
_LONGEST_LINE = 1 << 16  # characters of a node in the usual form
_MAX_SHARED_CHARACTERS = 1024  # characters of a shared part of a line
_OF_MODULES = ("tfg.graph", "tfg.func")
_TERMINATORS = ("return", "yield", "condition")
_SPECIAL_OPS = REGION_OPS | {*_TERMINATORS, "get_result", "graph", "func"}
UNREGISTERED = ("operation being parsed with an unregistered dialect. If this is intended, please use "
                 "-allow-unregistered-dialect with the MLIR tool used")


class Results(NamedTuple):
    """The names before `=`, where they begin, and how many values they bind."""

    names: list[tuple[str, int]]
    at: int


class BodyReader(AttributeReader, FaultReporter):
    """A parser of bodies. `default_dialect`: the dialect of operations whose name has no prefix."""

    def __init__(self, text: str, file: str = "-", line: int = 1) -> None:
        self.tails: dict[str, Tail] = {}
        self.default_dialect = "builtin"
        self._newline = -1  # the position of the next one, as far as it is known
        super().__init__(text, file, line)

    def custom_error(self, op: str, message: str, at: int | None = None, hint: str | None = None) -> MalformedText:
        """A fault within the dialect's own form of an op."""
        return self.error(f"custom op 'tfg.{op}' {message}", at, hint=hint)

    def is_punctuation(self, text: str) -> bool:
        return self.text == text and self.kind == "punctuation"

    # Blocks

    def body(self) -> Body:
        """Parse `{...}` of the dialect's own form."""
        outer, self.default_dialect = self.default_dialect, "tfg"
        region = self.region_of()
        self.default_dialect = outer
        return region.body

    def region_of(self) -> Region:
        """Parse `{...}` with the arguments that a label gives."""
        at = self.at
        self.expect("{", " to begin a region")
        arguments: list[tuple[str, str, int]] = []
        labels, blocks = [], 1
        if self.kind == "block":
            labels.append(self.at)
            arguments = self.label()
        nodes: list[ParsedNode] = []
        get_results: list[GetResult] = []
        last: ParsedNode | GetResult | Return | None = None
        early: Return | None = None
        misplaced: tuple[str, int] | None = None
        while not self.accept("}"):
            lines = self.lines()
            if lines:
                if isinstance(last, Return):
                    early = early or last
                nodes += lines
                last = lines[-1]
                continue
            if self.kind == "block":
                labels.append(self.at)
                self.label()
                blocks, last = blocks + 1, None
                continue
            if self.is_of_module():
                where, version = self.at, self.pass_module_operation()
                misplaced = misplaced or (version, where)
                last = None
                continue
            node = self.operation()
            if isinstance(last, Return):
                early = early or last
            last = node
            if isinstance(node, ParsedNode):
                nodes.append(node)
            elif isinstance(node, GetResult):
                get_results.append(node)
        if misplaced is not None:
            self.report_misplaced(*misplaced)
        terminator = last if isinstance(last, Return) else None
        name = last.op if isinstance(last, ParsedNode) else "get_result" if isinstance(last, GetResult) else (
            "func" if misplaced is not None and last is None else "")
        return Region(arguments, Body(nodes, get_results, terminator, name, at, tuple(labels), blocks, early))

    def report_misplaced(self, version: str, at: int) -> None:
        """Report a graph or a function in a body. `version`: of a graph."""
        if version:
            self.report_export(f"Unhandled attribute kind for attribute: {version}", at, "a graph stands in a module")
        else:
            self.report(self.error("'tfg.func' op symbol's parent must have the SymbolTable trait", at))

    def label(self) -> list[tuple[str, str, int]]:
        """Parse `^name(%argument: type, ...):`."""
        self.advance()
        arguments = self.comma_list("(", ")", self.block_argument) if self.is_punctuation("(") else []
        self.expect(":", " after block name")
        return arguments

    def block_argument(self) -> tuple[str, str, int]:
        at, name = self.at, self.take("value", "SSA operand")
        self.expect(":", " and type for SSA operand")
        of = str(self.type())
        self.trailing_location()
        return name, of, at

    def trailing_location(self) -> a.Location | None:
        """Parse a location, or nothing."""
        return self.bracketed_location() if self.text == "loc" and self.kind == "word" else None

    # Operations

    def lines(self) -> list[ParsedNode]:
        """Parse nodes in the usual form, each at once, up to one in another form, or with a fault."""
        nodes: list[ParsedNode] = []
        at = self.at
        while self.default_dialect == "tfg" and (match := self._match_line(at)) is not None:
            node = self._node_of_line(match)
            if node is None:
                break
            nodes.append(node)
            at = match.end()
        if nodes:
            self.jump(at)
        return nodes

    def _match_line(self, at: int) -> re.Match[str] | None:
        if self._newline < at:
            newline = self.source.find("\n", at)
            self._newline = len(self.source) if newline < 0 else newline
        if self._newline - at > _LONGEST_LINE:
            return None  # its nodes would each look for its end
        return _LINE.match(self.source, at)

    def _node_of_line(self, match: re.Match[str]) -> ParsedNode | None:
        """The node of a line; None for another form, or one with a fault."""
        value, count, control, op, inputs, controls, device, assigned, name, tail_text = match.groups()
        if name is None or op in _SPECIAL_OPS:
            return None
        tail = self.tails.get(tail_text)
        if tail is None:
            tail = self.tail_of_line(tail_text, match.start(10), match.end(10))
            if tail is None:
                return None
        if not tail.counted and len(tail.operands) > (inputs.count("%") if inputs else 0):
            return None
        results = [(value, int(count) if count else 1)]
        if control:
            results.append((control, 1))
        return ParsedNode(op, match.start(), match.start(4), results,
                          _uses(inputs, match.start(5)) if inputs else [],
                          _uses(controls, match.start(6)) if controls else [], device or "", assigned or "", name, tail)

    def tail_of_line(self, text: str, start: int, end: int) -> Tail | None:
        """Parse the part of a line behind its name; None, at the position before, where more or less stands there."""
        if text[:2] not in ("", " {", " :"):
            return None
        at = self.at
        self.jump(start)
        tail = self.tail()
        ended = _END_OF_LINE.match(self.source, end)
        if (ended is None or ended.end() != self.at) or any(key in tail.attributes for key in KEYWORDS.values()):
            self.jump(at)
            return None
        if len(text) <= _MAX_SHARED_CHARACTERS:
            self.tails[text] = tail
        return tail

    def operation(self) -> ParsedNode | GetResult | Return:
        """Parse any operation of a body."""
        return self.operation_behind(self.result_names())

    def operation_behind(self, results: Results) -> ParsedNode | GetResult | Return:
        """Parse an operation behind the names of its results."""
        where = self.at
        if results.names and self.is_of_module():
            self.pass_module_operation()
            raise self.error("cannot name an operation with no results", results.at)
        operation: ParsedNode | GetResult | Return
        if self.kind == "word":
            op = self.op_of_word()
            if op == "get_result":
                operation = self.get_result(results, where)
            elif op in _TERMINATORS:
                operation = self.condition(where) if op == "condition" else self.parse_return(op, where)
            elif op in REGION_OPS:
                operation = self.parse_nested(lambda: self.region_node(op, results, where))
            else:
                operation = self.node(op, results, where)
        elif self.kind == "string":
            operation = self.quoted_operation(results, where)
        else:
            raise self.wrong_token("expected operation name in quotes")
        self.resolve_operands(operation)
        location = self.trailing_location()
        if location is not None and isinstance(operation, ParsedNode):
            operation.location = location
        if results.names:
            self.check_bound(operation, results)
        self.define_results(operation, results)
        return operation

    def resolve_operands(self, operation: ParsedNode | GetResult | Return) -> None:
        """See `fault_order`: here operands are resolved when their body is whole."""

    def define_results(self, operation: ParsedNode | GetResult | Return, results: Results) -> None:
        """See `fault_order`."""

    def check_bound(self, operation: ParsedNode | GetResult | Return, results: Results) -> None:
        """Raises MalformedText for other numbers of names than of results, where its types tell the latter."""
        if isinstance(operation, Return):
            raise self.error("cannot name an operation with no results", results.at)
        if isinstance(operation, GetResult):
            count = sum([number for _, number in results.names])
            if count != 1:
                raise self.error(f"operation defines 1 results but was provided {count} to bind", results.at)
        elif operation.tail.typed:
            count = len(operation.tail.results) + operation.tail.tokens
            if not count:
                raise self.error("cannot name an operation with no results", results.at)
            bound = sum([number for _, number in results.names])
            if count != bound:
                raise self.error(f"operation defines {count} results but was provided {bound} to bind", results.at)

    def is_of_module(self) -> bool:
        """True at a graph or a function, whose names may lack the prefix as those of nodes."""
        return self.kind == "word" and (self.text in _OF_MODULES or (
            self.default_dialect == "tfg" and DIALECT + self.text in _OF_MODULES))

    def pass_module_operation(self) -> str:
        """Parse an operation of a module. Return the version of a graph, "" for a function."""
        raise NotImplementedError

    def result_names(self) -> Results:
        """Parse `%a:2, %b = `, or nothing."""
        at = self.at
        names: list[tuple[str, int]] = []
        while self.kind == "value" or names:
            name, count = self.take("value", "valid ssa identifier"), 1
            if self.accept(":"):
                if self.kind != "number" or not self.text.isdigit():
                    raise self.wrong_token("expected integer number of results")
                if not 0 < int(self.text[:10]) < 1 << 31:
                    raise self.error("expected named operation to have at least 1 result")
                count = int(self.text)
                self.advance()
            names.append((name, count))
            if not self.accept(","):
                self.expect("=", " after SSA name")
                break
        return Results(names, at)

    def op_of_word(self) -> str:
        """Take the name of an op of the dialect, with its prefix or without."""
        word, at = self.text, self.at
        self.advance()
        dialect, _, op = word.partition(".")
        if not op:  # `Add`, and `tfg.` as MLIR has it
            if self.default_dialect == "tfg":
                return word
            raise self.error(f"custom op '{word}' is unknown (tried '{self.default_dialect}.{word}' as well)", at,
                             hint="write the prefix of the dialect: tfg.")
        if dialect == "tfg":
            return op
        raise self.error(f"custom op '{word}' is unknown" if dialect == "builtin" else
                         f"Dialect `{dialect}' not found for custom op '{word}' ", at,
                         hint="a point in the name of an op needs the prefix of the dialect: tfg.")

    def quoted_operation(self, results: Results, where: int) -> ParsedNode | GetResult | Return:
        """Parse the generic form. An op whose name is no identifier may have the form of other nodes, too."""
        name = self.quoted_name()
        op = name.removeprefix(DIALECT)
        odd = bool(op) and BARE_OP.match(op) is None
        if odd and not self.is_punctuation("("):
            return self.node(op, results, where)
        if op is name and not odd:
            raise self.error(UNREGISTERED, hint="write the prefix of the dialect: tfg.")
        uses = self.operand_list()
        if odd and (self.is_punctuation("[") or (self.kind == "word" and self.text in KEYWORDS)):
            return self.node_behind_inputs(op, results, where, uses)
        generic = self.parse_nested(lambda: self.generic_operation(op, where, uses))
        if not op:
            self.report(self.error("'tfg.' op created with unregistered dialect", where))
        return self.operation_of_generic(generic, results)

    def operation_of_generic(self, generic: GenericOperation, results: Results) -> ParsedNode | GetResult | Return:
        return operation_of(self, generic, results.names, results.at)

    def quoted_name(self) -> str:
        """Take the name of an operation in quotes."""
        name = unescaped_text(self.text)
        if not name:
            raise self.error("empty operation name is invalid")
        self.advance()
        return name

    def operand_list(self) -> list[Use]:
        """Parse the operands of the generic form."""
        self.expect("(", " to start operand list")
        uses: list[Use] = []
        if self.kind == "value":
            uses.append(self.use())
            while self.accept(","):
                uses.append(self.use())
        self.expect(")", " to end operand list")
        return uses

    def generic_operation(self, op: str, where: int, uses: Sequence[Use]) -> GenericOperation:
        """Parse `<{properties}>({regions}) {attributes} : types` behind the operands of the generic form."""
        if self.is_punctuation("["):
            self.advance()
            raise self.error("reference to an undefined block" if self.kind == "block" else "expected block name")
        properties: dict[str, a.Attribute] = {}
        if self.accept("<"):
            properties = self.dictionary()
            self.expect(">", " to close properties")
        regions: list[Region] = []
        if self.accept("("):
            regions.append(self.region_of())
            while self.accept(","):
                regions.append(self.region_of())
            self.expect(")", " to end region list")
        attributes = self.dictionary() if self.is_punctuation("{") else {}
        self.expect(":", " followed by operation type")
        at = self.at
        if not self.is_punctuation("("):
            self.type()
            raise self.error("expected function type", at)
        of = self.function_type()
        fault = property_fault(op, properties)
        if fault is not None:
            raise self.error(fault, where)
        inherent = inherent_attributes(op, properties)
        attributes |= inherent
        dropped = {name: value for name, value in properties.items() if name not in inherent}
        if len(of.inputs) != len(uses):
            count = len(uses)
            raise self.error(f"expected {count} operand type{'s' * (count != 1)} but had {len(of.inputs)}", at)
        return GenericOperation(op, where, list(uses), attributes, regions, list(map(str, of.inputs)),
                                list(map(str, of.results)), dropped)

    # Nodes

    def node(self, op: str, results: Results, where: int) -> ParsedNode:
        """Parse `(inputs) [controls] device("") assigned_device("") name("") {...} : types` of a node."""
        return self.node_behind_inputs(op, results, where, self.operands("(", ")"))

    def node_behind_inputs(self, op: str, results: Results, where: int, inputs: list[Use]) -> ParsedNode:
        controls = self.operands("[", "]")
        keywords = self.keywords(op)
        tail = self.tail()
        self.check_keywords(op, where, keywords, tail.attributes)
        if not tail.counted and len(tail.operands) > len(inputs):  # a list of types goes on in the brackets
            count = len(tail.operands) - len(inputs)
            inputs, controls = inputs + controls[:count], controls[count:]
        return self.named_node(op, results, where, inputs, controls, keywords, tail)

    def operands(self, opening: str, closing: str) -> list[Use]:
        """Parse a list of operands in brackets, or nothing."""
        uses: list[Use] = []
        if not self.is_punctuation(opening):
            return uses
        self.advance()
        if not self.is_punctuation(closing):
            uses.append(self.use())
            while self.accept(","):
                uses.append(self.use())
        self.expect(closing, " in operand list")
        return uses

    def named_node(self, op: str, results: Results, where: int, inputs: list[Use], controls: list[Use],
                   keywords: dict[str, str], tail: Tail, regions: tuple[Region, ...] = ()) -> ParsedNode:
        """The node whose name and devices stand in keywords or attributes."""
        texts = {key: value.value for key in KEYWORDS.values()
                 if isinstance(value := tail.attributes.get(key), a.StringAttr)} | keywords
        return ParsedNode(op, results.at, where, results.names, inputs, controls, texts.get(DEVICE, ""),
                          texts.get(ASSIGNED, ""), texts.get(NAME, ""), tail, regions)

    def keywords(self, op: str) -> dict[str, str]:
        """Parse `device("") assigned_device("") name("")` of an op, each of them optional."""
        keywords = {}
        for word, key in KEYWORDS.items():
            if self.kind == "word" and self.accept(word):
                self.expect("(")
                keywords[key] = self.keyword_text(op)
                self.expect(")")
        return keywords

    def keyword_text(self, op: str) -> str:
        """Parse a string, which is read as an attribute whose type is none."""
        if self.kind == "string":
            text = unescaped_text(self.text)
            self.advance()
            return text
        at, negative = self.at, self.accept("-")
        if self.kind == "number":
            if "." not in self.text:
                raise self.error("integer literal not valid for specified type")
            self.advance()
            raise self.wrong_token("floating point value not valid for specified type")
        if negative:
            raise self.wrong_token("expected constant integer or floating point value")
        if self.kind == "word" and self.text == "dense":
            raise self.error("elements literal must be a shaped type", at)
        attribute = self.attribute()
        if not isinstance(attribute, a.StringAttr):
            raise self.custom_error(op, "invalid kind of attribute specified", at)
        return attribute.value

    def check_keywords(self, op: str, where: int, keywords: dict[str, str], attributes: dict[str, a.Attribute]) -> None:
        for key in keywords:
            if key in attributes:
                raise self.custom_error(op, f"attribute '{key}' occurs more than once in the attribute list", where)

    def tail(self) -> Tail:
        """Parse `{...} : (types) -> (types)`, all of it optional."""
        attributes = self.dictionary() if self.is_punctuation("{") else {}
        operands: tuple[str, ...] = ()
        results: tuple[str, ...] = ()
        counted = True
        if typed := self.accept(":"):
            if self.is_punctuation("("):
                operands = tuple(map(str, self.comma_list("(", ")", self.type)))
                self.expect("->", " in function type")
                results = tuple(map(str, self.result_types()))
            else:
                operands, counted = tuple(map(str, self.types_list())), False
        return tail_of(attributes, operands, results, typed, counted, 1)

    def position_of_types(self, node: ParsedNode) -> int:
        """The position of the colon before a node's types. The parser's own position is lost."""
        self.jump(node.where)
        self.advance()
        self.operands("(", ")")
        self.operands("[", "]")
        self.keywords(node.op)
        if self.is_punctuation("{"):
            self.dictionary()
        return self.at

    def position_of_value(self, name: str, at: int) -> int:
        """The position of a value's name, which is defined by the operation or argument at a position."""
        match = re.compile(rf"{re.escape(name)}(?![\w$.\-])").search(self.source, at)
        return at if match is None else match.start()

    def use(self) -> Use:
        """Parse an operand."""
        use = Use(*super().use())
        if self.kind == "alias" and not self.text[1:].isdigit():
            raise self.error("invalid SSA value result number")
        return use

    def get_result(self, results: Results, at: int) -> GetResult:
        """Parse `get_result(%value) "output" : 0`, or its older form without parentheses."""
        if self.accept("("):
            source = self.use()
            self.expect(")")
        else:
            source = self.use()
        output = self.keyword_text("get_result")
        self.expect(":")
        return GetResult(results.names[0][0] if results.names else "", source, output, self.result_index(), at)

    def result_index(self) -> int:
        """Parse the index of a tensor, an attribute of 32 bits without its type."""
        at, negative = self.at, self.accept("-")
        if self.kind != "number":
            raise self.wrong_token("expected attribute value")
        text = self.text
        self.advance()
        if not text.isdigit() and not text.startswith("0x"):
            raise self.wrong_token("floating point value not valid for specified type")
        number = int(text[:12], 16 if text.startswith("0x") else 10)
        if number > LARGEST_INDEX:
            raise self.error("integer constant out of range for attribute", at)
        return -number if negative else number

    # Terminators

    def parse_return(self, op: str, at: int) -> Return:
        """Parse `(results) [controls] {...} : types` of a return or, behind its condition, of a region's end."""
        is_return = op == "return"
        results = self.operands("(", ")") if is_return else self.values_between("(", ")")
        controls: list[tuple[Use, dict[str, a.Attribute]]] = []
        if self.is_punctuation("["):
            if is_return:
                controls = self.control_results()
            else:
                controls = [(use, {}) for use in self.values_between("[", "]")]
        if is_return:
            self.keywords(op)
        if self.is_punctuation("{"):
            self.dictionary()
        typed = self.accept(":")
        types = tuple(map(str, self.types_list())) if typed else ()
        if not is_return and len(types) != len(results):
            raise self.custom_error(op, f"number of operands and types do not match: got {len(results)} operands and "
                                        f"{len(types)} types", results[0].at if results else at)
        count = len(results) + len(controls) if is_return else len(results)
        return Return(results, controls, types[:count], at, op, None, typed)

    def control_results(self) -> list[tuple[Use, dict[str, a.Attribute]]]:
        """Parse `[%value {...}, ...]`, which may end with a comma."""
        self.advance()
        controls = []
        while self.kind == "value":
            use = self.use()
            controls.append((use, self.dictionary() if self.is_punctuation("{") else {}))
            if not self.accept(","):
                break
        self.expect("]")
        return controls

    def condition(self, at: int) -> Return:
        """Parse `condition %value : type (results) [controls] : types`."""
        use = self.use()
        self.expect(":")
        of = str(self.plain_type())
        return self.parse_return("condition", at)._replace(condition=(use, of))

    # Control flow

    def region_node(self, op: str, results: Results, where: int) -> ParsedNode:
        """Parse a control flow op behind its name."""
        kind = kind_of(op)
        inputs = [self.use()] if kind in ("If", "Case") else (
            self.values_between("(", ")"))
        controls = self.values_between("[", "]")
        if kind == "For":
            bounds = []
            for word in ("from", "to", "by"):
                self.expect_word(op, word)
                bounds.append(self.use())
            inputs = [*bounds, *inputs]
        if kind == "If":
            self.expect_word(op, "then")
        regions = [self.region_of()] if kind != "Case" or self.is_punctuation("{") else []
        separator = {"If": "else", "While": "do", "Case": ","}.get(kind, "")
        while separator and (regions and self.accept(separator) if kind == "Case" else len(regions) < 2):
            if kind != "Case":
                self.expect_word(op, separator)
            regions.append(self.region_of())
        tail = self.region_tail(op, kind, inputs)
        if len(tail.operands) != len(inputs):
            first = _BOUNDS if kind == "For" else 0
            raise self.custom_error(op, f"number of operands and types do not match: got {len(inputs) - first} "
                                        f"operands and {len(tail.operands) - first} types",
                                    inputs[first].at if len(inputs) > first else where)
        return self.named_node(op, results, where, inputs, controls, {}, tail, tuple(regions))

    def region_tail(self, op: str, kind: str, inputs: Sequence[Use]) -> Tail:
        """Parse `{...} : (types) -> (types)`. A loop without values may leave out the types."""
        start = self.at
        attributes = self.dictionary() if self.is_punctuation("{") else {}
        fault = attribute_fault(op, attributes)
        if fault is not None:
            raise self.custom_error(op, fault, start)
        if kind == "While" and not self.is_punctuation(":"):
            return Tail(attributes, (), (), True)
        self.expect(":")
        at = self.at
        if not self.is_punctuation("("):
            of = self.type()
            raise self.custom_error(op, f"invalid kind of type specified: expected builtin.function, but found '{of}'",
                                    at)
        operands = tuple(map(str, self.types_of_for() if kind == "For" else self.comma_list("(", ")", self.type)))
        if kind == "For" and not self.is_punctuation("->"):
            return Tail(attributes, operands, (), True)
        self.expect("->", " in function type")
        if kind == "For" and not self.is_punctuation("("):
            raise self.wrong_token("expected '('")
        results = tuple(map(str, self.result_types()))
        return tail_of(attributes, operands, results, True, True, 1)

    def types_of_for(self) -> list[t.Type]:
        """Parse `(type, type, type, ...)`: those of the bounds, then those of values."""
        self.expect("(")
        types = [self.type()]
        while len(types) < _BOUNDS or self.is_punctuation(","):
            self.expect(",")
            types.append(self.type())
        self.expect(")")
        return types

    def values_between(self, opening: str, closing: str) -> list[Use]:
        """Parse values between brackets, or nothing."""
        uses: list[Use] = []
        if self.is_punctuation(opening):
            self.advance()
            if self.kind == "value":
                uses.append(self.use())
                while self.accept(","):
                    uses.append(self.use())
            self.expect(closing)
        return uses

    def expect_word(self, op: str, word: str) -> None:
        """Take a word of the form of a control flow op."""
        if self.kind != "word" or not self.accept(word):
            raise self.custom_error(op, f"expected '{word}'", self.at)


def tail_of(attributes: dict[str, a.Attribute], operands: tuple[str, ...], results: tuple[str, ...], typed: bool,
            counted: bool, tokens: int) -> Tail:
    """The tail of these types, where control tokens at the end of the results are counted."""
    while results and results[-1] == CONTROL:
        results, tokens = results[:-1], tokens + 1
    return Tail(attributes, operands, results, typed, counted, tokens)


_new = tuple.__new__  # half the time of calling Use


def _uses(text: str, at: int) -> list[Use]:
    """The uses in a list with `, ` between them, which begins at a position."""
    uses = []
    for use_text in text.split(", "):
        name, _, index = use_text.partition("#")
        uses.append(_new(Use, (name, int(index) if index else 0, at)))
        at += len(use_text) + 2
    return uses
