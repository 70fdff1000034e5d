"""RepeatedCall: a function that one kernel calls many times in a step, in one frame that stays its own in between.

A loop calls its functions once per turn. `Executable.invoke` takes a frame, empties its registers at the end and looks
for values that come later, which together takes longer than a small body. Here the frame is taken once, for all turns.
"""

# The theory of a repeated call
#
# `Executable.repeat` offers it for functions whose calls neither pend nor give dead values, on host memory. All results
# are payloads then, as long as all arguments are. The caller checks the arguments of the first turn.
#
# Invariants
# - The cursor is one for all turns. Each turn sets its iterator and tests the step's error afterwards, as a run does.
#   So a cancellation from another thread ends the turn at its next call.
# - A register keeps its value until the next turn fills it. So a value lives at most one turn longer than in `invoke`.
# - The frame returns to its executable exactly once: in `close`, or at an error. An interrupt (Ctrl-C) gives it up.

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from ..support.kernel_errors import is_interrupt
from .frame import Cursor, Frame
from .step import Step

Fail = Callable[[BaseException, Frame, Step], BaseException]  # frees the frame and returns the typed error


class RepeatedCall:
    """The turns of one function in one step.

    `turn`: takes a sequence of arguments, payloads all, and returns the sequence of results. It raises the typed error
        of the first call that fails, and the step's error once the step must end.
    """

    __slots__ = ("_frame", "_return_frame", "turn")

    def __init__(
        self, frame: Frame, step: Step, arguments: slice, results: Sequence[int], return_frame: Callable[[Frame], None],
        fail: Fail, kept: Sequence[tuple[int, Callable[[Any], Any]]] = (),
    ) -> None:
        """`kept`: the indices of the results that are buffers of the frame, each with a function that copies it."""
        self._frame: Frame | None = frame
        self._return_frame = return_frame
        frame.cursor = Cursor()
        run = _make_run_of_one_call(frame, step) if len(frame.calls) == 1 else _make_run_of_all_calls(frame, step)
        registers, copies, pick = frame.registers, frame.copies, _picker(results)
        if kept:
            pick = _copying_picker(pick, kept)

        def turn(values: Sequence[Any]) -> Sequence[Any]:
            registers[arguments] = values
            for register, copy in copies:
                copy[...] = registers[register]
            try:
                run()
            except BaseException as error:  # a kernel may raise any exception
                self._frame = None
                if is_interrupt(error):
                    raise
                raise fail(error, frame, step)  # noqa: B904 - the cause is set there
            return pick(registers)

        self.turn = turn

    def close(self) -> None:
        """Return the frame, after the last turn."""
        if self._frame is not None:
            self._return_frame(self._frame)
            self._frame = None


def _make_run_of_one_call(frame: Frame, step: Step) -> Callable[[], None]:
    call = frame.calls[0]

    def run() -> None:
        if step.error is not None:
            raise step.error
        call()

    return run


def _make_run_of_all_calls(frame: Frame, step: Step) -> Callable[[], None]:
    calls, cursor = frame.calls, frame.cursor

    def run() -> None:
        cursor.calls = remaining = iter(calls)
        if step.error is not None:
            raise step.error
        for call in remaining:
            call()
        if cursor.is_stopped:
            raise step.end_error()

    return run


def _picker(results: Sequence[int]) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """Return a function that picks the results from the registers: the least time of all forms of it."""
    if not results:
        return lambda _: ()
    if len(results) == 1:
        (only,) = results
        return itemgetter(slice(only, only + 1))
    return itemgetter(*results)


def _copying_picker(
    pick: Callable[[Sequence[Any]], Sequence[Any]], kept: Sequence[tuple[int, Callable[[Any], Any]]]
) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """Return a function that picks the results and copies those that the next turn overwrites."""

    def pick_and_copy(registers: Sequence[Any]) -> Sequence[Any]:
        values = list(pick(registers))
        for i, copy in kept:
            values[i] = copy(values[i])
        return values

    return pick_and_copy
