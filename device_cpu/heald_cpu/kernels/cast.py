"""Casts between element types. Casts that C leaves undefined return TensorFlow's scalar results on x86."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import ml_dtypes
import numpy as np
from heald.api import Bind, DType, Kernels, dtypes

from ..element_types import FLOATS, INTEGERS, NUMBERS, Array

BYTE_FLOATS = ("float8_e5m2", "float8_e4m3fn")
NIBBLES = ("int4", "uint4")
PAIRS = (  # from, to
    ((*NUMBERS, "bool", *BYTE_FLOATS), (*NUMBERS, "bool")),
    (FLOATS + BYTE_FLOATS, BYTE_FLOATS),
    (INTEGERS + NIBBLES, NIBBLES),
    (NIBBLES, INTEGERS),
)
PART_DTYPES = {"complex64": dtypes.float32, "complex128": dtypes.float64}

Step = Callable[[Array], Array]


def register_kernels(kernels: Kernels) -> None:
    for sources, targets in PAIRS:
        kernels.kernel("Cast", dtypes={"SrcT": sources, "DstT": targets})(cast)
    same = kernels.kernel("Cast", when=lambda attrs: attrs["SrcT"] is attrs["DstT"], priority=1, alias={0: 0})
    same(lambda _: None)


def cast(b: Bind) -> Callable[[Array, Array], None]:
    steps = tuple(_steps(b.attrs["SrcT"], b.attrs["DstT"], truncate=b.attrs["Truncate"]))
    if not steps:
        return _assign

    def run(x: Array, out: Array) -> None:
        for step in steps:
            x = step(x)
        np.copyto(out, x, casting="unsafe")  # x may be a scalar, and assignment would check its range

    return run


def _assign(x: Array, out: Array) -> None:
    out[...] = x


def _steps(source: DType, target: DType, *, truncate: bool) -> Iterator[Step]:
    """The steps before NumPy's own cast, in order."""
    if source.kind == "c" and target.kind != "c":
        yield np.real
        source = PART_DTYPES[source.name]
    if source.name in BYTE_FLOATS and target.name not in BYTE_FLOATS:
        yield lambda x: x.astype(np.float32)
    if truncate and source.kind == "f" and target.kind == "f":
        surplus = _mantissa_bits(source) - _mantissa_bits(target)
        if surplus > 0:
            yield _truncation(source, surplus)
    if source.kind in "fc" and target.name == "uint32":
        yield lambda x: x.astype(np.int64)
    if source.kind in "fc" and target.name == "uint64":
        yield _as_uint64
    if source.name in NIBBLES and target.name in NIBBLES:
        yield lambda x: x.astype(np.int8)


def _mantissa_bits(dtype: DType) -> int:
    return int(ml_dtypes.finfo(dtype.numpy).nmant)  # type: ignore[no-untyped-call]


def _truncation(source: DType, bits: int) -> Step:
    """A step that sets the lowest bits of the mantissa to 0. NaN stays as it is: it might become infinity."""
    unsigned = np.dtype(f"u{source.itemsize}")
    mask = np.array((1 << 8 * source.itemsize) - (1 << bits), unsigned)

    def truncate(x: Array) -> Array:
        return np.where(np.isnan(x), x, (x.view(unsigned) & mask).view(x.dtype))

    return truncate


def _as_uint64(x: Array) -> Array:
    """Floats as uint64 bits, by the processor's conversion to int64: it returns the lowest integer for a float out of
    range."""
    low = x.astype(np.int64)
    return low | low >> 63 & (x - 2.0**63).astype(np.int64)
