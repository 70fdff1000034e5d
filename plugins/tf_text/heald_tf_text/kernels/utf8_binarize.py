"""The kernel that writes the code points of a token as bits, the lowest first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from heald.api import Bind, Kernels

from ..rows import Array
from ..utf8 import ILL_FORMED, characters, code_point


def binarize(b: Bind) -> Callable[..., Any]:
    length, bits, instead = (b.attrs[name] for name in ("word_length", "bits_per_char", "replacement_char"))
    shifts = np.minimum(np.arange(bits), 63)

    def run(tokens: Array, out: Array) -> None:
        rows = out.reshape(tokens.size, length, bits)
        rows.fill(0)
        for row, token in zip(rows, tokens.flat, strict=True):
            points = [code_point(part) for part in characters(token)[:length]]
            numbers = np.array([instead if point == ILL_FORMED else point for point in points], np.int64)
            row[: len(points)] = numbers[:, None] >> shifts & 1

    return run


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("TFText>Utf8Binarize")(binarize)
