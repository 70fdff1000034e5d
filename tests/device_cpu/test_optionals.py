"""Optionals. TensorFlow 2.21 gave the same results and kinds of errors for the same calls."""

import heald
import numpy as np
import pytest
from builders.graphs import const, graph
from heald.errors import HealdError, InvalidArgument
from heald.graphs.graph.attr_value import ShapeAttr
from heald.graphs.graph.node import Node
from heald.runtime.values import dtypes

FLOAT, INT, STRING, VARIANT = dtypes.float32, dtypes.int32, dtypes.string, dtypes.variant
SHAPES = ShapeAttr((2,)), ShapeAttr(())


def get(source="some", types=(FLOAT, STRING), shapes=SHAPES):
    return Node("get", "OptionalGetValue", (source,), attrs={"output_types": types, "output_shapes": shapes})


def open_session(*nodes):
    """`some` holds the vector [1, 2] and the string b"a", `none` nothing; `outer` holds `some`."""
    return heald.Session(graph(
        const("x", [1, 2], np.float32), Node("s", "Const", attrs={"dtype": STRING, "value": np.array(b"a", object)}),
        Node("some", "OptionalFromValue", ("x", "s"), attrs={"Toutput_types": (FLOAT, STRING)}),
        Node("none", "OptionalNone"), Node("has", "OptionalHasValue", ("some",)),
        Node("has_not", "OptionalHasValue", ("none",)),
        Node("outer", "OptionalFromValue", ("some",), attrs={"Toutput_types": (VARIANT,)}), *nodes), device="CPU:0")


def test_an_optional_gives_the_components_that_it_was_made_of():
    with open_session(get()) as session:
        values, text = session.run(["get:0", "get:1"])
        assert (values.tolist(), text.item()) == ([1, 2], b"a")
        values[:] = 7
        assert session.run("get:0").tolist() == [1, 2]
        assert session.run(["has", "has_not"]) == [True, False]


def test_components_may_be_optionals_and_their_shapes_open():
    inner = Node("inner", "OptionalGetValue", ("outer",), attrs={
        "output_types": (VARIANT,), "output_shapes": (ShapeAttr(()),)})
    with open_session(inner, get("inner", shapes=(ShapeAttr((None,)), None))) as session:
        assert session.run("get:0").tolist() == [1, 2]


@pytest.mark.parametrize("node", [
    get("none"), get(types=(FLOAT,), shapes=(ShapeAttr((2,)),)), get(types=(INT, STRING)),
    get(shapes=(ShapeAttr((3,)), ShapeAttr(()))), get(shapes=(ShapeAttr((2,)),)), get("outer"),
])
def test_values_that_are_not_there_or_are_others_are_refused(node):
    with open_session(node) as session, pytest.raises(InvalidArgument):
        session.run("get:0")


def test_another_variant_is_no_optional():
    shape = const("shape", np.zeros(0), np.int32)
    tensors = Node("list", "TensorListReserve", ("shape", "count"), attrs={"element_dtype": FLOAT, "shape_type": INT})
    with open_session(shape, const("count", 1, np.int32), tensors, get("list")) as session, \
            pytest.raises(HealdError, match="no optional"):
        session.run("get:0")
