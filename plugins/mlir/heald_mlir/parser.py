"""The parser of operations: modules, functions, and the generic form of every operation."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, Protocol

from . import attributes as a
from . import types as t
from .attribute_parser import AttributeParser
from .ir import Block, Operation, Region, Value
from .lexer import SUFFIX, unescaped_text

if TYPE_CHECKING:
    from .printer import Printer

MODULE, FUNCTION = "builtin.module", "func.func"
_NAME = rf"%{SUFFIX}(?:\#\d{{1,9}})?"
_LINE = re.compile(  # the common form of an operation: one result, no attributes, plain types
    rf'(?:(%{SUFFIX}) = )?"([\w$.]+)"\(((?:{_NAME}(?:, {_NAME})*)?)\) : '
    rf'\(([\w$.!, ]*)\) -> (\(\)|[\w$.!]+)\n', re.ASCII)
_VISIBILITIES = ("private", "public", "nested")


class OpSyntax(Protocol):
    """The custom syntax of one operation."""

    def parse(self, parser: Parser, name: str) -> Operation:
        """Parse all behind the operation's name, up to its location."""

    def print(self, printer: Printer, operation: Operation) -> None:
        """Write all behind the operation's name, up to its location."""


class Dialects(Protocol):
    """Operations that someone declares."""

    def syntax(self, name: str) -> OpSyntax | None:
        """The custom syntax of an operation; None for one that has the generic form only."""


def parse(text: str, file: str = "-", line: int = 1, dialects: Dialects | None = None) -> Operation:
    """The module in a text; a module around its operations where it is not one. `line`: the number of its first line.

    Raises MalformedText with file, line and column.
    """
    return Parser(text, file, line, dialects).module()


class Argument(NamedTuple):
    """An argument of a block, as it was written: its name, its type, the position of its name."""

    name: str
    type: t.Type
    at: int
    location: a.Location


