"""The attributes of nodes fit the declarations of their ops, in any form in which users write them."""

from __future__ import annotations

import difflib
import re

import heald
import ml_dtypes
import numpy as np
import pytest
from builders.graphs import FLOAT, graph, node, placeholder
from harness.run_op import REGISTRIES
from heald.errors import InvalidArgument
from heald.graphs.compiler.resolve import resolve
from heald.graphs.graph.attr_value import Func, ShapeAttr
from heald.graphs.graph.graph import Node
from heald.runtime.contract.attribute_forms import convert_attribute
from heald.runtime.contract.op import AttrDef
from heald.runtime.values import dtypes
from heald.runtime.values.tensor_proto import TensorValue

VALUES = {"string": "a", "shape": ShapeAttr((2,)), "bool": True, "int": 1, "float": 0.5, "type": dtypes.float32,
          "func": Func("f")}
ALSO = {("float", "int"): 1.0, ("func", "string"): Func("a")}  # (kind, given): what the kernel sees


@pytest.mark.parametrize("value_kind", VALUES)
@pytest.mark.parametrize("kind", VALUES)
def test_an_attribute_has_the_declared_type(kind, value_kind):
    value = VALUES[value_kind].encode() if value_kind == "string" else VALUES[value_kind]
    expected = ALSO.get((kind, value_kind), VALUES[value_kind])
    for of, written, read in ((kind, value, expected), (f"list({kind})", [value], (expected,))):
        if value_kind == kind or (kind, value_kind) in ALSO:
            assert convert_attribute(AttrDef("a", of), written) == read
        else:
            with pytest.raises(InvalidArgument, match=re.escape(f"attribute 'a' must be {of}")):
                convert_attribute(AttrDef("a", of), written)


WRITTEN = [  # (kind, as users write it, as kernels see it)
    ("shape", (2, 3), (2, 3)), ("shape", [2, -1], (2, None)), ("shape", (None, 4), (None, 4)), ("shape", (), ()),
    ("shape", (None, None), (None, None)), ("shape", None, None), ("shape", (np.int64(2),), (2,)),
    ("list(shape)", [(2,), None], ((2,), None)),
    ("type", "float32", dtypes.float32), ("type", "float", dtypes.float32), ("type", b"int64", dtypes.int64),
    ("type", np.float16, dtypes.float16), ("type", np.dtype("int8"), dtypes.int8), ("type", bool, dtypes.bool_),
    ("type", str, dtypes.string), ("type", ml_dtypes.bfloat16, dtypes.bfloat16),
    ("list(type)", ("float32", np.int32), (dtypes.float32, dtypes.int32)),
    ("string", "SAME", "SAME"), ("string", b"SAME", "SAME"), ("list(string)", ["a", b"b"], ("a", "b")),
    ("int", np.int32(3), 3), ("list(int)", [1, np.int64(2)], (1, 2)),
    ("float", 2, 2.0), ("float", np.float32(0.5), 0.5), ("bool", np.bool_(True), True), ("func", "f", Func("f")),
]


@pytest.mark.parametrize(("kind", "written", "kernel_form"), WRITTEN, ids=map(str, range(len(WRITTEN))))
def test_kernels_see_one_form_of_all_that_users_write(kind, written, kernel_form):
    """By hand-made nodes, whose values a node keeps as a file would, and directly, as eager calls have them."""
    in_a_node = Node("n", "Any", attrs={"a": written}).attrs["a"]
    for value in (written, in_a_node):
        attribute = convert_attribute(AttrDef("a", kind), value)
        assert attribute == kernel_form
        assert type(attribute) is type(convert_attribute(AttrDef("a", kind), attribute))


def test_an_array_and_a_number_become_a_tensor():
    for value in (np.float32([1, 2]), [1.0, 2.0], 3):
        attribute = convert_attribute(AttrDef("a", "tensor"), value)
        assert type(attribute) is TensorValue
        np.testing.assert_array_equal(attribute.array(), value)


@pytest.mark.parametrize(("kind", "value", "text", "hint"), [
    ("shape", "abc", "attribute 'a' must be shape, it is the str 'abc'", "a tuple of sizes such as (2, None)"),
    ("shape", (2, -3), "attribute 'a' must be shape, it is the tuple [2, -3]: (2, -3) is not a shape", "at most"),
    ("type", "flaot32", "attribute 'a' must be type, it is the str 'flaot32': 'flaot32' is not a data", "float32"),
    ("type", 3, "attribute 'a' must be type, it is the int 3", "dtypes.float32"),
    ("type", Node, "attribute 'a' must be type, it is the type", "dtypes.float32"),
    ("tensor", [[1.0], [1.0, 2.0]], "attribute 'a' must be tensor, it is the list", "give an array"),
    ("bool", 1, "attribute 'a' must be bool, it is the int 1", "True or False"),
    ("int", 1.5, "attribute 'a' must be int, it is the float 1.5", "a whole number"),
    ("list(int)", 3, "attribute 'a' must be list(int), it is the int 3", "give a list; an item is a whole number"),
    ("list(int)", ["x"], "attribute 'a' must be list(int), it is the str 'x'", "an item is a whole number"),
    ("string", 3, "attribute 'a' must be string, it is the int 3", "a text"),
    ("func", 3, "attribute 'a' must be func, it is the int 3", "the name of a function"),
])
def test_a_wrong_attribute_says_what_was_given_and_what_was_expected(kind, value, text, hint):
    with pytest.raises(InvalidArgument) as caught:
        convert_attribute(AttrDef("a", kind), value)
    assert caught.value.message.startswith(text)
    assert hint in caught.value.hint


def test_a_graph_made_by_hand_may_name_types_and_shapes_plainly():
    session = heald.Session(graph(Node("x", "Placeholder", attrs={"dtype": "float32", "shape": (2,)}),
                                  Node("y", "Neg", ["x"], attrs={"T": np.float32})))
    assert session.run("y", {"x": [1, 2]}).tolist() == [-1, -2]


def test_the_error_of_a_step_and_of_an_eager_call_names_the_op():
    session = heald.Session(graph(placeholder("x", (2,)), Node("y", "Neg", ["x"], attrs={"T": "flaot32"})))
    with pytest.raises(InvalidArgument, match="'T' must be type, it is the bytes b'flaot32'") as caught:
        session.run("y", {"x": [1, 2]})
    assert (caught.value.op, caught.value.node) == ("Neg", "y")
    with pytest.raises(InvalidArgument, match="'T' must be type, it is the str 'flaot32'") as caught:
        heald.execute("Neg", np.float32([1]), attrs={"T": "flaot32"})
    assert caught.value.op == "Neg"


def test_a_node_of_another_kind_of_value_is_refused_when_it_is_made():
    with pytest.raises(InvalidArgument, match="the class Node names no data type"):
        node("y", "Neg", "x", T=Node)


def test_the_errors_of_unknown_names_search_for_similar_names_when_they_are_read(monkeypatch):
    searches = []
    monkeypatch.setattr(difflib, "get_close_matches", lambda name, *_, **__: searches.append(name) or [])
    ops = [node(f"n{i}", f"Nagate{i}", "x") for i in range(50)]
    attributes = [node(f"m{i}", "Neg", "x", Y=FLOAT) for i in range(50)]
    entries = resolve(graph(placeholder("x"), *ops, *attributes), REGISTRIES.ops)
    assert not searches
    for name in ("n3", "m3", "n3"):
        assert str(entries[name]) == str(entries[name])
    assert searches == ["Nagate3", "Y"]
