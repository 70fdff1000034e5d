"""The trial of a plugin's allocator: a few buffers are allocated and returned when the allocator is made.

Allocating for programs costs nothing more. A fault that the trial shows is the plugin's; found later it would look like
a fault of the kernel that got the buffer.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from ....errors import HealdError, PluginError, ResourceExhausted, describe_exception
from ...contract.allocator import ALIGNMENT, AllocatorStats

_METHODS = ("allocate", "deallocate", "stats")
_REQUESTS = ((1, ALIGNMENT), (100, ALIGNMENT), (4097, ALIGNMENT), (64, 4096))  # (bytes, alignment)


def check_allocator(allocator: object, who: str) -> None:
    """Raises PluginError for an allocator without a method, or whose buffers break the protocol. A typed error of the
    allocator passes."""
    missing = [method for method in _METHODS if not callable(getattr(allocator, method, None))]
    if missing:
        raise PluginError(f"the factory of {who} returned {type(allocator).__name__}, which has no "
                          f"{' and no '.join(missing)}", hint="see heald.api.HostAllocator")
    trial = _AllocatorTrial(allocator, who)
    buffers = []
    for nbytes, alignment in _REQUESTS:
        with suppress(ResourceExhausted):  # an allocator may have a limit
            buffers.append(trial.allocate(nbytes, alignment))
    for buffer in buffers:
        trial.call("deallocate", buffer)
    stats = trial.call("stats")
    if not isinstance(stats, AllocatorStats):
        raise trial.fault("stats", type(stats).__name__, "AllocatorStats")


class _AllocatorTrial:
    def __init__(self, allocator: Any, who: str) -> None:
        self._allocator, self._who = allocator, who

    def call(self, method: str, *arguments: Any) -> Any:
        function: Callable[..., Any] = getattr(self._allocator, method)
        try:
            return function(*arguments)
        except HealdError:
            raise
        except Exception as error:
            raise PluginError(f"{method} of {self._who} raised {describe_exception(error)}",
                              hint=self._hint()) from error

    def allocate(self, nbytes: int, alignment: int) -> Any:
        buffer = self.call("allocate", nbytes, alignment)
        if not isinstance(buffer, np.ndarray) or buffer.dtype != np.uint8 or buffer.ndim != 1:
            what = type(buffer).__name__
            if isinstance(buffer, np.ndarray):
                what = f"an array of {buffer.dtype} with {buffer.ndim} dimensions"
            raise self.fault(f"allocate({nbytes})", what, "a one-dimensional array of uint8")
        if buffer.size != nbytes:
            raise self.fault(f"allocate({nbytes})", f"{buffer.size} bytes", f"{nbytes}")
        if not buffer.flags.writeable or not buffer.flags.c_contiguous:
            raise self.fault(f"allocate({nbytes})", "an array that is not writable and contiguous", "one that is")
        if buffer.ctypes.data % alignment:
            raise self.fault(f"allocate({nbytes}, {alignment})", f"an array at {buffer.ctypes.data:#x}",
                             f"a multiple of {alignment}")
        return buffer

    def fault(self, method: str, what: str, expected: str) -> PluginError:
        return PluginError(f"{method} of {self._who} returned {what}, expected {expected}",
                           hint=self._hint())

    def _hint(self) -> str:
        return "report it to the plugin's authors; [allocator] name = 'plain' does without it"