class Parser(AttributeParser):
    """`names`: the values of the scope. `forward`: values that are used before they are defined, and their places."""

    def __init__(self, text: str, file: str = "-", line: int = 1, dialects: Dialects | None = None) -> None:
        self.dialects = dialects
        self.names: dict[str, list[Value]] = {}
        self.defined: dict[str, int] = {}  # the position of each name's last definition
        self.added: list[str] = []  # names of the open regions, in order of their definition
        self.forward: dict[tuple[str, int], tuple[Value, int]] = {}
        self.users: dict[int, list[Operation]] = {}  # operations that use a value of `forward`, by its id
        self.blocks: dict[str, tuple[Block, int]] = {}
        self.type_lists: dict[str, tuple[t.Type, ...]] = {"": (), "()": ()}  # by the text of _LINE
        super().__init__(text, file, line)

    def module(self) -> Operation:
        region = Region()
        block = Block()
        region.blocks.append(block)
        while self.kind != "end":
            if self.kind in ("alias", "type"):
                self.alias_definition()
            else:
                block.operations.append(self.line() or self.operation())
        self.check_forward(0)
        if len(block.operations) == 1 and block.operations[0].name == MODULE:
            return block.operations[0]
        return Operation(MODULE, regions=[region], location=a.FileLineColLoc(self.file, *self.place(0)))

    def line(self) -> Operation | None:
        """Parse an operation in the common form at once; None for another form, or one that has a fault."""
        match = _LINE.match(self.source, self.at)
        if match is None:
            return None
        result, name, used, inputs, outputs = match.groups()
        types, results = self.types_of(inputs, match.start(4)), self.types_of(outputs, match.start(5))
        names = used.split(", ") if used else []
        if len(names) != len(types) or len(results) != (result is not None):
            return None
        at, start = self.at, match.start(3)
        operands = []
        for operand, of in zip(names, types, strict=True):
            pack = self.names.get(operand)
            if pack is not None and len(pack) == 1 and (pack[0].type is of or pack[0].type == of):
                operands.append(pack[0])
            else:
                plain, _, index = operand.partition("#")
                operands.append(self.resolve(plain, int(index or 0), start, of))
            start += len(operand) + 2
        operation = self.register_operation(Operation(name, operands, results))
        self.jump(match.end())
        operation.location = self.optional_location(at if result is None else match.start(2) - 1)
        if result is not None:
            self.define(result, operation.results, at)
        return operation

    def types_of(self, text: str, at: int) -> tuple[t.Type, ...]:
        """Return the types of a list without brackets, which stands at a position."""
        types = self.type_lists.get(text)
        if types is None:
            here = self.at
            self.jump(at)
            types = self.type_lists[text] = tuple(self.types_list())
            self.jump(here)
        return types

    def operation(self) -> Operation:
        """Parse one operation with its results and location, and define its results."""
        at = self.at
        results: list[tuple[str, int, int]] = []
        while self.kind == "value":
            name, where, count = self.text, self.at, 1
            self.advance()
            if self.accept(":"):
                count = self.count("integer number of results")
                if count < 1:
                    raise self.error("expected named operation to have at least 1 result", where)
            results.append((name, count, where))
            if not self.accept(","):
                self.expect("=", " after SSA name")
                break
        start = self.at
        if self.kind == "string":
            operation = self.generic()
        elif self.text in ("module", MODULE):
            operation = self.parse_nested(self.module_operation)
        elif self.text in ("func", FUNCTION):
            operation = self.parse_nested(self.function)
        elif self.kind == "word" and (syntax := self.dialects.syntax(self.text) if self.dialects else None) is not None:
            name = self.text
            self.advance()
            operation = self.register_operation(syntax.parse(self, name))
        elif self.kind == "word":
            raise self.error(f"custom op '{self.text}' is unknown", hint="write it in the generic form: \"name\"(...)")
        else:
            raise self.error("expected operation name in quotes")
        operation.location = self.optional_location(start)
        expected = sum(count for _, count, _ in results)
        if results and expected != len(operation.results):
            raise self.error(f"operation defines {len(operation.results)} results but was provided {expected} to bind",
                             at)
        position = 0
        for name, count, where in results:
            self.define(name, operation.results[position:position + count], where)
            position += count
        return operation

    def generic(self) -> Operation:
        """Parse `"name"(operands)[successors]<{properties}>({regions}) {attributes} : type`."""
        name = unescaped_text(self.take("string", "operation name in quotes"))
        if not name:
            raise self.error("empty operation name is invalid")
        uses = self.comma_list("(", ")", self.use)
        successors = self.comma_list("[", "]", self.successor) if self.text == "[" else []
        attributes: dict[str, a.Attribute] = {}
        if self.accept("<"):
            attributes = self.dictionary()
            self.expect(">", " to close properties")
        regions = self.comma_list("(", ")", self.region) if self.text == "(" else []
        if self.text == "{":
            attributes |= self.dictionary()
        self.expect(":", " followed by operation type")
        at = self.at
        of = self.function_type() if self.text == "(" else None
        if of is None:
            raise self.error("expected function type", at)
        if len(of.inputs) != len(uses):
            raise self.error(f"expected {len(uses)} operand type{'s' * (len(uses) != 1)} but had {len(of.inputs)}", at)
        operands = [self.resolve(*use, kind) for use, kind in zip(uses, of.inputs, strict=True)]
        return self.register_operation(Operation(name, operands, of.results, attributes, regions, successors))

    def register_operation(self, operation: Operation) -> Operation:
        """Remember the operation with the values that it uses before their definition."""
        if self.forward:
            for value in operation.operands:
                if value.owner is None:
                    self.users.setdefault(id(value), []).append(operation)
        return operation

    # Values and blocks

    def resolve(self, name: str, index: int, at: int, of: t.Type) -> Value:
        """The value of a use. Raises MalformedText for another type than that of the value."""
        pack = self.names.get(name)
        if pack is None:
            value, _ = self.forward.setdefault((name, index), (Value(of, None, index), at))
        elif index < len(pack):
            value = pack[index]
        else:
            raise self.error("reference to invalid result number", at)
        if value.type is not of and value.type != of:
            raise self.error(f"use of value '{name}' expects different type than prior uses: '{of}' vs '{value.type}'",
                             at, (self.forward[name, index][1] if pack is None else self.defined[name],
                                  "prior use here"))
        return value

    def define(self, name: str, values: list[Value], at: int) -> None:
        """Give values a name, and replace their earlier uses."""
        if name in self.names:
            raise self.error(f"redefinition of SSA value '{name}'", at)
        self.names[name] = values
        self.defined[name] = at
        self.added.append(name)
        if not self.forward:
            return
        for key in [key for key in self.forward if key[0] == name]:
            early, where = self.forward.pop(key)
            if key[1] >= len(values):
                raise self.error("reference to invalid result number", where)
            value = values[key[1]]
            if value.type != early.type:
                raise self.error(f"definition of SSA value '{name}#{key[1]}' has type '{value.type}'", at,
                                 (where, f"previously used here with type '{early.type}'"))
            for user in self.users.pop(id(early), ()):
                user.operands = [value if operand is early else operand for operand in user.operands]

    def define_argument(self, block: Block, argument: Argument) -> None:
        """Add an argument to a block, and give it its name."""
        self.define(argument.name, [block.add_argument(argument.type, argument.location)], argument.at)

    def check_forward(self, start: int) -> None:
        """Raises MalformedText for a value that is used from `start` on and never defined."""
        for (name, _), (_, at) in self.forward.items():
            if at >= start:
                raise self.error(f"use of undeclared SSA value name '{name}'", at)

    def successor(self) -> Block:
        at = self.at
        name = self.take("block", "block name")
        return self.blocks.setdefault(name, (Block(), at))[0]

    def region(self, arguments: list[Argument] | None = None, isolated: bool = False) -> Region:
        """Parse `{...}`. The entry has these arguments where it has no label."""
        return self.parse_nested(lambda: self._region(arguments or [], isolated))

    def _region(self, arguments: list[Argument], isolated: bool) -> Region:
        start = self.at
        self.expect("{", " to begin a region")
        outer_blocks, self.blocks = self.blocks, {}
        outer_names = self.names
        if isolated:
            self.names = {}
        mark = len(self.added)
        region, block = Region(), Block()
        for argument in arguments:
            self.define_argument(block, argument)
        defined: set[str] = set()
        if arguments or (self.text != "}" and self.kind != "block"):
            region.blocks.append(block)
        while not self.accept("}"):
            if self.kind == "end":
                raise self.error("expected '}' to end a region")
            if self.kind == "block":
                if self.text in defined:
                    raise self.error(f"redefinition of block '{self.text}'")
                defined.add(self.text)
                block = self.label()
                region.blocks.append(block)
            else:
                block.operations.append(self.line() or self.operation())
        for name, (_, at) in self.blocks.items():
            if name not in defined:
                raise self.error(f"reference to an undefined block '{name}'", at)
        for name in self.added[mark:]:
            del self.names[name]
        del self.added[mark:]
        self.names, self.blocks = outer_names, outer_blocks
        if isolated:
            self.check_forward(start)
        return region

    def label(self) -> Block:
        """Parse `^name(%a: type, ...):`."""
        name, at = self.text, self.at
        self.advance()
        block = self.blocks.setdefault(name, (Block(), at))[0]
        if self.text == "(":
            for argument in self.comma_list("(", ")", self.argument):
                self.define_argument(block, argument)
        self.expect(":", " after block name")
        return block

    def argument(self) -> Argument:
        """Parse an argument of a block: `%a: type loc(...)`."""
        at = self.at
        name = self.take("value", "SSA operand")
        self.expect(":")
        return Argument(name, self.type(), at, self.optional_location(at))

    def optional_location(self, at: int) -> a.Location:
        """The location that stands here, else that of a position."""
        return self.bracketed_location() if self.text == "loc" and self.kind == "word" else a.FileLineColLoc(
            self.file, *self.place(at))

    # Modules and functions

    def module_operation(self) -> Operation:
        """Parse `module @name attributes {...} {...}`."""
        self.advance()
        attributes: dict[str, a.Attribute] = {}
        if self.kind == "symbol":
            attributes["sym_name"] = a.StringAttr(self.symbol_name())
        if self.accept("attributes"):
            attributes |= self.dictionary()
        region = self.region(isolated=True)
        if not region.blocks:
            region.blocks.append(Block())
        return Operation(MODULE, attributes=attributes, regions=[region])

    def function(self) -> Operation:
        """Parse `func.func private @name(%a: type {...}) -> (type {...}) attributes {...} {...}`."""
        self.advance()
        attributes: dict[str, a.Attribute] = {}
        if self.text in _VISIBILITIES:
            attributes["sym_visibility"] = a.StringAttr(self.text)
            self.advance()
        attributes["sym_name"] = a.StringAttr(self.symbol_name())
        arguments: list[Argument] = []
        argument_attributes: list[a.DictionaryAttr] = []
        inputs: list[t.Type] = []

        def parameter() -> None:
            where, name = self.at, self.text
            if named := self.kind == "value":
                self.advance()
                self.expect(":")
            inputs.append(self.type())
            argument_attributes.append(self.optional_dictionary())
            location = self.optional_location(where)
            if named:
                arguments.append(Argument(name, inputs[-1], where, location))

        at = self.at
        self.comma_list("(", ")", parameter)
        if arguments and len(arguments) != len(inputs):
            raise self.error("expected SSA identifier", at)
        results: list[t.Type] = []
        result_attributes: list[a.DictionaryAttr] = []

        def result() -> None:
            results.append(self.type())
            result_attributes.append(self.optional_dictionary())

        if self.accept("->"):
            if self.text == "(":
                self.comma_list("(", ")", result)
            else:
                results.append(self.plain_type())
                result_attributes.append(a.DictionaryAttr(()))
        attributes["function_type"] = a.TypeAttr(t.FunctionType(tuple(inputs), tuple(results)))
        for name, dictionaries in (("arg_attrs", argument_attributes), ("res_attrs", result_attributes)):
            if any(dictionary.items for dictionary in dictionaries):
                attributes[name] = a.ArrayAttr(tuple(dictionaries))
        if self.accept("attributes"):
            attributes |= self.dictionary()
        if self.text == "{":
            if inputs and not arguments:
                raise self.error("expected SSA identifier", at)
            region = self.region(arguments, isolated=True)
        else:
            region = Region()
        return Operation(FUNCTION, attributes=attributes, regions=[region])

    def optional_dictionary(self) -> a.DictionaryAttr:
        return a.DictionaryAttr(tuple(sorted(self.dictionary().items())) if self.text == "{" else ())
