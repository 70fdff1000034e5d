"""Kernels run with NumPy's floating-point errors ignored: infinities and NaNs are results, as in TensorFlow."""

from __future__ import annotations

import contextvars
from functools import cache


def quiet_context() -> contextvars.Context:
    """A context in which NumPy raises and warns of nothing. Its error state is a context variable: entering a context
    is cheaper than np.errstate."""
    return _quiet().copy()


@cache
def _quiet() -> contextvars.Context:
    import numpy as np  # not before there is something to run

    context = contextvars.copy_context()
    context.run(np.seterr, all="ignore")
    return context
