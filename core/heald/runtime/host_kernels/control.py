"""Control flow: kernels that call functions of the program. The executor knows none of them.

A call that carries `bef.nonstrict` starts with pending arguments. These kernels then wait for the argument that they
decide by, and pass the others on: the function waits for an argument when it needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ...errors import InvalidArgument
from ..contract.host_kernel import Callee, FunctionTypes, HostKernels, Types
from ..contract.host_type import I1, I32, I64
from ..executor.step import Step
from ..values.async_value import AsyncValue, failed, payload_of
from .waiting import Turns, as_async, pending_values, run_or_promise

OVERLAP_ITERATIONS = 32  # iterations that start before loop values are waited for
_ARGUMENTS_SYNTAX = "`(` $arguments `)` attr-dict `:` functional-type($arguments, results)"
_CALL_SYNTAX = "${} `(` operands `)` attr-dict `:` functional-type(operands, results)"
_IF_SYNTAX = ("$condition (`,` $arguments^)? attr-dict `:` functional-type($arguments, results) region($arguments) "
              "(`else` region($arguments)^)?")
_WHILE_SYNTAX = f"$condition $body_fn {_ARGUMENTS_SYNTAX} (`parallel_iterations` `(` $parallel_iterations^ `)`)?"
_REPEAT_SYNTAX = "$count (`,` $arguments^ `:` type($arguments, results))? attr-dict-with-keyword region($arguments)"
Choice = Callable[[Any], Callee | None]  # the function for a value; None for a function that does nothing


def register(kernels: HostKernels) -> None:
    kernels.kernel("tfrt.call", step=True, calls=_whole, syntax=_CALL_SYNTAX.format("callee"))(call)
    kernels.kernel("tfrt.if", step=True, calls=_behind_first, syntax=_IF_SYNTAX)(if_else)
    kernels.kernel("tfrt.cond", step=True, calls=_behind_first,
                   syntax=f"$condition $a_true_fn $b_false_fn {_ARGUMENTS_SYNTAX}")(cond)
    kernels.kernel("tfrt.case", step=True, calls=_behind_first, syntax=f"$index $branches {_ARGUMENTS_SYNTAX}")(case)
    kernels.kernel("tfrt.ternary", step=True, nonstrict=True,
                   syntax="operands attr-dict `:` functional-type(operands, results)")(ternary)
    kernels.kernel("tfrt.while", step=True, calls=_while_body, syntax=_WHILE_SYNTAX)(while_loop)
    kernels.kernel("tfrt.repeat.i32", step=True, calls=_repeat_body, syntax=_REPEAT_SYNTAX)(repeat)
    kernels.kernel("tfrt.once", step=True, calls=_whole, syntax=_CALL_SYNTAX.format("function"))(once)


def call(step: Step, *arguments: Any, callee: Callee) -> list[Any]:
    """Return the function's results."""
    return step.invoke(callee, arguments)


def if_else(step: Step, condition: I1, *arguments: Any, regions: tuple[Callee, ...]) -> list[Any]:
    """Return the results of the first region for a true condition, else of the second.

    The second region may be missing when there are no results. Raises InvalidArgument when it is missing otherwise, and
    for more than two regions.
    """
    if not 1 <= len(regions) <= 2 or (len(regions) == 1 and _count(regions[0])):
        raise InvalidArgument(f"tfrt.if has {len(regions)} regions",
                              hint="give it two regions, or one without results")
    then, otherwise = regions[0], regions[1] if len(regions) == 2 else None
    return _call_chosen(step, condition, arguments, lambda value: then if value else otherwise, then)


def cond(step: Step, condition: I1, *arguments: Any, a_true_fn: Callee, b_false_fn: Callee) -> list[Any]:
    """Return the results of one of two functions."""
    return _call_chosen(step, condition, arguments, lambda value: a_true_fn if value else b_false_fn, a_true_fn)


def case(step: Step, index: I32, *arguments: Any, branches: tuple[Callee, ...]) -> list[Any]:
    """Return the results of the function with this index; of the last function for any other index.

    Raises InvalidArgument when there are no functions.
    """
    if not branches:
        raise InvalidArgument("tfrt.case has no branches", hint="give it one function or more")
    last = len(branches) - 1
    return _call_chosen(step, index, arguments, lambda value: branches[value if 0 <= value < last else last],
                        branches[0])


def ternary(step: Step, condition: I1, when_true: Any, when_false: Any) -> Any:
    """Return one of two values. The other one is not waited for, and may be an error."""
    (selected,) = run_or_promise(step, _ternary(as_async(condition), when_true, when_false), 1)
    return selected


