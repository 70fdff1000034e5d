"""FrameCall: the forms of a call that is bound to a frame's registers and takes no arguments any more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from numpy import ndarray

from ...errors import Internal
from ..contract.device import STREAM, Device
from ..contract.kernel import KernelDef
from ..host.device_memory import DeviceMemory, Owned
from ..host.host_memory import COUNTED_FROM_BYTES, HostMemory
from ..program.host_program import HOST, Call
from ..values.async_value import AsyncValue, available, payload_of
from ..values.tensor import TensorMetadata
from .bound_call import BoundCall
from .host_array import returned, view

if TYPE_CHECKING:
    from .step import Step

FrameCall = Callable[[], Any]
Maker = Callable[[], Any]


class HandOver(Exception):
    """A call of the flat list returned a value without a payload, so a Dataflow runs the remaining calls."""


def then_forget(call: FrameCall, registers: list[Any], dead: Sequence[int]) -> Any:
    returned = call()
    for register in dead:
        registers[register] = None
    return returned


def open_call(
    registers: list[Any], args: tuple[int, ...], results: tuple[int, ...], fresh: tuple[Maker | None, ...],
    run: Callable[..., Any],
) -> FrameCall:
    """Return a call that reads its registers when it runs, and returns the result of `run`.

    `fresh`: for each result a maker of its output, or None when the output is a buffer of the frame.
    """
    if len(results) == 1 and fresh[0] is not None and len(args) in (1, 2):
        make, result, first, last = fresh[0], results[0], args[0], args[-1]

        def unary() -> Any:
            out = registers[result] = make()
            return run(registers[first], out)

        def binary() -> Any:
            out = registers[result] = make()
            return run(registers[first], registers[last], out)

        return unary if len(args) == 1 else binary

    def call() -> Any:
        for register, create in zip(results, fresh, strict=True):
            if create is not None:
                registers[register] = create()
        return run(*[registers[a] for a in args], *[registers[r] for r in results])

    return call


def run_returning(
    registers: list[Any], args: Sequence[int], results: Sequence[int], run: Callable[[list[Any]], list[Any]]
) -> None:
    for register, value in zip(results, run([registers[a] for a in args]), strict=True):
        registers[register] = value


def run_host(
    registers: list[Any], args: Sequence[int], results: Sequence[int], run: Callable[[list[Any]], list[Any]]
) -> None:
    """Run a host kernel that may return AsyncValues, and rarely does. Raises HandOver when it does."""
    is_payload = True
    for register, value in zip(results, run([registers[a] for a in args]), strict=True):
        registers[register] = value
        is_payload = is_payload and not isinstance(value, AsyncValue)
    if not is_payload:
        raise HandOver


class OneResult:
    """A host kernel with one result, a payload or an AsyncValue, as a function that returns a list of it."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, *arguments: Any) -> list[Any]:
        return [payload_of(self.function(*arguments))]

    def over(self, registers: list[Any], args: tuple[int, ...], result: int) -> FrameCall:
        """Return a call over registers, which takes half the time of `run_host`. The step, if the kernel takes one, is
        the first of `args`. The call raises HandOver as `run_host` does."""
        function = self.function

        def call() -> None:
            value = function(*[registers[a] for a in args])
            if value.__class__ is AsyncValue:
                value = payload_of(value)
            registers[result] = value
            if value.__class__ is AsyncValue:
                raise HandOver

        return call


def run_lazy(
    registers: list[Any], args: Sequence[int], given: Sequence[int], lazy: Callable[[Step, list[Any]], list[Any]]
) -> None:
    run_returning(registers, args, given, lambda inputs: lazy(registers[-1], inputs))


def with_step(registers: list[Any], run: Callable[..., Any], *arrays: Any) -> Any:
    return run(registers[-1], *arrays)


