"""Steps of a session: fetches, feeds and refusals."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict, defaultdict
from typing import NamedTuple

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from heald.errors import FailedPrecondition, HealdError, InvalidArgument, NotFound, Unimplemented
from heald.graphs.graph.attr_value import ShapeAttr
from heald.graphs.graph.graph import Graph, Node
from heald.runtime.values import dtypes


@pytest.fixture
def two_constants() -> heald.Session:
    ids = [Node(f"id{i}", "Identity", [f"c{i}"], attrs={"T": dtypes.float32}) for i in (1, 2)]
    return heald.Session(graph(const("c1", 1), const("c2", 2), *ids))


@pytest.fixture
def product() -> heald.Session:
    nodes = [const("a", [[1, 2], [3, 4]]), const("x", [[1], [1]]), node("y", "MatMul", "a", "x"),
             node("neg", "Neg", "y")]
    return heald.Session(graph(*nodes))


def test_a_fetch_gives_an_array_and_a_target_runs_without_being_returned(product):
    result = product.run("y:0", targets=["neg"])
    assert result.tolist() == [[3], [7]]
    assert product.run(["y:0"], targets=["neg"])[0].tolist() == [[3], [7]]


def test_an_interior_constant_may_be_fed_and_is_itself_again_afterwards(product):
    assert product.run("y:0", {"x:0": np.float32([[5], [6]])}).tolist() == [[17], [39]]
    assert product.run("y:0").tolist() == [[3], [7]]


def test_results_come_in_the_order_and_structure_of_the_fetches(two_constants):
    assert two_constants.run(["id2", "id1"]) == [2, 1]
    assert two_constants.run({"a": "id1", "b": "id2:0"}) == {"a": 1, "b": 2}


class Pair(NamedTuple):
    first: object
    second: object


@pytest.mark.parametrize(("fetches", "expected"), [
    ([], []), ((), ()), ({}, {}), (("id1", "id2"), (1, 2)), (Pair("id2", "id1"), Pair(2, 1)),
    ([["id1"], []], [[1], []]), ({"p": ("id1", ["id2:0"])}, {"p": (1, [2])}),
    (Pair(["id1"], Pair("id2", "id1")), Pair([1], Pair(2, 1))),
    (OrderedDict(z="id1", y="id2"), OrderedDict(z=1, y=2)), (defaultdict(list, k="id1"), defaultdict(list, k=1)),
    ({1: "id1", 2: "id1"}, {1: 1, 2: 1})], ids=str)
def test_structures_of_fetches_come_back_in_their_form(two_constants, fetches, expected):
    """The expected structures are those of TensorFlow's Session.run."""
    for result in (two_constants.run(fetches), two_constants.make_callable(fetches)()):
        assert result == expected
        assert types_in(result) == types_in(expected)


def types_in(structure):
    if not isinstance(structure, list | tuple | dict):
        return None
    parts = structure.values() if isinstance(structure, dict) else structure
    return type(structure), [types_in(part) for part in parts]


def test_a_structure_that_contains_itself_is_refused(two_constants):
    fetches: dict = {}
    fetches["again"] = fetches
    with pytest.raises(InvalidArgument, match="more than 100 levels"):
        two_constants.run(fetches)


@pytest.mark.parametrize("fetches", [None, ["id1", None], {"a": ["id1", b"id2"]}, [[3]]], ids=str)
def test_what_is_no_name_within_a_structure_is_refused(two_constants, fetches):
    with pytest.raises(InvalidArgument, match="fetch"):
        two_constants.run(fetches)


def test_duplicate_fetches_are_separate_arrays_and_writing_them_changes_nothing(two_constants):
    first, second = two_constants.run(["id1", "id1"])
    first[...] = 9
    assert second == 1
    assert two_constants.run("id1") == 1
    assert two_constants.run("c1:0") == 1


def test_a_fed_tensor_that_is_fetched_is_a_copy(two_constants):
    fed = np.float32(7).reshape(())
    result = two_constants.run("c1", {"c1": fed})
    result[...] = 8
    assert fed == 7


def test_a_result_that_views_a_feed_is_a_copy():
    session = heald.Session(graph(placeholder("x", (2, 3)), const("s", [3, 2], np.int32),
                                  node("r", "Reshape", "x", "s", Tshape=dtypes.int32)))
    x = np.zeros((2, 3), np.float32)
    session.run("r", {"x": x})[...] = 1
    assert not x.any()


