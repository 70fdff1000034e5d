"""Workspaces: memory for intermediate values between the primitives of one kernel. A running call owns one. Kernels
take turns with the same few workspaces, which stay in the cache."""

from __future__ import annotations

from collections import deque
from weakref import WeakValueDictionary

from .memory import Array, aligned_bytes


class Workspace:
    def __init__(self, nbytes: int) -> None:
        self.array: Array = aligned_bytes(nbytes)


class Workspaces:
    """The workspaces of all kernels. The last kernel frees them."""

    def __init__(self) -> None:
        self.idle: deque[Workspace] = deque()  # as many as calls ran at once, each of the largest size asked for
        self._nbytes = 0

    def reserve(self, nbytes: int) -> None:
        self._nbytes = max(nbytes, self._nbytes)

    def take(self) -> Workspace:
        try:
            workspace = self.idle.pop()
        except IndexError:
            return Workspace(self._nbytes)
        return workspace if workspace.array.nbytes >= self._nbytes else Workspace(self._nbytes)

    def give(self, workspace: Workspace) -> None:
        self.idle.append(workspace)


_shared: WeakValueDictionary[str, Workspaces] = WeakValueDictionary()


def workspaces(nbytes: int) -> Workspaces:
    """The workspaces of the process; each has at least this size from now on."""
    shared_workspaces = _shared.setdefault("all", Workspaces())
    shared_workspaces.reserve(nbytes)
    return shared_workspaces
