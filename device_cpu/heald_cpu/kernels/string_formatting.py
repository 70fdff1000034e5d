"""Kernels that write numbers and tensors as text, as C's printf does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import isfinite
from typing import Any

import numpy as np
from heald.api import Bind, DType, Kernels, dtypes, errors

from ..element_types import COMPLEX, FLOATS, INTEGERS, NARROW, Array
from .strings import attribute_bytes, map_elements

Run = Callable[..., Any]
Text = Callable[[Any], bytes]
LARGEST_WIDTH_CHARACTERS = 1 << 16  # characters of a number's width and precision

ESCAPED_BYTES = [b"\\%03o" % i if i < 32 or i == 127 else bytes([i]) for i in range(256)]
for _character, _letter in zip(b"\n\r\t\"'\\", b"nrt\"'\\", strict=True):
    ESCAPED_BYTES[_character] = b"\\" + bytes([_letter])


def as_string(b: Bind) -> Run:
    convert = _write_floats(b) if b.attrs["T"].kind == "f" else map_elements(_text_of_elements(b))
    if b.attrs["T"].name in NARROW:
        return lambda x, out: convert(x.astype(np.float32), out)
    return convert


def _write_floats(b: Bind) -> Run:
    """Finite numbers, if all are, need no look at each."""
    text, attrs = _text_of_elements(b), b.attrs
    template = _float_template(attrs["fill"], max(0, attrs["width"]), _conversion(attrs))

    def run(x: Any, out: Any) -> None:
        numbers = x.reshape(-1).tolist()
        out.reshape(-1)[:] = [*map(template.__mod__ if np.isfinite(x).all() else text, numbers)]

    return run


def _text_of_elements(b: Bind) -> Text:
    """Flag, width and precision as in `%-8.3s`. TensorFlow has none of them for bools."""
    attrs, dtype = b.attrs, b.attrs["T"]
    for name in ("width", "precision"):
        if attrs[name] > LARGEST_WIDTH_CHARACTERS:
            raise errors.InvalidArgument(f"AsString writes at most {LARGEST_WIDTH_CHARACTERS} characters, {name} is "
                                         f"{attrs[name]}")
    width = max(0, attrs["width"])
    if dtype is dtypes.bool_:
        return lambda x: b"true" if x else b"false"
    if dtype is dtypes.string:
        adjust, precision = _adjustment(attrs["fill"]), attrs["precision"]
        return (lambda x: adjust(x[:precision], width)) if width and precision > -1 else lambda x: adjust(x, width)
    if dtype.kind in "iu":
        flag = attrs["fill"] if dtype.kind == "i" else attrs["fill"].strip(" +")
        return (f"%{flag}{width or ''}d".encode()).__mod__
    number = _float_text(attrs["fill"], width, _conversion(attrs))
    return (lambda x: b"(%s,%s)" % (number(x.real), number(x.imag))) if dtype.kind == "c" else number


def _adjustment(flag: str) -> Callable[[bytes, int], bytes]:
    return bytes.ljust if flag == "-" else bytes.rjust


def _conversion(attrs: Any) -> str:
    letter = "e" if attrs["scientific"] else "g" if attrs["shortest"] else "f"
    return f".{attrs['precision']}{letter}" if attrs["precision"] > -1 else letter


def _float_template(flag: str, width: int, conversion: str) -> bytes:
    return f"%{flag}{width or ''}{conversion}".encode()


def _float_text(flag: str, width: int, conversion: str) -> Text:
    """Floats in C's format: NaN has a sign, and infinity is not filled up with zeros."""
    template = _float_template(flag, width, conversion)
    sign = {"+": b"+", " ": b" "}.get(flag, b"")
    adjust = _adjustment(flag)

    def text(x: float) -> bytes:
        if isfinite(x):
            return template % x
        return adjust((b"-" if np.signbit(x) else sign) + (b"nan" if x != x else b"inf"), width)

    return text


def format_(b: Bind) -> Run:
    between = _between(attribute_bytes(b, "template"), attribute_bytes(b, "placeholder"))
    texts = [element_text(x.dtype, quote=b'"') for x in b.inputs]
    shown_elements, count = b.attrs["summarize"], len(b.inputs)

    def run(*arrays: Any) -> None:
        parts = [between[0]]
        for x, text, following in zip(arrays[:count], texts, between[1:], strict=True):
            parts += (summary(x, text, shown_elements), following)
        arrays[-1].fill(b"".join(parts))

    return run


def _between(template: bytes, placeholder: bytes) -> list[bytes]:
    """The parts of a template. An empty placeholder stands between any two bytes of the template."""
    return template.split(placeholder) if placeholder else [template[i : i + 1] for i in range(len(template))] or [b""]


def element_text(dtype: DType, quote: bytes = b"") -> Text:
    """The function that formats an element. A float gets 6 digits if they parse to the same float, else 9 (float64: 15
    or 17)."""
    if dtype is dtypes.string:
        return lambda x: quote + b"".join(map(ESCAPED_BYTES.__getitem__, x)) + quote
    if dtype.kind == "f":
        return _shortest64 if dtype is dtypes.float64 else _shortest32
    return b"%d".__mod__ if dtype.kind in "biu" else lambda _: b"?"


def _shortest32(x: Any) -> bytes:
    short = b"%.6g" % x
    return short if np.float32(short) == x else _not_shortened(x, b"%.9g")


def _shortest64(x: Any) -> bytes:
    short = b"%.15g" % x
    return short if float(short) == x else _not_shortened(x, b"%.17g")


def _not_shortened(x: Any, template: bytes) -> bytes:
    return template % x if x == x else b"-nan" if np.signbit(x) else b"nan"


def summary(x: Array, text: Text, shown_elements: int) -> bytes:
    """The tensor in brackets: the first and last `shown_elements` elements of each axis, or all elements for -1."""
    ends = x.size if shown_elements < 0 else min(shown_elements, x.size)
    if not x.ndim:
        return text(x[()]) if ends else b"..."
    return b"".join(_along(x, text, ends, 0))


def _along(x: Array, text: Text, ends: int, depth: int) -> Iterator[bytes]:
    gap = b" " if x.ndim == 1 else b"\n" * (x.ndim - 1) + b" " * (depth + 1)
    count = len(x)
    shown = [*range(min(ends, count)), *([-1] if count > 2 * ends else []), *range(max(ends, count - ends), count)]
    yield b"["
    for position, i in enumerate(shown):
        if position or i < 0:
            yield gap
        if i < 0:
            yield b"..."
        elif x.ndim == 1:
            yield text(x[i])
        else:
            yield from _along(x[i], text, ends, depth + 1)
    yield b"]"


def listing(x: Array, text: Text, shown_elements: int) -> bytes:
    """The first `shown_elements` elements in brackets, in the tensor's rows; all elements for a negative number."""
    count = x.size if shown_elements < 0 else min(shown_elements, x.size)
    rows = _rows(x, text, count) if x.ndim > 1 else [b" ".join(map(text, x.reshape(-1)[:count]))]
    return b"[%b%b]" % (b"".join(rows), b"..." if count < x.size else b"")


def _rows(x: Array, text: Text, count: int) -> Iterator[bytes]:
    if x.ndim == 1:
        yield b" ".join(map(text, x[:count])) + (b"..." if count < len(x) else b"")
        return
    for row in x:
        if count <= 0:
            break
        yield from (b"[", *_rows(row, text, count), b"]")
        count -= row.size


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("AsString", dtypes={"T": (*INTEGERS, *FLOATS, *COMPLEX, "bool", "string")})(as_string)
    kernels.kernel("StringFormat")(format_)
