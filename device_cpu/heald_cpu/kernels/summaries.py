"""Kernels that write summaries, protobuf messages that TensorBoard reads, and merge several into one.

A Summary has values; a value has a tag and a number, a histogram, an image, a sound or a tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np
from heald.api import Bind, Kernels, errors, wire

from ..element_types import REAL, Array

Run = Callable[..., None]
Nested = Mapping[int, Any]  # messages within a message, by the number of their field

VALUE = 1  # of a Summary
TAG, SIMPLE_VALUE, HISTOGRAM = 1, 2, 5  # of a value
MIN, MAX, NUM, SUM, SUM_SQUARES, BUCKET_LIMIT, BUCKET = range(1, 8)  # of a histogram
WITHIN_VALUE: Nested = {4: {}, HISTOGRAM: {}, 6: {}, 8: {2: {2: {}}}, 9: {1: {}}}  # fields that must be messages, too
LEAST, MOST, GROWTH = 1e-12, 1e20, 1.1  # of the limits of buckets, on both sides of 0
LARGEST_FLOAT64 = float(np.finfo(np.float64).max)


def scalar_summary(_: Bind) -> Run:
    def run(tags: Array, values: Array, out: Array) -> None:
        numbers = values.astype(np.float32).reshape(-1).tolist()
        out.fill(b"".join(_value(tag, wire.put_float(SIMPLE_VALUE, number))
                          for tag, number in zip(tags.reshape(-1), numbers, strict=True)))

    return run


def _value(tag: bytes, what: bytes) -> bytes:
    return wire.put_bytes(VALUE, (wire.put_bytes(TAG, tag) if tag else b"") + what)


def histogram_summary(b: Bind) -> Run:
    def run(tag: Array, values: Array, out: Array) -> None:
        numbers = values.astype(np.float64).reshape(-1)
        wrong = numbers[~np.isfinite(numbers)]
        if wrong.size:
            what = "Nan in summary histogram" if np.isnan(wrong[0]) else "Infinity in Histogram"
            raise errors.InvalidArgument(f"{what} for: {b.node}")
        out.fill(_value(tag.item(), wire.put_bytes(HISTOGRAM, _histogram(numbers))))

    return run


@cache
def _limits() -> Array:
    """The upper limits of buckets, in ascending order."""
    growing = [LEAST]
    while growing[-1] * GROWTH < MOST:
        growing.append(growing[-1] * GROWTH)
    above = np.array([*growing, LARGEST_FLOAT64])
    return np.concatenate((-above[::-1], [0], above))


def _histogram(numbers: Array) -> bytes:
    """A histogram message. Sums are taken from the first number to the last. Of adjacent empty buckets only the last
    one is kept, with its limit."""
    limits = _limits()
    places = np.minimum(limits.searchsorted(numbers, "right"), len(limits) - 1)
    counts = np.bincount(places, minlength=len(limits))
    is_written = (counts > 0) | np.append(counts[1:] > 0, True)
    least, greatest = LARGEST_FLOAT64, -LARGEST_FLOAT64
    if numbers.size:
        least, greatest = numbers[numbers.argmin()], numbers[numbers.argmax()]
    sums = [0.0 + terms.cumsum()[-1] if terms.size else 0.0 for terms in (numbers, np.square(numbers))]
    return b"".join((
        *(wire.put_double(field, float(number))
          for field, number in (
              (MIN, least), (MAX, greatest), (NUM, numbers.size), (SUM, sums[0]), (SUM_SQUARES, sums[1]))
          if number or np.signbit(number)),  # a missing field means zero
        wire.put_bytes(BUCKET_LIMIT, limits[is_written].astype("<f8").tobytes()),
        wire.put_bytes(BUCKET, counts[is_written].astype("<f8").tobytes()),
    ))


def merge_summary(_: Bind) -> Run:
    def run(*arrays: Array) -> None:
        merged, tags = [], set()
        for raw in (element for x in arrays[:-1] for element in x.flat):
            for tag, value in _summary_values(raw):
                if tag in tags:
                    raise errors.InvalidArgument(f"Duplicate tag {tag} found in summary inputs")
                tags.update({tag} - {""})
                merged.append(wire.put_bytes(VALUE, value))
        arrays[-1].fill(b"".join(merged))

    return run


def _summary_values(raw: bytes) -> Iterator[tuple[str, bytes]]:
    """The values of a Summary, each with its tag."""
    try:
        for number, kind, start, stop in wire.fields(raw, 0, len(raw)):
            if (number, kind) == (VALUE, wire.BYTES):
                yield _tag(raw, start, stop), raw[start:stop]
    except errors.DataLoss as error:
        raise errors.InvalidArgument(f"Could not parse one of the summary inputs: {error}") from None


def _tag(raw: bytes, start: int, stop: int) -> str:
    """The tag of the value at [start, stop). All fields of the value are checked. Raises DataLoss."""
    tag = ""
    for number, kind, first, last in wire.fields(raw, start, stop):
        if kind == wire.BYTES and number in WITHIN_VALUE:
            _check_message(raw, first, last, WITHIN_VALUE[number])
        elif kind == wire.BYTES and number == TAG:
            tag = wire.text(raw, first, last)
    return tag


def _check_message(raw: bytes, start: int, stop: int, within: Nested) -> None:
    for number, kind, first, last in wire.fields(raw, start, stop):
        if kind == wire.BYTES and number in within:
            _check_message(raw, first, last, within[number])


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("ScalarSummary", dtypes={"T": REAL})(scalar_summary)
    kernels.kernel("HistogramSummary", dtypes={"T": REAL})(histogram_summary)
    kernels.kernel("MergeSummary")(merge_summary)
