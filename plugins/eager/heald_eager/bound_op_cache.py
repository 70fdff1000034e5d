"""BoundOpCache: the ops that one runtime has bound, within the host's bound on bound calls."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from heald.api import OpAttrs, OpDef, ValueInfo, inherited

from .bound_op import BoundOp
from .context import EagerContext
from .handle_state import State


class BoundOpCache:
    """Bound ops by attributes, device, kinds of inputs, and the elements that metadata functions read.

    `drop_calls`: drops all short ways of calls, which may hold a bound op that is forgotten.
    """

    def __init__(self, context: EagerContext, drop_calls: Callable[[], None]) -> None:
        self._context = context
        self._drop_calls = drop_calls
        self._bound_ops: dict[Any, BoundOp] = {}
        self._nodes: dict[tuple[str, OpAttrs], str] = {}
        self._node_numbers = count()
        self._lock = threading.Lock()
        inherited.add(self)

    def get(
        self, op: OpDef, attrs: OpAttrs, device: str, inputs: Sequence[State], infos: Sequence[ValueInfo]
    ) -> BoundOp:
        """The op bound for these inputs, from the cache or anew. Raises as `Binding.bind`."""
        key = self._key(op, attrs, device, inputs, infos)
        bound = self._bound_ops.get(key)
        if bound is None:
            context = self._context
            layouts = [state.kind.layout for state in inputs]  # type: ignore[union-attr]
            bound = context.ops.bind(op, attrs, infos, device, self._node_name(op, attrs), layouts)
            bound.kinds = [context.kinds.get(o.meta, device, bound.native, o.handle) for o in bound.outputs]
            self._bound_ops[key] = bound
            context.host.memory.bound_calls.keep(self, key, bound.nbytes)
        return bound

    def find(
        self, op: OpDef, attrs: OpAttrs, device: str, inputs: Sequence[State], infos: Sequence[ValueInfo]
    ) -> BoundOp | None:
        """The op bound for these inputs, or None where it is not in the cache."""
        return self._bound_ops.get(self._key(op, attrs, device, inputs, infos))

    @staticmethod
    def _key(
        op: OpDef, attrs: OpAttrs, device: str, inputs: Sequence[State], infos: Sequence[ValueInfo]
    ) -> tuple[Any, ...]:
        kinds = tuple([state.kind for state in inputs])  # type: ignore[union-attr]
        elements = tuple([_elements_key(info.distinct()) for info in infos if info.value is not None])
        return op.name, attrs, device, kinds, elements

    def op_names(self) -> set[str]:
        """The names of the ops that are bound."""
        return {key[0] for key in self._bound_ops}

    def forget(self, key: Any) -> None:
        """Drop a bound op, and all short ways of calls: they are made again by their next calls."""
        if self._bound_ops.pop(key, None) is not None:
            self._drop_calls()

    def forked(self) -> None:
        self._lock = threading.Lock()

    def _node_name(self, op: OpDef, attrs: OpAttrs) -> str:
        """The name under which a kernel keeps state for all calls of this op with these attributes."""
        if not op.stateful:
            return op.name
        with self._lock:
            return self._nodes.setdefault((op.name, attrs), f"{op.name}_{next(self._node_numbers)}")


def _elements_key(array: Any) -> Any:
    return tuple(array.reshape(-1)) if array.dtype == object else array.tobytes()
