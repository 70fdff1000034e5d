"""Call messages: the arguments of a call between processes, and its result, as few values that Ray carries cheaply.

Ray serialises each argument of a call by itself, and takes longer for an array than for bytes. A call message has one
value for all arguments with their small buffers. A large buffer is a value of its own: Ray writes it once, and the
processes of a node read it there.
"""

# The form of the first value
#
#     4 bytes   the size of the texts, little-endian
#     texts     two values of JSON: the sizes of the buffers, and the arguments; a buffer there is {BUFFER: index}
#     buffers   the small buffers in order
#
# The size of a large buffer is null: it is the next of the further values.

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from heald.errors import DataLoss

LARGEST_INLINE_BYTES = 32 << 10  # Ray carries less than 100 kB within a call, without its object store
BUFFER = "\0buffer"  # names of nodes and devices have no zero byte
_HEAD_BYTES = 4
_BUFFERS, _LISTS = (bytes, np.ndarray), (list, tuple)  # tuples: isinstance builds no union at each call
_DECODER = json.JSONDecoder()


def pack_call(arguments: Any) -> list[Any]:
    """Return the values of a call message. `arguments`: Lists, mappings and scalars of JSON, bytes, arrays of bytes."""
    buffers: list[Any] = []
    text = json.dumps(_number_buffers(arguments, buffers))
    sizes = [len(buffer) if len(buffer) <= LARGEST_INLINE_BYTES else None for buffer in buffers]
    texts = (json.dumps(sizes) + text).encode()
    small_buffers = [buffer for buffer, size in zip(buffers, sizes, strict=True) if size is not None]
    large_buffers = [buffer for buffer, size in zip(buffers, sizes, strict=True) if size is None]
    return [b"".join([len(texts).to_bytes(_HEAD_BYTES, "little"), texts, *small_buffers]), *large_buffers]


def unpack_call(values: Sequence[Any]) -> Any:
    """Return the arguments of a call message. Raises DataLoss for a damaged message."""
    try:
        first, large_buffers = memoryview(values[0]), iter(values[1:])
        end_of_texts = _HEAD_BYTES + int.from_bytes(first[:_HEAD_BYTES], "little")
        texts = str(first[_HEAD_BYTES:end_of_texts], "utf-8")
        sizes, end_of_sizes = _DECODER.raw_decode(texts)
        small_buffers = iter(_split(first[end_of_texts:], [size for size in sizes if size is not None]))
        buffers = [next(large_buffers if size is None else small_buffers) for size in sizes]
        return json.loads(texts[end_of_sizes:], object_hook=lambda row: buffers[row[BUFFER]] if BUFFER in row else row)
    except (ValueError, TypeError, LookupError, StopIteration) as error:
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


def _split(data: memoryview, sizes: Sequence[int]) -> list[bytes]:
    """Return copies of the small buffers: memory of their own is aligned for every type of elements."""
    ends = [*accumulate(sizes, initial=0)]
    if ends[-1] != len(data) or min(sizes, default=0) < 0:
        raise ValueError(f"{len(data)} bytes for buffers of {sizes}")
    return [bytes(data[start:end]) for start, end in pairwise(ends)]