def test_feeding_one_tensor_under_two_names_is_an_error_and_the_session_goes_on(two_constants):
    with pytest.raises(InvalidArgument, match="fed more than once") as caught:
        two_constants.run("id1", {"c1": 1.0, "c1:0": 2.0})
    assert "under one name" in caught.value.hint
    assert two_constants.run("id1") == 1


@pytest.mark.parametrize("name", ["zzz:0", "zzz", "c9"])
def test_an_unknown_fetch_is_an_error_that_names_what_is_near(two_constants, name):
    with pytest.raises(NotFound, match=name.partition(":")[0]) as caught:
        two_constants.run(name)
    assert caught.value.node == name.partition(":")[0]


def test_a_fetch_of_an_output_that_a_node_lacks_names_the_valid_ones(two_constants):
    with pytest.raises(InvalidArgument, match="'c1:0'"):
        two_constants.run("c1:7")


@pytest.mark.parametrize("name", ["c1:x", 3, None, "c1:-1"])
def test_a_fetch_that_is_no_tensor_name_is_an_error(two_constants, name):
    with pytest.raises(InvalidArgument):
        two_constants.run([name])


def test_a_node_without_outputs_is_run_as_a_target_only():
    session = heald.Session(graph(const("c", 1), Node("done", "NoOp", ["^c"])))
    assert session.run([], targets=["done"]) == []
    with pytest.raises(InvalidArgument, match="targets"):
        session.run("done")


def test_needed_nodes_alone_must_be_fed_and_runnable():
    session = heald.Session(graph(placeholder("p", (2,)), node("n", "Neg", "p"), const("c", 4), node("m", "Neg", "c"),
                                  Node("u", "SomethingNobodyKnows", ["c"])))
    assert session.run("m") == -4
    with pytest.raises(InvalidArgument, match=r"must feed a value for placeholder tensor 'p'.*float.*\[2\]") as caught:
        session.run("n")
    assert (caught.value.node, caught.value.op) == ("p", "Placeholder")
    with pytest.raises(NotFound, match="SomethingNobodyKnows") as unknown:
        session.run("u")
    assert unknown.value.node == "u"


def test_a_control_edge_from_a_fed_placeholder_needs_nothing_more():
    controlled = Node("n", "Neg", ["c", "^p"], attrs={"T": dtypes.float32})
    session = heald.Session(graph(placeholder("p"), const("c", 1), controlled))
    assert session.run("n", {"p": 0.0}) == -1
    with pytest.raises(InvalidArgument, match="must feed"):
        session.run("n")


def test_a_callable_takes_arrays_in_the_order_of_its_feeds():
    session = heald.Session(graph(placeholder("x"), placeholder("y"), node("d", "Sub", "x", "y")))
    subtract = session.make_callable("d", ["x", "y"])
    reverse = session.make_callable(["d:0"], ["y", "x"])
    assert subtract(np.float32([3]), np.float32([1])).tolist() == [2]
    assert reverse(np.float32([3]), np.float32([1]))[0].tolist() == [-2]
    with pytest.raises(InvalidArgument, match="2 arrays"):
        subtract(np.float32([3]))


@pytest.mark.parametrize("feeds", [["x", "y"], {"a": "x", "b": "y"}, {"a": "x", "b": "y", "c": "x:0"}])
def test_a_released_callable_says_so_and_the_others_go_on(feeds):
    session = heald.Session(graph(placeholder("x"), placeholder("y"), node("d", "Sub", "x", "y")))
    subtract, other = session.make_callable("d", feeds), session.make_callable("d", feeds)
    arrays = [np.float32(3), np.float32(1), np.float32(3)][: len(feeds)]
    assert [subtract(*arrays), other(*arrays), subtract(*arrays), other(*arrays)] == [2, 2, 2, 2]
    for _ in range(2):
        subtract.release()
        with pytest.raises(InvalidArgument, match="this callable has been released"):
            subtract(*arrays)
        with pytest.raises(InvalidArgument, match="this callable has been released"):
            subtract(*arrays, options=heald.RunOptions(timeout=5))
    assert other(*arrays) == session.run("d", {"x": arrays[0], "y": arrays[1]}) == 2
    other.release()
    assert session.make_callable("d", feeds)(*arrays) == 2


