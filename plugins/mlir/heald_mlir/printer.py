"""The printer of operations: text as MLIR's own printer writes it.

MLIR numbers the values of a region before the values of the regions within it, and each of these goes on from there.
Arguments of an entry block are `%arg0`, `%arg1`, ...
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from heald.api import errors

from . import attributes as a
from . import types as t
from .attribute_parser import DEEPEST_NESTING
from .attribute_text import attribute_text, location_text, name_text, symbol_text
from .ir import Block, Operation, Region, Value
from .parser import FUNCTION, MODULE, Dialects

_INHERENT = {
    MODULE: ("sym_name", "sym_visibility"),
    FUNCTION: ("arg_attrs", "function_type", "res_attrs", "sym_name", "sym_visibility"),
}
_NO_ATTRIBUTES = a.DictionaryAttr(())


def print_module(
    operation: Operation, dialects: Dialects | None = None, *, generic: bool = False, locations: bool = False
) -> str:
    """The text of an operation, most often of a module, with a newline at its end.

    `dialects`: the declared operations, which have a syntax of their own; all others have the generic form.
    `generic`: True for the generic form of all operations.
    `locations`: True for locations, as aliases that stand at the end.

    Raises InvalidArgument for regions nested deeper than the parser takes.
    """
    printer = Printer(dialects, generic=generic, locations=locations)
    printer.number(operation)
    printer.print(operation)
    return "".join([*printer.out, "\n", *printer.alias_definitions()])


class Printer:
    """The text so far, the names of values and blocks, and the aliases of locations."""

    def __init__(self, dialects: Dialects | None = None, *, generic: bool = False, locations: bool = False) -> None:
        self.out: list[str] = []
        self.write = self.out.append
        self._dialects = None if generic else dialects
        self._generic, self._locations = generic, locations
        self._names: dict[Value, str] = {}
        self._packs: dict[Operation, str] = {}  # the common name of several results
        self._blocks: dict[Block, str] = {}
        self._aliases: dict[a.Location, str] = {}
        self._indent = ""

    # Names

    def number(self, operation: Operation) -> None:
        """Give names to all values and blocks within an operation."""
        numbers = self._number_results([operation], 0)
        left = [(region, numbers, 0) for region in reversed(operation.regions)]
        while left:
            region, values, arguments = left.pop()
            for index, block in enumerate(region.blocks):
                self._blocks[block] = f"^bb{index}"
                for argument in block.arguments:
                    if index == 0:
                        self._names[argument] = f"%arg{arguments}"
                        arguments += 1
                    else:
                        self._names[argument] = f"%{values}"
                        values += 1
                values = self._number_results(block.operations, values)
            left += [(inner, values, arguments) for block in reversed(region.blocks)
                     for operation in reversed(block.operations) for inner in reversed(operation.regions)]

    def _number_results(self, operations: Iterable[Operation], values: int) -> int:
        names = self._names
        for operation in operations:
            results = operation.results
            if len(results) == 1:
                names[results[0]] = f"%{values}"
                values += 1
            elif results:
                self._packs[operation] = f"%{values}:{len(results)}"
                for index, result in enumerate(results):
                    names[result] = f"%{values}#{index}"
                values += 1
        return values

    def shadow(self, region: Region, operands: Sequence[Value]) -> None:
        """Let the arguments of a region's entry have the names of operands, as the region is printed without them."""
        for argument, operand in zip(region.blocks[0].arguments, operands, strict=False):
            self._names[argument] = self.operand(operand)

    def operand(self, value: Value) -> str:
        """The text of a use: `%0`, `%arg0`, `%0#1`."""
        return self._names.get(value, "<<UNKNOWN SSA VALUE>>")

    def operands(self, values: Iterable[Value]) -> str:
        return ", ".join(map(self.operand, values))

    # Attributes and types

    def attribute(self, attribute: a.Attribute, typed: bool = True) -> str:
        """The text of an attribute; without its type where `typed` is False and the place tells it."""
        return attribute_text(attribute, a.Elision.NEVER if typed else a.Elision.ALWAYS)

    def dictionary(self, attributes: Mapping[str, a.Attribute], elided: Collection[str] = (), keyword: str = "",
                   ) -> None:
        """Write ` {name = value}` behind a keyword, or nothing when no attributes are left."""
        printed = {name: value for name, value in attributes.items() if name not in elided} if elided else attributes
        if printed:
            self.write(f" {keyword} {_braces(printed)}" if keyword else f" {_braces(printed)}")

    def functional_type(self, operation: Operation) -> str:
        """The type of an operation: `(i32, i32) -> i32`."""
        operands, results = operation.operands, operation.results
        shown = str(results[0].type) if len(results) == 1 and not isinstance(results[0].type, t.FunctionType) else (
            f"({', '.join([str(result.type) for result in results])})")
        return f"({', '.join([str(operand.type) for operand in operands])}) -> {shown}"

    # Operations, regions, blocks

    def print(self, operation: Operation) -> None:
        """Write an operation with its results and its location."""
        write, results, name = self.write, operation.results, operation.name
        write(self._indent)
        if results:
            write(self._packs[operation] if len(results) > 1 else self._names[results[0]])
            write(" = ")
        syntax = None if self._generic else _OPERATION_PRINTERS.get(name)
        if syntax is not None:
            syntax(self, operation)
        elif self._dialects is not None and (declared := self._dialects.syntax(name)) is not None:
            write(name)
            declared.print(self, operation)
        else:
            self._print_generic(operation)
        write(self._location(operation.location))

    def _print_generic(self, operation: Operation) -> None:
        write, attributes = self.write, operation.attributes
        write(f"{name_text(operation.name, always=True)}({self.operands(operation.operands)})")
        if operation.successors:
            write(f"[{', '.join([self.block(successor) for successor in operation.successors])}]")
        inherent = _INHERENT.get(operation.name, ())
        if inherent and not attributes.keys().isdisjoint(inherent):
            properties = {name: value for name, value in attributes.items() if name in inherent}
            write(f" <{_braces(properties)}>")
        if operation.regions:
            write(" (")
            for index, region in enumerate(operation.regions):
                write(", " if index else "")
                self.region(region)
            write(")")
        self.dictionary(attributes, inherent)
        write(f" : {self.functional_type(operation)}")

    def region(self, region: Region, print_arguments: bool = True, print_terminator: bool = True) -> None:
        """Write `{...}`. `print_arguments`: True for the entry's label, where it has arguments or is empty."""
        outer = self._indent
        if len(outer) > 2 * DEEPEST_NESTING:
            raise errors.InvalidArgument(f"regions are nested deeper than {DEEPEST_NESTING} levels",
                                         hint="texts of them could not be read back")
        self.write("{\n")
        for index, block in enumerate(region.blocks):
            if index or (print_arguments and (block.arguments or not block.operations)):
                self._label(block, region, index)
            self._indent = outer + "  "
            operations = block.operations if print_terminator else block.operations[:-1]
            for operation in operations:
                self.print(operation)
                self.write("\n")
            self._indent = outer
        self.write(f"{outer}}}")

    def _label(self, block: Block, region: Region, index: int) -> None:
        arguments = ", ".join([self.argument(argument) for argument in block.arguments])
        before = [self.block(other) for other in region.blocks
                  for terminator in other.operations[-1:] for successor in terminator.successors if successor is block]
        note = "" if not before and not index else "  // no predecessors" if not before else (
            f"  // pred: {before[0]}" if len(before) == 1 else f"  // {len(before)} preds: {', '.join(before)}")
        self.write(f"{self._indent}{self.block(block)}{f'({arguments})' if arguments else ''}:{note}\n")

    def argument(self, argument: Value, of: str = "") -> str:
        """The text of an argument of a block: `%arg0: i32`. `of` replaces the text of its type."""
        return f"{self.operand(argument)}: {of or argument.type}{self._location(argument.location)}"

    def block(self, block: Block) -> str:
        return self._blocks.get(block, "<<UNKNOWN BLOCK>>")

    # Locations

    def _location(self, location: a.Location) -> str:
        if not self._locations:
            return ""
        if location not in self._aliases:
            number = len(self._aliases)
            self._aliases[location] = f"#loc{number or ''}"
        return f" loc({self._aliases[location]})"

    def alias_definitions(self) -> list[str]:
        """The lines that define the locations which the text names."""
        return [f"{alias} = loc({location_text(location)})\n" for location, alias in self._aliases.items()]


