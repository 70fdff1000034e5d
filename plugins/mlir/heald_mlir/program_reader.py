"""The parse tree of a module as a ProgramDef.

- Functions come in TFRT's order: the modules are walked, and a region comes before the function that has it. A region
  is a function `%N`, N being its index among the functions.
- Attributes that are symbols, or arrays of symbols, are the functions of a call, in the order in which the kernel
  declares them, or of their names where the kernel is not known. Its regions follow.
- Streams come from the analysis with the module's or the function's `tfrt.cost_threshold` and
  `tfrt.merge_inter_dependent_streams`.
- `heald.*` attributes have the facts of a lowered graph that MLIR lacks; docs/mlir.md lists them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from heald.api import errors
from heald.runtime.program import (
    HOST,
    Call,
    ProgramDef,
    ProgramFunction,
    RegisterType,
    native_function,
    stream_numbers,
    verify,
)

from . import attributes as a
from . import lowered_attributes as lowered
from . import types as t
from .ir import Block, Operation, Region, Value
from .lexer import MalformedText
from .parser import FUNCTION, MODULE
from .program_attributes import NoValue, place_of, register_type, value_of

Callees = Callable[[str], tuple[tuple[str, ...], bool]]  # of a kernel's code: names, and whether it takes an array

RETURN = "tfrt.return"
THRESHOLD, MERGES = "tfrt.cost_threshold", "tfrt.merge_inter_dependent_streams"
NATIVE, SYNC, COMPILED, NONSTRICT = "tfrt.native", "tfrt.sync", "tfrt.compiled", "bef.nonstrict"
Note = tuple[a.Location, str]


class InvalidProgram(MalformedText):
    """A module that is no host program. `others`: further errors, each in another function."""

    others: tuple[MalformedText, ...] = ()


def fault(location: a.Location, message: str, *notes: Note) -> InvalidProgram:
    """An error at the location of an operation."""
    return InvalidProgram(message, _file_location(location), tuple((_file_location(at), text) for at, text in notes))


def _file_location(location: a.Location) -> errors.Location:
    return place_of(location)[1] or errors.Location("-")


def read_program(module: Operation, callees: Callees) -> ProgramDef:
    """The program of a module that the verifier has accepted. `callees`: the declared names of a kernel's functions.

    Raises InvalidProgram, with the location of the operation, for a module that BEF cannot hold.
    """
    return _Reader(module, callees).program()


class _Reader:
    def __init__(self, module: Operation, callees: Callees) -> None:
        self.module = module
        self.callees = callees
        self.compiled: dict[str, Operation] = {}
        self.declared: dict[str, Operation] = {}  # by the name of a function
        self.functions: dict[str, ProgramFunction] = {}
        self.constants, self.requires = lowered.of_module(module)

    def program(self) -> ProgramDef:
        declarations: list[tuple[Operation, Operation]] = []
        failures: list[InvalidProgram] = []
        for module, function in self._declarations(self.module):
            try:
                self._declare(function)
                declarations.append((module, function))
            except InvalidProgram as error:
                failures.append(error)
        for module, function in declarations:
            try:
                self._function(module, function)
            except InvalidProgram as error:
                failures.append(error)
        if failures:
            failures[0].others = tuple(failures[1:])
            raise failures[0]
        program = ProgramDef(self.functions, self.constants, self.requires)
        verify(program)
        return program

    def _declarations(self, module: Operation) -> Iterator[tuple[Operation, Operation]]:
        """Yield the functions of a module and of the modules in it, each with its module; note compiled modules."""
        for block in (block for region in module.regions for block in region.blocks):
            for operation in block.operations:
                if operation.name == FUNCTION:
                    yield module, operation
                elif operation.name == MODULE and COMPILED in operation.attributes:
                    self.compiled[_symbol(operation)] = operation
                elif operation.name == MODULE:
                    yield from self._declarations(operation)
                elif operation.name != RETURN:
                    raise fault(operation.location, f"'{operation.name}' op is not within a function")

    def _declare(self, function: Operation) -> None:
        name = _symbol(function)
        other = self.declared.setdefault(name, function)
        if other is not function:
            raise fault(function.location, f"redefinition of symbol named '{name}'",
                        (other.location, "see existing symbol definition here"))

    def _function(self, module: Operation, function: Operation) -> None:
        name, of = _symbol(function), _function_type(function)
        _, location = place_of(function.location)
        if NATIVE in function.attributes:
            inputs, results = ([register_type(of_value) for of_value in side] for side in (of.inputs, of.results))
            self.functions[name] = native_function(name, inputs, results, location)
            return
        if not function.regions or not function.regions[0].blocks:
            raise fault(function.location, "external functions are not allowed")
        threshold, merges = stream_options(module, function)
        body = self._body(function, function.regions[0], name, threshold, merges)
        names = lowered.argument_names(function, body.arg_names)
        program_function = body._replace(
            name=name, arg_names=names, is_sync=SYNC in function.attributes, location=location)
        if program_function.is_sync:
            _check_sync(function, program_function.results, len(names))
        self.functions[name] = lowered.of_function(function, program_function)

    def _body(self, operation: Operation, region: Region, name: str, threshold: int, merges: bool) -> ProgramFunction:
        """The function of a region, after the functions of its own regions."""
        if len(region.blocks) != 1:
            raise fault(operation.location, f"'{operation.name}' op expects a region with one block")
        block = region.blocks[0]
        if not block.operations or block.operations[-1].name != RETURN:
            raise fault(operation.location, "all functions need to have a tfrt.return")
        ending = block.operations[-1]
        registers = {id(value): index for index, value in enumerate(block.arguments)}
        types: list[RegisterType] = [register_type(value.type) for value in block.arguments]
        calls = []
        for inner in block.operations[:-1]:
            if inner.name == RETURN:
                raise fault(inner.location, f"'{RETURN}' op must be the last operation in the parent block")
            calls.append(self._call(inner, block, registers, types, threshold, merges))
        returned = _used(ending, block, registers)
        targets = lowered.count(ending, lowered.TARGETS)
        split = len(returned) - targets
        names = tuple(f"arg{index}" for index in range(len(block.arguments)))
        program_function = ProgramFunction(name, names, tuple(types), tuple(calls), returned[:split], returned[split:])
        if all(call.is_host_kernel for call in calls):
            streams = stream_numbers(program_function, threshold, merge_dependent=merges)
            program_function = program_function._replace(streams=streams)
        return program_function

    def _region(self, operation: Operation, region: Region, threshold: int, merges: bool) -> str:
        program_function = self._body(operation, region, "", threshold, merges)
        name = f"%{len(self.functions)}"
        if name in self.declared:
            raise fault(self.declared[name].location, f"function '{name}' has the name of a region",
                        (operation.location, "the region is here"))
        self.functions[name] = program_function._replace(name=name, location=place_of(operation.location)[1])
        return name

    def _call(self, operation: Operation, block: Block, registers: dict[int, int], types: list[RegisterType],
              threshold: int, merges: bool) -> Call:
        used = _used(operation, block, registers)
        if operation.successors:
            raise fault(operation.location, f"'{operation.name}' op has successors, and host programs have no branches")
        functions, attrs = self._attributes(operation)
        functions += [self._region(operation, region, threshold, merges) for region in operation.regions
                      if region.blocks]
        results = []
        for value in operation.results:
            registers[id(value)] = len(types)
            results.append(len(types))
            types.append(register_type(value.type))
        node, location = place_of(operation.location)
        call = Call(operation.name, used, tuple(results), attrs, HOST, node, tuple(functions),
                    NONSTRICT in operation.attributes, location)
        return lowered.of_call(operation, call)

    def _attributes(self, operation: Operation) -> tuple[list[str], dict[str, Any]]:
        functions: list[str] = []
        attrs: dict[str, Any] = {}
        declared, _ = self.callees(operation.name)
        places = {name: index for index, name in enumerate(declared)}
        in_order = sorted(operation.attributes.items(), key=lambda item: (places.get(item[0], -1), item[0]))
        for name, attribute in in_order:
            symbols = _symbols(attribute)
            if symbols:
                functions += [self._resolve_symbol(operation, symbol) for symbol in symbols]
            elif name != NONSTRICT and not name.startswith(lowered.PREFIX):
                try:
                    attrs[name] = value_of(attribute)
                except NoValue:
                    raise fault(operation.location, f"BEF files cannot encode the '{name}' attribute") from None
        return functions, attrs

    def _resolve_symbol(self, operation: Operation, symbol: a.SymbolRefAttr) -> str:
        name = symbol.nested[-1] if symbol.nested else symbol.root
        if symbol.root in self.compiled:
            raise fault(operation.location, f"module @{symbol.root} is compiled, and heald has no compiler for it")
        if name not in self.declared:
            raise fault(operation.location, f"function @{name} not defined")
        return name


def _symbol(operation: Operation) -> str:
    name = operation.attributes.get("sym_name")
    if not isinstance(name, a.StringAttr) or not name.value:
        raise fault(operation.location, f"'{operation.name}' op requires attribute 'sym_name'")
    return name.value


def _function_type(function: Operation) -> t.FunctionType:
    of = function.attributes.get("function_type")
    if not isinstance(of, a.TypeAttr) or not isinstance(of.type, t.FunctionType):
        raise fault(function.location, f"'{FUNCTION}' op requires attribute 'function_type'")
    if function.regions and function.regions[0].blocks:
        argument_types = tuple(value.type for value in function.regions[0].blocks[0].arguments)
        if argument_types != of.type.inputs:
            raise fault(function.location, f"'{FUNCTION}' op type signature differs from the entry block's arguments")
    return of.type


def _symbols(attribute: a.Attribute) -> list[a.SymbolRefAttr]:
    """The symbols of an attribute that is one or an array of them; else none."""
    items = attribute.items if isinstance(attribute, a.ArrayAttr) else (attribute,)
    symbols = [item for item in items if isinstance(item, a.SymbolRefAttr)]
    return symbols if len(symbols) == len(items) else []


def stream_options(module: Operation, function: Operation) -> tuple[int, bool]:
    """The threshold of a function's stream analysis, and whether inter-dependent streams become one."""
    attributes = {**module.attributes, **function.attributes}
    threshold = attributes.get(THRESHOLD)
    return (threshold.value if isinstance(threshold, a.IntegerAttr) else 0,
            attributes.get(MERGES) not in (None, a.FALSE))


