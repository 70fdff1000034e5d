"""Counts of references: the objects that no other part of the program can reach.

A call may write its result over an input's array when it alone has the array. The input is donated, or it is a value
that came later and whose handle is gone: a temporary. Two counts tell:

- the array's: every handle with the value, every view and every array of the user refers to it;
- the Pending's: a handle that has not taken the value yet refers to it. Calls that read the value later are counted in
  `Pending.readers`: they may hold the AsyncValue alone.

An object without other owners has a fixed count at the point where it is asked for. It depends on the interpreter:
Python 3.14 borrows references of local variables. So both counts are measured at import, in the form of their use. On
an interpreter where one more owner does not raise a count by one, the count says nothing, and no buffer is overwritten.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from heald.api import AsyncValue, TensorMetadata

from .handle_state import Kind, Pending, Ready, State

UNTRUSTED = -1  # in the place of a count: no object has as few references


def count_of_array(inputs: Sequence[State], index: int) -> int:
    """The references to the array of an available input."""
    return sys.getrefcount(inputs[index].value)  # type: ignore[union-attr]


def count_of_state(inputs: Sequence[State], index: int) -> int:
    """The references to the state of an input."""
    return sys.getrefcount(inputs[index])


def has_only_array(inputs: Sequence[State], index: int) -> bool:
    """True when nothing but these inputs, and one list of their arrays, refers to the array of this available input."""
    return count_of_array(inputs, index) <= ARRAY_REFERENCES


def is_temporary(inputs: Sequence[State], index: int) -> bool:
    """True for the value of a pending input that no handle shows and no other call reads."""
    state = inputs[index]
    if not isinstance(state, Pending) or len(state.readers) != 1:
        return False
    del state
    return count_of_state(inputs, index) <= STATE_REFERENCES


def _array_references(own: Callable[[Any], Any]) -> int:
    """The count of the array of an input that `own` gives one more owner, or none."""
    inputs: list[State] = [Ready(_NO_KIND, np.zeros(2))]
    arrays = [state.value for state in inputs]  # type: ignore[union-attr]
    owner = own(arrays[0])
    count = count_of_array(inputs, 0)
    del owner
    return count


def _state_references(own: Callable[[Any], Any]) -> int:
    inputs: list[State] = [Pending(_NO_META, "", AsyncValue(), None)]  # type: ignore[arg-type]
    owner = own(inputs[0])
    count = count_of_state(inputs, 0)
    del owner
    return count


def trusted_count(count_with: Callable[[Callable[[Any], Any]], int], owners: Sequence[Callable[[Any], Any]]) -> int:
    """The count of an object without another owner, or UNTRUSTED where each of the owners does not raise it by one."""
    alone = count_with(lambda _: None)
    return alone if all(count_with(own) == alone + 1 for own in owners) else UNTRUSTED


class _Slot:
    __slots__ = ("held",)

    def __init__(self, held: Any) -> None:
        self.held = held


_NO_KIND: Kind = None  # type: ignore[assignment] # the self-test asks for no metadata
_NO_META: TensorMetadata = None  # type: ignore[assignment]
_OWNERS: tuple[Callable[[Any], Any], ...] = (lambda x: x, lambda x: [x], lambda x: (x,), _Slot)
ARRAY_REFERENCES = trusted_count(_array_references, (*_OWNERS, lambda array: array.view(), lambda array: array[1:]))
STATE_REFERENCES = trusted_count(_state_references, _OWNERS)
