"""Columns as the values that texts show: Python's numbers and texts, None, and lists of these."""

from __future__ import annotations

from typing import Any

SCALARS = frozenset((str, int, float, type(None)))  # that are cells as they are


def plain_values(column: Any) -> list[Any]:
    """A column as Python values: float32 by its shortest text, bytes as text."""
    import numpy as np

    if not hasattr(column, "dtype"):
        return [plain_values(value) if getattr(value, "ndim", 0) else _plain(value) for value in column]
    if column.dtype.kind == "V":  # bfloat16 and kin
        column = column.astype(np.float32)
    if column.dtype.kind == "f" and column.dtype.itemsize < 8:
        column = column.astype(str).astype(np.float64)
    return [_plain(value) for value in column.tolist()]


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return str(value) if isinstance(value, complex) else value
