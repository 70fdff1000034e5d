"""KernelCall: a call of a kernel that is bound when its function is linked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ...contract.kernel import Attachable, run_of
from ...host.bound_call_cache import bytes_of_call
from ...program.host_program import HOST
from ...support.kernel_errors import raise_of
from ...support.plugin_guard import plugin_guard
from ...support.records import record
from ..array_contract import check_returned
from .frame_calls import open_call, returning_call, run_with_step
from .op_call import OpCall
from .returned_results import make_run_on_list

if TYPE_CHECKING:
    from ..step import Step
    from .call_environment import CallEnvironment
    from .frame_calls import FrameCall, FreshCall
    from .unfinished_frame import UnfinishedFrame


@record
class KernelCall(OpCall):
    """`bound`: the bound kernel, as its bind function returned it."""

    bound: Callable[..., Any] | Attachable

    @property
    def kernel_bytes(self) -> int:
        return bytes_of_call(self.bound)

    @property
    def registers_read(self) -> tuple[int, ...]:
        args = self.call.args
        indices = getattr(self.bound, "reads", None) if self.sees_host else None
        return args if indices is None else tuple(register for i, register in enumerate(args) if i in indices)

    @property
    def inplace(self) -> Mapping[int, int]:
        return {**self.kernel.inplace, **getattr(self.bound, "inplace", {})}

    @property
    def how(self) -> str:
        """The kernel's own description of its algorithm. Raises PluginError when it cannot be read."""
        with plugin_guard(f"'how' of the kernel {self.call.code}"):
            return str(getattr(self.bound, "how", ""))

    @property
    def fills_cores(self) -> bool:
        return bool(getattr(self.bound, "fills_cores", False))

    @property
    def prefers_fixed_arrays(self) -> bool:
        return bool(getattr(self.bound, "prefers_fixed_arrays", False))

    @property
    def obstacle_to_capture(self) -> str:
        if self.memory == HOST and not self.sees_host:
            return "its results are in host memory"
        if not getattr(self.bound, "captures", True):
            return "its kernel says so"
        return "" if hasattr(self.bound, "attach") else "its kernel is not attached to buffers"

    def make_frame_call(self, frame: UnfinishedFrame) -> FrameCall | None:
        args, results, registers = self.call.args, self.call.results, frame.registers
        run = self.run_function(frame.environment, registers)
        if self.returns_results:
            return returning_call(registers, args, self.returned_registers, run)
        if not frame.has_fixed(args) or not frame.has_fixed(results):
            return open_call(registers, args, results, frame.makers(results), run)
        inputs, outputs = tuple(registers[a] for a in args), tuple(registers[r] for r in results)
        attach = getattr(self.bound, "attach", None)
        if attach is None:
            return partial(run, *inputs, *outputs)
        call = frame.environment.synchronous_run(self._attach_kernel(attach, inputs, outputs), self.device)
        if frame.environment.checks:
            return partial(self._with_checks(frame.environment, lambda *_: call()), *inputs, *outputs)
        return call

    def make_fresh_call(self, environment: CallEnvironment) -> FreshCall:
        takes_step, results = self.kernel.step, self.call.results
        if self.memory != HOST:
            return self._make_fresh_call_on_device(environment)
        run = None if takes_step else self.run_function(environment, [])
        if self.returns_results:
            return lambda step, ins: (run or self.run_function(environment, [step]))(ins)
        makers = [environment.maker(r, []) for r in results]
        kernel = self.kernel

        def call(step: Step, ins: list[Any]) -> list[Any]:
            outs = [make() for make in makers]
            check_returned((run or self.run_function(environment, [step]))(*ins, *outs), outs, kernel)
            return outs

        if run is None or len(makers) != 1:
            return call
        make, run_alone = makers[0], run

        def call_for_one(_: Step, ins: list[Any]) -> list[Any]:
            out = make()
            returned = run_alone(*ins, out)
            if returned is not out and returned is not None:  # calling check_returned costs a tenth of a small kernel
                check_returned(returned, (out,), kernel)
            return [out]

        return call_for_one

    def _make_fresh_call_on_device(self, environment: CallEnvironment) -> FreshCall:
        def call(step: Step, ins: list[Any]) -> list[Any]:
            outs = [environment.maker(r, [step])() for r in self.call.results]
            check_returned(self.run_function(environment, [step])(*ins, *outs), outs, self.kernel)
            return outs

        return call

    def run_function(self, environment: CallEnvironment, registers: list[Any]) -> Callable[..., Any]:
        """Return the call's run function, for the step in the last of `registers`.

        A kernel that returns its results becomes a function of the list of arguments.
        """
        run, kernel = run_of(self.bound), self.kernel
        if environment.checks and not kernel.nonstrict:
            run = self._with_checks(environment, run, first=int(kernel.step))
        run = environment.synchronous_run(run, self.device)
        if kernel.step:
            run = partial(run_with_step, registers, run)
        if kernel.returns:
            metas = [environment.metas[r] for r in self.call.results]
            return make_run_on_list(run, metas, self.call, kernel, environment.host.memory)
        return run

    def _with_checks(self, environment: CallEnvironment, run: Callable[..., Any], first: int = 0) -> Callable[..., Any]:
        outputs = () if self.returns_results else self.call.results
        return environment.run_with_checks(run, outputs, self.device, self.memory, self.kernel, first)

    def _attach_kernel(
        self, attach: Callable[..., FrameCall], inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> FrameCall:
        """Return the FrameCall from the kernel's `attach` for these arrays. Raises as `raise_of`."""
        try:
            return attach(inputs, outputs)
        except Exception as error:  # noqa: BLE001 - raised again, typed
            raise_of("attach", error, self.kernel, self.call.node, self.call.op)
