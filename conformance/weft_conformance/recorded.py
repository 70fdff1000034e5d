"""Recorded cases as samples: what TensorFlow took once fits an op for certain, and in other element types as well."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
from weft.api import DType

from .golden import Case, cases

Array = np.ndarray[Any, Any]
FEW = 6  # cases of one op; the others differ from them in elements, or in types

LIKE = {  # ops of which nothing is recorded that TensorFlow takes, and those that take the same
    "BroadcastArgs": "BroadcastGradientArgs",
    "MatrixDiagV3": "MatrixDiagV2",
    "MatrixSetDiagV2": "MatrixSetDiagV3",
    "ScatterNdNonAliasingAdd": "TensorScatterAdd",
    "SparseSegmentSqrtN": "SparseSegmentMean",
    "SparseSegmentSqrtNWithNumSegments": "SparseSegmentMeanWithNumSegments",
}


def calls(op: Any, varied: str | None, dtype: DType | None) -> Iterator[tuple[dict[str, Any], tuple[Array, ...]]]:
    """Attributes and inputs of recorded cases, with `dtype` for the type attribute `varied` and elements of it."""
    taken = [case for case in cases().get(LIKE.get(op.name, op.name), ()) if _is_whole(case)]
    for case in islice(taken, FEW):
        attrs = _attributes(op, case)
        if varied is not None:
            attrs[varied] = _instead(attrs[varied], dtype)
        tensors = op.expand_inputs(attrs)
        if all(bool(t.dtype.itemsize) == (x.dtype != object) for t, x in zip(tensors, case.inputs, strict=True)):
            yield attrs, tuple(_as(x, t.dtype) for x, t in zip(case.inputs, tensors, strict=True))


def _is_whole(case: Case) -> bool:
    """Whether TensorFlow gave results, and leaves none of them open."""
    return case.outputs is not None and all(output is not None for output in case.outputs)


def _attributes(op: Any, case: Case) -> dict[str, Any]:
    recorded = case.graph().nodes["op"].attrs
    return {name: recorded.get(name, attr.default) for name, attr in op.attrs.items()}


def _instead(types: Any, dtype: DType | None) -> Any:
    """The type, or a list of it; a list that has it stays what it is, and so do strings in lists."""
    if not isinstance(types, tuple | list):
        return dtype
    return types if dtype in types else tuple(dtype if each.itemsize else each for each in types)


def _as(x: Array, dtype: DType) -> Array:
    """The elements in another type, as near as it has them; of complex ones the real part."""
    if x.dtype == dtype.numpy:
        return x
    if x.dtype.kind == "c" and dtype.kind != "c":
        x = x.real
    if dtype.kind not in "fc" and x.dtype.kind not in "biu":
        x = np.asarray(np.nan_to_num(x.astype(np.float64), posinf=9, neginf=-9))
    with np.errstate(all="ignore"):
        return (x.astype(np.int64) if dtype.kind in "iu" else x).astype(dtype.numpy)