def while_loop(
    step: Step, condition: I1, *arguments: Any, body_fn: Callee, parallel_iterations: I64 = 1
) -> list[Any]:
    """Return the loop variables after the loop.

    The body takes the variables and returns new ones, and a condition: False ends the loop. An error of the condition
    becomes all results, once the variables are available. With `parallel_iterations` above 1, each body is a task of
    the work queue. Raises InvalidArgument for `parallel_iterations` below 1.
    """
    if parallel_iterations < 1:
        raise InvalidArgument(f"parallel_iterations is {parallel_iterations}, not 1 or more")
    turn = partial(step.enqueue_call, body_fn) if parallel_iterations > 1 else step.caller(body_fn)
    return run_or_promise(step, _while(step, condition, list(arguments), turn), len(arguments))


def repeat(step: Step, count: I32, *arguments: Any, body: Callee) -> list[Any]:
    """Return the loop variables after `count` calls of the body, which takes them and returns new ones.

    A call starts before the results of the call before it are available, but every 32 calls the first variable is
    waited for. A cancelled run ends the loop with its error. A count of 0 or less returns the arguments.
    """
    return run_or_promise(step, _repeat(step, count, list(arguments), step.caller(body)), len(arguments))


def once(step: Step, *arguments: Any, function: Callee) -> list[Any]:
    """Return the results of the function's first call among the runs that share resources.

    Later calls return the same results, even while the first call's are pending.
    """
    calls: dict[Callee, list[AsyncValue]] = step.resources.get("tfrt.once", dict)
    promises = [AsyncValue() for _ in range(_count(function))]
    results = calls.setdefault(function, promises)  # atomic: of two threads, one calls
    if results is promises:
        for promise, value in zip(promises, step.call(function, arguments), strict=True):
            promise.forward_to(value)
    return [payload_of(result) for result in results]


def _count(function: Callee) -> int:
    return len(function.executable.function.results)


def _call_chosen(step: Step, value: Any, arguments: Sequence[Any], choose: Choice, one: Callee) -> list[Any]:
    """Return the results of the function that `choose` returns for the value, which may come later.

    `one`: a function with as many results as the others.
    """
    if value.__class__ is AsyncValue:
        value = payload_of(value)
    if value.__class__ is AsyncValue:
        count = _count(one)
        return run_or_promise(step, _call_chosen_later(step, value, arguments, choose, count), count)
    function = choose(value)
    return [] if function is None else step.invoke(function, arguments)


def _call_chosen_later(step: Step, value: AsyncValue, arguments: Sequence[Any], choose: Choice, count: int) -> Turns:
    if not value.is_available():
        yield [value]
    payload = payload_of(value)
    if payload.__class__ is AsyncValue:  # an error, or dead
        return [payload] * count
    function = choose(payload)
    return [] if function is None else step.invoke(function, arguments)


def _ternary(condition: AsyncValue, when_true: Any, when_false: Any) -> Turns:
    if not condition.is_available():
        yield [condition]
    payload = payload_of(condition)
    if payload.__class__ is AsyncValue:  # an error, or dead
        return [payload]
    return [when_true if payload else when_false]


def _while(step: Step, condition: Any, variables: list[Any], turn: Callable[[list[Any]], list[Any]]) -> Turns:
    number = 0
    while True:
        number += 1
        if condition.__class__ is AsyncValue:
            if not condition.is_available():
                yield [condition]
            condition = payload_of(condition)
            if condition.__class__ is AsyncValue:  # an error, or dead
                late = pending_values(variables)
                if late:
                    yield late
                return [condition] * len(variables)
        if not condition:
            return variables
        if step.cancelled():
            return [failed(step.end_error())] * len(variables)
        *variables, condition = turn(variables)
        if not number % OVERLAP_ITERATIONS and (late := pending_values(variables)):
            yield late


def _repeat(step: Step, count: Any, variables: list[Any], turn: Callable[[list[Any]], list[Any]]) -> Turns:
    if count.__class__ is AsyncValue:
        if not count.is_available():
            yield [count]
        count = payload_of(count)
        if count.__class__ is AsyncValue:  # an error, or dead
            return [count] * len(variables)
    for number in range(count):
        if step.cancelled():
            return [failed(step.end_error())] * len(variables)
        if not number % OVERLAP_ITERATIONS and pending_values(variables[:1]):
            yield [as_async(variables[0])]
        variables = turn(variables)
    return variables


def _whole(arguments: Types, results: Types) -> Sequence[FunctionTypes]:
    return [(arguments, results)]


def _behind_first(arguments: Types, results: Types) -> Sequence[FunctionTypes]:
    return [(arguments[1:], results)]


def _while_body(arguments: Types, results: Types) -> Sequence[FunctionTypes]:
    return [(_loop_variables(arguments, results), (*results, "i1"))]


def _repeat_body(arguments: Types, results: Types) -> Sequence[FunctionTypes]:
    return [(_loop_variables(arguments, results), results)]


def _loop_variables(arguments: Types, results: Types) -> Types:
    if len(arguments) != len(results) + 1:
        raise InvalidArgument(f"has {len(arguments) - 1} loop variables and {len(results)} results")
    return arguments[1:]
