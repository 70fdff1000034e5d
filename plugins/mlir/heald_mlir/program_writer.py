"""A ProgramDef as the parse tree of a module: the inverse of `program_reader`.

A function `%N` that one call names becomes a region of that call. Other functions that a call names are its symbol
attributes, under the names of the kernel's declaration; `callee` where no such kernel is known.
"""

from __future__ import annotations

from collections import Counter

from heald.api import NATIVE as NATIVE_PREFIX
from heald.api import errors
from heald.runtime.program import Call, ProgramDef, ProgramFunction, stream_numbers

from . import attributes as a
from . import lowered_attributes as lowered
from . import types as t
from .ir import Block, Operation, Region, Value
from .parser import FUNCTION, MODULE
from .program_attributes import NoValue, attribute_of, location_of, type_of
from .program_reader import NATIVE, NONSTRICT, RETURN, SYNC, Callees

CALLEE = "callee"
_DEEPEST_REGIONS = 48  # regions within each other: the parser reads 64 levels, and brackets within the innermost


def write_program(program: ProgramDef, callees: Callees) -> Operation:
    """The module of a program.

    Raises Unimplemented for attributes and constants that text does not hold, InvalidArgument for a register type that
    is no type of MLIR.
    """
    return _Writer(program, callees).module()


def _is_region(name: str) -> bool:
    return name.startswith("%")


class _Writer:
    def __init__(self, program: ProgramDef, callees: Callees) -> None:
        self.program = program
        self.callees = callees
        uses = Counter(name for function in program.functions.values() for call in function.kernels
                       for name in call.functions)
        self.regions = {name for name, count in uses.items() if _is_region(name) and count == 1}
        self.regions -= _called_by_themselves(program, self.regions)

    def module(self) -> Operation:
        region, block = Region(), Block()
        region.blocks.append(block)
        for function in self.program.functions.values():
            if function.name not in self.regions:
                block.operations.append(self.function(function))
        module = Operation(MODULE, regions=[region])
        lowered.put_module(module, self.program)
        return module

    def function(self, function: ProgramFunction) -> Operation:
        inputs = tuple(map(type_of, function.arg_types))
        results = tuple(type_of(function.register_types[register]) for register in function.results)
        attributes: dict[str, a.Attribute] = {
            "sym_name": a.StringAttr(function.name), "function_type": a.TypeAttr(t.FunctionType(inputs, results))}
        region = Region()
        operation = Operation(FUNCTION, attributes=attributes, regions=[region],
                              location=location_of("", function.location))
        if is_native(function):
            attributes |= {"sym_visibility": a.StringAttr("private"), NATIVE: a.UNIT}
            return operation
        region.blocks.append(self.block(function, 0))
        if function.is_sync:
            attributes[SYNC] = a.UNIT
        streams = stream_numbers(function) if function.streams else ()
        lowered.put_function(operation, function, streams)
        return operation

    def block(self, function: ProgramFunction, depth: int) -> Block:
        """The calls of a function, and its return. Recursion is as deep as regions are nested."""
        if depth > _DEEPEST_REGIONS:
            raise errors.Unimplemented(f"regions are nested deeper than {_DEEPEST_REGIONS} levels",
                                       hint="write the program to a .bef file")
        block = Block()
        values = {index: block.add_argument(type_of(kind), location_of("", function.location))
                  for index, kind in enumerate(function.arg_types)}
        for call in function.kernels:
            operation = self.call(call, function, values, depth)
            for register, value in zip(call.gives, operation.results, strict=True):
                values[register] = value
            block.operations.append(operation)
        ending = Operation(RETURN, [values[register] for register in (*function.results, *function.targets)],
                           location=location_of("", function.location))
        if function.targets:
            ending.attributes[lowered.TARGETS] = attribute_of(len(function.targets))
        block.operations.append(ending)
        return block

    def call(self, call: Call, function: ProgramFunction, values: dict[int, Value], depth: int) -> Operation:
        types = [type_of(function.register_types[register]) for register in call.gives]
        operation = Operation(call.code, [values[register] for register in call.needs], types,
                              location=location_of(call.node, call.location))
        for name, value in call.attrs.items():
            if name.startswith(lowered.PREFIX) or name == NONSTRICT:
                raise lowered.unsupported_attribute(call, name, function.name)
            try:
                operation.attributes[name] = attribute_of(value)
            except NoValue:
                raise lowered.unsupported_attribute(call, name, function.name) from None
        regions = [name for name in call.functions if name in self.regions]
        symbols = [name for name in call.functions if name not in self.regions]
        if (*symbols, *regions) != call.functions:
            raise errors.Unimplemented(f"function '{function.name}': {call.code} has a region before a function",
                                       location=call.location, hint="give the regions names")
        operation.attributes |= self.symbols(call.code, tuple(symbols))
        operation.regions = [self.region(name, depth) for name in regions]
        if call.nonstrict:
            operation.attributes[NONSTRICT] = a.UNIT
        lowered.put_call(operation, call)
        operation.attributes = dict(sorted(operation.attributes.items()))
        return operation

    def region(self, name: str, depth: int) -> Region:
        region = Region()
        region.blocks.append(self.block(self.program.functions[name], depth + 1))
        return region

    def symbols(self, code: str, functions: tuple[str, ...]) -> dict[str, a.Attribute]:
        """The functions of a call as attributes, in the order of their names."""
        if not functions:
            return {}
        names, is_array = self.callees(code)
        references = tuple(a.SymbolRefAttr(function) for function in functions)
        if len(names) == len(references) and not is_array:
            return dict(zip(names, references, strict=True))
        name = names[0] if len(names) == 1 else CALLEE
        return {name: references[0] if len(references) == 1 and not is_array else a.ArrayAttr(references)}


def is_native(function: ProgramFunction) -> bool:
    """Return True for a function that stands for a native one."""
    if len(function.kernels) != 1:
        return False
    [call] = function.kernels
    arguments = len(function.arg_names)
    return (call.code == NATIVE_PREFIX + function.name and call.args == tuple(range(arguments)) and not call.attrs
            and not function.targets and not call.functions and call.results == function.results)


def _called_by_themselves(program: ProgramDef, regions: set[str]) -> set[str]:
    """The regions that are within themselves, and so in no function with a name."""
    reached: set[str] = set()
    waiting = [function for name, function in program.functions.items() if name not in regions]
    for function in waiting:  # grows
        for name in (name for call in function.kernels for name in call.functions if name in regions):
            if name not in reached:
                reached.add(name)
                waiting.append(program.functions[name])
    return regions - reached
