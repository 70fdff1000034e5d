"""Resources: named objects that kernels of several calls, runs or programs share."""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import Any, TypeVar

from ..support.fork_safety import inherited

T = TypeVar("T")


class Resources:
    """Named objects. The first request makes an object, once; it lives as long as this registry. Any thread may
    call."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}
        self._lock = RLock()
        inherited.add(self)

    def get(self, name: str, make: Callable[[], T]) -> T:
        """The resource of this name. `make()` makes it if there is none. An exception of `make` is passed on, and
        nothing is kept."""
        with self._lock:
            if name not in self._made:
                self._made[name] = make()
            return self._made[name]  # type: ignore[no-any-return]

    def forked(self) -> None:
        self._lock = RLock()  # a resource that was being made is not in the child

    def __contains__(self, name: str) -> bool:
        return name in self._made
