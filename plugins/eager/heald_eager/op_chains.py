"""OpChains: program order of ops with effects, by resource.

Only calls that were queued leave a chain: a call that runs at once has started before the next one is made. A chain is
complete when its call has started, and an asynchronous kernel may still work.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Sequence
from functools import partial

from heald.api import AsyncValue, inherited

from .handle_state import Pending, Ready, State

OTHER_EFFECTS = "effects beyond resources"
ANY_RESOURCE = "a resource that is not known yet"


def resources_of(inputs: Sequence[State]) -> tuple[Hashable, ...]:
    """The resources that a call uses; OTHER_EFFECTS without one, ANY_RESOURCE while a resource is pending."""
    keys: list[Hashable] = []
    for state in inputs:
        if isinstance(state, Pending) and state.meta.dtype.kind == "o":
            return (ANY_RESOURCE,)
        if isinstance(state, Ready) and state.kind.meta.dtype.name == "resource":
            keys += [id(resource) for resource in state.value.reshape(-1)]
    return tuple(keys) or (OTHER_EFFECTS,)


class OpChains:
    """The last queued call of each resource. Any thread may call."""

    def __init__(self) -> None:
        self._last: dict[Hashable, AsyncValue] = {}
        self._lock = threading.Lock()
        inherited.add(self)

    def before(self, keys: Sequence[Hashable]) -> tuple[AsyncValue, ...]:
        """The pending calls that a call on these resources has to wait for."""
        if not self._last:
            return ()
        with self._lock:
            if ANY_RESOURCE in keys:
                return tuple(self._last.values())
            return tuple([self._last[key] for key in (*keys, ANY_RESOURCE) if key in self._last])

    def add(self, keys: Sequence[Hashable], started: AsyncValue) -> None:
        """Note a queued call. It is forgotten once it has started."""
        with self._lock:
            for key in keys:
                self._last[key] = started
        started.and_then(partial(self._forget, keys, started))

    def forked(self) -> None:
        self._lock = threading.Lock()

    def _forget(self, keys: Sequence[Hashable], started: AsyncValue) -> None:
        with self._lock:
            for key in keys:
                if self._last.get(key) is started:
                    del self._last[key]
