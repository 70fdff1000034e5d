"""Default outputs of a graph, the reasons why nodes are none, and the tensors that outputs need as feeds."""

from __future__ import annotations

import heald
import numpy as np
import pytest
from builders.control_flow_v1 import ControlFlowBuilder
from heald.api import Graph, Node, dtypes
from heald.errors import HealdError
from heald.graphs.compiler.default_outputs import DefaultOutputs, default_outputs
from heald.graphs.compiler.needed_feeds import needed_feeds
from heald.graphs.compiler.resolve import resolve
from heald.graphs.graph.attr_value import ShapeAttr
from heald.graphs.graph.surgery import rename
from heald.graphs.session import find_inputs, find_outputs

FLOAT, INT = dtypes.float32, dtypes.int32
OPS = heald.default_host().registries.ops
T = {"T": FLOAT}


def placeholder(name: str = "x", dtype: dtypes.DType = FLOAT) -> Node:
    return Node(name, "Placeholder", attrs={"dtype": dtype, "shape": (2,)})


def outputs_of(*nodes: Node) -> DefaultOutputs:
    graph = Graph(nodes)
    return default_outputs(graph.nodes, resolve(graph, OPS))


def test_nodes_in_a_loop_are_left_out():
    build = ControlFlowBuilder()
    seen = []

    def body(a: str, b: str) -> list[str]:
        seen.append(build.op("Neg", a))
        return [build.op("Add", a, b), b]

    exits = build.while_loop(lambda a, _: build.op("Less", a, build.const(9)), body, [build.const(0), build.const(1)])
    graph = build.graph()
    names, left_out = default_outputs(graph.nodes, resolve(graph, OPS))
    assert set(names) == set(exits)
    assert left_out[seen[0]] == "it is in a loop"


def test_the_end_of_an_inner_loop_is_in_the_outer_one():
    build = ControlFlowBuilder()
    inner_exits = []

    def body(a: str, b: str) -> list[str]:
        inner = build.while_loop(lambda c, _: build.op("Less", c, build.const(5)),
                                 lambda c, d: [build.op("Add", c, d), d], [a, b])
        inner_exits.extend(inner)
        return [build.op("Add", a, b), b]

    exits = build.while_loop(lambda a, _: build.op("Less", a, build.const(9)), body, [build.const(0), build.const(1)])
    graph = build.graph()
    names, left_out = default_outputs(graph.nodes, resolve(graph, OPS))
    assert set(names) == set(exits)
    assert {left_out[name] for name in inner_exits} == {"it is in a loop"}


@pytest.mark.parametrize("is_lowered", [True, False])
def test_variables_of_a_lowered_loop_are_left_out_where_another_one_is_taken(is_lowered):
    build = ControlFlowBuilder()
    first, second = build.while_loop(lambda a, _: build.op("Less", a, build.const(9)),
                                     lambda a, b: [build.op("Add", a, b), b], [build.const(0), build.const(1)])
    last = build.op("Neg", second)
    graph = rename(build.graph(), {first: "while/exit/_7"} if is_lowered else {})
    first = "while/exit/_7" if is_lowered else first
    names, left_out = default_outputs(graph.nodes, resolve(graph, OPS))
    assert set(names) == ({last} if is_lowered else {last, first})
    assert left_out.get(first) == ("it is a variable of a loop of which another one is taken" if is_lowered else None)


def test_nodes_in_a_branch_are_left_out_where_a_merge_is_an_output():
    x, p = placeholder(), placeholder("p", dtypes.bool_)
    switch = Node("switch", "Switch", ["x", "p"], attrs=T)
    inner = Node("inner", "Neg", ["switch:1"], attrs=T)
    merge = Node("merge", "Merge", ["switch", "switch:1"], attrs={"T": FLOAT, "N": 2})
    assert outputs_of(x, p, switch, inner, merge) == (["merge"], {"inner": "it is in a branch"})
    assert outputs_of(x, p, switch, inner) == (["inner"], {})


def test_a_loss_behind_summaries_is_an_output():
    x, tag = placeholder(), Node("tag", "Placeholder", attrs={"dtype": dtypes.string, "shape": ()})
    loss = Node("loss", "Neg", ["x"], attrs=T)
    summary = Node("summary", "ScalarSummary", ["tag", "loss"], attrs=T)
    merged = Node("merged", "MergeSummary", ["summary"], attrs={"N": 1})
    record = "it repeats its input, or is a record for tools"
    assert outputs_of(x, tag, loss, summary, merged) == (["loss"], {"summary": record, "merged": record})


