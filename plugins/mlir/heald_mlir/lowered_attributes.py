"""The facts of a program that MLIR lacks, as attributes `heald.*`: lowered graphs need them, host programs do not.

| on | attribute | content |
|---|---|---|
| module | `heald.requires`, `heald.constants` | devices by stream; the program's constants |
| func.func | `heald.compiled`, `heald.streams` | it serves these types alone; streams unlike those of the analysis |
| an argument | `heald.name` | its name, where it is not `arg` and its index |
| an operation | `heald.stream` | the index of its device |
| an operation | `heald.after` | so many of its last operands must be there, and are not passed |
| an operation | `heald.chain` | its last result is the chain that is filled when it has run |
| tfrt.return | `heald.targets` | so many of its last operands are targets |
"""

from __future__ import annotations

from typing import Any

from heald.api import errors
from heald.runtime.program import HOST, Call, ProgramDef, ProgramFunction, RegisterType

from . import attributes as a
from .ir import Operation
from .program_attributes import NoValue, attribute_of, place_of, value_of

PREFIX = "heald."
REQUIRES, CONSTANTS, COMPILED, STREAMS, NAME, STREAM, AFTER, CHAIN, TARGETS = (
    PREFIX + word for word in ("requires", "constants", "compiled", "streams", "name", "stream", "after", "chain",
                               "targets"))


def _read(operation: Operation, name: str, attribute: a.Attribute | None, default: Any = None) -> Any:
    """The value of an attribute `heald.*`. Raises InvalidArgument for one that has no value."""
    if attribute is None:
        return default
    try:
        content = value_of(attribute)
    except NoValue:
        content = None
    if default is not None and not isinstance(content, type(default)):
        raise wrong(operation, name)
    return content


def wrong(operation: Operation, name: str) -> errors.InvalidArgument:
    return errors.InvalidArgument(f"'{operation.name}' op has no valid attribute '{name}'",
                                  location=place_of(operation.location)[1])


def of_module(module: Operation) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    """The constants and the devices of a program."""
    requires = _read(module, REQUIRES, module.attributes.get(REQUIRES), ())
    constants = _read(module, CONSTANTS, module.attributes.get(CONSTANTS), ())
    if not all(isinstance(item, str) for item in requires):
        raise wrong(module, REQUIRES)
    if not all(hasattr(constant, "tobytes") for constant in constants):
        raise wrong(module, CONSTANTS)
    return constants, requires


def put_module(module: Operation, program: ProgramDef) -> None:
    """Raises Unimplemented for a constant whose elements a compiled file lacks."""
    if program.requires:
        module.attributes[REQUIRES] = attribute_of(tuple(program.requires))
    if len(program.constants):
        module.attributes[CONSTANTS] = a.ArrayAttr(tuple(
            _constant(index, value) for index, value in enumerate(program.constants)))


def _constant(index: int, value: Any) -> a.Attribute:
    array = value.array() if callable(getattr(value, "array", None)) else value
    try:
        return attribute_of(array)
    except NoValue:
        of = getattr(array, "dtype", type(array).__name__)
        raise errors.Unimplemented(f"constant {index} is of type {of}, which text does not hold",
                                   hint="write the program to a .bef file") from None


def argument_names(function: Operation, names: tuple[str, ...]) -> tuple[str, ...]:
    """The names of a function's arguments. An argument's attribute goes before the given name."""
    argument_attributes = function.attributes.get("arg_attrs")
    if not isinstance(argument_attributes, a.ArrayAttr) or len(argument_attributes.items) != len(names):
        return names
    return tuple(
        _read(function, NAME, dict(item.items).get(NAME), name) if isinstance(item, a.DictionaryAttr) else name
        for item, name in zip(argument_attributes.items, names, strict=True))


def of_function(function: Operation, program_function: ProgramFunction) -> ProgramFunction:
    streams = _read(function, STREAMS, function.attributes.get(STREAMS), program_function.streams)
    return program_function._replace(is_compiled=COMPILED in function.attributes, streams=tuple(map(_index, streams)))


def _index(value: Any) -> int:
    return int(value) if isinstance(value, int) else -1  # the verifier refuses it


def put_function(function: Operation, of: ProgramFunction, derived_streams: tuple[int, ...]) -> None:
    """`derived_streams`: the result of the analysis."""
    if of.is_compiled:
        function.attributes[COMPILED] = a.UNIT
    if of.streams and of.streams != derived_streams:
        function.attributes[STREAMS] = attribute_of(of.streams)
    if any(name != f"arg{index}" for index, name in enumerate(of.arg_names)):
        function.attributes["arg_attrs"] = a.ArrayAttr(tuple(
            a.DictionaryAttr(((NAME, a.StringAttr(name)),) if name != f"arg{index}" else ())
            for index, name in enumerate(of.arg_names)))


def count(operation: Operation, name: str) -> int:
    """A number of operands. Raises InvalidArgument for one that is not in range."""
    operand_count: int = _read(operation, name, operation.attributes.get(name), 0)
    if not 0 <= operand_count <= len(operation.operands):
        raise wrong(operation, name)
    return operand_count


def of_call(operation: Operation, call: Call) -> Call:
    """The call with its facts. `call`: with all operands as arguments, and all results."""
    if not any(name.startswith(PREFIX) for name in operation.attributes):
        return call
    split = len(call.args) - count(operation, AFTER)
    call = call._replace(args=call.args[:split], after=call.args[split:],
                         stream=_read(operation, STREAM, operation.attributes.get(STREAM), HOST))
    if CHAIN in operation.attributes:
        if not call.results:
            raise wrong(operation, CHAIN)
        call = call._replace(results=call.results[:-1], chain=call.results[-1])
    return call


def put_call(operation: Operation, call: Call) -> None:
    if call.stream != HOST:
        operation.attributes[STREAM] = attribute_of(call.stream)
    if call.after:
        operation.attributes[AFTER] = attribute_of(len(call.after))
    if call.chain is not None:
        operation.attributes[CHAIN] = a.UNIT


def unsupported_attribute(call: Call, name: str, function: str) -> errors.Unimplemented:
    """The error of an attribute that text does not hold."""
    return errors.Unimplemented(f"function '{function}': {call.code} has an attribute '{name}' of type "
                                f"{type(call.attrs[name]).__name__}, which text does not hold", node=call.node or None,
                                location=call.location, hint="write the program to a .bef file")


def types_of(function: ProgramFunction, registers: tuple[int, ...]) -> list[RegisterType]:
    return [function.register_types[register] for register in registers]
