"""Precision: the element types of kernels, from the user's setting and the CPU's instructions."""

from __future__ import annotations

import warnings

from heald.api import errors

from .attributes import number
from .library import library

FAST = number("dnnl_cpu_isa_avx512_core_bf16")  # one bit for each extension that the CPU needs
SLOW = ("[plugin.onednn] precision = 'bf16': this CPU has no AVX512_BF16, or ONEDNN_MAX_CPU_ISA hides it; "
        "kernels compute in float32")
FLOAT, NARROW = ("float32",), ("float32", "bfloat16")


def element_types(precision: str) -> tuple[str, ...]:
    """The element types for a `precision` (plugin.Config). Warns if the CPU lacks instructions for "bf16"."""
    if precision == "f32":
        return FLOAT
    if has_fast_bfloat16():
        return NARROW
    if precision == "bf16":
        warnings.warn(SLOW, errors.HealdWarning, stacklevel=2)
    return FLOAT


def has_fast_bfloat16() -> bool:
    """True if the CPU has instructions that multiply bfloat16, and the library may use them."""
    return bool(library().c.dnnl_get_effective_cpu_isa() & FAST == FAST)
