"""Ops behind a condition that a run does not fulfil: their shapes are checked when they run, as in TensorFlow.

tests/data/graphs/shape_guards.pb has a function for each op, `guarded_Op`, which TensorFlow 2.21 wrote. It applies the
op to its argument and returns the sum of the result. tests/data/shape_guards.json has TensorFlow's value for each shape
of the argument 0, 1, 2, ..., or null for InvalidArgument. TensorFlow gave the same for If, StatelessIf, Case, Switch,
nested Ifs and an If in a loop, and for each of them the other branch's value where the guarded one was not taken.
"""

from __future__ import annotations

import json
from pathlib import Path

import heald
import numpy as np
import pytest
from builders.control_flow import branch, call, case, function, loop
from builders.graphs import FLOAT, const, node, placeholder
from heald.errors import InvalidArgument
from heald.graphs.graph.graph import Node
from heald.graphs.session.ahead_of_time import compile_model
from heald.runtime.service.compiled_model import LoadedCompiledModel
from heald.runtime.values import dtypes

DATA = Path(__file__).parents[2] / "data"
SUMS = json.loads((DATA / "shape_guards.json").read_text())
LIBRARY = heald.graphdef.load(DATA / "graphs/shape_guards.pb").functions
INT, BOOL = dtypes.int32, dtypes.bool_
X, P = placeholder("x"), placeholder("p", (), BOOL)
OTHER = function("other", "x", [const("shape", [-1], np.int32), const("axis", 0, np.int32),
                                node("flat", "Reshape", "x", "shape:output:0", Tshape=INT),
                                node("sum", "Sum", "flat:output:0", "axis:output:0", Tidx=INT, keep_dims=False),
                                node("less", "Neg", "sum:output:0")], {"y": "less:y:0"})
EVERY_OP = pytest.mark.parametrize("op", SUMS)


def by_if(op):
    return [branch("y", "p", f"guarded_{op}", "other", "x")], []


def by_stateless_if(op):
    return [branch("y", "p", f"guarded_{op}", "other", "x").replace(op="StatelessIf")], []


def by_case(op):
    return [Node("index", "Cast", ["p"], attrs={"SrcT": BOOL, "DstT": INT}),
            case("y", "index", ["other", f"guarded_{op}"], "x")], []


def by_switch(op):
    return [node("either", "Switch", "x", "p"), call("taken", f"guarded_{op}", "either:1"),
            call("left", "other", "either"), node("y", "Merge", "left", "taken", N=2)], []


def by_nested_ifs(op):
    inner = function("inner", "p:bool_ x", [branch("y", "p", f"guarded_{op}", "other", "x")], {"y": "y:output:0"})
    outside = function("outside", "p:bool_ x", [call("y", "other", "x")], {"y": "y:output:0"})
    return [branch("y", "p", "inner", "outside", "p", "x", arguments="p:bool_ x")], [inner, outside]


def by_if_in_a_loop(op):
    go = function("go", "i:int32 p:bool_ x y", [const("end", 1, np.int32),
                                               node("less", "Less", "i", "end:output:0", T=INT)],
                  {"z": "less:z:0"}, results="z:bool_")
    turn = function("turn", "i:int32 p:bool_ x y", [
        const("one", 1, np.int32), node("next", "AddV2", "i", "one:output:0", T=INT),
        branch("either", "p", f"guarded_{op}", "other", "x")],
        {"i2": "next:z:0", "p2": "p", "x2": "x", "y2": "either:output:0"}, results="i2:int32 p2:bool_ x2 y2")
    return [const("first", 0, np.int32), const("none", 0.0),
            loop("w", "go", "turn", "first", "p", "x", "none", arguments="i:int32 p:bool_ x y"),
            node("y", "Identity", "w:3")], [go, turn]


GUARDS = {form.__name__: form for form in (by_if, by_stateless_if, by_case, by_switch, by_nested_ifs, by_if_in_a_loop)}


def guarded(nodes, functions):
    return heald.Graph([X, P, *nodes], [*LIBRARY.values(), OTHER, *functions])


def numbers(shape):
    dims = json.loads(shape)
    return np.arange(np.prod(dims), dtype=np.float32).reshape(dims)


