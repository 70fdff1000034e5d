"""Host binding: checks the call of a host kernel against its declaration, and fills in its attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ...errors import InvalidArgument, PluginError
from ..contract.host_kernel import CORE_PLUGIN, Callee, CallRule, HostKernel
from ..contract.host_type import TENSOR, TYPE_OF_NAME, HostType
from ..contract.structural import CALL, CONTROL_FLOW
from ..executor.calls.host_kernel_call import OneResult
from ..executor.host_array import check_payload
from ..program.host_program import Call, ProgramFunction, RegisterType
from ..program.typed_attribute import plain_value
from ..values.async_value import AsyncValue, payload_of
from ..values.tensor import TensorMetadata


def check_call(
    kernel: HostKernel, call: Call, function: ProgramFunction, functions: Mapping[str, ProgramFunction]
) -> None:
    """Check a call against its kernel's declaration. Raises InvalidArgument with the declaration and the location.

    `functions`: the functions of the program.
    """
    types = function.register_types
    declared_types = [argument.type for argument in kernel.arguments]
    needed = sum(argument.is_required for argument in kernel.arguments)
    if len(call.args) < needed or (kernel.variadic is None and len(call.args) > len(declared_types)):
        raise _misfit_error(kernel, call, f"has {len(call.args)} arguments")
    if kernel.variadic is not None:
        declared_types += [kernel.variadic.type] * (len(call.args) - len(declared_types))
    del declared_types[len(call.args):]
    for i, (register, kind) in enumerate(zip(call.args, declared_types, strict=True)):
        if not _fits(types[register], kind):
            raise _misfit_error(kernel, call, f"has {types[register]} as argument {i}, which is {kind}")
    if kernel.results is not None:
        if len(call.results) != len(kernel.results):
            raise _misfit_error(kernel, call, f"has {len(call.results)} results")
        for i, (register, kind) in enumerate(zip(call.results, kernel.results, strict=True)):
            if not _fits(types[register], kind):
                raise _misfit_error(kernel, call, f"has {types[register]} as result {i}, which is {kind}")
    _check_attributes(kernel, call)
    if call.nonstrict and not kernel.nonstrict and not _takes_pending(kernel):
        raise _misfit_error(kernel, call, "is non-strict, and the kernel takes no pending arguments")
    if kernel.calls is not None:
        _check_functions(kernel, kernel.calls, call, function, functions)


def _takes_pending(kernel: HostKernel) -> bool:
    """True for a strict kernel that passes pending arguments on to functions: of core's own, calls and host control."""
    if not kernel.callees:
        return False
    return kernel.plugin != CORE_PLUGIN or kernel.calls is not None or kernel.code == CONTROL_FLOW[CALL].code


def _check_functions(
    kernel: HostKernel, rule: CallRule, call: Call, function: ProgramFunction, functions: Mapping[str, ProgramFunction]
) -> None:
    types = function.register_types
    try:
        signatures = rule(tuple(types[r] for r in call.args), tuple(types[r] for r in call.results))
    except InvalidArgument as error:
        raise _misfit_error(kernel, call, error.message) from None
    texts = [_signature_text(*signature) for signature in signatures]
    for name in call.functions:
        called = functions[name]
        signature_text = _signature_text(called.arg_types, [called.register_types[r] for r in called.results])
        if signature_text not in texts:
            expected = " or ".join(texts)
            raise _misfit_error(kernel, call,
                                f"names the function '{name}' of type {signature_text}, expected {expected}")


def _signature_text(arguments: Sequence[RegisterType], results: Sequence[RegisterType]) -> str:
    return f"({', '.join(map(_type_name, arguments))}) -> ({', '.join(map(_type_name, results))})"


def _type_name(register_type: RegisterType) -> str:
    return register_type if isinstance(register_type, str) else TENSOR.name


def _check_attributes(kernel: HostKernel, call: Call) -> None:
    names = {name for name in call.attrs if not name.startswith("_")}  # the others are notes of the program's producer
    for name in sorted(names - kernel.attributes.keys()):
        raise _misfit_error(kernel, call, f"has an attribute '{name}'")
    for name, attribute in kernel.attributes.items():
        if name not in names:
            if attribute.is_required:
                raise _misfit_error(kernel, call, f"lacks the attribute '{name}'")
        elif attribute.type is not None and not attribute.type.accepts(call.attrs[name]):
            raise _misfit_error(kernel, call,
                                f"has {call.attrs[name]!r} as attribute '{name}', which is {attribute.type}")
    count = len(call.functions)
    if not kernel.takes_more_callees and count != len(kernel.callees):
        raise _misfit_error(kernel, call, f"names {count} functions")


