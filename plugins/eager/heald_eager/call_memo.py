"""CallMemo: calls that have succeeded, by op, attributes, device, and the kinds of their inputs; constants by value.

A Python number, or a short list of integers, is part of the key, so its array is made once. An array of the caller
counts by type and shape, and its elements are read in each call. A list of handles counts by their kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from heald.api import OpAttrs, OpDef, ValueInfo
from heald.runtime.values import DENSE

from .bound_op import BoundOp
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
EACH = object()  # likewise, for an input that is a list of handles
_NUMBERS = (int, float, bool)
Key = tuple[Any, ...]


class MemoCall(NamedTuple):
    """A call as a function of arrays.

    `kinds`: those of the results. `function` returns an array for one result, else a list of arrays.
    `constants`: for each input an array, READ or EACH.
    """

    function: Callable[..., Any]
    kinds: tuple[Kind, ...]
    constants: tuple[Any, ...]

    def arrays(self, inputs: Sequence[Any]) -> list[Any]:
        arrays: list[Any] = []
        for x, constant in zip(inputs, self.constants, strict=True):
            if constant is READ:
                arrays.append(x._value if x.__class__ is TensorHandle else x)
            elif constant is EACH:
                arrays += [each._value for each in x]
            else:
                arrays.append(constant)
        return arrays


class DeviceCall(NamedTuple):
    """A call of handles that are on a device outside host memory, where its kernel reads them."""

    op: OpDef
    attrs: OpAttrs
    bound: BoundOp


class CallMemo:
    """The calls of one runtime. Any thread may call: each change is one step."""

    def __init__(self) -> None:
        self._calls: dict[Key, MemoCall | DeviceCall] = {}

    def get(self, key: Key | None) -> MemoCall | DeviceCall | None:
        try:
            return self._calls.get(key) if key is not None else None
        except TypeError:  # an attribute as the caller wrote it has no hash
            return None

    def add(self, key: Key, call: MemoCall | DeviceCall) -> None:
        if len(self._calls) >= MOST_CALLS:
            self._calls.clear()
        try:
            self._calls[key] = call
        except TypeError:
            return

    def clear(self) -> None:
        self._calls.clear()


def key_of(op: str, inputs: Sequence[Any], attrs: Mapping[str, Any] | None, device: str | None = None) -> Key | None:
    """The key of a call, or None for a call that is never kept."""
    parts: list[Any] = [op]
    for x in inputs:
        cls = x.__class__
        if cls is TensorHandle:
            if x._kind.__class__ is not Kind:
                return None
            parts.append(x._kind)
        elif cls in _NUMBERS:
            parts.append((cls, x) if x else (cls, str(x)))  # 0.0 and -0.0 are equal
        elif cls is np.ndarray:
            if not (x.flags.c_contiguous and x.flags.aligned):
                return None
            parts.append((x.dtype, x.shape))
        elif (cls is list or cls is tuple) and len(x) <= MOST_ITEMS:
            items = _items(x)
            if items is None:
                return None
            parts.append((cls, items))
        else:
            return None
    if attrs and not isinstance(attrs, Mapping):
        return None
    parts.append(device)
    if attrs:
        parts.append(tuple(attrs.items()))
    return tuple(parts)


def remember(
    runtime: CoreRuntime, op: OpDef, matched: Matched, given: Sequence[Any], states: Sequence[State],
    made: Sequence[TensorHandle], raw: Mapping[str, Any] | None, device: str | None,
) -> None:
    """Keep a call that has succeeded, if its like need no more than one function of arrays, or one enqueued kernel."""
    rule = runtime.binding.rule(op)
    kinds = [handle._kind for handle in made]
    if (runtime.cancelled is not None or op.stateful or rule is None or not made or len(given) != len(op.inputs)
            or not all(isinstance(kind, Kind) for kind in kinds)):
        return
    key = key_of(op.name, given, raw, device) if are_keys(op, raw) else None
    if key is None:
        return
    first: Kind = kinds[0]  # type: ignore[assignment]
    if first.native is not None:
        _remember_on_device(runtime, key, op, matched, states, first, reads_elements=bool(rule.values))
    elif (known := known_inputs(op, matched, given, states, rule.values)) is not None:
        _remember_on_host(runtime, key, op, matched, given, states, first.device, known, raw)
    if runtime.cancelled is not None:  # by another thread, meanwhile
        runtime.clear()


def _remember_on_device(
    runtime: CoreRuntime, key: Key, op: OpDef, matched: Matched, states: Sequence[State], kind: Kind, *,
    reads_elements: bool,
) -> None:
    if reads_elements or not all(isinstance(state, Ready) and state.kind.native is kind.native for state in states):
        return
    infos = [ValueInfo(state.kind.meta) for state in states]  # type: ignore[union-attr]
    bound = runtime.bound(op, matched.attrs, kind.device, states, infos)
    if not bound.on_host:
        runtime.memo.add(key, DeviceCall(op, matched.attrs, bound))


def _remember_on_host(
    runtime: CoreRuntime, key: Key, op: OpDef, matched: Matched, given: Sequence[Any], states: Sequence[State],
    device: str, known: tuple[list[Any], list[ValueInfo]], raw: Mapping[str, Any] | None,
) -> None:
    constants, infos = known
    bound = runtime.bound(op, matched.attrs, device, states, infos)
    function = bound.fast_function([state.value for state in states])  # type: ignore[union-attr]
    if function is None or ((bound.is_view or bound.retained) and any(isinstance(x, np.ndarray) for x in given)):
        return
    are_handles = all(isinstance(x, TensorHandle) for x in given)
    is_fast = are_handles and key[len(given) + 1] is None and len(bound.kinds) == 1
    if is_fast:
        _add_fast(runtime.fast, (op.name, *key[1: len(given) + 1], *(raw or {}).items()), function, bound.kinds[0])
    if raw or not is_fast:
        runtime.memo.add(key, MemoCall(function, tuple(bound.kinds), tuple(constants)))


def _add_fast(fast: FastTable, key: tuple[Any, ...], function: Callable[..., Any], kind: Kind) -> None:
    if len(fast) >= MOST_FAST:
        fast.clear()
    try:
        fast[key] = function, kind
    except TypeError:  # an attribute as the caller wrote it has no hash
        return


def _items(listed: Sequence[Any]) -> tuple[Any, ...] | None:
    """The part of a key for a list of integers, or of handles in host memory; None for any other."""
    if listed and listed[0].__class__ is TensorHandle:
        if not all(x.__class__ is TensorHandle for x in listed):
            return None
        kinds = tuple([x._kind for x in listed])
        return kinds if all(kind.__class__ is Kind and kind.native is None for kind in kinds) else None
    return tuple(listed) if all(item.__class__ is int for item in listed) else None


def known_inputs(
    op: OpDef, matched: Matched, given: Sequence[Any], states: Sequence[State], read: Sequence[str]
) -> tuple[list[Any], list[ValueInfo]] | None:
    """For each input as it was given its constant, READ or EACH, and what is known of each tensor; None for a call
    that cannot be kept. `read`: the arguments whose elements the metadata function reads."""
    constants: list[Any] = []
    infos: list[ValueInfo] = []
    for x, arg in zip(given, op.inputs, strict=True):
        count = arg.count(matched.attrs)
        is_several = arg.number_attr is not None or arg.type_list_attr is not None
        of_arg, converted = states[len(infos):][:count], matched.inputs[len(infos):][:count]
        is_read = isinstance(x, TensorHandle | np.ndarray) or is_several
        if is_several and not (isinstance(x, list | tuple) and all(isinstance(each, TensorHandle) for each in x)):
            return None
        if (is_read and arg.name in read) or (isinstance(x, np.ndarray) and converted[0] is not x):
            return None
        for state in of_arg:
            if not isinstance(state, Ready) or state.kind.native is not None or state.kind.layout != DENSE:
                return None
            infos.append(ValueInfo(state.kind.meta, state.value if arg.name in read else None,
                                   handle=state.kind.handle))
        constants.append(EACH if is_several else READ if is_read else of_arg[0].value)  # type: ignore[union-attr]
    return constants, infos
