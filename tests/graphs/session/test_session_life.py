"""A session's life: extend, reset, close."""

from __future__ import annotations

import threading

import heald
import numpy as np
import pytest
from builders.control_flow import call, function, program
from builders.graphs import FLOAT, const, graph, node, placeholder
from harness.saved_values import add_initializers
from heald.api import Initializer
from heald.errors import Cancelled, FailedPrecondition, HealdError, InvalidArgument
from heald.graphs.graph.attr_value import ShapeAttr
from heald.graphs.graph.graph import Graph, Node, Versions
from heald.runtime.values import dtypes
from plugins_for_tests import plugin

X = np.float32([1, 2, 3])


def variable(name, container=b""):
    attrs = {"dtype": FLOAT, "shape": ShapeAttr((3,)), "shared_name": name.encode(), "container": container}
    return [Node(name, "VarHandleOp", attrs=attrs),
            Node(f"{name}/set", "AssignVariableOp", [name, "x"], attrs={"dtype": FLOAT}),
            Node(f"{name}/get", "ReadVariableOp", [name], attrs={"dtype": FLOAT})]


@pytest.fixture
def session():
    with heald.Session(graph(placeholder("x", (3,)), node("y", "Neg", "x"), *variable("v"))) as session:
        yield session


def test_a_variable_keeps_its_value_from_run_to_run_and_no_other_session_has_it(session):
    session.run([], {"x": X}, targets=["v/set"])
    for _ in range(2):
        assert session.run("v/get").tolist() == X.tolist()
    with heald.Session(session.graph) as other:
        with pytest.raises(FailedPrecondition, match="variable 'v' is uninitialized"):
            other.run("v/get")
        other.run([], {"x": -X}, targets=["v/set"])
    assert session.run("v/get").tolist() == X.tolist()


def test_new_nodes_use_the_nodes_and_the_state_of_the_session(session):
    step = session.make_callable("y", ["x"])
    session.run([], {"x": X}, targets=["v/set"])
    session.extend(graph(node("z", "AddV2", "y", "v/get")))
    assert session.run("z", {"x": X}).tolist() == [0, 0, 0]
    assert step(X).tolist() == (-X).tolist()
    session.extend(graph(node("zz", "Neg", "z")))
    assert session.run(["z", "zz", "v/get"], {"x": 2 * X})[1].tolist() == X.tolist()


@pytest.mark.parametrize("suffix", [".pb", ".pbtxt"])
def test_nodes_from_a_file_use_the_nodes_of_the_session(session, tmp_path, suffix):
    path, whole = tmp_path / f"more{suffix}", tmp_path / f"whole{suffix}"
    heald.graphdef.dump(Graph([node("z", "Neg", "y"), node("w", "AddV2", "z", "v/get")]), path)
    session.run([], {"x": X}, targets=["v/set"])
    with pytest.raises(InvalidArgument, match="input 'y' does not exist"):
        heald.graphdef.load(path)
    session.extend(heald.graphdef.load(path, partial=True))
    assert session.run("w", {"x": X}).tolist() == (2 * X).tolist()
    heald.graphdef.dump(Graph([node("u", "Neg", "gone"), node("t", "Neg", "y")]), whole)
    more = heald.graphdef.load(whole, partial=True)
    for use in (session.extend, heald.Session):
        with pytest.raises(InvalidArgument, match="input '(gone|y)' does not exist"):
            use(more)
    data = heald.graphdef.dumps(Graph([node("s", "Neg", "w")]))
    session.extend(heald.graphdef.loads(data, partial=True))
    assert session.run("s", {"x": X}).tolist() == (-2 * X).tolist()


@pytest.mark.parametrize("nodes", [
    [node("bad name", "Neg", "y")], [node("", "Neg", "y")], [node("z", "", "y")], [node("z", "Neg", "z")],
    [node("z", "Neg", "y:7")], [node("z", "Neg", "w"), node("w", "Neg", "z")],
])
def test_a_partial_graph_that_is_not_well_formed_is_refused_by_the_session(session, nodes):
    def extend_and_run():
        session.extend(heald.graphdef.loads(heald.graphdef.dumps(Graph(nodes)), partial=True))
        session.run("z", {"x": X})

    with pytest.raises(InvalidArgument):
        extend_and_run()


