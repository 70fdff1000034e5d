"""KernelContext: the floating-point state of a thread while it runs kernels, the same as TensorFlow's.

NumPy raises and warns of nothing: infinities and NaNs are results. Denormals, the numbers nearer to 0 than 1.2e-38 in
float32, are 0 as operands and as results, where the way to ask this system for that is known. Some processors take a
hundred times as long for denormals, and the ends of a sigmoid are full of them (TensorFlow: ScopedFlushDenormal in
tsl/platform/threadpool.cc). A new thread inherits the mode from the thread that starts it, an OpenMP thread too.
"""

from __future__ import annotations

import contextvars
import os
import sys
from collections.abc import Callable
from ctypes import PyDLL, byref, c_uint32
from functools import cache
from typing import Any

ModeWords = c_uint32 * 2  # modes of the two arithmetic units: x87's control word, SSE's MXCSR
KERNEL_MODES = byref(ModeWords(0x37F, 0x1F80 | 1 << 15 | 1 << 6))  # nothing traps; FTZ for results, DAZ for operands


class KernelContext:
    """Runs functions, for one thread at a time. NumPy's error state is a context variable: entering a context is
    cheaper than np.errstate."""

    def __init__(self, context: contextvars.Context | None = None) -> None:
        self._run = (context or _quiet().copy()).run
        self._get, self._set = _floating_point()
        self._before = byref(ModeWords())  # faster to pass than the array itself

    def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        before, set_modes = self._before, self._set
        self._get(before)
        try:  # entered before the modes are set: Ctrl-C may come between two calls
            set_modes(KERNEL_MODES)
            return self._run(function, *arguments)
        finally:
            set_modes(before)


@cache
def _quiet() -> contextvars.Context:
    import numpy as np  # imported late: the first run needs it

    context = contextvars.copy_context()
    context.run(np.seterr, all="ignore")
    return context


@cache
def _floating_point() -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """The functions that read and set the calling thread's modes."""
    if sys.platform == "linux" and os.uname().machine == "x86_64":
        try:
            library = PyDLL("libm.so.6")
            tell, change = library.fegetmode, library.fesetmode
        except (OSError, AttributeError):  # another C library than glibc 2.25
            pass
        else:
            tell.restype = change.restype = None
            return tell, change
    return lambda _: None, lambda _: None
