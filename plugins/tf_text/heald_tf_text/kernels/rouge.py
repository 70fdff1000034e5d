"""The kernel of ROUGE-L: a measure of two sequences by their longest common subsequence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from heald.api import Bind, InvalidArgument, Kernels

from ..rows import Array, rows


def rouge_l(_: Bind) -> Callable[..., Any]:
    def run(hypotheses: Array, hyp_splits: Array, references: Array, ref_splits: Array, alpha: Array) -> Any:
        if alpha > 1:
            raise InvalidArgument(f"alpha must be at most 1, given {alpha}")
        if len(hyp_splits) != len(ref_splits):
            raise InvalidArgument(f"{len(hyp_splits) - 1} hypotheses have {len(ref_splits) - 1} references")
        pairs = zip(rows(hypotheses, hyp_splits, "hyp_splits"), rows(references, ref_splits, "ref_splits"), strict=True)
        figures = [measures(hypothesis, reference, float(alpha)) for hypothesis, reference in pairs]
        return tuple(np.array([row[i] for row in figures], np.float32) for i in range(3))

    return run


def measures(hypothesis: list[Any], reference: list[Any], alpha: float) -> tuple[float, float, float]:
    """The F measure, precision and recall. A negative alpha weighs recall by the ratio of precision and recall."""
    if not hypothesis or not reference:
        return 0.0, 0.0, 0.0
    common = common_length(hypothesis, reference)
    precision, recall = common / len(hypothesis), common / len(reference)
    if not common:
        return 0.0, precision, recall
    if alpha < 0:
        beta = precision / recall
        return (1 + beta * beta) * recall * precision / (recall + beta * beta * precision), precision, recall
    denominator = (1 - alpha) * precision + alpha * recall
    return (precision * recall / denominator if denominator > 0 else 0.0), precision, recall


def common_length(a: Sequence[Any], z: Sequence[Any]) -> int:
    """The length of the longest common subsequence."""
    best = [0] * (len(z) + 1)
    for x in a:
        diagonal = 0
        for i, y in enumerate(z, 1):
            above = best[i]
            best[i] = diagonal + 1 if x == y else max(above, best[i - 1])
            diagonal = above
    return best[-1]


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("RougeL", allocates=True)(rouge_l)