def test_a_released_callable_is_garbage_at_once():
    session = heald.Session(graph(placeholder("x"), node("d", "Neg", "x")))
    step = session.make_callable("d", ["x"])
    step.release()
    weak = weakref.ref(step)
    del step
    assert weak() is None


def test_a_closed_session_says_so(two_constants):
    step = two_constants.make_callable("id1")
    two_constants.close()
    two_constants.close()
    for run in (lambda: two_constants.run("id1"), step):
        with pytest.raises(FailedPrecondition, match="closed"):
            run()


def test_threads_share_a_session_and_every_result_is_exact():
    nodes = [placeholder("x", (None, 8))]
    for i in range(20):
        nodes.append(node(f"n{i}", "AddV2", f"n{i - 1}" if i else "x", "x"))
    session = heald.Session(graph(*nodes))
    step = session.make_callable("n19", ["x"])
    wrong = []

    def work(seed: int) -> None:
        for i in range(200):
            x = np.full((1 + (seed + i) % 3, 8), seed + i, np.float32)
            if not np.array_equal(step(x), x * 21):
                wrong.append((seed, i))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_session_takes_a_graph_and_says_what_else_it_was_given():
    with pytest.raises(InvalidArgument, match="Session takes a Graph"):
        heald.Session("model.pb")


@pytest.mark.parametrize(("nodes", "message"), [
    ([node("a", "Neg", "b"), node("b", "Neg", "a")], "a cycle: "),
    ([node("a", "Neg", "nowhere")], "'nowhere' does not exist"), ([node("a", "Neg", "a")], "takes itself"),
])
def test_a_graph_made_by_hand_is_verified(nodes, message):
    with pytest.raises(InvalidArgument, match=message):
        heald.Session(graph(*nodes))


def test_a_graph_for_newer_readers_is_refused():
    from heald.graphs.graph.graph import Versions

    with pytest.raises(InvalidArgument, match="99999"):
        heald.Session(Graph([const("c", 1)], versions=Versions(producer=99999, min_consumer=99999)))


@pytest.mark.parametrize(("attrs", "message"), [
    ({"T": dtypes.string}, "T.*not among"),
    ({"T": 3}, "must be type"),
    ({"T": dtypes.float32, "wrong": 1}, "no attribute 'wrong'"),
    ({}, "missing"),
])
def test_a_node_whose_attributes_do_not_fit_its_op_is_an_error_of_the_step_that_needs_it(attrs, message):
    session = heald.Session(graph(const("c", 1), Node("n", "Neg", ["c"], attrs=attrs)))
    assert session.run("c") == 1
    with pytest.raises(InvalidArgument, match=message) as caught:
        session.run("n")
    assert (caught.value.node, caught.value.op) == ("n", "Neg")


def test_edges_of_the_wrong_type_or_number_are_errors_that_name_both_ends():
    session = heald.Session(graph(const("c", 1), const("i", 1, np.int32), node("n", "AddV2", "c", "i"),
                                  node("m", "AddV2", "c"), node("k", "Neg", "c:3")))
    with pytest.raises(InvalidArgument, match="must be float32, but 'i:0'.*is int32"):
        session.run("n")
    with pytest.raises(InvalidArgument, match="takes 2 inputs"):
        session.run("m")
    with pytest.raises(InvalidArgument, match="output 3 of 'c'"):
        session.run("k")


def test_a_constant_of_another_type_than_it_says_is_an_error():
    node_ = Node("c", "Const", attrs={"dtype": dtypes.int32, "value": np.ones(2, np.float32)})
    with pytest.raises(InvalidArgument, match="'value' is float32, 'dtype' says int32"):
        heald.Session(graph(node_)).run("c")


def test_attributes_that_a_node_lacks_have_their_defaults():
    x = const("x", np.ones((1, 4, 4, 1)))
    f = const("f", np.ones((2, 2, 1, 1)))
    conv = node("y", "Conv2D", "x", "f", strides=[1, 1, 1, 1], padding="VALID")
    assert heald.Session(graph(x, f, conv)).run("y").ravel().tolist() == [4] * 9


