"""Precision: which types of elements are computed with, by what the user wants and what the CPU is fast with."""

from __future__ import annotations

import warnings

from weft.api import errors

from .attributes import number
from .library import library

FAST = number("dnnl_cpu_isa_avx512_core_bf16")  # a bit for each extension that there has to be
SLOW = ("[plugin.onednn] precision = 'bf16': this CPU has no AVX512_BF16, or ONEDNN_MAX_CPU_ISA hides it; "
        "float32 is computed with")
FLOAT, NARROW = ("float32",), ("float32", "bfloat16")


def element_types(precision: str) -> tuple[str, ...]:
    """Of a setting: see plugin.Config. Warns where that cannot be had."""
    if precision == "f32":
        return FLOAT
    if has_fast_bfloat16():
        return NARROW
    if precision == "bf16":
        warnings.warn(SLOW, errors.WeftWarning, stacklevel=2)
    return FLOAT


def has_fast_bfloat16() -> bool:
    """Whether the CPU multiplies numbers of bfloat16 itself, as far as the library may use that."""
    return bool(library().c.dnnl_get_effective_cpu_isa() & FAST == FAST)
