"""Ops that reorder elements along dimensions, against NumPy."""

import numpy as np
import pytest
from harness.run_op import outputs
from heald.errors import InvalidArgument

x234 = np.arange(24).reshape(2, 3, 4)


def run(op, *inputs, **attrs):
    return outputs(op, *inputs, **attrs)[0].tolist()


def test_reverse_flips_the_named_axes():
    assert run("ReverseV2", x234, np.int32([-1, 0])) == np.flip(x234, (0, 2)).tolist()
    assert run("Reverse", x234, np.array([False, True, False])) == np.flip(x234, 1).tolist()
    assert run("ReverseV2", np.array([b"a", b"b"], object), np.int64([0])) == [b"b", b"a"]
    assert run("ReverseV2", np.float32(1), np.int32([])) == 1


def test_rolls_of_one_axis_add_up():
    assert run("Roll", x234, np.int32([1, 5, -1]), np.int32([0, 2, -1])) == np.roll(x234, (1, 4), (0, 2)).tolist()
    assert run("Roll", x234, np.int32(-4), np.int64(1)) == np.roll(x234, -4, 1).tolist()
    assert run("Roll", np.zeros((0, 2)), np.int32(3), np.int32(0)) == []


def test_a_sequence_is_reversed_up_to_its_length():
    x = np.int32([[1, 2, 3], [4, 5, 6]])
    assert run("ReverseSequence", x, np.int64([2, 0]), seq_dim=1) == [[2, 1, 3], [4, 5, 6]]
    assert run("ReverseSequence", x.T, np.int64([3, 1]), seq_dim=0, batch_dim=1) == [[3, 4], [2, 5], [1, 6]]


def test_dimensions_are_renamed_between_layouts():
    five = {"src_format": "NDHWC", "dst_format": "NCDHW"}
    assert run("DataFormatDimMap", np.int32([-1, 0, 1]), **five) == [1, 0, 2]
    assert run("DataFormatVecPermute", np.int32([1, 2, 3, 4, 5]), **five) == [1, 5, 2, 3, 4]
    assert run("DataFormatVecPermute", np.int32([8, 9]), src_format="NHWC", dst_format="NCWH") == [9, 8]


@pytest.mark.parametrize(("op", "inputs", "attrs"), [
    ("ReverseV2", [x234, np.int32([3])], {}), ("ReverseV2", [x234, np.int32([1, -2])], {}),
    ("Reverse", [x234, np.array([True])], {}), ("Roll", [np.float32(1), np.int32(1), np.int32(0)], {}),
    ("Roll", [x234, np.int32([1, 2]), np.int32([0])], {}), ("Roll", [x234, np.int32(1), np.int32(3)], {}),
    ("ReverseSequence", [x234, np.int64([1, 5])], {"seq_dim": 2}),
    ("ReverseSequence", [x234, np.int64([-1, 1])], {"seq_dim": 2}),
    ("ReverseSequence", [x234, np.int64([1])], {"seq_dim": 2}),
    ("ReverseSequence", [x234, np.int64([1, 1])], {"seq_dim": 0}),
    ("DataFormatDimMap", [np.int32([4])], {}), ("DataFormatDimMap", [np.int32([0])], {"src_format": "NHWX"}),
    ("DataFormatVecPermute", [np.int32([1, 2, 3])], {}),
])
def test_an_input_that_does_not_fit_is_refused(op, inputs, attrs):
    with pytest.raises(InvalidArgument):
        run(op, *inputs, **attrs)
