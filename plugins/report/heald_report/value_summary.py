"""A value as a page shows it: type, statistics, histogram, largest and first elements, picture."""

from __future__ import annotations

import base64
from typing import Any

from .node_table import shown_text

BINS = 32  # of a histogram
MOST_ELEMENTS = 64  # of a value that the page shows as text


def value_summary(value: Any) -> dict[str, Any]:
    """Return type, statistics, histogram, largest and first elements, and picture of an array, as JSON's values."""
    import numpy as np
    from heald.api import dtypes
    from heald.runtime.support import tensor_picture
    from heald_tools.summary import statistics

    png = tensor_picture.tensor_png(value)
    return {"type": f"{dtypes.of_numpy(value.dtype).name}{[*value.shape]}", "count": int(value.size),
            "statistics": _statistics(value), "histogram": _histogram(value),
            "top": [[str(row["index"]), f"{row['value']:.6g}"] for row in statistics(value).get("top", ())],
            "elements": [shown_text(_element_text(element)) for element in value.ravel()[:MOST_ELEMENTS]],
            "picture": None if png is None else base64.b64encode(png).decode(),
            "is_cut": bool(np.size(value) > MOST_ELEMENTS)}


def _element_text(element: Any) -> str:
    if isinstance(element, bytes):
        return element.decode("utf-8", "backslashreplace")
    return str(element)


def _finite(value: Any) -> Any:
    """Return the finite elements as float64, None for elements that are no real numbers."""
    import numpy as np

    if value.dtype.kind not in "biuf" and "float" not in value.dtype.name:  # bfloat16 is of no kind of NumPy's
        return None
    wide = value.ravel().astype(np.float64)
    return wide[np.isfinite(wide)]


def _statistics(value: Any) -> list[list[str]]:
    import numpy as np

    finite = _finite(value)
    if finite is None:
        return []
    rows = {"NaN or infinite": value.size - finite.size, "zeros": int((finite == 0).sum())}
    if finite.size:
        with np.errstate(over="ignore", invalid="ignore"):  # sums of numbers near the largest
            rows |= {"least": finite.min(), "mean": finite.mean(), "largest": finite.max(), "deviation": finite.std()}
    return [[name, f"{number:.6g}"] for name, number in rows.items()]


def _histogram(value: Any) -> dict[str, Any] | None:
    """Return counts and the two ends, None without two different finite elements."""
    import numpy as np

    finite = _finite(value)
    if finite is None or finite.size < 2:
        return None
    with np.errstate(over="ignore"):
        span = finite.max() - finite.min()
    if not 0 < span < np.inf:
        return None
    try:
        counts, edges = np.histogram(finite, BINS)
    except ValueError:  # the elements are too close to each other for so many bins
        return None
    return {"counts": counts.tolist(), "least": f"{edges[0]:.4g}", "largest": f"{edges[-1]:.4g}"}
