"""Control flow of op graphs: kernels that call the functions of If, While, For, Case and calls, and kernels of dead
values.

The functions may return a chain behind their results: it is filled when their side effects are done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...errors import InvalidArgument
from ..contract.host_kernel import Callee, HostKernels
from ..contract.host_type import I1, I64, Chain, Tensor
from ..contract.structural import branch, is_true
from ..executor.repeated_call import RepeatedCall
from ..executor.step import Step
from ..values.async_value import DEAD, AsyncValue
from .waiting import Turns, as_async, await_payloads, pending_values, run_or_promise

Turn = Callable[[Sequence[Any]], Sequence[Any]]
OVERLAP_ITERATIONS = 10  # iterations that begin before the values of the first of them are waited for, as in TensorFlow


def register(kernels: HostKernels) -> None:
    kernels.kernel("heald.call", step=True)(call)
    kernels.kernel("heald.if", step=True)(choose)
    kernels.kernel("heald.case", step=True)(case)
    kernels.kernel("heald.while", step=True)(while_loop)
    kernels.kernel("heald.for", step=True)(for_loop)
    kernels.kernel("heald.frame", step=True)(frame)
    kernels.kernel("heald.switch")(switch)
    kernels.kernel("heald.switch_n")(switch_n)
    kernels.kernel("heald.merge", nonstrict=True)(merge)
    kernels.kernel("heald.trigger", nonstrict=True)(trigger)
    kernels.kernel("heald.gate")(gate)


def call(step: Step, *arguments: Any, f: Callee) -> list[Any]:
    """Return the function's results."""
    return step.invoke(f, arguments)


def choose(
    step: Step, condition: Tensor, *arguments: Any, then_branch: Callee, else_branch: Callee, scalar: I1 = False
) -> list[Any]:
    """Return the results of one of two functions."""
    return step.invoke(then_branch if is_true(condition, scalar=scalar) else else_branch, arguments)


def case(step: Step, index: Tensor, *arguments: Any, branches: tuple[Callee, ...]) -> list[Any]:
    """Return the results of the function with this index, the last one for an index out of range.

    Raises InvalidArgument for an index that is not a scalar.
    """
    return step.invoke(branch(branches, _scalar(index, "the index of a Case")), arguments)


def while_loop(
    step: Step, *variables: Any, cond: Callee, body: Callee, chain: I1 = False, scalar: I1 = False
) -> list[Any]:
    """Return the loop variables after the loop: the body's results replace them while the condition is true.

    An iteration begins before the results of the one before it are available, but every tenth waits for them.
    """
    repeated = _repeated_calls(step, (cond, body), variables)
    if repeated:
        return [*_while_in_place(repeated, variables, chain, scalar), *[None] * chain]
    return run_or_promise(step, _while(step, variables, cond, body, chain, scalar), len(variables) + chain)


def for_loop(
    step: Step, start: Tensor, limit: Tensor, delta: Tensor, *variables: Any, body: Callee, chain: I1 = False
) -> list[Any]:
    """Return the loop variables after calls of the body with start, start + delta, ... up to the limit, excluded.

    Raises InvalidArgument for a delta of 0, and for numbers that are not scalars.
    """
    first, end, stride = (int(_scalar(argument, "a number of a For loop")) for argument in (start, limit, delta))
    if not stride:
        raise InvalidArgument("the delta of a For loop is 0")
    numbers = range(first, end, stride)
    repeated = _repeated_calls(step, (body,), variables)
    if repeated:
        return [*_for_in_place(repeated[0], numbers, variables, chain), *[None] * chain]
    return run_or_promise(step, _for(step, numbers, variables, body, chain), len(variables) + chain)


def frame(step: Step, *values: Any, body: Callee, variables: I64, exits: I64, chain: I1 = False) -> list[Any]:
    """Return the last live values of the exits of a loop whose iterations give dead values.

    The first `variables` arguments are the values of the first iteration, the others constants. The body returns the
    values of the next iteration, then the values of the exits. The loop ends when all values of the next iteration are
    dead.

    Raises InvalidArgument for other numbers of values.
    """
    if not 0 <= variables <= len(values) or exits < 0:
        raise InvalidArgument(f"a loop of {variables} variables and {exits} exits has {len(values)} values")
    return run_or_promise(step, _frame(step, values, body, variables, exits, chain), exits + chain)


def switch(data: Any, pred: Tensor) -> tuple[Any, Any, Chain]:
    """Return (data, dead) for a false predicate, (dead, data) for a true one, and a chain.

    Raises InvalidArgument for a predicate that is not a scalar.
    """
    return (DEAD, data, None) if is_true(pred, scalar=True) else (data, DEAD, None)


def switch_n(data: Any, index: Tensor, *, outputs: I64) -> list[Any]:
    """Return the data as the output with this index, the last one for an index out of range; the other outputs are
    dead. A chain comes behind them.

    Raises InvalidArgument for an index that is not a scalar.
    """
    live_index = branch(range(outputs), _scalar(index, "the index of the live output"))
    return [*(data if number == live_index else DEAD for number in range(outputs)), None]


def _scalar(value: Any, what: str) -> Any:
    if value.shape != ():
        raise InvalidArgument(f"{what} has shape {list(value.shape)}, not []")
    return value


def gate(value: Any) -> Any:
    """Return the value. The call is dead when a call that it waits for is dead."""
    return value