def test_a_reference_variable_keeps_its_value_and_serves_new_nodes():
    attrs = {"dtype": FLOAT, "shape": ShapeAttr((3,)), "shared_name": b"", "container": b""}
    nodes = [placeholder("x", (3,)), Node("v", "VariableV2", attrs=attrs), node("set", "Assign", "v", "x")]
    with heald.Session(graph(*nodes)) as session:
        session.run("set", {"x": X})
        session.extend(graph(node("add", "AssignAdd", "v", "x"),
                             Node("out", "Neg", ["v"], controls=["add"], attrs={"T": FLOAT})))
        assert session.run("out", {"x": X}).tolist() == (-2 * X).tolist()
        assert session.run("v").tolist() == (2 * X).tolist()


def test_a_reference_variable_that_is_read_too_early_says_what_to_run_first():
    attrs = {"dtype": FLOAT, "shape": ShapeAttr((3,)), "shared_name": b"", "container": b""}
    nodes = [placeholder("x", (3,)), Node("v", "VariableV2", attrs=attrs), node("set", "Assign", "v", "x"),
             node("y", "Neg", "v")]
    with heald.Session(graph(*nodes)) as session:
        with pytest.raises(FailedPrecondition, match="variable 'v' is uninitialized") as caught:
            session.run("y")
        assert caught.value.hint == "run the variable's initializer first"
        session.run("set", {"x": X})
        assert session.run("y").tolist() == (-X).tolist()


def test_new_functions_come_with_the_nodes_that_call_them(session):
    twice = function("twice", "x", [node("sum", "AddV2", "x", "x")], {"y": "sum:z:0"})
    session.extend(program([call("z", "twice", "y")], twice))
    session.extend(program([call("zz", "twice", "z")], twice))
    assert session.run("zz", {"x": X}).tolist() == (-4 * X).tolist()
    other = function("twice", "x", [node("sum", "Mul", "x", "x")], {"y": "sum:z:0"})
    with pytest.raises(InvalidArgument, match="the session has another function 'twice'"):
        session.extend(program([call("zzz", "twice", "z")], other))


@pytest.mark.parametrize(("nodes", "text"), [
    ([node("z", "Neg", "x"), node("y", "Neg", "x")], "the session has a node 'y' already"),
    ([node("z", "Neg", "gone")], "gone"),
    ([node("z", "Neg", "zz"), node("zz", "Neg", "z")], "cycle"),
])
def test_a_failed_extension_adds_no_node(session, nodes, text):
    before = [*session.graph.nodes]
    with pytest.raises(InvalidArgument, match=text):
        session.extend(Graph(nodes))
    assert [*session.graph.nodes] == before
    with pytest.raises(HealdError):
        session.run("z", {"x": X})
    assert session.run("y", {"x": X}).tolist() == (-X).tolist()


def test_an_extension_of_another_producer_is_refused(session):
    with pytest.raises(InvalidArgument, match="GraphDef version 7"):
        session.extend(Graph([node("z", "Neg", "x")], versions=Versions(7)))


@pytest.mark.parametrize("extension", [None, b"", "graph.pb", [node("z", "Neg", "x")]])
def test_an_extension_is_a_graph(session, extension):
    with pytest.raises(InvalidArgument, match="extend takes a Graph"):
        session.extend(extension)


def test_nodes_keep_their_devices_when_the_graph_grows():
    tested_graph = graph(placeholder("x", (3,)), node("y", "Neg", "x"))
    with heald.Session(tested_graph, {"placement": {"fallback": "allow"}}, device="EXAMPLE:0") as session:
        reason = session.placement()["y"].reason
        session.extend(graph(node("z", "Neg", "y", device="CPU:0", _class=[b"loc:@y"]), node("w", "Neg", "y")))
        assert {name: row.device for name, row in session.placement().items() if row.kernel} == {
            "y": "EXAMPLE:0", "z": "EXAMPLE:0", "w": "EXAMPLE:0"}
        assert session.placement()["y"].reason == reason
        assert session.run(["z", "w"], {"x": X})[0].tolist() == X.tolist()


