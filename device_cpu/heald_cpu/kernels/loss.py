"""Cross entropies of softmax: a loss per example, and its gradient for the logits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from heald.api import Bind, Kernels, errors

from ..element_types import FLOATS
from .staging import compute_dtype, nothing

Run = Callable[..., None]


def softmax_cross_entropy(b: Bind) -> Run:
    wide, shape = compute_dtype(b), b.outputs[1].dims

    def run(logits: Any, labels: Any, loss: Any, gradient: Any) -> None:
        wide_labels = labels.astype(wide, copy=False)
        shifted, exponentials, totals = _softmax(np.broadcast_to(logits.astype(wide, copy=False), shape))
        loss[...] = (wide_labels * (np.log(totals) - shifted)).sum(1)
        gradient[...] = exponentials / totals - wide_labels

    return run if shape[1] else lambda _logits, _labels, loss, _gradient: loss.fill(0)


def sparse_softmax_cross_entropy(b: Bind) -> Run:
    wide = compute_dtype(b)
    examples, classes = b.outputs[1].dims
    rows = np.arange(examples)

    def run(logits: Any, labels: Any, loss: Any, gradient: Any) -> None:
        outside = (labels < 0) | (labels >= classes)
        if outside.any():
            raise errors.InvalidArgument(f"Received a label value of {labels[outside][0]} which is outside the valid "
                                         f"range of [0, {classes})")
        shifted, exponentials, totals = _softmax(logits.astype(wide, copy=False))
        loss[...] = np.log(totals[:, 0]) - shifted[rows, labels]
        probabilities = exponentials / totals
        probabilities[rows, labels] -= 1
        gradient[...] = probabilities

    return run if examples else nothing


def _softmax(logits: Any) -> tuple[Any, Any, Any]:
    """Logits less the largest of their row, the exponentials of these differences, and the sums of the exponentials."""
    shifted = logits - logits.max(1, keepdims=True)
    exponentials = np.exp(shifted)
    return shifted, exponentials, exponentials.sum(1, keepdims=True)


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("SoftmaxCrossEntropyWithLogits", dtypes={"T": FLOATS})(softmax_cross_entropy)
    kernels.kernel("SparseSoftmaxCrossEntropyWithLogits", dtypes={"T": FLOATS})(sparse_softmax_cross_entropy)