def trigger() -> Chain:
    """Return a chain: it is alive although the values that were waited for may be dead."""


def merge(*inputs: Any) -> tuple[Any, Any]:
    """Return the first input that is alive, and its index; dead values when all inputs are dead."""
    live_result = _first_alive(inputs)
    if live_result is not None:
        return live_result
    value, index = AsyncValue(), AsyncValue()

    def on_arrival() -> None:
        late = _first_alive(inputs)
        if late is not None and not value.is_available():
            value.forward_to(as_async(late[0]))
            index.forward_to(as_async(late[1]))

    for argument in inputs:
        argument.and_then(on_arrival)
    return value, index


def _first_alive(inputs: Sequence[AsyncValue]) -> tuple[Any, Any] | None:
    """The results of a Merge, or None while they depend on inputs that are to come."""
    import numpy as np

    for number, argument in enumerate(inputs):
        if argument.is_available() and not argument.is_dead():
            return (argument, argument) if argument.is_error() else (argument, np.array(number, np.int32))
    return (DEAD, DEAD) if all(argument.is_dead() for argument in inputs) else None


def _repeated_calls(step: Step, functions: Sequence[Callee], variables: Sequence[Any]) -> list[RepeatedCall]:
    """Return these functions in the form for many calls. Return an empty list where one of them needs `invoke`, and
    where a variable comes later or is dead."""
    if any(variable.__class__ is AsyncValue for variable in variables):
        return []
    calls: list[RepeatedCall] = []
    for function in functions:
        call = function.executable.repeat(step)
        if call is None:
            for other in calls:
                other.close()
            return []
        calls.append(call)
    return calls


def _while_in_place(
    repeated: Sequence[RepeatedCall], variables: Sequence[Any], chain: bool, scalar: bool
) -> Sequence[Any]:
    """Return the loop variables after the loop."""
    condition_function, body = repeated
    test, turn, values = condition_function.turn, _turn_of_variables(body, len(variables), chain), variables
    try:
        while True:
            condition = test(values)[0]
            if not (condition if _is_plain(condition) else is_true(condition, scalar=scalar)):
                return values
            values = turn(values)
    finally:
        for function in repeated:
            function.close()


def _turn_of_variables(body: RepeatedCall, count: int, chain: bool) -> Turn:
    """Return the turn of a body without the chain behind its results, which is ready."""
    turn = body.turn
    return (lambda values: turn(values)[:count]) if chain else turn


def _for_in_place(body: RepeatedCall, numbers: range, variables: Sequence[Any], chain: bool) -> Sequence[Any]:
    """Return the loop variables after the loop."""
    import numpy as np  # listing kernels needs no NumPy

    values, turn, array, dtype = variables, _turn_of_variables(body, len(variables), chain), np.array, np.int32
    try:
        for number in numbers:
            values = turn((array(number, dtype), *values))
    finally:
        body.close()
    return values


def _is_plain(condition: Any) -> bool:
    """True for a scalar of type bool. Raises InvalidArgument for a value that is no tensor."""
    try:
        return bool(condition.shape == () and condition.dtype.kind == "b")
    except AttributeError:
        raise InvalidArgument("the condition of a loop is no tensor") from None


def _while(
    step: Step, variables: Sequence[Any], cond: Callee, body: Callee, chain: bool, scalar: bool
) -> Turns:
    values, count, done = list(variables), len(variables), [None] * chain
    test, turn = step.caller(cond), step.caller(body)
    number = 0
    while True:
        number += 1
        if step.error is not None or step.deadline is not None:
            step.check()
        test_results = test(values)
        condition = test_results[0]
        if chain or condition.__class__ is AsyncValue:
            condition, *_ = yield from await_payloads(test_results)
        if condition is DEAD:
            return [DEAD] * (count + chain)
        if not (condition if _is_plain(condition) else is_true(condition, scalar=scalar)):
            return values + done
        values = turn(values)
        if chain:
            yield from await_payloads(values[count:])
            del values[count:]
        if not number % OVERLAP_ITERATIONS and (late := pending_values(values)):
            yield late


def _for(step: Step, numbers: range, variables: Sequence[Any], body: Callee, chain: bool) -> Turns:
    import numpy as np  # listing kernels needs no NumPy

    values, count = list(variables), len(variables)
    for turn, number in enumerate(numbers, 1):
        step.check()
        values = step.invoke(body, [np.array(number, np.int32), *values])
        if chain:
            yield from await_payloads(values[count:])
            del values[count:]
        if not turn % OVERLAP_ITERATIONS and (late := pending_values(values)):
            yield late
    return values + [None] * chain


def _frame(
    step: Step, values: Sequence[Any], body: Callee, variables: int, exits: int, chain: bool
) -> Turns:
    current, constants = list(values[:variables]), list(values[variables:])
    last = [DEAD] * exits
    while True:
        step.check()
        results = yield from await_payloads(step.invoke(body, [*current, *constants]))
        if len(results) != variables + exits + chain:
            raise InvalidArgument(f"the body of a loop of {variables} variables and {exits} exits returns "
                                  f"{len(results)} values")
        current = results[:variables]
        last = [before if after is DEAD else after
                for before, after in zip(last, results[variables : variables + exits], strict=True)]
        if all(variable is DEAD for variable in current):
            return last + [None] * chain
