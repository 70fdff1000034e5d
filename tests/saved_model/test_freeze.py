"""The pass "freeze": variables that a session's graph only reads are constants; results are the same without it."""

from itertools import pairwise
from pathlib import Path

import heald
import numpy as np
import pytest
from builders.graphs import FLOAT, const, placeholder
from harness.saved_values import add_initializers, frozen
from heald import errors
from heald.api import Graph, Initializer, Node, ShapeAttr, dtypes
from heald.graphs.graph.verifier import verify
from heald_saved_model.checkpoint import Checkpoint
from hypothesis import given
from hypothesis import strategies as st

DATA = Path(__file__).parents[1] / "data" / "saved_models"
WITHOUT = {"passes": {"disable": ["freeze"]}}
VARIABLE = Node("v", "VarHandleOp", attrs={"dtype": FLOAT, "shape": None, "shared_name": b"", "container": b""})
READ = Node("r", "ReadVariableOp", ["v"], attrs={"dtype": FLOAT})
RESOURCES_ALONE = ("asset", "control_flow", "keras", "lookup_layers", "shards", "tables", "tags", "types")


def neg(name, source, *controls):
    return Node(name, "Neg", [source], controls=controls, attrs={"T": FLOAT})


def answers(model, signature, config):
    """The results of three calls of a signature with the same inputs."""
    loaded = heald.load(DATA / model / "model", signature=signature, config=config)
    with np.load(DATA / model / "calls.npz") as arrays:
        keys = [key.split(" ") for key in arrays]
        number = min(index for index, name, _, _ in keys if name == signature)
        fed = {tensor: arrays[f"{index} {name} {side} {tensor}"] for index, name, side, tensor in keys
               if (index, side) == (number, "in")}
    fetches, feeds = loaded.fetched, {loaded.fed[name]: value for name, value in fed.items()}
    return [loaded.session.run(fetches, feeds) for _ in range(3)], loaded.session.graph


def signatures():
    for model in RESOURCES_ALONE:
        if (DATA / model / "calls.npz").exists():
            with np.load(DATA / model / "calls.npz") as arrays:
                yield from ((model, name) for name in sorted({key.split(" ")[1] for key in arrays}))


@pytest.mark.parametrize(("model", "signature"), list(signatures()))
def test_a_saved_model_answers_the_same_with_variables_and_with_constants(model, signature):
    (ours, graph), (theirs, unfrozen) = answers(model, signature, None), answers(model, signature, WITHOUT)
    variables, left = ({n.name for n in g if n.op == "VarHandleOp"} for g in (unfrozen, graph))
    assert left <= variables
    assert all(graph[name].op == "Const" for name in variables - left)
    for result, other in zip(ours, theirs, strict=True):
        for name, array in result.items():
            if array.dtype == object:
                assert array.tolist() == other[name].tolist()
            else:
                np.testing.assert_allclose(array, other[name], rtol=1e-6)


def test_variables_without_the_pass_are_read_when_a_step_needs_them(monkeypatch):
    read, original = [], Checkpoint.read
    monkeypatch.setattr(Checkpoint, "read", lambda self, *key: read.append(key[0]) or original(self, *key))
    loaded = heald.load(DATA / "keras" / "model", config=WITHOUT)
    before = [name for name in read if not name.startswith("_CHECKPOINTABLE")]
    variables = [node for node in loaded.session.graph if node.op == "VarHandleOp"]
    loaded(np.zeros((1, 8, 8, 1), "f4"))
    assert (before, len(variables)) == ([], len(read) - 1)


