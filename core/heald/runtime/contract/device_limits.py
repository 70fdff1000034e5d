"""DeviceLimits: the bounds of a device's memory, to which placement, link and allocation keep."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...errors import InvalidArgument
from ..support.records import NamedTuple
from ..values.dtypes import DType, named
from ..values.tensor import TensorMetadata
from .device import Device, own_method

LARGEST_ALIGNMENT = 1 << 16  # bytes


class DeviceLimits(NamedTuple):
    """The limits of a device outside host memory. Each has a default, "without a limit".

    `largest_buffer`: Bytes of the largest buffer. None: the memory alone bounds it.
    `missing_types`: Names of the element types that no buffer of the device may hold. Tensors in host memory may.
    `copy_alignment`: Bytes, a power of two. Every buffer is allocated in a multiple of it. The bytes between the end of
        a tensor and the end of its allocation are the device's own: a copy in may write any content there.
    `part_alignment`: Bytes, a power of two. A part of a buffer begins at a multiple of it (`Device.part`). None: no
        part is asked for.
    """

    largest_buffer: int | None = None
    missing_types: frozenset[str] = frozenset()
    copy_alignment: int = 1
    part_alignment: int | None = None

    @classmethod
    def of_device(cls, device: Device) -> DeviceLimits:
        """Read the limits of a device. Raises InvalidArgument as `of`, and for parts without the method `part`."""
        limits = cls.of(device.attributes)
        if limits.part_alignment is not None and own_method(device, "part") is None:
            raise InvalidArgument("the limit 'part_alignment' is given, and the device has no method 'part'",
                                  hint="define part(buffer, start, nbytes), or leave out 'part_alignment'")
        return limits

    @classmethod
    def of(cls, attributes: Mapping[str, Any]) -> DeviceLimits:
        """Read the attribute `limits` of a device. Raises InvalidArgument for an unknown figure or a wrong one."""
        figures = attributes.get("limits")
        if figures is None:
            return NO_LIMITS
        if not isinstance(figures, Mapping):
            raise InvalidArgument(f"the attribute 'limits' is a {type(figures).__name__}, not a dict", hint=_HINT)
        for name in figures:
            if name not in cls._fields:
                raise InvalidArgument(f"the attribute 'limits' has the unknown figure {name!r}", hint=_HINT)
        largest, parts = figures.get("largest_buffer"), figures.get("part_alignment")
        if largest is not None and (type(largest) is not int or largest < 1):
            raise InvalidArgument(f"the limit 'largest_buffer' is {largest!r}, not a number of bytes from 1",
                                  hint=_HINT)
        copies = figures.get("copy_alignment", 1)
        for name, alignment in (("copy_alignment", copies), ("part_alignment", 1 if parts is None else parts)):
            is_power = type(alignment) is int and 0 < alignment <= LARGEST_ALIGNMENT and not alignment & alignment - 1
            if not is_power:
                raise InvalidArgument(f"the limit '{name}' is {alignment!r}, not a power of two up to "
                                      f"{LARGEST_ALIGNMENT}", hint=_HINT)
        return cls(largest, _type_names(figures.get("missing_types", ())), copies, parts)

    def refusal_of_types(self, types: Iterable[DType]) -> str | None:
        """Return the reason why a tensor of one of these types cannot be on the device, or None."""
        if not self.missing_types:
            return None
        missing = next((dtype.name for dtype in types if dtype.name in self.missing_types), None)
        return None if missing is None else f"the device has no {missing}"

    def refusal(self, metas: Iterable[TensorMetadata]) -> str | None:
        """Return the reason why one of these static tensors cannot be on the device, or None."""
        for meta in metas if self is not NO_LIMITS else ():
            if meta.dtype.name in self.missing_types:
                return f"the device has no {meta.dtype.name}"
            if self.largest_buffer is not None and self.allocation(meta.nbytes) > self.largest_buffer:
                return (f"{meta} takes {self.allocation(meta.nbytes)} bytes, and the device's largest buffer has "
                        f"{self.largest_buffer}")
        return None

    def allocation(self, nbytes: int) -> int:
        """Return the bytes to allocate for a tensor of `nbytes`, at least 1."""
        return -(-max(nbytes, 1) // self.copy_alignment) * self.copy_alignment


NO_LIMITS = DeviceLimits()
_HINT = f"its figures are {', '.join(DeviceLimits._fields)}"


def _type_names(names: object) -> frozenset[str]:
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise InvalidArgument(f"the limit 'missing_types' is {names!r}, not a list of types", hint=_HINT)
    listed = [*names]
    for name in listed:
        if not isinstance(name, str):
            raise InvalidArgument(f"the limit 'missing_types' has {name!r}, not the name of a type", hint=_HINT)
        named(name)  # raises with a suggestion
    return frozenset(listed)