def test_a_session_grows_while_others_run(session):
    failed = []

    def runs():
        try:
            for _ in range(200):
                assert session.run("y", {"x": X}).tolist() == (-X).tolist()
        except Exception as error:  # noqa: BLE001
            failed.append(error)

    threads = [threading.Thread(target=runs) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(20):
        session.extend(graph(node(f"z{number}", "Neg", f"z{number - 1}" if number else "y")))
    for thread in threads:
        thread.join()
    assert not failed
    assert session.run("z19", {"x": X}).tolist() == (-X).tolist()


def test_a_reset_drops_the_state_of_a_container():
    nodes = [placeholder("x", (3,)), *variable("v"), *variable("w", b"kept")]
    with heald.Session(graph(*nodes)) as session:
        session.run([], {"x": X}, targets=["v/set", "w/set"])
        read = session.make_callable("v/get")
        assert read().tolist() == X.tolist()
        session.reset()
        for run in (read, lambda: session.run("v/get")):
            with pytest.raises(FailedPrecondition, match="variable 'v' is uninitialized"):
                run()
        assert session.run("w/get").tolist() == X.tolist()
        session.reset(["kept"])
        with pytest.raises(FailedPrecondition, match="variable 'w' is uninitialized"):
            session.run("w/get")
        session.run([], {"x": 2 * X}, targets=["v/set"])
        assert read().tolist() == (2 * X).tolist()


def test_a_callable_begins_with_the_initial_state_again_after_a_reset():
    nodes, state = add_initializers(graph(placeholder("x", (3,)), *variable("v")), {"v": X})
    with heald.Session(nodes, initial_state=state) as session:
        read, values = session.make_callable("v/get"), []
        for change in (lambda: session.run([], {"x": 2 * X}, targets=["v/set"]), session.reset):
            change()
            values.append(read().tolist())
    assert values == [(2 * X).tolist(), X.tolist()]


def test_an_initializer_for_all_steps_runs_before_any_step_and_after_the_earlier_ones():
    nodes, state = add_initializers(graph(placeholder("x", (3,)), *variable("v"), *variable("w")), {"v": X})
    nodes = nodes.replace(nodes=[node("u", "Neg", "x"),
                                 Node("copy", "AssignVariableOp", ["w", "v/get"], attrs={"dtype": FLOAT})])
    with heald.Session(nodes, initial_state=[*state, Initializer(frozenset(), "copy", for_all_steps=True)]) as session:
        assert session.run("u", {"x": X}).tolist() == (-X).tolist()
        session.run([], {"x": 2 * X}, targets=["v/set"])
        assert session.run(["v/get", "w/get"])[1].tolist() == X.tolist()


def test_random_sequences_go_on_after_a_reset():
    nodes = [const("shape", [2], np.int32),
             Node("r", "RandomUniform", ["shape"], attrs={"T": dtypes.int32, "dtype": FLOAT, "seed": 1, "seed2": 2})]
    with heald.Session(graph(*nodes)) as one, heald.Session(graph(*nodes)) as other:
        expected = [other.run("r").tolist() for _ in range(2)]
        first = one.run("r").tolist()
        one.reset()
        assert [first, one.run("r").tolist()] == expected


def record_error_of_run(session, errors):
    try:
        session.run("z", {"x": X})
    except HealdError as error:
        errors.append(error)


def test_a_reset_and_an_end_cancel_what_runs():
    nodes = [placeholder("x", (3,)), node("z", "Test>Block", "x", "x")]
    for end in (heald.Session.reset, heald.Session.close):
        session = heald.Session(graph(*nodes), {"plugins": {"load": [plugin("tests")]}})
        errors = []
        thread = threading.Thread(target=record_error_of_run, args=(session, errors))
        thread.start()
        session.prepare("z", ["x"])
        while thread.is_alive():
            end(session)
            thread.join(0.05)
        assert [type(error) for error in errors] in ([Cancelled], [FailedPrecondition])
        session.close()


def test_every_call_after_the_end_says_that_the_session_is_closed(session):
    step = session.make_callable("y", ["x"])
    session.close()
    session.close()
    for use in (lambda: step(X), lambda: session.run("y", {"x": X}), lambda: session.make_callable("y", ["x"]),
                lambda: session.extend(graph(node("z", "Neg", "y"))), session.reset,
                lambda: session.prepare("y", ["x"])):
        with pytest.raises(FailedPrecondition, match="the session has been closed"):
            use()
