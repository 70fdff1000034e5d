"""Logarithm, sine and cosine of float32, bit for bit equal to the C library's. TensorFlow makes random numbers with the
C library. NumPy's functions sometimes differ in the last place.

After glibc (since 2.28) and its source, Arm's Optimized Routines (logf, sincosf): polynomials in float64, rounded once.
"""

from __future__ import annotations

import numpy as np

from ..element_types import Array

hexadecimal = float.fromhex
INVERSES = np.array([*map(hexadecimal, (  # of the middles of 16 intervals
    "0x1.661ec79f8f3bep+0", "0x1.571ed4aaf883dp+0", "0x1.49539f0f010bp+0", "0x1.3c995b0b80385p+0",
    "0x1.30d190c8864a5p+0", "0x1.25e227b0b8eap+0", "0x1.1bb4a4a1a343fp+0", "0x1.12358f08ae5bap+0",
    "0x1.0953f419900a7p+0", "0x1p+0", "0x1.e608cfd9a47acp-1", "0x1.ca4b31f026aap-1",
    "0x1.b2036576afce6p-1", "0x1.9c2d163a1aa2dp-1", "0x1.886e6037841edp-1", "0x1.767dcf5534862p-1"))])
LOGARITHMS = np.array([*map(hexadecimal, (  # of the middles
    "-0x1.57bf7808caadep-2", "-0x1.2bef0a7c06ddbp-2", "-0x1.01eae7f513a67p-2", "-0x1.b31d8a68224e9p-3",
    "-0x1.6574f0ac07758p-3", "-0x1.1aa2bc79c81p-3", "-0x1.a4e76ce8c0e5ep-4", "-0x1.1973c5a611cccp-4",
    "-0x1.252f438e10c1ep-5", "0x0p+0", "0x1.aa5aa5df25984p-5", "0x1.c5e53aa362eb4p-4",
    "0x1.526e57720db08p-3", "0x1.bc2860d22477p-3", "0x1.1058bc8a07ee1p-2", "0x1.4043057b6ee09p-2"))])
LOG = [*map(hexadecimal, ("-0x1.00ea348b88334p-2", "0x1.5575b0be00b6ap-2", "-0x1.ffffef20a4123p-2"))]
LN2 = hexadecimal("0x1.62e42fefa39efp-1")
LOWEST = 0x3F330000  # the bits of the first interval's lower end
QUARTER = hexadecimal("0x1.921fb54442d18p0")  # of a turn
PER_QUARTER = hexadecimal("0x1.45f306dc9c883p+23")  # 2**24 / QUARTER
COS = [*map(hexadecimal, ("0x1p0", "-0x1.ffffffd0c621cp-2", "0x1.55553e1068f19p-5", "-0x1.6c087e89a359dp-10",
                          "0x1.99343027bf8c3p-16"))]
SIN = [*map(hexadecimal, ("-0x1.555545995a603p-3", "0x1.1107605230bc4p-7", "-0x1.994eb3774cf24p-13"))]
SIGNS = np.array([1.0, -1.0, -1.0, 1.0])  # by quarter


def log(x: Array) -> Array:
    """The logarithms of normal numbers greater than 0."""
    bits = x.view(np.int32)
    offset = bits - LOWEST
    interval, exponent = offset >> 19 & 15, offset >> 23
    scaled = (bits - (exponent << 23)).view(np.float32).astype(np.float64)
    r = scaled * INVERSES[interval] - 1.0
    coarse = LOGARITHMS[interval] + exponent * LN2
    squared = r * r
    logarithm: Array = (LOG[0] * squared + (LOG[1] * r + LOG[2])) * squared + (coarse + r)
    return logarithm.astype(np.float32)


def sin_cos(x: Array) -> tuple[Array, Array]:
    """The sines and cosines of angles from 0 to 120."""
    wide = x.astype(np.float64)
    quarter = (wide * PER_QUARTER).astype(np.int32) + 0x800000 >> 24
    r = wide - quarter * QUARTER
    squared, turned = r * r, r * SIGNS[quarter & 3]
    cubed, fourth = squared * turned, squared * squared
    sine = turned + cubed * SIN[0] + cubed * squared * (SIN[1] + squared * SIN[2])
    cosine = COS[0] + squared * COS[1] + fourth * COS[2] + fourth * squared * (COS[3] + squared * COS[4])
    cosine = np.where(quarter & 2, -cosine, cosine)
    odd = quarter & 1 == 1
    first, second = np.where(odd, cosine, sine), np.where(odd, sine, cosine)
    return first.astype(np.float32), second.astype(np.float32)
