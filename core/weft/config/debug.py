"""[debug]: checks that find faults of plugins and cost time, each off unless config asks for it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DebugConfig:
    """[debug]. `poison`: memory of the plan is overwritten with nonsense as soon as nobody may read it any more, and
    outputs right before their kernel runs. A kernel that changes an input raises PluginError.
    `check_types`: payloads of host kernels are checked against their declared types."""

    poison: bool = False
    check_types: bool = False
