"""The verifier of host programs. It knows no kernels: calls are checked against kernels when a program is linked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ...errors import InvalidArgument, closest
from ..contract.host_type import CHAIN
from .host_program import CONSTANT, COPY, EVENT, HOST, Call, ProgramDef, ProgramFunction, RegisterType


class VerifiedFunctions(Mapping[str, ProgramFunction]):
    """Functions of a program that are verified when they are first asked for."""


def verify(program: ProgramDef) -> None:
    """Check that every register has a type, is defined once and before its uses, and that every function exists.

    Raises InvalidArgument with function, kernel and location.
    """
    if not isinstance(program.functions, Mapping):
        raise InvalidArgument(f"a program's functions are a {type(program.functions).__name__}",
                              hint="give a mapping from names to Functions")
    for name, function in program.functions.items():
        if not isinstance(function, ProgramFunction):
            raise InvalidArgument(f"the program has a {type(function).__name__} under '{name}', not a ProgramFunction")
        if function.name != name:
            raise InvalidArgument(f"the function '{function.name}' is listed as '{name}'", location=function.location,
                                  hint="list each function under its own name")
        verify_function(function, program)


def verify_function(function: ProgramFunction, program: ProgramDef) -> None:
    """Check one function of a program. Raises as `verify`."""
    where = f"function '{function.name}'"
    count = len(function.register_types)
    if len(function.arg_names) > count:
        raise InvalidArgument(f"{where} has {len(function.arg_names)} arguments and types for {count} registers",
                              location=function.location)
    if len(function.streams) not in (0, len(function.kernels)):
        raise InvalidArgument(f"{where} has {len(function.kernels)} calls and streams for {len(function.streams)}",
                              location=function.location)
    if function.streams and not all(call.is_host_kernel for call in function.kernels):
        raise InvalidArgument(f"{where} has streams, and calls that are no host kernels", location=function.location)
    if any(stream < 0 for stream in function.streams):
        raise InvalidArgument(f"{where} has the stream {min(function.streams)}", location=function.location,
                              hint="streams are numbered from 0")
    defined = set(range(len(function.arg_names)))
    for call in function.kernels:
        for register in call.needs:
            if register not in defined:
                raise _wrong(where, call, f"uses register {register} before it is defined")
        for register in call.gives:
            if register in defined:
                raise _wrong(where, call, f"defines register {register}, which is defined already")
            if not 0 <= register < count:
                raise _wrong(where, call, f"defines register {register}, for which there is no type")
            defined.add(register)
        for name in call.functions:
            if name not in program.functions:
                similar_names = closest(name, program.functions)
                raise _wrong(where, call, f"names the function '{name}', which the program lacks",
                             f"did you mean '{similar_names[0]}'?" if similar_names else None)
        if not -1 <= call.stream < len(program.requires):
            raise _wrong(where, call, f"is on stream {call.stream}, and the program's devices are {program.requires}")
        if call.chain is not None and (call.results or function.register_types[call.chain] != CHAIN):
            raise _wrong(where, call, "fills a chain, which only a call without results does, in a register for chains")
        if call.code in _RUNTIME_CHECKS:
            _RUNTIME_CHECKS[call.code](where, call, function.register_types, program)
    for register in (*function.results, *function.targets):
        if register not in defined:
            raise InvalidArgument(f"{where} returns register {register}, which nothing defines",
                                  location=function.location)


def _verify_constant(where: str, call: Call, types: Sequence[RegisterType], program: ProgramDef) -> None:
    _check_counts(where, call, 0)
    index = call.attrs.get("index")
    if not isinstance(index, int) or not 0 <= index < len(program.constants):
        raise _wrong(where, call, f"has {index!r} as attribute 'index', which is no index into the program's "
                                  f"{len(program.constants)} constants")
    if isinstance(types[call.results[0]], str):
        raise _wrong(where, call, f"gives a tensor to a register for {types[call.results[0]]}")


def _verify_copy(where: str, call: Call, types: Sequence[RegisterType], program: ProgramDef) -> None:
    _check_counts(where, call, 1)
    source = call.attrs.get("from", 0)
    is_known = call.attrs.get("to") in ("device", "host") and isinstance(source, int)
    if call.stream == HOST or not is_known or not 0 <= source < len(program.requires):
        raise _wrong(where, call, "has no device, or no attribute 'to' that is \"device\" or \"host\"")
    if any(isinstance(types[register], str) for register in (*call.args, *call.results)):
        raise _wrong(where, call, "copies a value that is no tensor")


def _verify_event(where: str, call: Call, types: Sequence[RegisterType], _: ProgramDef) -> None:
    _check_counts(where, call, 0)
    if call.stream == HOST or types[call.results[0]] != CHAIN:
        raise _wrong(where, call, "has no device, or no register for a chain")


def _check_counts(where: str, call: Call, arguments: int) -> None:
    if (len(call.args), len(call.results)) != (arguments, 1):
        raise _wrong(where, call, f"has {len(call.args)} arguments and {len(call.results)} results, it takes "
                                  f"{arguments} and gives 1")


_RUNTIME_CHECKS: Mapping[str, Callable[[str, Call, Sequence[RegisterType], ProgramDef], None]] = {
    CONSTANT: _verify_constant, COPY: _verify_copy, EVENT: _verify_event}


def _wrong(where: str, call: Call, what: str, hint: str | None = None) -> InvalidArgument:
    return InvalidArgument(f"{where}: {call.code} {what}", node=call.node or None, location=call.location, hint=hint)
