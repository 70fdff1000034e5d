"""Resources: objects that kernels of several calls, runs or programs share, by name."""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import Any, TypeVar

from ..support.fork_safety import inherited

T = TypeVar("T")


class Resources:
    """Each is made by whoever asks first, once, and lives as long as this. Safe to use from several threads."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}
        self._lock = RLock()
        inherited.add(self)

    def get(self, name: str, make: Callable[[], T]) -> T:
        """The resource of this name, made now if there is none. What `make` raises is raised, and nothing is kept."""
        with self._lock:
            if name not in self._made:
                self._made[name] = make()
            return self._made[name]  # type: ignore[no-any-return]

    def forked(self) -> None:
        self._lock = RLock()  # what was being made is not here yet

    def __contains__(self, name: str) -> bool:
        return name in self._made
