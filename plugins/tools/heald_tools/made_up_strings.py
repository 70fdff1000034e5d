"""Strings for inputs without a value: texts, images, sounds and tf.Examples, as serving signatures decode them.

The type of an input does not say which strings its graph reads. `heald bench` therefore tries the forms in turn, and
takes the first form that the model runs on. A graph that parses tf.Examples names their features in constants, so that
its example has a zero for each required feature.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import Any

from heald.api import Graph, Node, TensorValue, dtypes

TEXT = b"text to be timed"  # 16 bytes: whole elements of every type, for DecodeRaw
NUMBER = b"1"
SIDE = 32  # pixels
SAMPLES, RATE = 1600, 16000  # of a sound
MAX_ELEMENTS = 1 << 20  # of a feature: a shape in a file may claim any number
_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_LISTS = {dtypes.string: 1, dtypes.float32: 2, dtypes.int64: 3}  # fields of a tf.train.Feature
_DENSE_KEYS = {"ParseExampleV2": 3, "ParseExample": 2}  # the input with the keys, or the first one after the sparse


def string_forms(graph: Graph | None) -> Iterator[bytes]:
    """Yield strings of every form, the likeliest first. A compiled model has no graph."""
    if graph is not None:
        yield from (example for node in graph if (example := _example_of(node, graph)) is not None)
    yield from (TEXT, NUMBER, image(), sound())


def image() -> bytes:
    """Return a PNG, which the decoders of JPEGs read too."""
    rows = b"".join(b"\0" + bytes((x * 8 + channel * y) % 256 for x in range(SIDE) for channel in range(3))
                    for y in range(SIDE))
    header = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)
    return _PNG_SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(rows)) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def sound() -> bytes:
    """Return a WAV file of one channel."""
    samples = struct.pack(f"<{SAMPLES}h", *(index * 37 % 2000 for index in range(SAMPLES)))
    form = struct.pack("<HHIIHH", 1, 1, RATE, 2 * RATE, 2, 16)
    chunks = b"WAVEfmt " + struct.pack("<I", len(form)) + form + b"data" + struct.pack("<I", len(samples)) + samples
    return b"RIFF" + struct.pack("<I", len(chunks)) + chunks


def _example_of(node: Node, graph: Graph) -> bytes | None:
    """Return the tf.Example that the node parses; None for other nodes, and for keys that are no constants."""
    if node.op not in _DENSE_KEYS:
        return None
    types, shapes = node.attrs.get("Tdense", ()), node.attrs.get("dense_shapes", ())
    names = _constants_of(node, graph, len(types))
    return None if names is None else example(zip(names, types, shapes, strict=False))


def _constants_of(node: Node, graph: Graph, number: int) -> list[bytes] | None:
    """Return the names of the dense features: a vector, or an input for each."""
    first = _DENSE_KEYS[node.op]
    if node.op == "ParseExample":
        first += int(node.attrs.get("Nsparse", 0))
    inputs = node.inputs[first:first + (1 if node.op == "ParseExampleV2" else number)]
    sources = [graph.nodes.get(source.node) for source in inputs]
    values = [source.attrs.get("value") for source in sources if source is not None]
    arrays = [value.array() for value in values if isinstance(value, TensorValue)]
    return None if len(arrays) < len(inputs) else [bytes(name) for array in arrays for name in array.ravel().tolist()]


def example(features: Iterable[tuple[bytes, Any, Sequence[int | None]]]) -> bytes:
    """Return a tf.Example with these features: name, type, and shape, whose unknown lengths are 1."""
    entries = b""
    for name, dtype, shape in features:
        number = prod(1 if size is None else size for size in shape)
        if dtype in _LISTS and number <= MAX_ELEMENTS:
            content = _field(_LISTS[dtype], _zeros(dtype, number))
            entries += _field(1, _field(1, name) + _field(2, content))
    return _field(1, entries)


def _zeros(dtype: Any, number: int) -> bytes:
    if dtype is dtypes.string:
        return _field(1, TEXT) * number
    return _field(1, bytes(4 * number if dtype is dtypes.float32 else number))  # packed: a zero of int64 is one byte


def _field(number: int, content: bytes) -> bytes:
    """Return a field of bytes in a message of protobuf."""
    length, size = b"", len(content)
    while size >= 0x80:
        length += bytes([size & 0x7F | 0x80])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + content
