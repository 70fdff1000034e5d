"""Forked devices: a forked child uses no device outside host memory whose driver its parent has used.

Of the parent's threads the child has only the one that forked, and a driver's locks and connections are the parent's. A
call of such a device may wait for ever. So the child refuses the parent's devices, and scans none of their types anew.
Plugins cannot change this.
"""

from __future__ import annotations

from ...errors import FailedPrecondition
from ..support.fork_safety import inherited


class UsedTypes:
    """The device types that this process has scanned, without types whose devices are all on host memory.

    `of_parent`: the types that a parent of this process scanned before it forked.
    """

    def __init__(self) -> None:
        self.of_parent: frozenset[str] = frozenset()
        self._here: set[str] = set()
        inherited.add(self)

    def add(self, device_type: str) -> None:
        """Note a type. Called before its scan, since another thread may fork while its driver starts."""
        self._here.add(device_type)

    def remove(self, device_type: str) -> None:
        """Forget a type that has no device outside host memory."""
        self._here.discard(device_type)

    def forked(self) -> None:
        self.of_parent |= frozenset(self._here)


USED_TYPES = UsedTypes()


def fork_error(device: str) -> FailedPrecondition:
    """The error of a device that belongs to a parent of this process."""
    return FailedPrecondition(
        f"device {device} belongs to the process that forked this one", device=device,
        hint="fork before the device is first used, or start processes with multiprocessing's 'spawn'")
