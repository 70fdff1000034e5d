"""Call messages: the arguments of a call between processes, and its result, as few values that Ray carries cheaply.

Ray serialises each argument of a call by itself, and takes longer for an array than for bytes. It carries bytes below
100 kB within the call, and writes longer ones to its object store, which takes 1.5 ms. So a call message has one value
for all arguments with their small buffers, and pieces of the middle ones. A large buffer is a value of its own, which
the processes of a node read in the store.
"""

# The form of a message
#
#     head      the size of the texts, 4 bytes, little-endian
#     texts     two values of JSON: the sizes of the buffers, and the arguments; a buffer there is {BUFFER: index}
#     buffers   the small buffers in order, which end the first value
#     values    in the order of the buffers: the pieces of a middle buffer, a large buffer as it is
#
# The size of a small buffer is a number, that of a middle one is in a list, and that of a large one is null.

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from heald.errors import DataLoss

LARGEST_SMALL_BYTES = 32 << 10
PIECE_BYTES = 64_000
LARGEST_PIECES_BYTES = 1 << 20  # of all pieces of a message: beyond, the object store is as quick as pieces
BUFFER = "\0buffer"  # names of nodes and devices have no zero byte
_HEAD_BYTES = 4
_BUFFERS, _LISTS = (bytes, np.ndarray), (list, tuple)  # tuples: isinstance builds no union at each call
_DECODER = json.JSONDecoder()


def pack_call(arguments: Any, *, pieces: bool = True) -> list[Any]:
    """Return the values of a call message. `arguments`: Lists, mappings and scalars of JSON, bytes, arrays of bytes.

    `pieces`: False for a result, whose values Ray writes to its store together.
    """
    buffers: list[Any] = []
    text = json.dumps(_number_buffers(arguments, buffers))
    sizes: list[Any] = []
    small_buffers: list[Any] = []
    values: list[Any] = []
    left = LARGEST_PIECES_BYTES if pieces else 0
    for buffer in buffers:
        size = len(buffer)
        if size <= LARGEST_SMALL_BYTES:
            sizes.append(size)
            small_buffers.append(buffer)
        elif size <= left:
            left -= size
            sizes.append([size])
            view = memoryview(buffer)
            values += [bytes(view[start:start + PIECE_BYTES]) for start in range(0, size, PIECE_BYTES)]
        else:
            sizes.append(None)
            values.append(buffer)
    texts = (json.dumps(sizes) + text).encode()
    return [b"".join([len(texts).to_bytes(_HEAD_BYTES, "little"), texts, *small_buffers]), *values]


def unpack_call(values: Sequence[Any]) -> Any:
    """Return the arguments of a call message. Raises DataLoss for a damaged message."""
    try:
        first = memoryview(values[0])
        end_of_texts = _HEAD_BYTES + int.from_bytes(first[:_HEAD_BYTES], "little")
        texts = str(first[_HEAD_BYTES:end_of_texts], "utf-8")
        sizes, end_of_sizes = _DECODER.raw_decode(texts)
        buffers = [*_read_buffers(first[end_of_texts:], values[1:], sizes)]
        return json.loads(texts[end_of_sizes:], object_hook=lambda row: buffers[row[BUFFER]] if BUFFER in row else row)
    except (ValueError, TypeError, LookupError) as error:
        raise DataLoss(f"a call between processes is damaged: {error}") from None


def _number_buffers(value: Any, buffers: list[Any]) -> Any:
    """Return the value with {BUFFER: index} in the place of its buffers, which go to `buffers`."""
    if isinstance(value, _BUFFERS):
        buffers.append(value)
        return {BUFFER: len(buffers) - 1}
    if isinstance(value, _LISTS):
        return [_number_buffers(element, buffers) for element in value]
    if isinstance(value, dict):
        return {key: _number_buffers(element, buffers) for key, element in value.items()}
    return value


def _read_buffers(small_buffers: memoryview, values: Sequence[Any], sizes: Sequence[Any]) -> Iterator[Any]:
    """Yield the buffers. Small and middle ones are copies: memory of their own is aligned for every type of elements.

    Raises ValueError where there are fewer bytes, or more.
    """
    start = position = 0
    for size in sizes:
        if size is None:
            yield values[position]
            position += 1
        elif isinstance(size, list):
            end = position + -(-size[0] // PIECE_BYTES)
            yield _check_size(b"".join(values[position:end]), size[0])
            position = end
        else:
            yield _check_size(bytes(small_buffers[start:start + size]), size)
            start += size
    if start != len(small_buffers) or position != len(values):
        raise ValueError(f"{len(small_buffers)} bytes and {len(values)} values, {start} and {position} expected")


def _check_size(buffer: bytes, size: int) -> bytes:
    if len(buffer) != size:
        raise ValueError(f"a buffer of {len(buffer)} bytes, {size} expected")
    return buffer