@pytest.mark.parametrize("guard", GUARDS)
@EVERY_OP
def test_an_op_is_refused_for_its_shapes_only_in_the_run_that_takes_its_branch(op, guard):
    with heald.Session(guarded(*GUARDS[guard](op))) as session:
        for shape, expected in SUMS[op].items():
            x = numbers(shape)
            assert session.run("y", {"x": x, "p": False}) == pytest.approx(-x.sum())
            if expected is None:
                with pytest.raises(InvalidArgument) as caught:
                    session.run("y", {"x": x, "p": True})
                assert caught.value.node
            else:
                assert session.run("y", {"x": x, "p": True}) == pytest.approx(expected, nan_ok=True)


@EVERY_OP
def test_a_loop_without_turns_refuses_no_shapes_of_its_body(op):
    go = function("go", "x y", [const("no", False, bool)], {"z": "no:output:0"}, results="z:bool_")
    turn = function("turn", "x y", [call("next", f"guarded_{op}", "x")], {"x2": "x", "y2": "next:output:0"})
    nodes = [const("none", 5.0), loop("w", "go", "turn", "x", "none"), node("y", "Identity", "w:1")]
    with heald.Session(guarded(nodes, [go, turn])) as session:
        assert [session.run("y", {"x": numbers(shape)}) for shape in SUMS[op]] == [5] * len(SUMS[op])


@pytest.mark.parametrize("op", ["MatMul", "Reshape", "Conv2D", "Split"])
def test_a_compiled_model_checks_the_shapes_of_its_branches_in_the_run(op, tmp_path):
    heald.graphdef.dump(guarded(*by_if(op)), tmp_path / "guarded.pb")
    compiled = compile_model(tmp_path / "guarded.pb", inputs={"x": [(7,)], "p": [()]})
    model = LoadedCompiledModel(compiled)
    assert model(x=numbers("[7]"), p=np.array(False)) == -21
    with pytest.raises(InvalidArgument) as caught:
        model(x=numbers("[7]"), p=np.array(True))
    assert caught.value.op


def test_a_call_that_every_run_makes_is_refused_before_its_effects():
    with heald.Session(guarded([call("y", "guarded_MatMul", "x")], [])) as session, pytest.raises(InvalidArgument):
        session.run("y", {"x": numbers("[7]")})


def test_constants_in_a_branch_may_contradict_an_op():
    wrong = function("wrong", "x", [const("a", np.zeros((2, 3))), const("b", np.zeros((5, 4))),
                                    node("product", "MatMul", "a:output:0", "b:output:0")], {"y": "product:product:0"})
    with heald.Session(guarded([branch("y", "p", "wrong", "other", "x")], [wrong])) as session:
        assert session.run("y", {"x": numbers("[3]"), "p": False}) == -3
        with pytest.raises(InvalidArgument) as caught:
            session.run("y", {"x": numbers("[3]"), "p": True})
    assert caught.value.op == "MatMul"


def test_a_branch_on_another_device_is_refused_for_its_shapes_in_the_run():
    wrong = function("wrong", "x", [const("b", np.zeros((2, 3))),
                                    node("sum", "AddV2", "x", "b:output:0", device="/device:EXAMPLE:0")],
                     {"y": "sum:z:0"})
    with heald.Session(guarded([branch("y", "p", "wrong", "other", "x")], [wrong])) as session:
        assert session.run("y", {"x": numbers("[4]"), "p": False}) == -6
        with pytest.raises(InvalidArgument):
            session.run("y", {"x": numbers("[4]"), "p": True})
        assert session.run("y", {"x": numbers("[2, 3]"), "p": True}).sum() == 15


def test_a_branch_that_always_fails_leaves_the_shapes_of_the_other_one_known():
    kept = function("kept", "x", [node("twice", "AddV2", "x", "x")], {"y": "twice:z:0"})
    wrong = function("wrong", "x", [const("b", np.zeros((4, 4))), node("product", "MatMul", "x", "b:output:0")],
                     {"y": "product:product:0"})
    nodes = [placeholder("x", (2, 3)), P, branch("y", "p", "wrong", "kept", "x"), node("z", "Neg", "y")]
    graph = heald.Graph(nodes, [kept, wrong])
    with heald.Session(graph) as session:
        metadata = heald.RunMetadata()
        result = session.run("z", {"x": np.ones((2, 3), np.float32), "p": False},
                             options=heald.RunOptions(trace=True), metadata=metadata)
    assert FLOAT.numpy == result.dtype
    np.testing.assert_array_equal(result, np.full((2, 3), -2, np.float32))
