"""A retained array stays as it was: no other kernel, no later run and no user writes it."""

from __future__ import annotations

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from heald.errors import Unimplemented
from heald.runtime.values import dtypes
from plugins_for_tests import kept_plugin

CONFIG = kept_plugin.CONFIG | {"debug": {"poison": True}}
X = np.float32([1, 2, 3])
KEEPS = ("Kept>Keep", "Kept>KeepLater")


@pytest.fixture(autouse=True)
def retained_arrays():
    kept_plugin.kept.clear()
    return kept_plugin.kept


def runs(*nodes, fetches="y", count=3):
    """The graph run with other feeds each time, which are overwritten afterwards, as are the results."""
    step = heald.Session(graph(placeholder("x", (3,)), *nodes), CONFIG).make_callable(fetches, ["x"])
    for i in range(count):
        x = X + i
        for result in np.atleast_2d(step(x)):
            result[:] = -1
        x[:] = -2
    return [(X + i).tolist() for i in range(count)]


@pytest.mark.parametrize("op", KEEPS)
@pytest.mark.parametrize("between", [
    (node("s", "Neg", "x"),),
    (node("c", "Neg", "x"), node("s", "Identity", "c")),
    (node("c", "Neg", "x"), node("v", "Identity", "c"), node("s", "Reshape", "v", "shape", Tshape=dtypes.int32),
     const("shape", [-1], np.int32)),
], ids=["a buffer", "a view", "a view of a view"])
def test_a_value_of_the_run_is_no_buffer_of_the_frame(retained_arrays, op, between):
    after = [node(f"n{i}", "Neg", f"n{i - 1}" if i else "k") for i in range(4)]
    xs = runs(*between, node("k", op, "s"), *after, node("y", "Sub", "n3", "s"))
    assert [(-x).tolist() for x in retained_arrays["k"]] == xs


@pytest.mark.parametrize("op", KEEPS)
@pytest.mark.parametrize("nodes", [
    (node("k", "{}", "x"), node("y", "Neg", "k")),
    (node("v", "Identity", "x"), node("k", "{}", "v"), node("y", "Neg", "k")),
    (node("k", "{}", "x"), node("a", "AddV2", "x", "x"), node("b", "AddV2", "x", "a"), node("y", "Sub", "k", "b")),
], ids=["itself", "a view of it", "a small one with many users"])
def test_a_copy_of_a_feed_is_retained(retained_arrays, op, nodes):
    xs = runs(*(n.replace(op=n.op.format(op)) for n in nodes))
    assert [x.tolist() for x in retained_arrays["k"]] == xs


def test_a_copy_of_a_feed_of_any_shape_is_retained(retained_arrays):
    session = heald.Session(graph(placeholder("x"), node("k", "Kept>Keep", "x"), node("y", "Neg", "k")), CONFIG)
    fed = [np.arange(n, dtype=np.float32) for n in range(1, 12)]  # beyond the variants for one shape each
    for x in fed:
        session.run("y", {"x": x})
        x[:] = -1
    assert [x.tolist() for x in retained_arrays["k"]] == [list(range(n)) for n in range(1, 12)]


@pytest.mark.parametrize("op", KEEPS)
def test_the_user_gets_a_copy_of_a_retained_result(retained_arrays, op):
    xs = runs(node("a", "Neg", "x"), node("v", "Identity", "a"), node("k", op, "a"), fetches=["v", "a", "k"])
    assert [(-x).tolist() for x in retained_arrays["k"]] == xs


def test_a_constant_is_retained_as_it_is(retained_arrays):
    runs(const("c", [4, 5, 6]), node("k", "Kept>Keep", "c"), node("y", "AddV2", "k", "x"), fetches=["y", "c"])
    assert [x.tolist() for x in retained_arrays["k"]] == [[4, 5, 6]] * 3
    assert retained_arrays["k"][0] is retained_arrays["k"][1]


def test_arguments_in_the_memory_of_a_device_are_not_retained():
    nodes = [placeholder("x", (3,)), node("k", "Kept>KeepOnDevice", "x", device="EXAMPLE:0")]
    with pytest.raises(Unimplemented, match="Kept>KeepOnDevice retains inputs in the memory of EXAMPLE") as caught:
        heald.Session(graph(*nodes), CONFIG).run("k", {"x": X})
    assert caught.value.node == "k"
