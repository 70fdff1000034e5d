"""Resources: named objects that kernels of several calls, runs or programs share."""

from __future__ import annotations

from collections.abc import Callable, Collection
from threading import RLock
from typing import Any, TypeVar

from ..support.fork_safety import inherited
from .file_policy import FilePolicy

T = TypeVar("T")


class Resources:
    """Named objects. The first request makes an object, once; it lives as long as this registry. Any thread may call.

    `files`: the files that kernels with these resources may open; None for the files of the host.
    """

    def __init__(self, files: FilePolicy | None = None) -> None:
        self.files = files
        self._made: dict[str, Any] = {}
        self._container_of: dict[str, str] = {}
        self._lock = RLock()
        inherited.add(self)

    def get(self, name: str, make: Callable[[], T], container: str | None = None) -> T:
        """The resource of this name. `make()` makes it if there is none. An exception of `make` is passed on, and
        nothing is kept.

        `container`: the container that the resource is put into, if any; names are unique over all containers.
        """
        with self._lock:
            if name not in self._made:
                self._made[name] = make()
                if container is not None:
                    self._container_of[name] = container
            return self._made[name]  # type: ignore[no-any-return]

    def without(self, containers: Collection[str]) -> Resources:
        """Return a registry with these objects but for those in the containers."""
        anew = Resources(self.files)
        with self._lock:
            kept_names = [name for name in self._made if self._container_of.get(name) not in containers]
            anew._made = {name: self._made[name] for name in kept_names}
            anew._container_of = {name: self._container_of[name] for name in kept_names if name in self._container_of}
        return anew

    def forked(self) -> None:
        self._lock = RLock()  # a resource that was being made is not in the child

    def __contains__(self, name: str) -> bool:
        return name in self._made
