"""Shapes that are fed, shapes that depend on values, and the links that are kept for them."""

from __future__ import annotations

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from heald.errors import InvalidArgument
from heald.runtime.service.prepared_step import LARGEST_VARIANT_COUNT
from heald.runtime.values import dtypes
from hypothesis import given, settings
from hypothesis import strategies as st

INT = dtypes.int32


def flatten_graph() -> heald.Graph:
    """Keras' way to flatten: Shape -> StridedSlice -> Pack -> Reshape."""
    slice_attrs = {"Index": INT, "T": INT, "shrink_axis_mask": 1}
    return graph(
        placeholder("x", (None, 2, 3)), node("s", "Shape", "x", out_type=INT),
        const("zero", [0], np.int32), const("one", [1], np.int32), const("six", 6, np.int32),
        node("n", "StridedSlice", "s", "zero", "one", "one", **slice_attrs),
        node("p", "Pack", "n", "six", T=INT, N=2), node("f", "Reshape", "x", "p", Tshape=INT), node("y", "Neg", "f"),
    )


def test_every_batch_size_is_right_before_and_after_the_dynamic_variant_takes_over():
    step = heald.Session(flatten_graph()).make_callable("y", ["x"])
    for batch in [*range(1, LARGEST_VARIANT_COUNT + 4), 3, 0, 40, 2]:
        x = np.random.default_rng(batch).normal(size=(batch, 2, 3)).astype(np.float32)
        assert np.array_equal(step(x), -x.reshape(batch, 6))


def test_a_device_that_needs_static_shapes_serves_any_number_of_them():
    nodes = graph(placeholder("x", (None, 3)), node("a", "Neg", "x", device="EXAMPLE:0"), node("b", "Square", "a"))
    step = heald.Session(nodes).make_callable("b", ["x"])
    for batch in [*range(1, LARGEST_VARIANT_COUNT + 4), 1, 2]:
        x = np.full((batch, 3), batch, np.float32)
        assert np.array_equal(step(x), x * x)


def test_shape_arithmetic_is_done_when_the_program_is_linked():
    prepared = heald.Session(flatten_graph()).prepare("y", ["x"])
    executable = prepared.executable(((5, 2, 3),))
    assert [step.call.op for step in executable.layout.calls] == ["Reshape", "Neg"]
    assert executable.function.result_metas[0].shape == (None, 6)


def test_a_shape_may_be_fed():
    session = heald.Session(graph(placeholder("x"), placeholder("s", (None,), INT),
                                  node("r", "Reshape", "x", "s", Tshape=INT), node("y", "Neg", "r")))
    x = np.arange(12, dtype=np.float32)
    for shape in [[3, 4], [4, 3], [3, 4], [2, -1], [12], [1, 12, 1]]:
        result = session.run("y", {"x": x, "s": np.int32(shape)})
        assert np.array_equal(result, -x.reshape(shape))
    with pytest.raises(InvalidArgument, match="12") as caught:
        session.run("y", {"x": x, "s": np.int32([5, 2])})
    assert caught.value.node == "r"


def test_a_view_of_unknown_shape_keeps_the_buffer_under_it_alive():
    """r is bound only when its shape is seen; until y has read it nothing may take the buffer of a."""
    session = heald.Session(graph(
        placeholder("x", (4,)), placeholder("s", (None,), INT), node("a", "Neg", "x"),
        node("r", "Reshape", "a", "s", Tshape=INT), node("b", "Square", "x"), node("c", "Square", "b"),
        node("d", "Neg", "c"), node("y", "AddV2", "r", "d"),
    ))
    x = np.float32([1, 2, 3, 4])
    assert np.array_equal(session.run("y", {"x": x, "s": np.int32([4])}), -x - x**4)


def test_a_result_that_views_a_buffer_of_the_frame_through_an_unknown_shape_is_a_copy():
    session = heald.Session(graph(placeholder("x", (4,)), placeholder("s", (None,), INT), node("a", "Neg", "x"),
                                  node("r", "Reshape", "a", "s", Tshape=INT)))
    step = session.make_callable("r", ["x", "s"])
    first = step(np.float32([1, 2, 3, 4]), np.int32([2, 2]))
    step(np.float32([5, 6, 7, 8]), np.int32([2, 2]))
    assert first.tolist() == [[-1, -2], [-3, -4]]


def test_a_feed_of_another_rank_than_before_is_another_variant():
    session = heald.Session(graph(placeholder("x"), node("y", "Neg", "x")))
    for shape in [(), (3,), (2, 2), (0, 5)]:
        x = np.ones(shape, np.float32)
        assert np.array_equal(session.run("y", {"x": x}), -x)


def test_a_placeholder_of_a_very_old_graph_says_nothing_when_it_says_scalar():
    from heald.graphs.graph.graph import Graph, Versions

    nodes = [placeholder("x", ()), node("y", "Neg", "x")]
    x = np.ones((2, 2), np.float32)
    assert heald.Session(Graph(nodes, versions=Versions(producer=20))).run("y", {"x": x}).shape == (2, 2)
    with pytest.raises(InvalidArgument, match="shape"):
        heald.Session(Graph(nodes, versions=Versions(producer=100))).run("y", {"x": x})


@given(st.lists(st.integers(0, 5), min_size=1, max_size=20))
@settings(max_examples=20)
def test_batches_in_any_order_give_what_a_fresh_session_gives(batches):
    step = heald.Session(flatten_graph()).make_callable("y", ["x"])
    for i, batch in enumerate(batches):
        x = np.full((batch, 2, 3), i, np.float32)
        assert np.array_equal(step(x), -x.reshape(batch, 6))
