"""An output in a few lines: its type and shape, and its values, or statistics of many values."""

from __future__ import annotations

from typing import Any

from heald.api import TensorMetadata, dtypes
from heald.errors import printable

MAX_PRINTED_ELEMENTS = 32  # most elements printed in full
MAX_JSON_ELEMENTS = 1000  # most elements listed in JSON
TOP = 5


def head(name: str, array: Any) -> str:
    return f"{printable(name)} {TensorMetadata(dtypes.of_numpy(array.dtype), array.shape)}"


def lines(name: str, array: Any) -> list[str]:
    """Describe an output for people."""
    plain = _plain(array)
    many = plain.size > MAX_PRINTED_ELEMENTS and plain.dtype.kind in "fiub"
    body = _statistics_lines(plain) if many else _values_text(plain).splitlines()
    return [head(name, array), *(f"  {line}" for line in body)]


def as_json(array: Any, most: int | None = MAX_JSON_ELEMENTS) -> dict[str, Any]:
    """Describe an output for programs: the statistics, and the values.

    An output of more than `most` elements has the remedy instead of values; None is no bound.
    """
    description: dict[str, Any] = {"dtype": dtypes.of_numpy(array.dtype).name, "shape": list(array.shape)}
    plain = _plain(array)
    description |= statistics(array)
    if most is None or array.size <= most:
        description["values"] = _json_values(plain.tolist())
    else:
        description["left_out"] = f"{array.size} values, more than {most}: --output FILE.json or FILE.npz writes them"
    return description


def _plain(array: Any) -> Any:
    """Convert types that NumPy lacks to float32, which holds all their values."""
    return array.astype("float32") if array.dtype.kind == "V" else array


def _values_text(array: Any) -> str:
    import numpy as np

    if array.dtype == object and not array.shape:
        return str(array.item())
    return np.array2string(array, precision=6, threshold=MAX_PRINTED_ELEMENTS, max_line_width=100)


def _statistics(array: Any) -> dict[str, Any]:
    """Return min, mean, max of the finite elements, the count of the others, and the largest elements of a vector."""
    import numpy as np

    finite = array[np.isfinite(array)]
    statistics: dict[str, Any] = {}
    if finite.size:
        statistics = {"min": finite.min().item(), "mean": finite.mean(dtype=np.float64).item(),
                      "max": finite.max().item()}
    if finite.size < array.size:
        statistics["not_finite"] = array.size - finite.size
    if array.size > 1 and array.size == array.shape[-1] and array.ndim <= 2 and array.dtype.kind != "b":
        flat = array.reshape(-1)
        first = np.argsort(-flat.astype(np.float64), kind="stable")[:TOP]
        statistics["top"] = [{"index": int(i), "value": flat[i].item()} for i in first]
    return statistics


def statistics(array: Any) -> dict[str, Any]:
    """The range of an array's numbers; nothing of other values."""
    plain = _plain(array)
    return _statistics(plain) if array.size and plain.dtype.kind in "fiub" else {}


def _statistics_lines(array: Any) -> list[str]:
    statistics = _statistics(array)
    numbers = "  ".join(f"{key} {statistics[key]:.6g}" for key in ("min", "mean", "max") if key in statistics)
    lost = [f"{statistics['not_finite']} of {array.size} not finite"] if "not_finite" in statistics else []
    top = "  ".join(f"[{t['index']}] {t['value']:.6g}" for t in statistics.get("top", ()))
    return ["  ".join([numbers, *lost]), *([f"top {TOP}: {top}"] if top else [])]


def _json_values(values: Any) -> Any:
    """Convert bytes and complex numbers in nested lists to text: JSON lacks these types."""
    if isinstance(values, list):
        return [_json_values(item) for item in values]
    if isinstance(values, bytes):
        return values.decode("utf-8", "backslashreplace")
    return str(values) if isinstance(values, complex) else values
