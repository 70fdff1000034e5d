"""Control flow: kernels that call functions of the program. The executor knows none of them."""

from __future__ import annotations

from functools import partial
from typing import Any

from ..contract.host_kernel import Callee, HostKernels
from ..contract.host_type import I1, I32
from ..errors import Cancelled
from ..executor.step import Step
from ..values.async_value import AsyncValue, failed


def register(kernels: HostKernels) -> None:
    kernels.kernel("tfrt.call", step=True)(call)
    kernels.kernel("tfrt.cond", step=True)(cond)
    kernels.kernel("tfrt.case", step=True)(case)
    kernels.kernel("tfrt.while", step=True)(while_loop)


def call(step: Step, *arguments: Any, callee: Callee) -> list[Any]:
    """Return the function's results. A non-strict call starts as soon as one argument is available."""
    return step.call(callee, arguments)


def cond(step: Step, condition: I1, *arguments: Any, a_true_fn: Callee, b_false_fn: Callee) -> list[Any]:
    """Return the results of one of two functions."""
    return step.call(a_true_fn if condition else b_false_fn, arguments)


def case(step: Step, index: I32, *arguments: Any, branches: tuple[Callee, ...]) -> list[Any]:
    """Return the results of the function with this index; of the last function for any other index."""
    return step.call(branches[index if 0 <= index < len(branches) else -1], arguments)


def while_loop(step: Step, condition: I1, *arguments: Any, body_fn: Callee) -> list[Any]:
    """Return the loop variables after the loop.

    The body takes the variables and returns new ones, and a condition: False ends the loop.
    """
    if not condition:
        return list(arguments)
    results = [AsyncValue() for _ in arguments]
    _Loop(step, body_fn, results).turn(list(arguments))
    return results


class _Loop:
    """A loop that runs in place while the body's condition is available, and continues in callbacks when it is
    pending."""

    def __init__(self, step: Step, body: Callee, results: list[AsyncValue]) -> None:
        self._step = step
        self._body = body
        self._results = results

    def turn(self, variables: list[Any]) -> None:
        """Iterate from these variables until the loop ends or a condition is pending."""
        while True:
            if self._step.cancelled():
                error = self._step.error or Cancelled("the run ended before this work was done")
                self._end([failed(error)] * len(variables))
                return
            *following, condition = self._step.call(self._body, variables)
            if not condition.is_available():
                condition.and_then(partial(self._go_on, following, condition))
                return
            if not self._goes_on(following, condition):
                return
            variables = following

    def _go_on(self, variables: list[Any], condition: AsyncValue) -> None:
        if self._goes_on(variables, condition) and not self._step.post(lambda: self.turn(variables)):
            self._end([failed(Cancelled("the run ended before this work was done"))] * len(variables))

    def _goes_on(self, variables: list[Any], condition: AsyncValue) -> bool:
        if condition.is_error() or condition.is_dead():
            self._end([condition] * len(variables))
            return False
        if not condition.get():
            self._end(variables)
            return False
        return True

    def _end(self, variables: list[Any]) -> None:
        for result, value in zip(self._results, variables, strict=True):
            result.forward_to(value)
