"""CallMemo: calls that have succeeded, by op, attributes, and the kinds of their inputs; constants by value.

A Python number, or a short list of integers, is part of the key, so its array is made once. An array of the caller
counts by type and shape, and its elements are read in each call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .handle_state import Kind
from .tensor_handle import TensorHandle

MOST_CALLS = 4096
MOST_ITEMS = 8  # of a list that is part of a key
READ = object()  # in the place of a constant: the input is read in each call
_NUMBERS = (int, float, bool)
Key = tuple[Any, ...]


class MemoCall(NamedTuple):
    """A call as a function of arrays. `constants`: an array for each input, or READ."""

    function: Callable[..., Any]
    kind: Kind
    constants: tuple[Any, ...]

    def arrays(self, inputs: Sequence[Any]) -> list[Any]:
        return [(x._value if x.__class__ is TensorHandle else x) if constant is READ else constant
                for x, constant in zip(inputs, self.constants, strict=True)]


class CallMemo:
    """The calls of one runtime. Any thread may call: each change is one step."""

    def __init__(self) -> None:
        self._calls: dict[Key, MemoCall] = {}

    def get(self, key: Key | None) -> MemoCall | None:
        try:
            return self._calls.get(key) if key is not None else None
        except TypeError:  # an attribute as the caller wrote it has no hash
            return None

    def add(self, key: Key, call: MemoCall) -> None:
        if len(self._calls) >= MOST_CALLS:
            self._calls.clear()
        try:
            self._calls[key] = call
        except TypeError:
            return

    def clear(self) -> None:
        self._calls.clear()


def key_of(op: str, inputs: Sequence[Any], attrs: Mapping[str, Any] | None) -> Key | None:
    """The key of a call, or None for a call that is never kept."""
    parts: list[Any] = [op]
    for x in inputs:
        cls = x.__class__
        if cls is TensorHandle:
            if x._kind.__class__ is not Kind or x._kind.native is not None:
                return None
            parts.append(x._kind)
        elif cls in _NUMBERS:
            parts.append((cls, x))
        elif cls is np.ndarray:
            if not (x.flags.c_contiguous and x.flags.aligned):
                return None
            parts.append((x.dtype, x.shape))
        elif (cls is list or cls is tuple) and len(x) <= MOST_ITEMS and all(item.__class__ is int for item in x):
            parts.append((cls, tuple(x)))
        else:
            return None
    if attrs and not isinstance(attrs, Mapping):
        return None
    if attrs:
        parts.append(tuple(attrs.items()))
    return tuple(parts)
