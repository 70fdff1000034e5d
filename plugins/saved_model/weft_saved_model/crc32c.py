"""CRC-32C (Castagnoli's polynomial), by NumPy: much data is folded to little, and that is read in many lanes at once.

A multiple of the polynomial with four terms, x**(64 * a) + x**(64 * b) + x**(64 * c) + 1, folds: a 64-bit word may be
moved, by exclusive or, to the words at distances a - b, a - c and a behind it. The checksum stays the same. The first
a - b words move at once.

The register is linear in the bytes read, so each lane of equal length has a register of its own. Two neighbours
combine: the first lane's register, advanced by a lane's length of zero bytes, xor the second lane's. Zeros in front of
the first byte change nothing. An initial register value is equal to that value xored into the first four bytes.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from weft.protobuf import Buffer

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

_POLYNOMIAL = 0x82F63B78  # bits reversed
_ONES = 0xFFFFFFFF
_TERMS = 6777, 484, 100  # a, b, c: of all multiples with a < 8192 the one with the largest a - b
_FOLDED_FROM = 1 << 18  # bytes
_LANE = 64  # bytes
_FEW = 64  # bytes; shorter data is faster byte by byte


def masked_crc32c(data: Buffer) -> int:
    """The checksum as leveldb and TensorFlow store it: masked, so that it is no CRC of the data that contains it."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & _ONES


def crc32c(data: Buffer) -> int:
    state = _ONES
    if len(data) >= _FOLDED_FROM:
        state, data = 0, _folded(state, data)
    return (_one_by_one(state, data) if len(data) < _FEW else _in_lanes(state, data)) ^ _ONES


def _folded(state: int, data: Buffer) -> Buffer:
    """Return little data that takes the register from 0 to the value that `data` takes it to from `state`."""
    import numpy as np

    a, b, c = _TERMS
    step = a - b
    words = np.frombuffer(data, np.uint64, len(data) // 8)
    moved, spare = np.zeros(a, np.uint64), np.zeros(a, np.uint64)  # what the next words have to take up
    moved[:1].view(np.uint8)[:4] = np.frombuffer(state.to_bytes(4, "little"), np.uint8)
    at = 0
    while len(words) - at >= a + step:
        head = words[at : at + step] ^ moved[:step]
        spare[:b], spare[b:] = moved[step:], 0
        for begin in (0, b - c, b):
            spare[begin : begin + step] ^= head
        moved, spare = spare, moved
        at += step
    rest = np.array(np.frombuffer(data, np.uint8)[8 * at :])
    rest[: 8 * a] ^= moved.view(np.uint8)
    return rest.data


def _one_by_one(state: int, data: Buffer) -> int:
    table = _table(8).tolist()
    for byte in data:
        state = table[(state ^ byte) & 0xFF] ^ state >> 8
    return state


def _in_lanes(state: int, data: Buffer) -> int:
    import numpy as np

    length = _LANE
    lanes = 1 << ((len(data) - 1) // length).bit_length()
    padded = np.zeros(lanes * length, np.uint8)
    begin = padded.size - len(data)
    padded[begin:] = np.frombuffer(data, np.uint8)
    padded[begin : begin + 4] ^= np.frombuffer(state.to_bytes(4, "little"), np.uint8)
    table, states = _table(16), np.zeros(lanes, np.uint32)
    for words in padded.view("<u2").reshape(lanes, -1).T:
        states = table[(states ^ words) & 0xFFFF] ^ states >> 16
    while len(states) > 1:
        states = _after_zeros(states[::2], length) ^ states[1::2]
        length *= 2
    return int(states[0])


@cache
def _table(bits: int) -> Array:
    """Return the register after `bits` zero bits, for each initial register below 2**bits."""
    import numpy as np

    states: Array = np.arange(1 << bits, dtype=np.uint32)
    for _ in range(bits):
        states = states >> 1 ^ (states & 1) * np.uint32(_POLYNOMIAL)
    return states


def _after_zeros(states: Array, count: int) -> Array:
    """Advance registers by `count` zero bytes, a power of two from 2 on."""
    if count == 2:
        after: Array = _table(16)[states & 0xFFFF] ^ states >> 16
    else:
        low, second, third, high = _zeros(count)
        after = low[states & 0xFF] ^ second[states >> 8 & 0xFF] ^ third[states >> 16 & 0xFF] ^ high[states >> 24]
    return after


@cache
def _zeros(count: int) -> Array:
    """Return each register byte's contribution, by position and value, to the register after `count` zero bytes."""
    import numpy as np

    states = np.arange(256, dtype=np.uint32) << np.array([[0], [8], [16], [24]], np.uint32)
    return _after_zeros(_after_zeros(states, count // 2), count // 2)