def make_host_kernel_function(
    kernel: HostKernel, call: Call, stated: Mapping[int, RegisterType], functions: Sequence[Callee], check_types: bool
) -> Callable[..., list[Any]]:
    """Return the kernel as a function of its arguments, after the step for kernels that ask for it.

    The function returns a list of results, payloads or AsyncValues. `stated`: the types of the results, by index, that
    are known from the program alone; each run compares them with the results.
    """
    keywords: dict[str, Any] = {name: value if _takes_typed_value(kernel, name) else plain_value(value)
                                for name, value in call.attrs.items() if not name.startswith("_")}
    if kernel.takes_more_callees:
        keywords[kernel.callees[0]] = tuple(functions)
    else:
        keywords |= dict(zip(kernel.callees, functions, strict=True))
    if kernel.located is not None:
        keywords[kernel.located] = call.location
    run = partial(kernel.function, **keywords) if keywords else kernel.function
    if kernel.plugin == CORE_PLUGIN and call.functions and not stated and not check_types:
        return run  # the results are those of linked functions, which have been checked
    count = len(call.results)
    tensors = [(i, kind) for i, kind in stated.items() if isinstance(kind, TensorMetadata)]
    if count == 1 and kernel.results is not None and not tensors and not check_types:
        return OneResult(run)

    def call_it(*arguments: Any) -> list[Any]:
        results = [payload_of(result) for result in _result_sequence(run(*arguments), kernel, count)]
        for i, meta in tensors:
            results[i] = check_payload(results[i], meta, kernel.code)
        if check_types:
            _check_results(results, kernel)
        return results

    return call_it


def _takes_typed_value(kernel: HostKernel, attribute: str) -> bool:
    kind = kernel.attributes[attribute].type
    return kind is not None and kind.typed


def _result_sequence(result: Any, kernel: HostKernel, count: int) -> Sequence[Any]:
    """Return what a host kernel returned as a sequence of `count` results.

    Raises InvalidArgument for another number where the call chooses the number, PluginError where the kernel declares
    it.
    """
    if count == 1 and kernel.results is not None:
        return (result,)
    if result is None and count == 0:
        return ()
    if isinstance(result, tuple | list) and len(result) == count:
        return result
    got = f"{len(result)} values" if isinstance(result, tuple | list) else type(result).__name__
    if kernel.results is None and isinstance(result, tuple | list):
        raise InvalidArgument(f"{kernel.code} produced {got}, but the call has {count} results", op=kernel.code)
    raise PluginError(f"host kernel {kernel.code} returned {got}, expected {count} values", op=kernel.code,
                      plugin=kernel.plugin)


def _check_results(results: Sequence[Any], kernel: HostKernel) -> None:
    """Raises PluginError when a result is not of its declared type."""
    for i, (value, kind) in enumerate(zip(results, kernel.results or (), strict=False)):
        if kind is not None and not isinstance(value, AsyncValue) and not kind.accepts(value):
            raise PluginError(f"host kernel {kernel.code} returned {value!r} as result {i}", op=kernel.code,
                              hint=f"it is declared as {kernel}", plugin=kernel.plugin)


def check_argument(value: Any, kind: RegisterType, name: str) -> None:
    """Raises InvalidArgument when a user's argument is not of the host type that the function declares."""
    if (isinstance(kind, str) and kind in TYPE_OF_NAME and not isinstance(value, AsyncValue)
            and not TYPE_OF_NAME[kind].accepts(value)):
        raise InvalidArgument(f"argument '{name}' is {value!r}, the program expects {kind}")


def _fits(register_type: RegisterType, declared_type: HostType | None) -> bool:
    if isinstance(register_type, TensorMetadata):
        return declared_type is None or declared_type == TENSOR
    return declared_type is None or register_type == declared_type.name


def _misfit_error(kernel: HostKernel, call: Call, what: str) -> InvalidArgument:
    return InvalidArgument(f"the call of {call.code} {what}", op=call.code, location=call.location,
                           hint=f"it is declared as {kernel}", plugin=kernel.plugin)
