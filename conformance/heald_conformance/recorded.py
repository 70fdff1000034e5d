"""Recorded cases as samples: inputs that TensorFlow accepted fit an op for certain, in other element types as well."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from heald.api import DType, dtypes

from .golden import Case, cases, plain

Array = np.ndarray[Any, Any]
CASES_OF_AN_OP = 6  # cases of one op; further cases differ from these in elements or types only

LIKE = {  # ops without a recorded case that TensorFlow accepts, and an op whose inputs fit
    "BroadcastArgs": "BroadcastGradientArgs",
    "MatrixDiagV3": "MatrixDiagV2",
    "MatrixSetDiagV2": "MatrixSetDiagV3",
    "ScatterNdNonAliasingAdd": "TensorScatterAdd",
    **dict.fromkeys(("SparseSegmentSqrtN", "SparseSegmentSum"), "SparseSegmentMean"),
    "SparseSegmentSqrtNWithNumSegments": "SparseSegmentMeanWithNumSegments",
}


def calls(
    op: Any, varied: str | None, dtype: DType | None, recordings: Path | None = None
) -> Iterator[tuple[dict[str, Any], tuple[Array, ...]]]:
    """Attributes and inputs of recorded cases, with `dtype` as type attribute `varied` and elements of that type.
    `recordings` is the folder of a plugin's cases."""
    recorded_cases = [case for case in cases(recordings).get(LIKE.get(op.name, op.name), ()) if _is_whole(case)]
    for case in islice(recorded_cases, CASES_OF_AN_OP):
        attrs = _attributes(op, case)
        if varied is not None:
            attrs[varied] = _instead(attrs[varied], dtype)
        tensors = op.expand_inputs(attrs)
        if len(tensors) != len(case.inputs):
            continue  # an input is the output of another node, a resource for instance
        if all(bool(t.dtype.itemsize) == (x.dtype != object) for t, x in zip(tensors, case.inputs, strict=True)):
            yield attrs, tuple(_as(x, t.dtype) for x, t in zip(case.inputs, tensors, strict=True))


def _is_whole(case: Case) -> bool:
    """True if TensorFlow returned results and leaves none of them open."""
    return case.outputs is not None and all(output is not None for output in case.outputs)


def _attributes(op: Any, case: Case) -> dict[str, Any]:
    recorded = case.graph().nodes["op"].attrs
    return {name: recorded.get(name, attr.default) for name, attr in op.attrs.items()}


def _instead(types: Any, dtype: DType | None) -> Any:
    """Replace a type by `dtype`, and the types of a list except strings. A list that contains `dtype` stays."""
    if not isinstance(types, tuple | list):
        return dtype
    return types if dtype in types else tuple(dtype if dtype_.itemsize else dtype_ for dtype_ in types)


def _as(x: Array, dtype: DType) -> Array:
    """Convert elements to another type so that different elements stay different.

    Complex numbers become their real part. Floats become integers times four, rounded. Odd integers become True.
    """
    if x.dtype == dtype.numpy:
        return x
    x = plain(x)
    if dtype.kind == "q":
        return _as(x, dtypes.of_numpy(dtype.numpy[0])).view(dtype.numpy)
    if x.dtype.kind == "c" and dtype.kind != "c":
        x = x.real
    with np.errstate(all="ignore"):
        if dtype.kind in "fc":
            return x.astype(dtype.numpy)
        if x.dtype.kind not in "biu":
            x = np.rint(np.nan_to_num(4 * x.astype(np.float64), posinf=9, neginf=-9))
        integers = np.asarray(x).astype(np.int64)
        return np.asarray(integers % 2 if dtype.kind == "b" else integers).astype(dtype.numpy)
