"""DeviceCost: the figures by which placement compares devices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import InvalidArgument
from ..support.records import NamedTuple

MIN_RATE, MOST = 1.0, 1e24
_SECONDS = ("launch", "latency")


class DeviceCost(NamedTuple):
    """The speed of a device, in seconds and rates per second. Each figure has a default, that of a small accelerator.

    `launch`: Seconds to begin a kernel.
    `flops`: Arithmetic operations per second.
    `memory_bandwidth`: Bytes per second that kernels read and write in the device's memory.
    `latency`, `bandwidth`: Seconds to begin a transfer to or from the host, and its bytes per second. They count only
        for a device outside host memory.
    """

    launch: float = 1e-5
    flops: float = 1e12
    memory_bandwidth: float = 1e11
    latency: float = 1e-5
    bandwidth: float = 1e10

    @classmethod
    def of(cls, figures: object) -> DeviceCost:
        """Read the attribute `cost` of a device.

        Raises InvalidArgument for an unknown figure, and for a figure out of range. A time is from 0 to `MOST`, a rate
        from `MIN_RATE` to `MOST`.
        """
        if not isinstance(figures, Mapping):
            raise InvalidArgument(f"the attribute 'cost' is a {type(figures).__name__}, not a dict", hint=_HINT)
        for name, figure in figures.items():
            if name not in cls._fields:
                raise InvalidArgument(f"the attribute 'cost' has the unknown figure {name!r}", hint=_HINT)
            least = 0.0 if name in _SECONDS else MIN_RATE
            if isinstance(figure, bool) or not isinstance(figure, int | float) or not least <= figure <= MOST:
                raise InvalidArgument(f"the figure '{name}' of the attribute 'cost' is {figure!r}, not a number from "
                                      f"{least:g} to {MOST:g}", hint=_HINT)
        rates: dict[str, Any] = {name: float(figure) for name, figure in figures.items()}
        return cls(**rates)

    def work(self, flops: float, nbytes: float) -> float:
        """Return the seconds of a kernel with this many operations and bytes."""
        return self.launch + max(flops / self.flops, nbytes / self.memory_bandwidth)

    def transfer(self, nbytes: float) -> float:
        """Return the seconds to move a tensor of this many bytes to or from the host."""
        return self.latency + nbytes / self.bandwidth


_HINT = f"its figures are {', '.join(DeviceCost._fields)}"
