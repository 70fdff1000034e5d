"""CallMemo: calls that have succeeded, by op, attributes, and the kinds of their inputs; constants by value.

A Python number, or a short list of integers, is part of the key, so its array is made once. An array of the caller
counts by type and shape, and its elements are read in each call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..contract.op import OpDef
from ..values.layouts import DENSE
from ..values.tensor import ValueInfo
from .execute import FastTable
from .handle_state import Kind, Ready, State
from .signature import Matched, are_keys
from .tensor_handle import TensorHandle

if TYPE_CHECKING:
    from .core_runtime import CoreRuntime

MOST_CALLS = 4096
MOST_FAST = 4096  # entries of the fast table
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
            parts.append((cls, x) if x else (cls, str(x)))  # 0.0 and -0.0 are equal
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


def remember(
    runtime: CoreRuntime, op: OpDef, matched: Matched, given: Sequence[Any], states: Sequence[State],
    made: Sequence[TensorHandle], raw: Mapping[str, Any] | None,
) -> None:
    """Keep a call that has succeeded, if its like need no more than one function of arrays."""
    rule = runtime.binding.rule(op)
    if (runtime.cancelled is not None or op.stateful or rule is None or len(made) != 1 or len(given) != len(states)
            or not isinstance(made[0]._kind, Kind) or made[0]._kind.native is not None):
        return
    key = key_of(op.name, given, raw) if are_keys(op, raw) else None
    if key is None or any(arg.number_attr is not None or arg.type_list_attr is not None for arg in op.inputs):
        return
    constants, infos = [], []
    for x, state, converted, arg in zip(given, states, matched.inputs, op.inputs, strict=True):
        if not isinstance(state, Ready) or state.kind.layout != DENSE:
            return
        is_read = isinstance(x, TensorHandle | np.ndarray)
        reads_elements = arg.name in rule.values
        if (is_read and reads_elements) or (isinstance(x, np.ndarray) and converted is not x):
            return
        constants.append(READ if is_read else state.value)
        infos.append(ValueInfo(state.kind.meta, state.value if reads_elements else None, handle=state.kind.handle))
    bound = runtime.bound(op, matched.attrs, runtime.default_device, states, infos)
    function = bound.fast_function([state.value for state in states])  # type: ignore[union-attr]
    if function is None or (bound.is_view and any(isinstance(x, np.ndarray) for x in given)):
        return
    if all(isinstance(x, TensorHandle) for x in given):
        _add_fast(runtime.fast, (op.name, *key[1: len(given) + 1], *(raw or {}).items()), function, bound.kinds[0])
    if raw or not all(isinstance(x, TensorHandle) for x in given):
        runtime.memo.add(key, MemoCall(function, bound.kinds[0], tuple(constants)))
    if runtime.cancelled is not None:  # by another thread, meanwhile
        runtime.clear()


def _add_fast(fast: FastTable, key: tuple[Any, ...], function: Callable[..., Any], kind: Kind) -> None:
    if len(fast) >= MOST_FAST:
        fast.clear()
    try:
        fast[key] = function, kind
    except TypeError:  # an attribute as the caller wrote it has no hash
        return
