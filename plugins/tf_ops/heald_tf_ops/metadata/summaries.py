"""Metadata of summaries: messages about the progress of a training."""

from __future__ import annotations

from heald.api import Attrs, ValueInfo, dtypes, info

from .rules import rule
from .shapes import check_single, same_shape


@rule("ScalarSummary")
def scalar_summary(_: Attrs, tags: ValueInfo, values: ValueInfo) -> ValueInfo:
    same_shape((tags.shape, values.shape), "tags and values are not the same shape")
    return info(dtypes.string, ())


@rule("HistogramSummary")
def histogram_summary(_: Attrs, tag: ValueInfo, __: ValueInfo) -> ValueInfo:
    check_single(tag, "tags")
    return info(dtypes.string, ())


@rule("MergeSummary")
def merge_summary(_: Attrs, *__: ValueInfo) -> ValueInfo:
    return info(dtypes.string, ())
