"""The section [debug]: checks that find faults of plugins and cost time. Each is off unless config sets it."""

from __future__ import annotations

from ..support.records import dataclass


@dataclass(frozen=True)
class DebugConfig:
    """The section [debug].

    `poison`: Memory of the plan is overwritten with nonsense as soon as its last reader is done, and outputs right
        before their kernel runs. Inputs are read-only; a kernel that changes one raises PluginError.
    `synchronous`: Each kernel on a device is awaited, so that a fault of the device names its node.
    `check_types`: Payloads of host kernels are checked against their declared types.
    """

    poison: bool = False
    synchronous: bool = False
    check_types: bool = False