def test_a_variable_that_is_only_read_is_a_constant():
    value = np.arange(6, dtype="f4").reshape(3, 2)
    gather = Node("g", "ResourceGather", ["v", "i"], attrs={"dtype": FLOAT, "Tindices": dtypes.int32})
    shape = Node("s", "VariableShape", ["v"])
    wait = Node("w", "NoOp", controls=["r"])
    nodes = [VARIABLE, READ, gather, shape, wait, const("i", [2, 0], np.int32), const("g/axis", [7]),
             neg("y", "r", "w"), neg("z", "g/axis")]
    graph = frozen(Graph(nodes), {"v": value})
    verify(graph)
    assert graph["y"].controls == ()
    assert not {"v/fed", "v/assign"} & graph.nodes.keys()
    assert [graph[name].op for name in "vrgs"] == ["Const", "Identity", "GatherV2", "Const"]
    with heald.Session(graph) as session:
        np.testing.assert_array_equal(session.run("y"), -value)
        np.testing.assert_array_equal(session.run("g"), value[[2, 0]])
        assert session.run(["s", "z"])[0].tolist() == [3, 2]
        assert session.run("z").tolist() == [-7]


def test_a_node_that_waits_for_a_read_waits_for_the_effect_before_it():
    other = VARIABLE.replace(name="w")
    assign = Node("a", "AssignVariableOp", ["w", "x"], attrs={"dtype": FLOAT})
    late = Node("late", "ReadVariableOp", ["w"], controls=["r"], attrs={"dtype": FLOAT})
    nodes = [VARIABLE, other, placeholder("x", ()), assign, READ.replace(controls=["a"]), late]
    graph, state = add_initializers(Graph(nodes), {"v": np.array(1, "f4"), "w": np.array(2, "f4")})
    with heald.Session(graph, initial_state=state) as session:
        assert (session.graph["v"].op, session.graph["w"].op) == ("Const", "VarHandleOp")
        assert session.run("late", {"x": 5}) == 5


def test_a_variable_that_is_written_stays_one():
    assign = Node("a", "AssignVariableOp", ["v", "c"], attrs={"dtype": FLOAT})
    reference = Node("o", "VariableV2", attrs={"dtype": FLOAT, "shape": ShapeAttr(())})
    written = Node("p", "Assign", ["o", "c"], attrs={"T": FLOAT})
    graph = frozen(Graph([VARIABLE, READ, const("c", 1), assign, reference, written]),
                   {"v": np.array(2, "f4"), "o": np.array(2, "f4")})
    assert [graph[name].op for name in ("v", "r", "v/fed")] == ["VarHandleOp", "ReadVariableOp", "Placeholder"]
    assert graph["o"].op != "Const"


def test_a_reference_that_is_only_read_is_a_constant():
    reference = Node("o", "VariableV2", attrs={"dtype": FLOAT, "shape": ShapeAttr((2,))})
    graph, state = add_initializers(Graph([reference, neg("y", "o")]), {"o": np.float32([1, 2])})
    with heald.Session(graph, initial_state=state) as session:
        assert session.graph["o"].op == "Const"
        assert session.run("y").tolist() == [-1, -2]


def test_a_variable_that_another_node_shares_stays_one():
    """Two nodes of one shared name are one variable: an assignment through one is seen through the other."""
    first, second = (VARIABLE.replace(name=name, attrs={"shared_name": b"s"}) for name in ("v", "w"))
    assign = Node("a", "AssignVariableOp", ["w", "x"], attrs={"dtype": FLOAT})
    nodes = [first, second, READ, placeholder("x", ()), assign]
    graph, state = add_initializers(Graph(nodes), {"v": np.array(2, "f4")})
    with heald.Session(graph, initial_state=state) as session:
        assert session.run("r") == 2
        session.run([], {"x": 5}, targets=["a"])
        assert session.run("r") == 5


def of_one_element(value):
    """A session over a variable of one element that begins with the given value."""
    nodes = [VARIABLE.replace(attrs={"shape": ShapeAttr((1,))}), READ]
    graph, (first,) = add_initializers(Graph(nodes), {"v": np.float32([0])})
    return heald.Session(graph, initial_state=[first._replace(values=lambda: {"v/fed": value})])


@pytest.mark.parametrize("value", [np.array([2.0]), [2.0]], ids=["type", "list"])
def test_a_value_that_is_no_array_of_the_variables_type_is_left_to_the_assignment(value):
    session = of_one_element(value)
    assert session.graph["v"].op == "VarHandleOp"
    assert session.run("r").tolist() == [2]


