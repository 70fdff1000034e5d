"""Unicode text by Python's codecs: from one encoding to another, to code points and back."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from heald.api import Bind, Kernels, errors

from ..element_types import Array
from .ragged import check_whole
from .strings import map_elements

MALFORMED = "\ud800"  # a lone surrogate, which none of these codecs returns
TARGETS = {"UTF-8": "utf-8", "UTF-16-BE": "utf-16-be", "UTF-32-BE": "utf-32-be"}
# Python's names of the encodings with the same code tables and faults as in ICU
SOURCES = re.compile(r"utf-8|utf-(16|32)(-[bl]e)?|ascii|iso8859-\d+|koi8-[ru]")
MARKS = {"utf-16": (codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE), "utf-32": (codecs.BOM_UTF32_BE, codecs.BOM_UTF32_LE)}
UTF8_LIMITS = np.array([0x80, 0x800, 0x10000])  # the first code points of two, three and four bytes
CONTROLS = dict.fromkeys(range(32), MALFORMED)

codecs.register_error("heald_cpu.malformed", lambda error: (MALFORMED, error.end))  # type: ignore[attr-defined]
codecs.register_error(
    "heald_cpu.malformed_length",
    lambda error: (chr(ord(MALFORMED) + error.end - error.start), error.end),  # type: ignore[attr-defined]
)


def source(name: str, faults: str = "heald_cpu.malformed") -> Callable[[bytes], str]:
    """A decoder that returns MALFORMED for malformed input, or the result of another handler of `faults`.

    Raises InvalidArgument for an unknown encoding, and Unimplemented for one that differs from ICU's.
    """
    try:
        codec = codecs.lookup(name).name
    except (LookupError, ValueError):  # ValueError: a name with a zero byte
        raise errors.InvalidArgument(f"Could not create converter for input encoding: {name}") from None
    if not SOURCES.fullmatch(codec):
        raise errors.Unimplemented(f"input encoding {name} is not implemented")
    marks = MARKS.get(codec, ())

    def decode(x: bytes) -> str:
        marked = not marks or x.startswith(marks)
        return x.decode(codec if marked else f"{codec}-be", faults)

    return decode


def transcode(b: Bind) -> Callable[..., Any]:
    decode, target = source(b.attrs["input_encoding"]), TARGETS[b.attrs["output_encoding"]]
    strict, instead = b.attrs["errors"] == "strict", _replacement(b)
    table = CONTROLS if b.attrs["replace_control_characters"] else {}

    def convert(x: bytes) -> bytes:
        text = decode(x).translate(table)
        if strict and MALFORMED in text:
            raise errors.InvalidArgument(f"Invalid formatting on input string {x!r}")
        return text.replace(MALFORMED, instead).encode(target)

    return map_elements(convert)


def decode(b: Bind) -> Callable[..., Any]:
    """The code points of all strings, and the splits of each string's own."""
    decoded, splits_type = source(b.attrs["input_encoding"]), b.attrs["Tsplits"].numpy
    strict, instead = b.attrs["errors"] == "strict", chr(b.attrs["replacement_char"])
    instead = "" if b.attrs["errors"] == "ignore" else instead
    table = CONTROLS if b.attrs["replace_control_characters"] else {}

    def points(x: bytes) -> str:
        text = decoded(x)
        if strict and MALFORMED in text:
            raise errors.InvalidArgument(f"Invalid formatting on input string {x!r}")
        return text.translate(table).replace(MALFORMED, instead)

    def run(strings: Array) -> tuple[Array, Array]:
        b.ask(8 * sum(map(len, strings.flat)), "code points")
        texts = [*map(points, strings.flat)]
        splits = np.append(0, np.cumsum([len(text) for text in texts], dtype=np.int64)).astype(splits_type)
        return splits, np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), "<i4").astype(np.int32)

    return run


def decode_with_offsets(b: Bind) -> Callable[..., Any]:
    """As `decode`, and the byte at which each code point starts in its string."""
    name, splits_type = b.attrs["input_encoding"], b.attrs["Tsplits"].numpy
    decoded, mode, instead = source(name, "heald_cpu.malformed_length"), b.attrs["errors"], b.attrs["replacement_char"]
    lowest = 32 if b.attrs["replace_control_characters"] else 0
    codec = codecs.lookup(name).name

    def run(strings: Array) -> tuple[Array, Array, Array]:
        b.ask(16 * sum(map(len, strings.flat)), "code points")
        counts, points, starts = [0], [np.zeros(0, np.int32)], [np.zeros(0, np.int64)]
        for x in strings.flat:
            codes = np.frombuffer(decoded(x).encode("utf-32-le", "surrogatepass"), "<i4")
            is_fault = codes >> 11 == 0xD800 >> 11
            if mode == "strict" and is_fault.any():
                raise errors.InvalidArgument(f"Invalid formatting on input string {x!r}")
            lengths = np.where(is_fault, codes - ord(MALFORMED), _encoded_lengths(codes, codec))
            ends = np.cumsum(lengths) + (len(x) - lengths.sum())  # a byte order mark belongs to the first code point
            first = np.append(0, ends[:-1])[: len(codes)]
            is_fault |= codes < lowest
            is_kept = ~is_fault if mode == "ignore" else np.ones(len(codes), bool)
            counts.append(int(np.count_nonzero(is_kept)))
            points.append(np.where(is_fault, instead, codes)[is_kept].astype(np.int32))
            starts.append(first[is_kept].astype(np.int64))
        return np.cumsum(counts).astype(splits_type), np.concatenate(points), np.concatenate(starts)

    return run


def _encoded_lengths(codes: Array, codec: str) -> Array:
    if codec.startswith("utf-32"):
        return np.full(len(codes), 4)
    if codec.startswith("utf-16"):
        return np.where(codes > 0xFFFF, 4, 2)
    if codec == "utf-8":
        return 1 + np.searchsorted(UTF8_LIMITS, codes, "right")
    return np.ones(len(codes), np.int64)


def encode(b: Bind) -> Callable[..., Any]:
    """A string of each row of code points. Surrogates and numbers beyond Unicode are faults."""
    target, strict, instead = TARGETS[b.attrs["output_encoding"]], b.attrs["errors"] == "strict", _replacement(b)

    def run(points: Array, splits: Array, out: Array) -> None:
        check_whole([splits], len(points))
        faults = (points < 0) | (points > 0x10FFFF) | (points >> 11 == 0xD800 >> 11)
        if strict and faults.any():
            raise errors.InvalidArgument("Code point is out of range for Unicode, or is a surrogate: "
                                         f"{points[faults.argmax()]}")
        text = np.where(faults, ord(MALFORMED), points).astype("<i4").tobytes().decode("utf-32-le", "surrogatepass")
        for row, (start, end) in enumerate(pairwise(splits.tolist())):
            out[row] = text[start:end].replace(MALFORMED, instead).encode(target)

    return run


def _replacement(b: Bind) -> str:
    number = b.attrs["replacement_char"]
    if b.attrs["errors"] == "ignore":
        return ""
    return "\ufffd" if 0xD800 <= number < 0xE000 else chr(number)


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("UnicodeDecode", allocates=True)(decode)
    kernels.kernel("UnicodeDecodeWithOffsets", allocates=True)(decode_with_offsets)
    kernels.kernel("UnicodeEncode")(encode)
    kernels.kernel("UnicodeTranscode")(transcode)