def checked(
    run: Callable[..., Any], metas: Sequence[TensorMetadata], op: str, kernel: KernelDef, memory: HostMemory,
    inputs: list[Any],
) -> list[Any]:
    """Run a kernel that returns its results: payloads where they are available, else AsyncValues.

    Raises Internal for AsyncValues from a kernel that is not declared asynchronous.
    """
    if kernel.nonstrict:
        inputs = [x if isinstance(x, AsyncValue) else available(x) for x in inputs]
    values = returned(run(*inputs), metas, op, kernel.pack)
    if not (kernel.asynchronous or kernel.nonstrict) and any(isinstance(v, AsyncValue) for v in values):
        raise Internal(f"the kernel of {op} (plugin {kernel.pack}) returned an AsyncValue and is not declared "
                       "asynchronous", op=op, plugin=kernel.pack, hint="declare the kernel with asynchronous=True")
    for value in values:
        if value.__class__ is ndarray and value.nbytes >= COUNTED_FROM_BYTES:
            memory.hold(value, "a result")
    return values


def acted(run: Callable[..., Any], inputs: list[Any]) -> list[Any]:
    """Return the value of the chain of an asynchronous call without results: None when done, else an AsyncValue."""
    return [payload_of(run(*inputs))]


def returning(
    run: Callable[..., Any], metas: Sequence[TensorMetadata], call: Call, kernel: KernelDef, memory: HostMemory
) -> Callable[[list[Any]], list[Any]]:
    """Return the run function of a kernel that returns its results, as a function of a list of inputs."""
    if kernel.asynchronous and call.chain is not None:
        return partial(acted, run)
    return partial(checked, run, metas, call.op, kernel, memory)


def with_values(run: Callable[..., list[Any]], inputs: list[Any]) -> list[Any]:
    """Run a non-strict host kernel: each input that is a payload becomes an available AsyncValue."""
    return run(*[x if isinstance(x, AsyncValue) else available(x) for x in inputs])


def run_view(registers: list[Any], pairs: Sequence[tuple[int, int, TensorMetadata]]) -> None:
    for result, source, meta in pairs:
        registers[result] = view(registers[source], meta)


def run_alias(registers: list[Any], pairs: Sequence[tuple[int, int, TensorMetadata]]) -> None:
    """Share buffers on a device, which have no shape: the result register holds the source's buffer."""
    for result, source, _ in pairs:
        registers[result] = registers[source]


def on_stream(copy: Callable[..., None], source: Any, result: Any) -> None:
    copy(source, result, STREAM)


def copier(bound: BoundCall) -> Callable[[Any, Any], None]:
    """Return the function of a transfer: it enqueues a copy from its argument to its result."""
    device, source = bound.device, bound.source
    assert device is not None
    if source is None:
        return partial(on_stream, device.copy_in if bound.memory != HOST else device.copy_out)

    def copy(x: Any, out: Any) -> None:
        if not device.copy_peer(x, out, STREAM):  # type: ignore[attr-defined] # an optional method
            raise Internal(f"device {device.uid} reaches {source.uid}, and its copy_peer refuses a buffer of it")

    return copy


def run_leaving(
    registers: list[Any], source: int, result: int, make: Maker, leave: Callable[[Any, Any], AsyncValue]
) -> None:
    """Copy a value out of a device; the register holds an AsyncValue for the copy."""
    registers[result] = leave(registers[source], make())


def run_event(registers: list[Any], result: int, reach: Callable[[], AsyncValue]) -> None:
    registers[result] = reach()


def run_wrapping(
    registers: list[Any], source: int, result: int, memory: DeviceMemory, device: Device, lent: list[Owned]
) -> None:
    """Enter a feed into a device that may read it in host memory. `lent` receives the device's buffer, to be freed."""
    registers[result] = buffer = memory.enter(device, registers[source])
    lent.append((device.free, buffer))


def device_maker(memory: DeviceMemory, device: Device, nbytes: int, owner: Callable[[], Step]) -> Maker:
    """Return a maker of device buffers that live as long as the running step. The maker raises ResourceExhausted."""
    def make() -> Any:
        buffer = memory.allocate(device, nbytes)
        owner().own(device.free, buffer)
        return buffer

    return make
