"""A reader that finds the faults of a refused text in MLIR's order.

MLIR resolves the operands of an operation, and defines its results, before it reads the next one. Values that are used
and never defined are told at the end of the text. The names of a region are forgotten at its end; a value that was used
before its definition may be defined anywhere behind. The verifier and the exporter see texts alone that parse.

`GraphReader` resolves values when their body is whole, which is faster. A text that it refuses is read again here:
`OrderedReader` raises the first fault of the parser, and collects those of the verifier.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ... import attributes as a
from ...lexer import MalformedText
from ..values.element_types import CONTROL, OPAQUE
from ..values.faults import ExportFault
from .body_parser import Results
from .generic_form import GenericOperation
from .module_reader import Attributes, GraphReader, ParsedFunction, ParsedGraph, ParsedModule, Written
from .parsed_body import Body, GetResult, ParsedNode, Region, Return, Tail, Use

_ANY = ""  # the type of a value whose operation has none, in the older form of generic functions


class _Value(NamedTuple):
    """The type of a value, and the position of its definition or of its first use. `defined`: False for a use."""

    type: str
    at: int
    defined: bool


class OrderedReader(GraphReader):
    """A parser of modules that resolves values operation by operation.

    `faults`: those of the verifier. `export_faults`: those of the exporter.
    """

    def __init__(self, text: str, file: str = "-", line: int = 1) -> None:
        self.faults: list[MalformedText] = []
        self.export_faults: list[MalformedText] = []
        self._values: dict[str, dict[int, _Value]] = {}  # by name and number
        self._names: list[list[str]] = [[]]  # that each region around the current operation defines
        self._blocks: list[set[str]] = [set()]
        self._undefined: dict[int, str] = {}  # the names of values by the position of their first use
        self._is_generic = False
        self._arguments: Sequence[Written] = ()
        super().__init__(text, file, line)

    def report(self, fault: MalformedText) -> None:
        self.faults.append(fault)

    def report_export(self, message: str, at: int, hint: str | None = None) -> None:
        self.export_faults.append(ExportFault(message, self.location(at), (), hint))

    def lines(self) -> list[ParsedNode]:
        return []  # each operation has its turn

    def module(self) -> ParsedModule:
        module = super().module()
        if self._undefined:
            at = min(self._undefined)
            raise self.error("use of undeclared SSA value name", at, hint=f"no value is called {self._undefined[at]}")
        return module

    # Regions

    def function_body(self, arguments: Sequence[Written], generic: bool) -> Body:
        outer, self._is_generic = self._is_generic, generic
        self._arguments = arguments
        body = super().function_body(arguments, generic)
        self._is_generic = outer
        return body

    def region_of(self) -> Region:
        self._names.append([])
        self._blocks.append(set())
        arguments, self._arguments = self._arguments, ()
        for value, of, _, at in arguments:
            for name, kind in ((value, of), (f"{value}.ctl", CONTROL)):
                if name in self._values:
                    raise self.error(f"region entry argument '{name}' is already in use", at)
                self._define(name, [kind], at)
        region = super().region_of()
        self._blocks.pop()
        for name in self._names.pop():
            self._values.pop(name, None)
        return region

    def label(self) -> list[tuple[str, str, int]]:
        if self.text in self._blocks[-1]:
            raise self.error(f"redefinition of block '{self.text}'")
        self._blocks[-1].add(self.text)
        return super().label()

    def block_argument(self) -> tuple[str, str, int]:
        name, of, at = super().block_argument()
        self._define(name, [of], at)
        return name, of, at

    # Operations

    def resolve_operands(self, operation: ParsedNode | GetResult | Return) -> None:
        if isinstance(operation, ParsedNode):
            self._resolve_all(operation.inputs, self._operand_types(operation))
            self._resolve_all(operation.controls, [CONTROL] * len(operation.controls))
        elif isinstance(operation, GetResult):
            self._resolve(operation.source, OPAQUE)
        else:
            if operation.condition is not None:
                self._resolve(*operation.condition)
            rest = _ANY if self._is_generic and not operation.typed else CONTROL
            count = len(operation.results)
            types = (*operation.types, *(rest,) * (count - len(operation.types)))
            uses = [*operation.results, *[use for use, _ in operation.controls]]
            self._resolve_all(uses, (*types, *(CONTROL,) * len(uses)))

    def _operand_types(self, node: ParsedNode) -> Sequence[str]:
        tail, count = node.tail, len(node.inputs)
        if not tail.typed and self._is_generic:
            return (_ANY,) * count
        if tail.typed and tail.counted and len(tail.operands) != count:
            at = self.at
            position = self.position_of_types(node)
            self.jump(at)
            raise self.custom_error(node.op, f"got {count} non-control operands, but the type defines "
                                    f"{len(tail.operands)} input types", position)
        return (*tail.operands, *(CONTROL,) * count)

    def _resolve_all(self, uses: Sequence[Use], types: Sequence[str]) -> None:
        for use, of in zip(uses, types, strict=False):
            self._resolve(use, of)

    def _resolve(self, use: Use, of: str) -> None:
        entries = self._values.setdefault(use.name, {})
        value = entries.get(use.number)
        if value is None:
            if 0 in entries and entries[0].defined:
                raise self.error("reference to invalid result number", use.at)
            entries[use.number] = _Value(of, use.at, defined=False)
            self._undefined[use.at] = use.name
        elif of != value.type and _ANY not in (of, value.type):
            raise self.error(f"use of value '{use.name}' expects different type than prior uses: '{of}' vs "
                             f"'{value.type}'", use.at, (value.at, "prior use here"))

    def check_bound(self, operation: ParsedNode | GetResult | Return, results: Results) -> None:
        is_untyped = isinstance(operation, ParsedNode) and not operation.tail.typed
        if is_untyped and not self._is_generic:
            bound = sum([count for _, count in results.names])
            if bound != 1:
                raise self.error(f"operation defines 1 results but was provided {bound} to bind", results.at)
        elif not is_untyped:
            super().check_bound(operation, results)

    def define_results(self, operation: ParsedNode | GetResult | Return, results: Results) -> None:
        types = [OPAQUE]
        if isinstance(operation, ParsedNode):
            types = [*operation.tail.results, *[CONTROL] * operation.tail.tokens]
            if self._is_generic and not operation.tail.typed:
                count = sum([count for _, count in results.names])
                types = [*[OPAQUE] * (count - 1), CONTROL]
        at, start = results.at, 0
        for name, count in results.names:
            at = self.position_of_value(name, at)
            self._define(name, types[start:start + count], at)
            at, start = at + len(name), start + count

    def _define(self, name: str, types: Sequence[str], at: int) -> None:
        entries = self._values.setdefault(name, {})
        for number, of in enumerate(types):
            value = entries.get(number)
            if value is not None and value.defined:
                raise self.error(f"redefinition of SSA value '{name}'", at, (value.at, "previously defined here"))
            if value is not None:
                if value.type not in (of, _ANY):
                    raise self.error(f"definition of SSA value '{name}#{number}' has type '{of}'", at,
                                     (value.at, f"previously used here with type '{value.type}'"))
                self._undefined.pop(value.at, None)
            entries[number] = _Value(of, at, defined=True)
        self._names[-1].append(name)

    # The generic form

    def operation_of_generic(self, generic: GenericOperation, results: Results) -> ParsedNode | GetResult | Return:
        """The operation, or one of the same values where the verifier refuses it."""
        try:
            if not results.names or generic.results:
                operation = super().operation_of_generic(generic, results)
                if not isinstance(operation, ParsedNode) or operation.regions == tuple(generic.regions):
                    return operation
        except MalformedText as fault:
            self.report(fault)
        return ParsedNode(generic.op, results.at, generic.where, results.names, generic.uses, [], "", "", "",
                          Tail({}, tuple(generic.operands), tuple(generic.results), True, True, 0))

    def generic_graph(self, attributes: dict[str, a.Attribute], region: Region, at: int) -> ParsedGraph:
        try:
            return super().generic_graph(attributes, region, at)
        except MalformedText as fault:
            self.report(fault)
            return ParsedGraph(None, {}, region.body)

    def generic_function(self, attributes: dict[str, a.Attribute], region: Region, at: int) -> ParsedFunction:
        try:
            return super().generic_function(attributes, region, at)
        except MalformedText as fault:
            self.report(fault)
            return self.parsed_function("", [], [], False, {}, region.body, at)

    def parsed_function(self, name: str, arguments: Sequence[Written], results: Sequence[Written], generic: bool,
                        attributes: Attributes, body: Body, at: int) -> ParsedFunction:
        try:
            return super().parsed_function(name, arguments, results, generic, attributes, body, at)
        except MalformedText as fault:
            self.report(fault)
            return super().parsed_function(name, [], [], False, {}, body, at)