def _used(operation: Operation, block: Block, registers: dict[int, int]) -> tuple[int, ...]:
    """The registers of the operands. Raises InvalidProgram for a value that is not defined before."""
    try:
        return tuple([registers[id(value)] for value in operation.operands])
    except KeyError:
        pass
    index, value = next((i, v) for i, v in enumerate(operation.operands) if id(v) not in registers)
    if _defined_in(value, block):
        raise fault(operation.location, f"operand #{index} does not dominate this use",
                    (_location_of(value), "operand defined here (op in the same block)"))
    raise fault(operation.location, f"'{operation.name}' op using value defined outside the region",
                (_location_of(value), "required by region isolation constraints"))


def _defined_in(value: Value, block: Block) -> bool:
    return value.owner is block or any(value.owner is operation for operation in block.operations)


def _location_of(value: Value) -> a.Location:
    return value.owner.location if isinstance(value.owner, Operation) else value.location


def _check_sync(function: Operation, results: tuple[int, ...], arguments: int) -> None:
    ending = function.regions[0].blocks[0].operations[-1]
    for index, register in enumerate(results):
        if register < arguments:
            raise fault(ending.location, f"return value {index} is an argument in a sync function")
        if register in results[:index]:
            raise fault(ending.location, f"return value {index} is duplicated in a sync function")