@pytest.mark.parametrize(("name", "is_gradient"), [
    ("gradients/a/b", True), ("train/gradients_2/b", True), ("gradients", False), ("my_gradients/b", False),
    ("gradients_of/b", False)])
def test_gradients_are_left_out_by_their_scope(name, is_gradient):
    names, left_out = outputs_of(placeholder(), Node("y", "Neg", ["x"], attrs=T), Node(name, "Neg", ["x"], attrs=T))
    assert names == (["y"] if is_gradient else ["y", name])
    assert left_out == ({name: "it is a gradient"} if is_gradient else {})


def test_reads_and_changes_of_variables_are_left_out():
    variable = Node("v", "VarHandleOp", attrs={"dtype": FLOAT, "shape": (2,)})
    read = Node("read", "ReadVariableOp", ["v"], attrs={"dtype": FLOAT})
    copy = Node("copy", "Identity", ["read"], attrs=T)
    check = Node("check", "VarIsInitializedOp", ["v"])
    y = Node("y", "Neg", ["read"], attrs=T)
    state = "it reads or changes a variable or table"
    assert outputs_of(variable, read, copy, check, y) == (["y"], {"copy": state, "check": state})
    assert outputs_of(variable, read, copy, check).names == ["copy", "check"]


def test_a_constant_behind_effects_is_a_mark_and_a_value_behind_them_an_output():
    effect, build = Node("effect", "NoOp"), ControlFlowBuilder()
    build.const(1)
    (one,) = build.graph()
    default = Node("default", "PlaceholderWithDefault", [one.name], attrs={"dtype": INT, "shape": ()})
    mark = Node("mark", "Identity", ["default"], controls=["effect"], attrs={"T": INT})
    y = Node("y", "Identity", ["x"], controls=["effect"], attrs=T)
    assert outputs_of(effect, one, default, placeholder(), mark, y) == (["y"], {"mark": "it marks the end of effects"})


ITERATOR = (
    Node("iterator", "IteratorV2", attrs={"shared_name": b"", "container": b"", "output_types": (FLOAT, INT),
                                          "output_shapes": (ShapeAttr((None, 2)), ShapeAttr((None,)))}),
    Node("next", "IteratorGetNext", ["iterator"], attrs={"output_types": (FLOAT, INT),
                                                         "output_shapes": (ShapeAttr((None, 2)), ShapeAttr((None,)))}),
)


def test_elements_of_an_iterator_are_inputs_when_outputs_need_them(tmp_path, capsys):
    from heald.cli import main

    y = Node("y", "Neg", ["next"], attrs=T)
    graph = Graph([*ITERATOR, placeholder("unused"), y])
    session = heald.Session(graph)
    assert find_inputs(session, find_outputs(session)) == ("next:0",)
    heald.graphdef.dump(graph, tmp_path / "m.pb")
    model = heald.load(tmp_path / "m.pb", outputs=["y"])
    assert {name: str(meta) for name, meta in model.inputs.items()} == {"next:0": "float32<unknown rank>"}
    np.testing.assert_array_equal(model([[1, 2]]), [[-1, -2]])
    assert main(["inspect", str(tmp_path / "m.pb")]) == 0
    assert "next:0  float32  [?,2]" in capsys.readouterr().out
    assert main(["run", str(tmp_path / "m.pb"), "--fetch", "y"]) == 1
    assert "the model needs an input: next:0 float32" in capsys.readouterr().err
    with pytest.raises(HealdError) as caught:
        session.run("y")
    assert "feed 'next:0'" in caught.value.hint


def test_a_node_needs_the_placeholders_behind_its_inputs_and_its_control_inputs():
    waited = Node("waited", "Neg", ["y"], attrs=T)
    last = Node("last", "Identity", ["x"], controls=["waited"], attrs=T)
    graph = Graph([placeholder("z"), placeholder("y"), placeholder("x"), waited, last])
    assert needed_feeds(graph.nodes, resolve(graph, OPS), ["last"], heald.default_host()) == ["y", "x"]


def test_a_resource_with_a_kernel_is_no_iterator():
    variable = Node("v", "VarHandleOp", attrs={"dtype": FLOAT, "shape": (2,)})
    read = Node("read", "ReadVariableOp", ["v"], attrs={"dtype": FLOAT})
    graph = Graph([variable, read, Node("y", "Neg", ["read"], attrs=T)])
    assert needed_feeds(graph.nodes, resolve(graph, OPS), ["y"], heald.default_host()) == []