def test_a_value_of_another_shape_is_an_error_of_the_assignment():
    session = of_one_element(np.float32([[2]]))
    with pytest.raises(errors.InvalidArgument, match="shape"):
        session.run("r")


def other_target(graph, state):
    return graph, [state[0]._replace(target="r")]


def two_resources(graph, state):
    return graph, [state[0]._replace(resources=frozenset("vr"))]


def twice(graph, state):
    again = graph["v/assign"].replace(name="again")
    fed = graph["v/fed"].replace(name="fed_again")
    return graph.replace(nodes=[again.replace(inputs=["v", fed.name]), fed]), [
        *state, Initializer(frozenset("v"), "again", lambda: {"fed_again": np.array(3, "f4")})]


def assign_before_node(graph, state):
    return graph.replace(nodes=[Node("after", "NoOp", controls=["v/assign"])]), state


def fed_for_another(graph, state):
    return graph.replace(nodes=[neg("also", "v/fed")]), state


def more_values(graph, state):
    return graph, [state[0]._replace(values=lambda: {"v/fed": np.array(2, "f4"), "x": np.array(2, "f4")})]


@pytest.mark.parametrize("change", [
    other_target, two_resources, twice, assign_before_node, fed_for_another, more_values])
def test_only_an_initializer_that_assigns_one_value_makes_a_constant(change):
    graph, state = change(*add_initializers(Graph([VARIABLE, READ, placeholder("x", ())]), {"v": np.array(2, "f4")}))
    with heald.Session(graph, initial_state=state) as session:
        assert session.graph["v"].op == "VarHandleOp"
        assert session.graph.nodes.keys() == graph.nodes.keys()


def test_a_constant_is_no_copy_of_a_read_only_value_and_keeps_off_one_that_may_be_written():
    value = np.arange(4, dtype="f4")
    changed = frozen(Graph([VARIABLE, READ]), {"v": value})["v"].attrs["value"]
    value[:] = 0
    assert changed.array().tolist() == [0, 1, 2, 3]
    value.flags.writeable = False
    same = frozen(Graph([VARIABLE, READ]), {"v": value})["v"].attrs["value"]
    assert np.shares_memory(same.array(), value)


@st.composite
def programs(draw):
    """Nodes that read and write a few variables one after the other, the variables' values, and the reads."""
    count = draw(st.integers(1, 3))
    nodes = [Node(f"v{i}", "VarHandleOp", attrs={
        "dtype": FLOAT, "shape": ShapeAttr((2,)), "shared_name": draw(st.sampled_from([b"", b"a", b"b"]))})
        for i in range(count)]
    ops = {"ReadVariableOp": (), "VariableShape": (), "ResourceGather": ("one",), "AssignAddVariableOp": ("x",),
           "AssignVariableOp": ("x",)}
    effects = [Node(f"e{i}", op, [f"v{draw(st.integers(0, count - 1))}", *ops[op]], attrs={
        "VariableShape": {}, "ResourceGather": {"dtype": FLOAT, "Tindices": dtypes.int32}}.get(op, {"dtype": FLOAT}))
        for i, op in enumerate(draw(st.lists(st.sampled_from(sorted(ops)), min_size=1, max_size=6)))]
    ordered = [effects[0], *(after.replace(controls=[before.name]) for before, after in pairwise(effects))]
    values = {f"v{i}": np.float32([i, i + 0.5]) for i in range(count)}
    nodes += [placeholder("x", (2,)), const("one", 1, np.int32), *ordered]
    return Graph(nodes), values, [node.name for node in ordered if "Assign" not in node.op]


@given(programs())
def test_programs_of_reads_and_writes_give_equal_results_with_constants_and_variables(program):
    graph, values, fetches = program
    graph, state = add_initializers(graph, values)
    with (heald.Session(graph, initial_state=state) as ours,
          heald.Session(graph, WITHOUT, initial_state=state) as theirs):
        for x in ([1, 2], [3, 4]):
            result, other = (session.run(fetches, {"x": x}, targets=[[*graph.nodes][-2 * len(values) - 1]])
                             for session in (ours, theirs))
            for a, b in zip(result, other, strict=True):
                np.testing.assert_array_equal(a, b)
