"""Edits of bytes without regard to their format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Literal

from heald.runtime.values.wire import put_varint

Words = Sequence[bytes]  # the vocabulary of a format
Edit = Callable[[Random, bytes, bytes, Words], bytes]  # takes the bytes, another sample's bytes, and a vocabulary

EDGES = tuple(sorted({
    *range(-2, 17), 31, 32, 63, 64, 65, 127, 128, 254, 255, 256, 1000, 65_535, 65_536, 1_000_000, 100_000_000,
    *(sign * (1 << bits) + off for bits in (15, 16, 31, 32, 40, 53, 62, 63) for sign in (1, -1) for off in (-1, 0, 1)),
    (1 << 64) - 1,
}))
LARGEST_MUTANT_BYTES = 1 << 20  # bytes of a mutant
_RUN = 4096  # bytes that `run` adds at most


def span(rng: Random, data: bytes) -> tuple[int, int]:
    """A range of the data, mostly a short one."""
    start = rng.randrange(len(data) + 1)
    length = rng.choice((1, 2, 4, 8, 16, 64, len(data)))
    return start, min(len(data), start + rng.randint(0, length))


def flip(rng: Random, data: bytes, _other: bytes, _words: Words) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16)) if data else 0):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def overwrite(rng: Random, data: bytes, _other: bytes, _words: Words) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4)) if data else 0):
        changed[rng.randrange(len(changed))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
    return bytes(changed)


def truncate(rng: Random, data: bytes, _other: bytes, _words: Words) -> bytes:
    return data[: rng.randint(0, len(data))]


def delete(rng: Random, data: bytes, _other: bytes, _words: Words) -> bytes:
    start, stop = span(rng, data)
    return data[:start] + data[stop:]


def insert(rng: Random, data: bytes, _other: bytes, _words: Words) -> bytes:
    at = rng.randint(0, len(data))
    return data[:at] + rng.randbytes(rng.choice((1, 2, 4, 16))) + data[at:]


def run(rng: Random, data: bytes, _other: bytes, _words: Words) -> bytes:
    """Many copies of a few bytes: slow loops show."""
    at = rng.randint(0, len(data))
    start, stop = span(rng, data)
    unit = data[start : min(stop, start + 8)] or bytes((rng.randrange(256),))
    return data[:at] + unit * (rng.randint(1, _RUN) // len(unit)) + data[at:]


def duplicate(rng: Random, data: bytes, _other: bytes, _words: Words) -> bytes:
    start, stop = span(rng, data)
    return data[:stop] + data[start:stop] * rng.choice((1, 1, 2, 8)) + data[stop:]


def swap(rng: Random, data: bytes, _other: bytes, _words: Words) -> bytes:
    a, b, c, d = sorted(rng.randint(0, len(data)) for _ in range(4))
    return data[:a] + data[c:d] + data[b:c] + data[a:b] + data[d:]


def splice(rng: Random, data: bytes, other: bytes, _words: Words) -> bytes:
    start, stop = span(rng, data)
    first, last = span(rng, other)
    return data[:start] + other[first:last] + data[stop:]


def join(rng: Random, data: bytes, other: bytes, _words: Words) -> bytes:
    return data[: rng.randint(0, len(data))] + other[rng.randint(0, len(other)) :]


def fixed_integer(rng: Random, data: bytes, _other: bytes, _words: Words) -> bytes:
    """An edge case of 1, 2, 4 or 8 bytes over an aligned range."""
    size = rng.choice([size for size in (1, 2, 4, 8) if size <= max(1, len(data))])
    number = rng.choice(EDGES) % (1 << 8 * size)
    at = rng.randint(0, max(0, len(data) // size - 1)) * size
    order: Literal["little", "big"] = rng.choice(("little", "big"))
    return data[:at] + number.to_bytes(size, order) + data[at + size :]


def varint_integer(rng: Random, data: bytes, _other: bytes, _words: Words) -> bytes:
    """An edge case as a varint in the place of another varint."""
    at = stop = rng.randint(0, max(0, len(data) - 1))
    while stop < len(data) - 1 and data[stop] >= 0x80:
        stop += 1
    return data[:at] + put_varint(rng.choice(EDGES)) + data[stop + 1 :]


def word(rng: Random, data: bytes, _other: bytes, words: Words) -> bytes:
    start, stop = span(rng, data)
    return data[:start] + (rng.choice(words) if words else b"") + data[rng.choice((start, stop)) :]


EDITS: tuple[Edit, ...] = (flip, overwrite, truncate, delete, insert, run, duplicate, swap, splice, join, fixed_integer,
                           varint_integer, word)
SAME_SIZE: tuple[Edit, ...] = (flip, overwrite, fixed_integer, fixed_integer)


def edit(rng: Random, data: bytes, other: bytes, words: Words) -> bytes:
    """One edit of any kind."""
    edit_bytes: Edit = rng.choice(EDITS)
    return edit_bytes(rng, data, other, words)
