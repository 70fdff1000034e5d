"""FrameCalls and FreshCalls: attached and fresh calls, and the functions that several forms of calls share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..step import Step

FrameCall = Callable[[], Any]  # a call over a frame's registers
FreshCall = Callable[["Step", list[Any]], list[Any]]  # arguments to results, which are new arrays or views of arguments
Maker = Callable[[], Any]


class HandOver(Exception):
    """A call of the flat list returned a value without a payload, so a Dataflow runs the remaining calls."""


def open_call(
    registers: list[Any], args: tuple[int, ...], results: tuple[int, ...], makers: tuple[Maker | None, ...],
    run: Callable[..., Any],
) -> FrameCall:
    """Return a call that reads its registers when it runs, and returns the result of `run`.

    `makers`: for each result a maker of its output, or None when the output is a buffer of the frame.
    """
    if len(results) == 1 and makers[0] is not None and len(args) in (1, 2):
        make, result, first, last = makers[0], results[0], args[0], args[-1]

        def unary() -> Any:
            out = registers[result] = make()
            return run(registers[first], out)

        def binary() -> Any:
            out = registers[result] = make()
            return run(registers[first], registers[last], out)

        return unary if len(args) == 1 else binary

    def call() -> Any:
        for register, create in zip(results, makers, strict=True):
            if create is not None:
                registers[register] = create()
        return run(*[registers[a] for a in args], *[registers[r] for r in results])

    return call


def run_returning(
    registers: list[Any], args: Sequence[int], results: Sequence[int], run: Callable[[list[Any]], list[Any]]
) -> None:
    for register, value in zip(results, run([registers[a] for a in args]), strict=True):
        registers[register] = value


def run_lazy(
    registers: list[Any], args: Sequence[int], results: Sequence[int], lazy: Callable[[Step, list[Any]], list[Any]]
) -> None:
    run_returning(registers, args, results, lambda inputs: lazy(registers[-1], inputs))


def run_with_step(registers: list[Any], run: Callable[..., Any], *arrays: Any) -> Any:
    return run(registers[-1], *arrays)
