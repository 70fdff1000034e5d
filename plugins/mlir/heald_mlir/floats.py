"""Floats between their bits and MLIR's text, which is that of LLVM's APFloat."""

from __future__ import annotations

import struct
from typing import NamedTuple


class Format(NamedTuple):
    """Bits of a float: width, significand with its hidden bit."""

    width: int
    precision: int


FORMATS = {"f16": Format(16, 11), "bf16": Format(16, 8), "f32": Format(32, 24), "f64": Format(64, 53)}
_SHORT_FORM_DIGITS = 6  # digits of the form that is tried first
_CODES = {"f16": ("<e", "<H"), "f32": ("<f", "<I"), "f64": ("<d", "<Q")}


def bits_of(value: float, name: str) -> int:
    """The bits of the nearest float of a format of FORMATS; values beyond its range become infinity."""
    if name == "bf16":
        return _bf16(value)
    float_code, integer_code = _CODES[name]
    try:
        packed = struct.pack(float_code, value)
    except OverflowError:
        packed = struct.pack(float_code, float("inf") if value > 0 else float("-inf"))
    bits: int = struct.unpack(integer_code, packed)[0]
    return bits


def value_of(bits: int, name: str) -> float:
    """The float with these bits."""
    if name == "bf16":
        bits, name = bits << 16, "f32"
    float_code, integer_code = _CODES[name]
    value: float = struct.unpack(float_code, struct.pack(integer_code, bits))[0]
    return value


def _bf16(value: float) -> int:
    """Round to nearest, ties to even, from the exact value: by way of f32 rounded to odd."""
    bits = bits_of(value, "f32")
    if value != value:
        return bits >> 16 | 0x40
    nearest = value_of(bits, "f32")
    if nearest != value and abs(nearest) != float("inf") and not bits & 1:  # the sticky bit
        bits += 1 if abs(nearest) < abs(value) else -1
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def text_of(bits: int, name: str) -> str:
    """The float as MLIR prints it: six digits where they suffice, else enough digits, else the bits."""
    width, precision = FORMATS[name]
    value = value_of(bits, name)
    if value - value == 0:
        short = decimal(value, _SHORT_FORM_DIGITS, 0)
        if bits_of(float(short), name) == bits:
            return short
        full = decimal(value, 2 + precision * 59 // 196, 3)
        if "." in full:
            return full
    return f"0x{bits:0{width // 4}X}"


def decimal(value: float, precision: int, padding: int) -> str:
    """`value` with at most `precision` digits, as APFloat::toString has it.

    `padding`: zeros that may stand beside the digits before an exponent is used; 0 always uses one, and fills up with
    zeros to `precision` digits behind the point.
    """
    sign = "-" if str(value)[0] == "-" else ""
    if value == 0:
        return sign + (f"0.{'0' * precision}e+00" if not padding else "0.0")
    numerator, denominator = abs(value).as_integer_ratio()
    shift = denominator.bit_length() - 1
    exponent, significand = -shift, numerator * 5**shift
    surplus = significand.bit_length() - (precision * 196 + 58) // 59
    if surplus * 59 // 196 > 0:
        dropped = surplus * 59 // 196
        exponent, significand = exponent + dropped, significand // 10**dropped
    digits = str(significand)
    if len(digits) > precision:
        dropped = len(digits) - precision
        digits = str(int(digits[:precision]) + (digits[precision] >= "5"))
        exponent += dropped
    stripped = digits.rstrip("0")
    exponent += len(digits) - len(stripped)
    return sign + _digits_text(stripped, exponent, precision, padding)


def _digits_text(digits: str, exponent: int, precision: int, padding: int) -> str:
    count = len(digits)
    if exponent >= 0:
        scientific = exponent > padding or count + exponent > precision
    else:
        scientific = -(exponent + count - 1) > padding
    if scientific or not padding:
        power = exponent + count - 1
        fraction = digits[1:] if padding else digits[1:].ljust(precision, "0")
        letter, least = ("E", 1) if padding else ("e", 2)
        return f"{digits[0]}.{fraction or '0'}{letter}{'-' if power < 0 else '+'}{abs(power):0{least}d}"
    if exponent >= 0:
        return digits + "0" * exponent
    if count + exponent > 0:
        return f"{digits[:exponent]}.{digits[exponent:]}"
    return f"0.{'0' * -(exponent + count)}{digits}"
