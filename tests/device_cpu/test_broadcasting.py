"""Broadcasting ops against NumPy, and which axes a gradient is summed over."""

import numpy as np
import pytest
from harness.run_op import outputs
from heald.errors import InvalidArgument
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import TensorMetadata, ValueInfo, info
from heald_tf_ops.metadata import RULES
from hypothesis import given, settings
from hypothesis.extra import numpy as hnp

fast = settings(max_examples=60)
pairs = hnp.mutually_broadcastable_shapes(num_shapes=2, min_side=0, max_dims=4, max_side=3)


def run(op, *inputs):
    return outputs(op, *inputs)[0]


def vector(*dims):
    return ValueInfo(TensorMetadata(dtypes.int32, (len(dims),)), dims=dims)


@fast
@given(pairs)
def test_broadcast_args_and_broadcast_to_are_numpys(shapes):
    (a, b), together = shapes
    got = run("BroadcastArgs", np.array(a, np.int64), np.array(b, np.int64))
    assert tuple(got) == together
    x = np.arange(np.prod(a)).reshape(a)
    np.testing.assert_array_equal(run("BroadcastTo", x, got), np.broadcast_to(x, together))


@fast
@given(pairs)
def test_a_gradient_summed_over_its_axes_has_the_shape_of_its_operand(shapes):
    (a, b), together = shapes
    gradient = np.ones(together)
    axes = outputs("BroadcastGradientArgs", np.array(a, np.int32), np.array(b, np.int32))
    for shape, summed in zip((a, b), axes, strict=True):
        assert gradient.sum(tuple(summed), keepdims=True).size == np.prod(shape)


def test_texts_are_broadcast():
    assert run("BroadcastTo", np.array(b"a", object), np.int32([2])).tolist() == [b"a", b"a"]


@pytest.mark.parametrize(("shape", "target"), [((3,), (2,)), ((2, 3), (3,)), ((1,), (-1,)), ((3,), (1,))])
def test_a_shape_that_does_not_fit_is_refused(shape, target):
    with pytest.raises(InvalidArgument):
        run("BroadcastTo", np.zeros(shape), np.array(target, np.int32))


def test_an_output_has_the_known_lengths_of_input_and_target():
    x = info(dtypes.float32, (None, 3))
    assert RULES["BroadcastTo"].function({}, x, vector(2, None, None)).shape == (2, None, 3)
    assert RULES["BroadcastTo"].function({}, x, vector(None, 1, 3)).shape == (None, 1, 3)
