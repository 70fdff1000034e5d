"""Arrays as raw numbers: little-endian, as all protocols have them."""

from __future__ import annotations

import sys
from typing import Any

IS_LITTLE_ENDIAN = sys.byteorder == "little"


def little_endian(array: Any) -> bytes:
    """The bytes of the elements. Arrays of this machine's own order, almost all, are not converted."""
    if not (IS_LITTLE_ENDIAN and array.dtype.isnative):
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
    data: bytes = array.tobytes()
    return data
