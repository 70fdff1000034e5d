"""FrameCalls and FreshCalls: attached and fresh calls, and the functions that several forms of calls share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..step import Step

FrameCall = Callable[[], Any]  # a call over a frame's registers
FreshCall = Callable[["Step", list[Any]], list[Any]]  # arguments to results, which are new arrays or views of arguments
Maker = Callable[[], Any]


class HandOver(Exception):
    """A call of the flat list returned a value without a payload, so a DataflowRun runs the remaining calls."""


def nothing() -> None:
    """Do nothing: a call before this one did its work."""


def open_call(
    registers: list[Any], args: tuple[int, ...], results: tuple[int, ...], makers: tuple[Maker | None, ...],
    run: Callable[..., Any],
) -> FrameCall:
    """Return a call that reads its registers when it runs, and returns the result of `run`.

    `makers`: for each result a maker of its output, or None when the output is a buffer of the frame.
    """
    if len(results) == 1:
        return _call_for_one(registers, args, results[0], makers[0], run)

    def call() -> Any:
        for register, create in zip(results, makers, strict=True):
            if create is not None:
                registers[register] = create()
        return run(*[registers[a] for a in args], *[registers[r] for r in results])

    return call


def _call_for_one(
    registers: list[Any], args: tuple[int, ...], result: int, make: Maker | None, run: Callable[..., Any]
) -> FrameCall:
    """Return an open call with one result. A loop over one or two arguments would take as long as a small kernel."""
    if len(args) not in (1, 2):
        return _call_of_many(registers, args, result, make, run)
    first, last = args[0], args[-1]
    if make is None:
        fixed = registers[result]
        if len(args) == 1:
            return lambda: run(registers[first], fixed)
        return lambda: run(registers[first], registers[last], fixed)

    def unary() -> Any:
        out = registers[result] = make()
        return run(registers[first], out)

    def binary() -> Any:
        out = registers[result] = make()
        return run(registers[first], registers[last], out)

    return unary if len(args) == 1 else binary


def _call_of_many(
    registers: list[Any], args: tuple[int, ...], result: int, make: Maker | None, run: Callable[..., Any]
) -> FrameCall:
    if make is None:
        fixed = registers[result]
        return lambda: run(*[registers[a] for a in args], fixed)

    def call() -> Any:
        out = registers[result] = make()
        return run(*[registers[a] for a in args], out)

    return call


def run_returning(
    registers: list[Any], args: Sequence[int], results: Sequence[int], run: Callable[[list[Any]], list[Any]]
) -> None:
    for register, value in zip(results, run([registers[a] for a in args]), strict=True):
        registers[register] = value


def returning_call(
    registers: list[Any], args: tuple[int, ...], results: tuple[int, ...], run: Callable[[list[Any]], list[Any]]
) -> FrameCall:
    """Return a call of `run_returning`; with one result it takes half the time."""
    if len(results) != 1:
        return partial(run_returning, registers, args, results, run)
    (result,) = results

    def call() -> None:
        (registers[result],) = run([registers[a] for a in args])

    return call


def run_lazy(
    registers: list[Any], args: Sequence[int], results: Sequence[int], lazy: Callable[[Step, list[Any]], list[Any]]
) -> None:
    run_returning(registers, args, results, lambda inputs: lazy(registers[-1], inputs))


def run_with_step(registers: list[Any], run: Callable[..., Any], *arrays: Any) -> Any:
    return run(registers[-1], *arrays)
