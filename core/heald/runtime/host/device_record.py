"""DeviceRecord: one scanned device, or the reason why a device type has none."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from ...errors import HealdError
from ..contract.device import Device
from ..contract.device_cost import DeviceCost
from ..contract.device_limits import NO_LIMITS, DeviceLimits
from ..support.records import dataclass


@dataclass
class DeviceRecord:
    """One device, or one device type that has no device.

    `status`: `found` (not opened yet), `ok` (opened, a kernel and a copy ran) or `unavailable` (also for a lost
        device).
    `reason`, `remedy`: The cause of `unavailable`, and the action that ends it.
    """

    name: str
    type: str
    plugin: str
    status: str
    reason: str = ""
    remedy: str = ""
    attributes: dict[str, Any] = field(default_factory=dict)
    cost: DeviceCost | None = field(default=None, repr=False)
    limits: DeviceLimits = field(default=NO_LIMITS, repr=False)
    device: Device | None = field(default=None, repr=False)
    is_forked: bool = field(default=False, repr=False)  # True for a device of the process that forked this one
    is_open: bool = field(default=False, repr=False)  # also True for a lost device, until its host is closed

    def give_up(self, error: HealdError) -> None:
        self.status = "unavailable"
        self.reason = error.message
        self.remedy = error.hint or ""
