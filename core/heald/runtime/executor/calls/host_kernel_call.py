"""HostKernelCall: a call of a host kernel, whose arguments and results may be any objects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from ...contract.kernel import KernelDef
from ...contract.structural import CONTROL_FLOW, DEAD_VALUES, FRAME_OP, RECV_CODE
from ...program.host_program import HOST
from ...support.kernel_errors import kernel_fault
from ...support.records import record
from ...values.async_value import AsyncValue, available, payload_of
from ..host_array import check_payload
from .bound_call import BoundCall
from .frame_calls import HandOver, run_returning, run_with_step

if TYPE_CHECKING:
    from ....errors import HealdError
    from ...host.host import Host
    from ...values.tensor import TensorMetadata
    from .call_environment import CallEnvironment
    from .frame_calls import FrameCall, FreshCall
    from .unfinished_frame import UnfinishedFrame

_CODES_THAT_PASS_ON = frozenset({*DEAD_VALUES.values(), "heald.gate", RECV_CODE})
_CODES_THAT_GIVE_DEAD = frozenset({*DEAD_VALUES.values(), CONTROL_FLOW[FRAME_OP].code})


@record
class HostKernelCall(BoundCall):
    """`run`: the kernel as a function of its arguments, which returns a list.

    `kernel`: the kernel's declaration, as far as the executor asks for it.
    `never_pends`: True for a call of functions that never returns results that come later.
    """

    device: None = field(default=None, init=False)
    memory: int = field(default=HOST, init=False)
    kernel: KernelDef
    run: Callable[..., list[Any]]
    never_pends: bool = False

    is_host_kernel = True

    @property
    def returns_results(self) -> bool:
        return True

    @cached_property
    def may_pend(self) -> bool:
        return self.pends or not self.never_pends

    @property
    def needs_own_step(self) -> bool:
        return self.may_pend

    @property
    def reads_after_return(self) -> bool:
        return True

    @property
    def passes_on(self) -> bool:
        return bool(self.call.functions) or self.call.code in _CODES_THAT_PASS_ON

    @property
    def may_give_dead(self) -> bool:
        return self.call.code in _CODES_THAT_GIVE_DEAD

    def make_frame_call(self, frame: UnfinishedFrame) -> FrameCall | None:
        args, results, registers = self.call.args, self.call.results, frame.registers
        if isinstance(self.run, OneResult) and not self.pends:
            return self.run.over(registers, (-1, *args) if self.kernel.step else args, results[0])
        run_it = run_returning if self.pends else run_host
        return partial(run_it, registers, args, results, self._run_function(registers))

    def make_fresh_call(self, _: CallEnvironment) -> FreshCall:
        if self.kernel.step:
            return lambda step, ins: self._run_function([step])(ins)
        run = self._run_function([])
        return lambda __, ins: run(ins)

    def _run_function(self, registers: list[Any]) -> Callable[[list[Any]], list[Any]]:
        """Return the kernel as a function of the list of arguments, for the step in the last of `registers`."""
        run: Callable[..., list[Any]] = self.run
        if self.kernel.step:
            run = partial(run_with_step, registers, run)
        return partial(run_with_async_values, run) if self.kernel.nonstrict else lambda ins: run(*ins)

    def typed_error(self, error: BaseException, _: Host, __: str) -> HealdError:
        call = self.call
        typed = kernel_fault(error, f"kernel {call.code}", self.kernel)
        return typed.at(node=call.node or None, op=call.code, location=call.location)

    def check_payload(self, value: Any, meta: TensorMetadata) -> Any:
        return check_payload(value, meta, self.call.code)


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


def run_with_async_values(run: Callable[..., list[Any]], inputs: list[Any]) -> list[Any]:
    """Run a non-strict host kernel: each input that is a payload becomes an available AsyncValue."""
    return run(*[x if isinstance(x, AsyncValue) else available(x) for x in inputs])
