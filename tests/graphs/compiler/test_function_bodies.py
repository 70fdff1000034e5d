"""The body of a function as a graph: it returns the tensors behind plain Identity nodes."""

from __future__ import annotations

import pytest
from builders.control_flow import function
from builders.graphs import FLOAT, node
from harness.run_op import REGISTRIES
from heald.graphs.compiler.function_body import function_body
from heald.graphs.graph.attr_value import Func, ShapeAttr
from heald.graphs.graph.graph import Graph, Node

VARIABLE = Node("v", "VariableV2", attrs={"shape": ShapeAttr(()), "dtype": FLOAT, "container": b"", "shared_name": b""})


def result_of(*nodes, ret):
    body = function_body("site", Func("f"), [FLOAT], Graph([], [function("f", "x", nodes, {"y": ret})]), REGISTRIES.ops)
    (result,) = body.results
    return result


def test_a_result_is_the_tensor_behind_identities():
    nodes = [node("n", "Neg", "x"), node("a", "Identity", "n:y:0"), node("b", "Identity", "a:output:0")]
    assert result_of(*nodes, ret="b:output:0") == ("site/n", 0)


def test_a_result_may_be_an_argument():
    assert result_of(node("a", "Identity", "x"), ret="a:output:0") == ("site/x", 0)


def test_a_result_need_not_wait_for_copies_of_arguments():
    nodes = [node("read", "Identity", "x"), Node("ready", "NoOp", controls=["read"]), node("n", "Neg", "x"),
             node("a", "Identity", "n:y:0").replace(controls=["ready"])]
    assert result_of(*nodes, ret="a:output:0") == ("site/n", 0)


@pytest.mark.parametrize("last", [
    node("a", "Identity", "n:y:0", device="/device:CPU:1"), node("a", "Identity", "n:y:0").replace(controls=["n"]),
    node("a", "Identity", "v:ref:0"), node("a", "StopGradient", "n:y:0"),
], ids=["a copy to a device", "one that waits", "a read of a variable", "another op"])
def test_other_nodes_stay(last):
    assert result_of(VARIABLE, node("n", "Neg", "x"), last, ret="a:output:0") == ("site/a", 0)
