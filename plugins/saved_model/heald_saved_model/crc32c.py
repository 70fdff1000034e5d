"""Checksums of checkpoints: CRC-32C, masked as leveldb and TensorFlow store it."""

from __future__ import annotations

import google_crc32c
import numpy as np
from heald.runtime.values import Buffer


def masked_crc32c(data: Buffer) -> int:
    """Return the checksum, masked so that it is no CRC of data that contains it."""
    crc: int = google_crc32c.value(data if isinstance(data, bytes) else np.frombuffer(data, np.uint8))
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
