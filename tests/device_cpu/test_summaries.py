"""Summaries: the bytes that TensorFlow 2.21 writes."""

from base64 import b64decode

import numpy as np
import pytest
from builders.string_arrays import array, scalar
from harness.run_op import outputs
from heald.errors import InvalidArgument

HISTOGRAMS = [  # recorded: tag, values, the summary in base64
    (b"h", np.float32([1, 2, 3, -1, 0, -0.0, 1e20, 0.1]),
     "CpcCCgFoKpECCQAAAAAAAPC/EQAAAIAdrxVEGQAAAAAAACBAIQAAAIAdrxVEKQBkhgUqYz1IMnArFPrNviTwvwiZaRkVWu2/AAAAAAAAAAAR6i2BmZdx"
     "PTgvmkP51rc/JWf2Y0U5uj8ImWkZFVrtPysU+s2+JPA/3JTNLo11/z/gEfEMdE0BQGi8EDWaBwdADZzFoClVCUBMVJ8CI4MVRP///////+9/OnAAAAAA"
     "AAAAAAAAAAAAAPA/AAAAAAAAAAAAAAAAAAAAQAAAAAAAAAAAAAAAAAAA8D8AAAAAAAAAAAAAAAAAAPA/AAAAAAAAAAAAAAAAAADwPwAAAAAAAAAAAAAA"
     "AAAA8D8AAAAAAAAAAAAAAAAAAPA/"),
    (b"", np.zeros(0, np.int8), "CigqJgn////////vfxH////////v/zII////////7386CAAAAAAAAAAA"),
]


def value(tag, number=b"\0\0\x80?"):
    return b"\n" + bytes([len(tag) + 7]) + b"\n" + bytes([len(tag)]) + tag + b"\x15" + number


def summary(op, *inputs):
    return outputs(op, *inputs)[0][()]


def merge(*inputs):
    return summary("MergeSummary", *map(scalar, inputs))


@pytest.mark.parametrize(("tag", "values", "want"), HISTOGRAMS)
def test_a_histogram_is_the_bytes_that_tensorflow_writes(tag, values, want):
    assert summary("HistogramSummary", scalar(tag), values) == b64decode(want)


def test_the_largest_number_of_all_is_in_the_last_bucket():
    got = summary("HistogramSummary", scalar(b""), np.array([np.finfo(np.float64).max]))
    assert got.endswith(np.array([0, 1.0]).tobytes())


@pytest.mark.parametrize(("values", "what"), [([1, np.nan, np.inf], "Nan in summary histogram for: node"),
                                              ([[-np.inf], [np.nan]], "Infinity in Histogram for: node")])
def test_there_is_no_histogram_of_what_is_no_number(values, what):
    with pytest.raises(InvalidArgument, match=what):
        summary("HistogramSummary", scalar(b"h"), np.float32(values))


def test_numbers_are_summarised_as_floats_each_with_its_tag():
    assert summary("ScalarSummary", array([b"a", b""]), np.float64([0, 1e300])) == (
        b"\n\x08\n\x01a\x15\x00\x00\x00\x00\n\x05\x15\x00\x00\x80\x7f")
    assert summary("ScalarSummary", scalar(b"x"), np.uint64(2**63 + 1)) == b"\n\x08\n\x01x\x15\x00\x00\x00_"
    assert summary("ScalarSummary", array([]), np.float32([])) == b""


def test_merged_summaries_have_the_values_of_all_but_for_what_nobody_knows():
    a, b, c = map(value, (b"a", b"b", b"c"))
    assert merge(a, b + c, b"") == a + b + c
    assert summary("MergeSummary", array([a, b]), scalar(c)) == a + b + c
    assert merge(a + b"\x10\x01") == a
    untagged = b"\n\x05\x15\0\0\x80?"
    assert merge(untagged, untagged) == untagged * 2


@pytest.mark.parametrize("inputs", [[b"x"], [b"\n\x03\n\x01\xff"], [b"\n\x04*\x02\n\x05"], [b"\n\x04P\x01\n"]])
def test_bytes_that_are_no_summary_are_not_merged(inputs):
    with pytest.raises(InvalidArgument, match="Could not parse one of the summary inputs"):
        merge(*inputs)


def test_a_tag_stands_in_one_of_the_merged_summaries_only():
    with pytest.raises(InvalidArgument, match="Duplicate tag a found in summary inputs"):
        merge(value(b"a"), value(b"b") + value(b"a"))


def test_tags_that_do_not_go_with_the_values_are_refused():
    with pytest.raises(InvalidArgument, match="tags and values are not the same shape"):
        summary("ScalarSummary", array([b"a"]), np.float32(1))
    with pytest.raises(InvalidArgument, match="tags must be a scalar"):
        summary("HistogramSummary", array([b"h"]), np.float32(1))
