"""Values of JSON as inputs: each means the same in every batch, and a value that fits no input is told by its row."""

import json

import numpy as np
import pytest
from builders.graphs import node, placeholder
from heald.api import TensorMetadata
from heald.runtime.values import dtypes
from heald_tools.rows.columns import Binding
from heald_tools.rows.feed import make_feeds
from heald_tools.rows.row_batch import RowBatch
from hypothesis import given
from hypothesis import strategies as st

NO_VALUE = "no value for input 'x'"


def no_number(value, dtype):
    return f"'{value}' is no {dtype} for input 'x'"


def no_shape(shape, target):
    return f"a value of shape {shape}, where input 'x' takes {target}"


# type and shape of an input, values of JSON, answers to the good ones, reasons of the bad ones by row
VALUES = {
    "texts of integers": (dtypes.int32, (None,), ["1", "1.5", "x", "99999999999", ""], [1], {
        2: no_number("1.5", "int32"), 3: no_number("x", "int32"), 4: no_number("99999999999", "int32"),
        5: "an empty cell is no int32 for input 'x'"}),
    "integers": (dtypes.int32, (None,), [1, 1.5, 2.0, None, 1 << 40, "3", True, float("nan"), 1e10], [1, 2, 3, 1], {
        2: no_number("1.5", "int32"), 4: NO_VALUE, 5: no_number(1 << 40, "int32"), 8: no_number("nan", "int32"),
        9: no_number("10000000000.0", "int32")}),
    "bytes": (dtypes.uint8, (None,), [255, 256, -1, -1.0, "255", 3.0], [255, 255, 3], {
        2: no_number("256", "uint8"), 3: no_number("-1", "uint8"), 4: no_number("-1.0", "uint8")}),
    "floats": (dtypes.float32, (None,), [1, "0", 0, None, "", "x", True, [1], 1e300], [1, 0, 0, None, None, 1, None], {
        6: no_number("x", "float32"), 8: no_shape([1], [])}),
    "short floats": (dtypes.bfloat16, (None,), ["", "1.5", None, 2, "x"], [None, 1.5, None, 2], {
        5: no_number("x", "bfloat16")}),
    "complex numbers": (dtypes.complex64, (None,), ["1+2j", "x", 2], ["(1+2j)", "(2+0j)"], {
        2: no_number("x", "complex64")}),
    "texts of truth": (dtypes.bool_, (None,), ["true", "0", "maybe", "Yes", ""], [True, False, True], {
        3: no_number("maybe", "bool"), 5: "an empty cell is no bool for input 'x'"}),
    "truth of several types": (dtypes.bool_, (None,), ["true", False, None, 1, 0.0, 2, {"a": 1}], [
        True, False, True, False], {3: NO_VALUE, 6: no_number("2", "bool"), 7: no_number("{'a': 1}", "bool")}),
    "lists of truth": (dtypes.bool_, (None, 2), [["false", "true"], [True, "0"], [2, 0], [None, True]], [
        [False, True], [True, False]], {3: no_number("[2, 0]", "bool"), 4: no_number("[None, True]", "bool")}),
    "lists of integers": (dtypes.int32, (None, 2), [["1", "2"], [1, "3"], [1.0, 2], [1.5, 2]], [
        [1, 2], [1, 3], [1, 2]], {4: no_number("[1.5, 2]", "int32")}),
    "lists of several lengths": (dtypes.float32, (None, 2), [None, [1, 2, 3], [1, 2], 7, [[1, 2]], [1, None]], [
        [1, 2], [1, None]], {1: NO_VALUE, 2: no_shape([3], [2]), 4: no_shape([], [2]), 5: no_shape([1, 2], [2])}),
    "lists of one": (dtypes.float32, (None, 1), [1, [2], [3, 4], "5"], [1, 2, 5], {3: no_shape([2], [1])}),
    "lists of any length": (dtypes.float32, (None, None), [[1, 2], [1, 2, 3], [3, 4]], [[1, 2], [3, 4]], {
        2: "a value of shape [3] beside others of [2]"}),
    "one list at a time": (dtypes.int32, (2,), [[1, 2], [1, 2, 3], ["3", 4], [1.5, 1]], [[1, 2], [3, 4]], {
        2: no_shape([3], [2]), 4: no_number("[1.5, 1]", "int32")}),
    "texts": (dtypes.string, (None,), ["a", "\ud800", 1.5, True, None, {"a": 1}, ["b"]], ["a", "1.5", "True"], {
        2: no_number("\\ud800", "string"), 5: NO_VALUE, 6: no_number("{'a': 1}", "string"), 7: no_shape([1], [])}),
    "lists of texts": (dtypes.string, (None, 2), [["a", "b"], ["c"], [None, "x"], ["d", 2]], [["a", "b"], ["d", "2"]], {
        2: no_shape([1], [2]), 3: no_number("[None, 'x']", "string")}),
    "long texts": (dtypes.int32, (None,), ["9" * 50], [], {1: no_number("9" * 40, "int32")}),
}


@pytest.mark.parametrize("batch", [1, 2, 32])
@pytest.mark.parametrize("case", VALUES.values(), ids=VALUES)
def test_values_of_json_mean_the_same_in_every_batch(command, saved, tmp_path, case, batch):
    dtype, shape, values, answers, reasons = case
    if batch == 1 and "beside" in "".join(reasons.values()):
        pytest.skip("each row alone is right")
    model = saved(placeholder("x", shape, dtype), node("y", "Identity", "x", T=dtype))
    path = tmp_path / "x.jsonl"
    path.write_text("".join(json.dumps({"x": value}) + "\n" for value in values), "utf-8")
    options = ["--batch", str(batch)] if shape[0] is None else []
    done = command("run", model, "--input", path, "--json", *options)
    assert [json.loads(line)["y"] for line in done.out.splitlines()] == answers
    told = [line.removeprefix(f"warning: {path}:") for line in done.err.splitlines() if line.endswith("; left out")]
    assert sorted(told) == [f"{row}: {reason}; left out" for row, reason in sorted(reasons.items())]


SOME_VALUES = st.sampled_from(["true", "0", "", "x", "1.5", "2", False, True, 0, 1, 2, 2.0, 1.5, None, [1], [], {},
                               ["1"], float("inf"), 1 << 70, [[1]]])
TYPES = [dtypes.bool_, dtypes.int32, dtypes.float32, dtypes.bfloat16, dtypes.complex64, dtypes.string]


@given(values=st.lists(SOME_VALUES, max_size=6), dtype=st.sampled_from(TYPES), size=st.integers(1, 6),
       shape=st.sampled_from([(None,), (None, 1)]))
def test_any_values_become_feeds_or_faults(values, dtype, size, shape):
    rows = RowBatch({"file": ["f"] * len(values), "row": [*range(len(values))]}, {"x": values})
    bindings = [Binding("x", TensorMetadata(dtype, shape), ("x",), batched=True)]
    together = make_feeds(rows, bindings)
    parts = [make_feeds(rows.part(start, start + size), bindings) for start in range(0, len(values), size)]
    assert sorted(fault for part in parts for fault in part.faults) == sorted(together.faults)
    assert len(together.rows) + len(together.faults) == len(values)
    arrays = [part.arrays["x"] for part in parts if len(part.rows)]
    if arrays:
        parts_array, array = np.concatenate(arrays), together.arrays["x"]
        assert parts_array.dtype == array.dtype
        assert [repr(value) for value in parts_array.tolist()] == [repr(value) for value in array.tolist()]