def test_a_deprecated_op_is_refused_for_graphs_that_are_too_new():
    bn = Node("b", "BatchNormWithGlobalNormalization", ["c"] * 5,
              attrs={"T": dtypes.float32, "variance_epsilon": 0.1, "scale_after_normalization": True})
    from heald.graphs.graph.graph import Versions

    session = heald.Session(Graph([const("c", 1), bn], versions=Versions(producer=2474)))
    with pytest.raises(Unimplemented, match="deprecated since GraphDef version 9"):
        session.run("b")


def test_errors_of_metadata_functions_name_the_node_before_anything_runs():
    session = heald.Session(graph(placeholder("x", (2, 3)), placeholder("y", (3, 2)), node("bad", "AddV2", "x", "y")))
    with pytest.raises(InvalidArgument, match=r"Incompatible shapes: \[2,3\] vs. \[3,2\]") as caught:
        session.make_callable("bad", ["x", "y"])
    assert (caught.value.node, caught.value.op) == ("bad", "AddV2")


def test_a_fault_inside_is_a_heald_error(two_constants, monkeypatch):
    def raise_runtime_error(*args):
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr("heald.graphs.session.session.StepCompiler", raise_runtime_error)
    with pytest.raises(HealdError, match="a fault of ours"):
        two_constants.run("id1")


def test_an_output_of_an_unknown_op_is_named_by_a_warning_when_it_is_left_out(tmp_path):
    heald.graphdef.dump(graph(placeholder("x", ()), node("y", "Neg", "x"), node("z", "Nagate", "x")),
                        tmp_path / "model.pb")
    with pytest.warns(heald.errors.HealdWarning, match="output 'z' is left out: no op is called 'Nagate'"):
        model = heald.load(tmp_path / "model.pb")
    assert list(model.outputs) == ["y"]


def test_many_outputs_of_unknown_ops_are_counted_by_one_warning(tmp_path):
    unknown = [node(f"z{i}", f"Nagate{i}", "x") for i in range(30)]
    heald.graphdef.dump(graph(placeholder("x", ()), node("y", "Neg", "x"), *unknown), tmp_path / "model.pb")
    with pytest.warns(heald.errors.HealdWarning) as warned:
        heald.load(tmp_path / "model.pb")
    assert len(warned) == 11
    assert str(warned[-1].message).startswith("20 more outputs are left out; ")


@pytest.mark.parametrize("dtype", [dtypes.int32, dtypes.int64])
def test_integers_have_no_kernel_for_realdiv_as_in_tensorflow(dtype):
    nodes = graph(placeholder("x", (2,), dtype), node("y", "RealDiv", "x", "x", T=dtype))
    with heald.Session(nodes) as session, pytest.raises(Unimplemented, match="no kernel for op RealDiv with types int"):
        session.run("y", {"x": [1, 2]})


def test_a_models_outputs_are_no_nodes_that_only_act_or_have_no_value_of_their_own(tmp_path):
    nodes = [placeholder("x", (2,)), placeholder("idle", (2,)), const("c", 1), Node("group", "NoOp", controls=["c"]),
             node("y", "Neg", "x"), node("shown", "Print", "x", "x", U=(dtypes.float32,), message="x: ")]
    heald.graphdef.dump(Graph(nodes), tmp_path / "model.pb")
    assert list(heald.load(tmp_path / "model.pb").outputs) == ["y"]


def test_reads_of_frozen_variables_are_outputs_only_where_there_are_no_others(tmp_path):
    reads = [const("w", 1), node("w/read", "Identity", "w")]
    heald.graphdef.dump(Graph(reads), tmp_path / "reads.pb")
    heald.graphdef.dump(Graph([*reads, placeholder("x", (2,)), node("y", "Neg", "x")]), tmp_path / "model.pb")
    assert list(heald.load(tmp_path / "reads.pb").outputs) == ["w/read"]
    assert list(heald.load(tmp_path / "model.pb").outputs) == ["y"]


def test_a_handle_is_no_output_of_a_model(tmp_path):
    heald.graphdef.dump(Graph([
        placeholder("x", (2,)), node("y", "Neg", "x"),
        Node("v", "VarHandleOp", attrs={"dtype": dtypes.float32, "shape": ShapeAttr((2,))}),
    ]), tmp_path / "model.pb")
    assert list(heald.load(tmp_path / "model.pb").outputs) == ["y"]
