"""Floats between their bits and MLIR's text, which is that of LLVM's APFloat."""

from __future__ import annotations

import struct
from fractions import Fraction
from math import frexp, inf, isinf, isnan, nan
from typing import NamedTuple


class Format(NamedTuple):
    """Bits of a float: width, significand with its hidden bit.

    `special`: The values beyond finite ones. "ieee": infinities and NaNs. "nan": the largest bits alone, a NaN.
    "unsigned zero": the bits of the negative zero alone, a NaN. "none". "exponent": neither sign nor zero, one NaN.
    `bias`: The bias of exponents; None for the usual one.
    """

    width: int
    precision: int
    special: str = "ieee"
    bias: int | None = None


FORMATS = {
    "f16": Format(16, 11), "bf16": Format(16, 8), "f32": Format(32, 24), "f64": Format(64, 53), "f80": Format(80, 64),
    "f128": Format(128, 113), "tf32": Format(19, 11), "f8E5M2": Format(8, 3), "f8E4M3": Format(8, 4),
    "f8E3M4": Format(8, 5), "f8E4M3FN": Format(8, 4, "nan"), "f8E5M2FNUZ": Format(8, 3, "unsigned zero", 16),
    "f8E4M3FNUZ": Format(8, 4, "unsigned zero", 8), "f8E4M3B11FNUZ": Format(8, 4, "unsigned zero", 11),
    "f4E2M1FN": Format(4, 2, "none"), "f6E2M3FN": Format(6, 4, "none"), "f6E3M2FN": Format(6, 3, "none"),
    "f8E8M0FNU": Format(8, 1, "exponent", 127),
}
_SHORT_FORM_DIGITS = 6  # digits of the form that is tried first
_CODES = {"f16": ("<e", "<H"), "f32": ("<f", "<I"), "f64": ("<d", "<Q")}


def bits_of(value: float, name: str) -> int:
    """The bits of the nearest float of a format of FORMATS; values beyond its range become infinity."""
    if name == "bf16":
        return _bf16(value)
    if name not in _CODES:
        return _rounded_bits(value, name)
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
    if name not in _CODES:
        return _small_value(bits, name)
    float_code, integer_code = _CODES[name]
    value: float = struct.unpack(float_code, struct.pack(integer_code, bits))[0]
    return value


class _Layout(NamedTuple):
    """The fields of a format: bits of the stored significand and of the exponent, its bias, the bit of the sign."""

    fraction: int
    exponent: int
    bias: int
    sign: int


def _layout(name: str) -> _Layout:
    width, precision, special, bias = FORMATS[name]
    if special == "exponent":
        return _Layout(0, width, 127, width)  # the sign has no bit of its own, but is kept
    fraction = precision if name == "f80" else precision - 1  # f80 stores its leading bit
    exponent = width - 1 - fraction
    return _Layout(fraction, exponent, (1 << exponent - 1) - 1 if bias is None else bias, width - 1)


def _rounded_bits(value: float, name: str) -> int:
    """Round to nearest, ties to even."""
    _, precision, special, _ = FORMATS[name]
    layout = _layout(name)
    sign = (str(value)[0] == "-") << layout.sign
    if isnan(value):
        return _beyond(name, is_nan=True)
    if isinf(value):
        return sign | _beyond(name, is_nan=False) if special != "unsigned zero" else _beyond(name, is_nan=True)
    least = 1 - layout.bias if special != "exponent" else -layout.bias
    exponent = max(frexp(value)[1] - 1, least) if value else least
    significand = round(Fraction(abs(value)) / Fraction(2) ** (exponent - precision + 1))
    if special == "exponent":
        return sign | min(max(exponent + (significand > 1), least) + layout.bias, 254)
    if significand >> precision:
        exponent, significand = exponent + 1, significand >> 1
    stored_exponent = exponent + layout.bias if significand >> precision - 1 else 0
    bits = stored_exponent << layout.fraction | (significand & (1 << layout.fraction) - 1)
    if bits > _largest_finite(name):
        return sign | _beyond(name, is_nan=False) if special != "unsigned zero" else _beyond(name, is_nan=True)
    return 0 if special == "unsigned zero" and not bits else sign | bits


def _largest_finite(name: str) -> int:
    """The largest bits of a finite value without its sign."""
    layout, special = _layout(name), FORMATS[name].special
    largest = (1 << layout.exponent + layout.fraction) - 1
    if special == "ieee":
        return ((1 << layout.exponent) - 2) << layout.fraction | (1 << layout.fraction) - 1
    return largest - (special in ("nan", "exponent"))


def _beyond(name: str, is_nan: bool) -> int:
    """The bits for a value beyond the range: an infinity, else a NaN, else the largest value."""
    layout, special = _layout(name), FORMATS[name].special
    if special == "unsigned zero":
        return 1 << layout.sign
    if special == "none":
        return _largest_finite(name)
    if special != "ieee":
        return _largest_finite(name) + 1
    leading = (1 << layout.fraction - 1) * (name == "f80")
    quiet = is_nan << (layout.fraction - 1 - (name == "f80"))
    return ((1 << layout.exponent) - 1) << layout.fraction | leading | quiet


def _small_value(bits: int, name: str) -> float:
    """The float nearest to a value of a format that Python lacks."""
    _, precision, special, _ = FORMATS[name]
    layout = _layout(name)
    sign = -1.0 if bits >> layout.sign else 1.0
    magnitude = bits & (1 << layout.sign) - 1
    if magnitude > _largest_finite(name) or (special == "unsigned zero" and bits == 1 << layout.sign):
        is_infinite = special == "ieee" and magnitude == _beyond(name, is_nan=False)
        return sign * inf if is_infinite else nan
    exponent, fraction = magnitude >> layout.fraction, magnitude & (1 << layout.fraction) - 1
    if special == "exponent":
        fraction = 1
    elif exponent:
        fraction |= 1 << precision - 1
    if special != "exponent":
        exponent = max(exponent, 1)
    value = Fraction(fraction) * Fraction(2) ** (exponent - layout.bias - precision + 1)
    try:
        return sign * float(value)
    except OverflowError:
        return sign * inf


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
    width, precision = FORMATS[name][:2]
    value = value_of(bits, name)
    if value - value == 0 and bits_of(value, name) == bits:
        short = decimal(value, _SHORT_FORM_DIGITS, 0)
        if bits_of(float(short), name) == bits:
            return short
        full = decimal(value, 2 + precision * 59 // 196, 3)
        if "." in full:
            return full
    return f"0x{bits:0{(width + 3) // 4}X}"


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
