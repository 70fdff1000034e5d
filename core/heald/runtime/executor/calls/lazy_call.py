"""LazyCall: a call of a kernel that binds in the run, when the shapes are known."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ...support.records import record
from .frame_calls import run_lazy
from .op_call import OpCall

if TYPE_CHECKING:
    from ..step import Step
    from .call_environment import CallEnvironment
    from .frame_calls import FrameCall, FreshCall
    from .unfinished_frame import UnfinishedFrame


@record
class LazyCall(OpCall):
    """`kernel`: the first candidate, whose flags all candidates share.

    `alias`: the aliases of all candidates, for any of them may be bound.
    `lazy`: takes the step and the arguments, and returns the results.
    """

    lazy: Callable[[Step, list[Any]], list[Any]]

    @property
    def plannable(self) -> bool:
        return False

    @property
    def obstacle_to_capture(self) -> str:
        return "its shapes change"

    def make_frame_call(self, frame: UnfinishedFrame) -> FrameCall | None:
        registers, args, results = frame.registers, self.call.args, self.returned_registers
        if len(results) != 1:
            return partial(run_lazy, registers, args, results, self.lazy)
        (result,), lazy = results, self.lazy

        if len(args) not in (1, 2):

            def call() -> None:
                (registers[result],) = lazy(registers[-1], [registers[a] for a in args])

            return call
        first, last = args[0], args[-1]

        def unary() -> None:
            (registers[result],) = lazy(registers[-1], [registers[first]])

        def binary() -> None:
            (registers[result],) = lazy(registers[-1], [registers[first], registers[last]])

        return unary if len(args) == 1 else binary

    def make_fresh_call(self, _: CallEnvironment) -> FreshCall:
        return self.lazy
