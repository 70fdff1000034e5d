"""Values that JSON lacks: NaN and the infinities."""

from __future__ import annotations

from typing import Any


def replace_by_null(value: Any, nulls: list[float]) -> Any:
    """Return a value of lists, dictionaries and numbers with None for each number that JSON lacks.

    These numbers are added to `nulls`.
    """
    if isinstance(value, dict):
        return {key: replace_by_null(item, nulls) for key, item in value.items()}
    if isinstance(value, list):
        return [replace_by_null(item, nulls) for item in value]
    if isinstance(value, float) and value - value != 0:
        nulls.append(value)
        return None
    return value
