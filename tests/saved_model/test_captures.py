"""Loops and branches take the value of a variable that they only read, and the handle of any other variable."""

from __future__ import annotations

from pathlib import Path

import heald
import numpy as np
import pytest
from builders.graphs import FLOAT, const, placeholder
from harness.saved_values import add_initializers
from harness.saved_values import frozen as froze
from heald.graphs.graph.attr_value import Func
from heald.graphs.graph.graph import Function, Graph, Input, Node
from heald.graphs.graph.rewriting import pruned
from heald.graphs.graph.verifier import verify
from heald.runtime.contract.op import ArgDef
from heald.runtime.values import dtypes

X, Y, HANDLE = ArgDef("x", FLOAT), ArgDef("y", FLOAT), ArgDef("v", dtypes.resource)
VARIABLE = Node("v", "VarHandleOp", attrs={"dtype": FLOAT, "shape": None})
READ = Node("read", "ReadVariableOp", ["v"], attrs={"dtype": FLOAT})
MUL = Node("mul", "Mul", ["x", "read:value:0"], controls=["read"], attrs={"T": FLOAT})
ASSIGN = Node("assign", "AssignVariableOp", ["v", "x"], attrs={"dtype": FLOAT})
MODEL = Path(__file__).parents[1] / "data" / "saved_models" / "control_flow" / "model"


def branch(name, *nodes, result="mul:z:0"):
    return Function(name, [X, HANDLE], [Y], nodes, {"y": result})


def frozen(*functions, op="If", attrs=None):
    """A graph that hands a variable to functions, frozen."""
    names = attrs or {"then_branch": Func("f"), "else_branch": Func("g")}
    node = Node("n", op, ["p", "a", "v"], attrs={"Tcond": dtypes.bool_, "Tin": (FLOAT, dtypes.resource),
                                                 "Tout": (FLOAT,), **names})
    graph = froze(Graph([placeholder("p", (), dtypes.bool_), placeholder("a"), VARIABLE, node], functions),
                  {"v": np.float32([2])})
    verify(graph)
    return graph


def test_branches_take_the_value():
    graph = frozen(branch("f", READ, MUL), branch("g", result="x"))
    node = graph["n"]
    assert graph["v"].op == "Const"
    assert node.attrs["Tin"] == (FLOAT, FLOAT)
    branch_function = graph.functions[node.attrs["then_branch"].name]
    assert [arg.dtype for arg in branch_function.inputs] == [FLOAT, FLOAT]
    assert list(branch_function.nodes) == ["mul"]
    mul = branch_function.nodes["mul"]
    assert (mul.inputs, mul.controls) == ((Input("x"), Input("v")), ())
    assert "f" not in graph.functions


def test_a_read_that_waits_for_a_write_in_a_function_keeps_the_order():
    handles = [X, HANDLE, ArgDef("w", dtypes.resource)]
    assign = Node("assign", "AssignVariableOp", ["w", "x"], attrs={"dtype": FLOAT})
    late = Node("late", "ReadVariableOp", ["w"], controls=["read"], attrs={"dtype": FLOAT})
    body = Function("f", handles, [Y], [assign, READ.replace(controls=["assign"]), late, Node(
        "sum", "AddV2", ["read:value:0", "late:value:0"], attrs={"T": FLOAT})], {"y": "sum:z:0"})
    node = Node("n", "If", ["p", "a", "v", "w"], attrs={
        "Tcond": dtypes.bool_, "Tin": (FLOAT, dtypes.resource, dtypes.resource), "Tout": (FLOAT,),
        "then_branch": Func("f"), "else_branch": Func("f")})
    nodes = [placeholder("p", (), dtypes.bool_), placeholder("a"), VARIABLE, VARIABLE.replace(name="w"), node]
    graph, state = add_initializers(Graph(nodes, [body]), {"v": np.float32([10]), "w": np.float32([2])})
    with heald.Session(graph, initial_state=state) as session:
        assert (session.graph["v"].op, session.graph["w"].op) == ("Const", "VarHandleOp")
        (function,) = session.graph.functions.values()
        assert (function.nodes["read"].op, function.nodes["late"].controls) == ("Identity", ("read",))
        verify(session.graph)


@pytest.mark.parametrize("other", [
    branch("g", ASSIGN, result="x"), Function("g", [X, HANDLE], [ArgDef("y", dtypes.resource)], [], {"y": "v"}),
    branch("g", Node("again", "PartitionedCall", ["x", "v"], attrs={
        "f": Func("g"), "Tin": (FLOAT, dtypes.resource), "Tout": (FLOAT,)}), result="again:output:0"),
], ids=["assigned", "returned", "by itself"])
def test_a_variable_with_another_use_than_reads_stays_a_variable(other):
    graph = frozen(branch("f", READ, MUL), other)
    assert (graph["v"].op, graph["n"].attrs["then_branch"]) == ("VarHandleOp", Func("f"))


def test_the_captures_of_a_loop_with_a_branch_in_it_are_values():
    model = heald.load(MODEL)
    graph = pruned(model.session.graph, [tensor.partition(":")[0] for tensor in model.fetched.values()])
    ops = {node.op for f in graph.functions.values() for node in f.nodes.values()} | {node.op for node in graph}
    assert not ops & {"VarHandleOp", "ReadVariableOp"}
    loop = next(node for node in graph if node.op == "While")
    assert dtypes.resource not in loop.attrs["T"]
    body = graph.functions[loop.attrs["body"].name]
    assert tuple(arg.dtype for arg in body.inputs) == tuple(arg.dtype for arg in body.outputs) == loop.attrs["T"]
    verify(graph)


def test_a_handle_that_a_loop_gives_on_is_not_a_value():
    body = Function("body", [X, HANDLE], [Y, ArgDef("w", dtypes.resource)], [READ, MUL], {"y": "mul:z:0", "w": "v"})
    loop = Node("loop", "While", ["a", "v"], attrs={"T": (FLOAT, dtypes.resource), "cond": Func("body"),
                                                    "body": Func("body")})
    nodes = [placeholder("a"), VARIABLE, loop]
    values = {"v": np.float32([2])}
    assert froze(Graph(nodes, [body]), values)["v"].op == "Const"
    after = Node("after", "ReadVariableOp", ["loop:1"], attrs={"dtype": FLOAT})
    assert froze(Graph([*nodes, after, const("c", 1)], [body]), values)["v"].op == "VarHandleOp"
