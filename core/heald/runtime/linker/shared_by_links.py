"""SharedByLinks: values that the links of one program share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..contract.device import Device
from ..host.device_memory import Owned, Release
from ..host.host_memory import RelaidConstant
from ..host.resources import Resources
from .stored_constants import NO_STORED_CONSTANTS, StoredConstants

if TYPE_CHECKING:
    from ..contract.host_kernel import Callee


class SharedByLinks:
    """Values that the links of one program share.

    `prepared`: objects that kernels prepared from constants.
    `stored`: the source of prepared objects with a fingerprint.
    `folded`, `uploaded`, `laid_out`: constants by result registers or register.
    `buffers`: device buffers, and prepared objects, with the functions that free them; they live as long as the program
        may be linked or run.
    `resources`: state that kernels keep for nodes, shared by the programs of one session.
    """

    def __init__(
        self, functions: dict[str, Callee], resources: Resources, stored: StoredConstants = NO_STORED_CONSTANTS
    ) -> None:
        self.prepared: dict[Any, Any] = {}
        self.stored = stored
        self.folded: dict[tuple[int, ...], list[Any]] = {}
        self.uploaded: dict[int, Any] = {}
        self.laid_out: dict[int, RelaidConstant] = {}
        self.buffers: list[Owned] = []
        self.functions = functions
        self.resources = resources
        self._callees: dict[str, SharedByLinks] = {}

    def own(self, device: Device, release: Callable[[Any], object], prepared: Any) -> None:
        """Have `release` called with an object that a kernel prepared on a device when the program is gone."""
        self.buffers.append((Release(device, release), prepared))

    def of(self, function: str) -> SharedByLinks:
        """Return what the links of a function of the same program share, where each is linked for its callers."""
        if function not in self._callees:
            shared = self._callees[function] = SharedByLinks(self.functions, self.resources, self.stored)
            shared.prepared, shared.buffers, shared._callees = self.prepared, self.buffers, self._callees
        return self._callees[function]

    def for_renumbered_program(self, resources: Resources | None = None) -> SharedByLinks:
        """Return what programs share without the functions that are linked by register number, for a program that was
        lowered again: the same numbers stand for other values in it.

        `resources`: the state of later links, by default the same.
        """
        anew = SharedByLinks({}, self.resources if resources is None else resources, self.stored)
        anew.prepared, anew.buffers = self.prepared, self.buffers
        return anew
