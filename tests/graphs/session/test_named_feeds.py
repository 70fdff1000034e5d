"""Inputs by the caller's names: errors use them, and several of them may be one tensor."""

import heald
import numpy as np
import pytest
from builders.graphs import node, placeholder
from heald.errors import InvalidArgument

AGE = placeholder("serving_default_age", (None, 1))


@pytest.fixture
def session():
    with heald.Session(heald.Graph([AGE, node("y", "Neg", AGE.name)])) as session:
        yield session


@pytest.mark.parametrize(("value", "message"), [
    (np.zeros((2, 3), np.float32), r"feed 'age' has shape \[2,3\], the tensor's is \[\?,1\]"),
    (np.zeros((1, 1), np.complex64), "feed 'age' is complex64, the tensor is float32"),
    ("old", "feed 'age' is str of .*, the tensor is float32"),
])
def test_an_error_about_a_feed_has_the_callers_name_of_it(session, value, message):
    step = session.make_callable("y", {"age": "serving_default_age:0"})
    assert step(np.ones((1, 1), np.float32)) == -1
    with pytest.raises(InvalidArgument, match=message):
        step(value)
    with pytest.raises(InvalidArgument, match=r"takes 1 arrays \(age\), 2 given"):
        step(value, value)


def test_an_error_of_a_kernel_stays_the_kernels():
    nodes = [placeholder("x", (None,)), placeholder("z", (None,)), node("y", "AddV2", "x", "z")]
    with heald.Session(heald.Graph(nodes)) as session:
        step = session.make_callable("y", {"a": "x", "b": "z"})
        with pytest.raises(InvalidArgument, match=r"\[2\]") as caught:
            step(np.ones(2, np.float32), np.ones(3, np.float32))
        assert caught.value.node == "y"


def test_several_names_of_one_tensor_take_one_value(session):
    step = session.make_callable(["y"], {"age": "serving_default_age:0", "years": "serving_default_age"})
    assert step([[3]], np.array([[3]], np.float32))[0] == -3
    assert np.isnan(step([[np.nan]], [[np.nan]])[0])
    for other in ([[4]], [[3], [3]]):
        with pytest.raises(InvalidArgument, match="inputs 'age' and 'years' are one tensor, 'serving_default_age:0'"):
            step([[3]], other)
    with pytest.raises(InvalidArgument, match="feed 'years' has shape"):
        step([[3]], [3])
    with pytest.raises(InvalidArgument, match="feed 'age' has shape"):
        step(*[np.zeros((2, 3), np.float32)] * 2)
