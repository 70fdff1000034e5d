"""The dialect `corert`: a branch and a loop that a tensor decides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from heald.api import Callee, HostKernels, Step, failed
from heald.runtime.host_kernels import Turns, await_payloads, run_or_promise
from heald_eager import completion

from .tensor_handles import Handle, is_true

_ARGUMENTS = "`(` $arguments `)` attr-dict `:` functional-type($arguments, results)"
_DECISION = ("!tfrt.chain", "!corert.tensorhandle")
Types = tuple[Any, ...]


def register(kernels: HostKernels) -> None:
    kernels.kernel("corert.cond", step=True, calls=_branches,
                   syntax=f"$condition $a_true_fn $b_false_fn {_ARGUMENTS}")(cond)
    kernels.kernel("corert.while", step=True, calls=_loop, syntax=f"$a_cond_fn $b_body_fn {_ARGUMENTS}")(while_loop)


def cond(step: Step, condition: Handle, *arguments: Any, a_true_fn: Callee, b_false_fn: Callee) -> list[Any]:
    """Return the results of one of two functions: of the second where the condition is 0 or an empty text.

    The first argument and the first result are chains. Raises InvalidArgument for a condition of several elements.
    """
    return run_or_promise(step, _cond(step, condition, arguments, a_true_fn, b_false_fn), _count(a_true_fn))


def while_loop(step: Step, *arguments: Any, a_cond_fn: Callee, b_body_fn: Callee) -> list[Any]:
    """Return the chain and the loop variables for which the condition is false.

    The first argument is the chain. `a_cond_fn` takes the chain and the variables, and returns a chain and a tensor of
    one element. `b_body_fn` returns a chain and new variables. An error of either becomes all results.
    """
    return run_or_promise(step, _while(step, [*arguments], a_cond_fn, b_body_fn), len(arguments))


def _cond(step: Step, condition: Any, arguments: Sequence[Any], when_true: Callee, when_false: Callee) -> Turns:
    (decided,) = yield from await_payloads([completion(condition)])
    return step.invoke(when_true if is_true(decided) else when_false, arguments)


def _while(step: Step, variables: list[Any], condition: Callee, body: Callee) -> Turns:
    while True:
        if step.cancelled():
            return [failed(step.end_error())] * len(variables)
        chain, decision = step.call(condition, variables)
        _, handle = yield from await_payloads([chain, decision])
        (decided,) = yield from await_payloads([completion(handle)])
        if not is_true(decided):
            return variables
        variables = yield from await_payloads(step.call(body, variables))


def _count(function: Callee) -> int:
    return len(function.executable.function.results)


def _branches(arguments: Types, results: Types) -> list[tuple[Types, Types]]:
    return [(arguments[1:], results)]


def _loop(arguments: Types, results: Types) -> list[tuple[Types, Types]]:
    return [(arguments, _DECISION), (arguments, results)]
