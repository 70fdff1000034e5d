"""CallMemo: calls that have succeeded, by op, attributes, device, and the kinds of their inputs; constants by value.

A Python number, or a short list of integers, is part of the key, so its array is made once. An array of the caller
counts by type and shape, and its elements are read in each call. A list of handles counts by their kinds.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from heald.api import OpAttrs, OpDef, ValueInfo
from heald.runtime.values import DENSE

from .bound_op import BoundOp
from .bound_op_cache import BoundOpCache
from .context import EagerContext
from .execute import DEFAULT_TABLE, FastTable
from .handle_state import Failed, Kind, Pending, Ready, State
from .signature import MatchedCall, are_keys
from .tensor_handle import TensorHandle

LARGEST_MEMO_CALLS = 4096
LARGEST_TABLE_ENTRIES = 4096  # of a fast table
LARGEST_KEY_LIST_ITEMS = 8  # of a list that is part of a key
READ = object()  # in the place of a constant: the input is read in each call
READ_LIST = object()  # likewise, for an input that is a list of handles
_NUMBERS = (int, float, bool)
Key = tuple[Any, ...]


class MemoCall(NamedTuple):
    """A call as a function of arrays.

    `kinds`: the results' Kinds. `function` returns an array for one result, else a list of arrays.
    `constants`: for each input an array, READ or READ_LIST.
    """

    function: Callable[..., Any]
    kinds: tuple[Kind, ...]
    constants: tuple[Any, ...]

    def arrays(self, inputs: Sequence[Any]) -> list[Any]:
        arrays: list[Any] = []
        for x, constant in zip(inputs, self.constants, strict=True):
            if constant is READ:
                arrays.append(x._value if x.__class__ is TensorHandle else x)
            elif constant is READ_LIST:
                arrays += [handle._value for handle in x]
            else:
                arrays.append(constant)
        return arrays


class DeviceCall(NamedTuple):
    """A call of handles that are on a device outside host memory, where its kernel reads them."""

    op: OpDef
    attrs: OpAttrs
    bound: BoundOp


class DeferredCall(NamedTuple):
    """A call of handles in host memory whose kernel is long. `constants`: for each input a state, READ or READ_LIST."""

    op: OpDef
    attrs: OpAttrs
    bound: BoundOp
    constants: tuple[Any, ...]

    def states(self, inputs: Sequence[Any]) -> list[State]:
        """The states of the inputs. A handle may have been donated by another thread meanwhile."""
        states: list[State] = []
        for x, constant in zip(inputs, self.constants, strict=True):
            if constant is READ:
                states.append(x._current())
            elif constant is READ_LIST:
                states += [handle._current() for handle in x]
            else:
                states.append(constant)
        return states


class FastTableOwner(Protocol):
    """An object with a fast table of its own, as composite ops are."""

    def clear(self) -> None:
        """Drop the entries."""


class CallMemo:
    """The short ways of one runtime's calls. Any thread may call: each change is one step.

    `fast`: the table of the fast path.
    `table_owners`: by id the other objects with fast tables.
    """

    def __init__(self, fast: FastTable) -> None:
        self.fast = fast
        self.table_owners: weakref.WeakValueDictionary[int, FastTableOwner] = weakref.WeakValueDictionary()
        self._calls: dict[Key, MemoCall | DeviceCall | DeferredCall] = {}

    def get(self, key: Key | None) -> MemoCall | DeviceCall | DeferredCall | None:
        try:
            return self._calls.get(key) if key is not None else None
        except TypeError:  # an attribute as the caller wrote it has no hash
            return None

    def add(self, key: Key, call: MemoCall | DeviceCall | DeferredCall) -> None:
        if len(self._calls) >= LARGEST_MEMO_CALLS:
            self._calls.clear()
        try:
            self._calls[key] = call
        except TypeError:
            return

    def drop(self, key: Key | None) -> None:
        """Forget a call that is in the memo."""
        if key is not None:
            self._calls.pop(key, None)

    def add_fast(self, key: tuple[Any, ...], function: Callable[..., Any], kind: Kind) -> None:
        """Give the fast path a function of arrays, for inputs in host memory. `kind`: that of the result."""
        if len(self.fast) >= LARGEST_TABLE_ENTRIES:
            self.fast.clear()
        try:
            self.fast[key] = function, kind
        except TypeError:  # an attribute as the caller wrote it has no hash
            return

    def clear(self) -> None:
        """Drop all short ways of calls: the next call of each kind takes the long way."""
        self.fast.clear()
        self._calls.clear()
        for ref in self.table_owners.valuerefs():  # a list that is made in one go
            if (owner := ref()) is not None:
                owner.clear()


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
        elif (cls is list or cls is tuple) and len(x) <= LARGEST_KEY_LIST_ITEMS:
            list_key = _list_key(x)
            if list_key is None:
                return None
            parts.append((cls, list_key))
        else:
            return None
    if attrs and not isinstance(attrs, Mapping):
        return None
    parts.append(device)
    if attrs:
        parts.append(tuple(attrs.items()))
    return tuple(parts)


def _list_key(elements: Sequence[Any]) -> tuple[Any, ...] | None:
    """The part of a key for a list of integers, or of handles in host memory; None for any other."""
    if elements and elements[0].__class__ is TensorHandle:
        if not all(x.__class__ is TensorHandle for x in elements):
            return None
        kinds = tuple([x._kind for x in elements])
        return kinds if all(kind.__class__ is Kind and kind.native is None for kind in kinds) else None
    return tuple(elements) if all(element.__class__ is int for element in elements) else None


def input_facts(
    op: OpDef, matched: MatchedCall, inputs: Sequence[Any], states: Sequence[State], args_read: Sequence[str]
) -> tuple[list[Any], list[ValueInfo]] | None:
    """For each input as the caller gave it a constant, READ or READ_LIST, and the facts about each tensor; None for a
    call that cannot be kept. `args_read`: the arguments whose elements the metadata function reads."""
    constants: list[Any] = []
    infos: list[ValueInfo] = []
    for x, arg in zip(inputs, op.inputs, strict=True):
        count = arg.count(matched.attrs)
        is_several = arg.number_attr is not None or arg.type_list_attr is not None
        states_of_arg, converted = states[len(infos):][:count], matched.inputs[len(infos):][:count]
        is_read = isinstance(x, TensorHandle | np.ndarray) or is_several
        if is_several and not (isinstance(x, list | tuple) and all(isinstance(y, TensorHandle) for y in x)):
            return None
        if (is_read and arg.name in args_read) or (isinstance(x, np.ndarray) and converted[0] is not x):
            return None
        for state in states_of_arg:
            if not isinstance(state, Ready) or state.kind.native is not None or state.kind.layout != DENSE:
                return None
            infos.append(ValueInfo(state.kind.meta, state.value if arg.name in args_read else None,
                                   handle=state.kind.handle))
        constants.append(READ_LIST if is_several else READ if is_read else states_of_arg[0].value)  # type: ignore[union-attr]
    return constants, infos


class CallRecorder:
    """Keeps calls that have succeeded, if their like need no more than one function of arrays, or one enqueued
    kernel."""

    def __init__(self, context: EagerContext, bound_ops: BoundOpCache, memo: CallMemo) -> None:
        self._context = context
        self._bound_ops = bound_ops
        self._memo = memo

    def record(
        self, op: OpDef, matched: MatchedCall, inputs: Sequence[Any], states: Sequence[State],
        results: Sequence[TensorHandle], attrs: Mapping[str, Any] | None, device: str | None,
    ) -> None:
        """Keep a call, if it is of the kind. `inputs` and `attrs` are as the caller gave them; `states` are the states
        of the matched inputs before the call."""
        rule = self._context.ops.rule(op)
        kinds = [handle._kind for handle in results]
        if (self._context.cancelled is not None or op.stateful or rule is None or not results
                or len(inputs) != len(op.inputs) or any(isinstance(kind, Failed) for kind in kinds)):
            return
        key = key_of(op.name, inputs, attrs, device) if are_keys(op, attrs) else None
        if key is None:
            return
        kind: Kind | Pending = kinds[0]  # type: ignore[assignment]
        if isinstance(kind, Kind) and kind.native is not None:
            self._record_on_device(key, op, matched, states, kind, reads_elements=bool(rule.values))
        elif (facts := input_facts(op, matched, inputs, states, rule.values)) is not None:
            self._record_on_host(key, op, matched, inputs, states, kind.device, facts, attrs, results)
        self._drop_if_cancelled()

    def record_operator(
        self, symbol: str, op: str, operands: tuple[Any, ...], attrs: Mapping[str, Any] | None
    ) -> None:
        """Give an operator the entry of its op in the fast table or in the memo, if there is one."""
        memo = self._memo
        call = memo.get(key_of(op, operands, attrs))
        if call is not None:
            key = key_of(symbol, operands, None)
            assert key is not None
            memo.add(key, call)
        if memo.fast is DEFAULT_TABLE and all(getattr(x, "_kind", None).__class__ is Kind for x in operands):
            kinds = tuple([x._kind for x in operands])
            entry = memo.fast.get((op, *kinds, *(attrs or {}).items()))
            if entry is not None:
                memo.fast[(symbol, *kinds)] = entry
        self._drop_if_cancelled()

    def _drop_if_cancelled(self) -> None:
        if self._context.cancelled is not None:  # by another thread, meanwhile
            self._memo.clear()

    def _record_on_device(
        self, key: Key, op: OpDef, matched: MatchedCall, states: Sequence[State], kind: Kind, *, reads_elements: bool
    ) -> None:
        if reads_elements or not all(isinstance(state, Ready) and state.kind.native is kind.native
                                     for state in states):
            return
        infos = [ValueInfo(state.kind.meta) for state in states]  # type: ignore[union-attr]
        bound = self._bound_ops.get(op, matched.attrs, kind.device, states, infos)
        if not bound.on_host:
            self._memo.add(key, DeviceCall(op, matched.attrs, bound))

    def _record_deferred(
        self, key: Key, op: OpDef, matched: MatchedCall, inputs: Sequence[Any], states: Sequence[State],
        bound: BoundOp, constants: Sequence[Any],
    ) -> None:
        if any(isinstance(x, np.ndarray) for x in inputs):
            return  # each call copies it
        state_of_array = {id(state.value): state for state in states}  # type: ignore[union-attr]
        states_or_marks = [x if x is READ or x is READ_LIST else state_of_array[id(x)] for x in constants]
        self._memo.add(key, DeferredCall(op, matched.attrs, bound, tuple(states_or_marks)))

    def _record_on_host(
        self, key: Key, op: OpDef, matched: MatchedCall, inputs: Sequence[Any], states: Sequence[State], device: str,
        facts: tuple[list[Any], list[ValueInfo]], attrs: Mapping[str, Any] | None, results: Sequence[TensorHandle],
    ) -> None:
        constants, infos = facts
        bound = self._bound_ops.find(op, matched.attrs, device, states, infos)
        if bound is None:
            return  # it is bound later, before its kernel runs
        if self._context.asynchrony.is_long(bound):
            self._record_deferred(key, op, matched, inputs, states, bound, constants)
            return
        if not self._context.asynchrony.is_short(bound) or not all(isinstance(x._kind, Kind) for x in results):
            return  # its length is not known yet
        function = bound.fast_function([state.value for state in states])  # type: ignore[union-attr]
        if function is None or (
                (bound.is_view or bound.retained) and any(isinstance(x, np.ndarray) for x in inputs)):
            return
        are_handles = all(isinstance(x, TensorHandle) for x in inputs)
        is_fast = are_handles and key[len(inputs) + 1] is None and len(bound.kinds) == 1
        if is_fast:
            kinds = key[1: len(inputs) + 1]
            self._memo.add_fast((op.name, *kinds, *(attrs or {}).items()), function, bound.kinds[0])
        if attrs or not is_fast:
            self._memo.add(key, MemoCall(function, tuple(bound.kinds), tuple(constants)))
