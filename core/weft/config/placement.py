"""[placement]: what users say about where nodes go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class PlacementConfig:
    """[placement]. `order`: "auto" or device types, the preferred first. `fallback`: what to do about a request that
    cannot be met: allow, warn, error. `remap`: requests replaced by others, `"GPU:*" = "OPENCL:0"`. `clear`: drop all
    requests."""

    order: Literal["auto"] | tuple[str, ...] = "auto"
    fallback: Literal["allow", "warn", "error"] = "warn"
    remap: Mapping[str, str] = field(default_factory=dict)
    clear: bool = False


def preference(order: str | Sequence[str], by_priority: Sequence[str]) -> list[str]:
    """Device types in the order that placement asks them: config's first, the others by priority."""
    if isinstance(order, str):
        return list(by_priority)
    return [*order, *(t for t in by_priority if t not in order)]
