"""The only call of an executable, for callers that need no frame and no step."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..contract.kernel import KernelDef
from ..program.host_program import COPY, HOST
from .array_contract import check_returned
from .calls.bound_call import BoundCall
from .calls.kernel_call import KernelCall
from .calls.transfer import Transfer
from .executable import Executable

if TYPE_CHECKING:
    from ..host.host import Host


def only_call(executable: Executable, host: Host) -> Callable[..., Any] | None:
    """Return a function from the arguments' arrays to the one result, a new array; None for an executable that does
    more than one call of a kernel which only computes on host memory."""
    layout, function = executable.layout, executable.function
    if len(layout.calls) != 1:
        return None
    (bound,) = layout.calls
    call, presets = bound.call, layout.registers.presets
    if (not isinstance(bound, KernelCall) or not bound.sees_host or bound.returns_results or bound.stateful
            or bound.pends or bound.retained or bound.kernel.step
            or len(call.results) != 1 or tuple(function.results) != tuple(call.results)
            or any(register >= len(function.arg_names) and register not in presets for register in call.args)):
        return None
    environment = layout.environment(host)
    run, make = bound.run_function(environment, []), environment.maker(call.results[0], [])
    write = allocating_run(run, make, bound.kernel, len(call.args))
    if call.args == tuple(range(len(function.arg_names))) and call.args:
        return write
    sources = [(register if register < len(function.arg_names) else None, presets.get(register))
               for register in call.args]
    return lambda *arrays: write(*[preset if argument is None else arrays[argument] for argument, preset in sources])


def only_device_call(executable: Executable) -> tuple[BoundCall, list[int]] | None:
    """Return the only kernel call of an executable, on a device outside host memory, and for each of its arguments
    the index of the executable's argument. None for an executable that does more than this call and its copies."""
    layout, function = executable.layout, executable.function
    copied = {bound.call.results[0]: bound.call.args[0] for bound in layout.calls if bound.call.code == COPY}
    kernels = [bound for bound in layout.calls if not isinstance(bound, Transfer)]
    if len(kernels) != 1:
        return None
    (bound,) = kernels
    sources = [copied.get(register, register) for register in bound.call.args]
    if (bound.sees_host or bound.memory == HOST or bound.stateful or bound.call.fused
            or any(source >= len(function.arg_names) for source in sources)
            or [copied.get(register, register) for register in function.results] != [*bound.call.results]):
        return None
    return bound, sources


def allocating_run(
    run: Callable[..., Any], make: Callable[[], Any], kernel: KernelDef, count: int
) -> Callable[..., Any]:
    """Return the run function of a kernel as a function of `count` arrays that returns a new one, made by `make`."""

    def one(x: Any) -> Any:
        out = make()
        returned = run(x, out)
        if returned is not out and returned is not None:
            check_returned(returned, (out,), kernel)
        return out

    def two(x: Any, y: Any) -> Any:
        out = make()
        returned = run(x, y, out)
        if returned is not out and returned is not None:
            check_returned(returned, (out,), kernel)
        return out

    def any_number(*arrays: Any) -> Any:
        out = make()
        check_returned(run(*arrays, out), (out,), kernel)
        return out

    by_count: dict[int, Callable[..., Any]] = {1: one, 2: two}
    return by_count.get(count, any_number)