def _braces(attributes: Mapping[str, a.Attribute]) -> str:
    return attribute_text(a.DictionaryAttr(tuple(sorted(attributes.items()))))


def _print_module(printer: Printer, operation: Operation) -> None:
    printer.write("module")
    name = operation.attributes.get("sym_name")
    if isinstance(name, a.StringAttr):
        printer.write(f" {symbol_text(name.value)}")
    printer.dictionary(operation.attributes, ("sym_name",), "attributes")
    printer.write(" ")
    printer.region(operation.regions[0], print_arguments=False)


def _print_function(printer: Printer, operation: Operation) -> None:
    """Write `func.func private @name(...) -> type attributes {...} {...}`."""
    attributes = operation.attributes
    visibility, name, of = (attributes.get(key) for key in ("sym_visibility", "sym_name", "function_type"))
    kind = of.type if isinstance(of, a.TypeAttr) else None
    if not isinstance(name, a.StringAttr) or not isinstance(kind, t.FunctionType) or len(operation.regions) != 1:
        raise errors.InvalidArgument("a func.func needs sym_name, function_type and a region", op=FUNCTION)
    shown = f"{visibility.value} " if isinstance(visibility, a.StringAttr) else ""
    blocks = operation.regions[0].blocks
    inputs = _with_attributes(map(str, kind.inputs), attributes.get("arg_attrs"))
    if blocks:
        inputs = [printer.argument(argument, text) for argument, text in zip(blocks[0].arguments, inputs, strict=True)]
    results = _with_attributes(map(str, kind.results), attributes.get("res_attrs"))
    printer.write(f"{FUNCTION} {shown}{symbol_text(name.value)}({', '.join(inputs)})")
    if results:
        plain = len(results) == 1 and results[0] == str(kind.results[0]) and not isinstance(
            kind.results[0], t.FunctionType)
        printer.write(f" -> {results[0]}" if plain else f" -> ({', '.join(results)})")
    printer.dictionary(attributes, _INHERENT[FUNCTION], "attributes")
    if blocks:
        printer.write(" ")
        printer.region(operation.regions[0], print_arguments=False)


def _with_attributes(texts: Iterable[str], attributes: a.Attribute | None) -> list[str]:
    """Arguments or results, each with its attributes."""
    texts = list(texts)
    items = attributes.items if isinstance(attributes, a.ArrayAttr) else (_NO_ATTRIBUTES,) * len(texts)
    return [f"{text} {attribute_text(item)}" if item != _NO_ATTRIBUTES else text
            for text, item in zip(texts, items, strict=True)]


_OPERATION_PRINTERS = {MODULE: _print_module, FUNCTION: _print_function}
