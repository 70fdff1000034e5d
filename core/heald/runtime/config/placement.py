"""The section [placement]: the user's settings for the devices of nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Literal

from ...errors import InvalidArgument
from ..contract.device import DeviceName
from ..support.records import dataclass


@dataclass(frozen=True)
class PlacementConfig:
    """The section [placement].

    `order`: "auto", or device types, the preferred first.
    `fallback`: The treatment of a request that cannot be met: allow, warn, error.
    `remap`: Requests that are replaced by others: `"GPU:*" = "OPENCL:0"`.
    `provider`: By device type, the plugin that serves it where several announce it: `GPU = "cuda"`.
    `clear`: True drops all requests.
    `statistics`: A file of RunMetadata, whose measured times replace the modelled times of nodes on devices.
    """

    order: Literal["auto"] | tuple[str, ...] = "auto"
    fallback: Literal["allow", "warn", "error"] = "warn"
    remap: Mapping[str, str] = field(default_factory=dict)
    provider: Mapping[str, str] = field(default_factory=dict)
    clear: bool = False
    statistics: str | None = None

    def __post_init__(self) -> None:
        for name in (*self.remap, *self.remap.values()):
            try:
                DeviceName.parse(name)
            except InvalidArgument as error:
                raise InvalidArgument(f"remap: {error.message}", hint=error.hint) from None


def ordered_device_types(order: str | Sequence[str], by_priority: Sequence[str]) -> list[str]:
    """Device types in the order that placement tries them: first the types in config, then the others by priority."""
    if isinstance(order, str):
        return list(by_priority)
    return [*order, *(t for t in by_priority if t not in order)]
