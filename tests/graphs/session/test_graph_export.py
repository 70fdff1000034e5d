"""The graphs of a step: the client graph in both conventions, and its partitions, against TensorFlow 2.21's.

Each folder of data/partitions has a graph, a step, and the partitions (RunMetadata.partition_graphs) that TensorFlow
made of it, without Grappler. TensorFlow sorts fetches by name.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import heald
import numpy as np
import pytest
from builders.control_flow import function, loop, program
from builders.control_flow_v1 import INT, ControlFlowBuilder
from builders.graphs import const, graph, node, placeholder
from harness.device_pairs import CONFIG, session_of
from heald import graphdef
from heald.errors import InvalidArgument, NotFound, Unimplemented
from heald.graphs.graph.attr_value import ShapeAttr
from heald.graphs.graph.graph import Node
from heald.graphs.protobuf.descriptor_pool import parse_message
from heald.runtime.values import dtypes

RECORDED = Path(__file__).parents[2] / "data" / "partitions"
CPUS = {"plugin": {"cpu": {"count": 2}}}
CPU0, CPU1, SIM0, SIM1 = (f"/job:localhost/replica:0/task:0/device:{name}"
                          for name in ("CPU:0", "CPU:1", "SIM:0", "SIM:1"))


def without_number(name):
    return re.sub(r"/_\d+$", "/_", name)


def rows(part):
    """The nodes of a partition without the numbers that only count nodes and edges."""
    return Counter((
        without_number(node.name), node.op,
        tuple((without_number(tensor.node), tensor.index) for tensor in node.inputs),
        tuple(sorted(map(without_number, node.controls))), node.device,
        *sorted((key, re.sub(rb"^edge_\d+_", b"", value) if key == "tensor_name" else value)
                for key, value in node.attrs.items() if key != "value"),
    ) for node in part)


def client_graph_rows(session, *arguments, **options):
    """Name, op, inputs and device of each node of a client graph."""
    return [(node.name, node.op, [*map(str, node.inputs), *(f"^{name}" for name in node.controls)], node.device)
            for node in session.client_graph(*arguments, **options)]


@pytest.mark.parametrize("name", sorted(folder.name for folder in RECORDED.iterdir()))
def test_partitions_are_those_of_tensorflow(name):
    step = json.loads((RECORDED / name / "step.json").read_text("utf-8"))
    with heald.Session(graphdef.load(RECORDED / name / "graph.pb"), CPUS) as session:
        parts = session.partitions(**step)
    theirs = {f"{CPU0[:-1]}{path.stem[-1]}": rows(graphdef.load(path)) for path in (RECORDED / name).glob("cpu*.pb")}
    assert {device: rows(part) for device, part in parts.items()} == theirs


def test_a_call_frame_has_arguments_and_results_by_index():
    session = session_of(placeholder("x"), placeholder("unused"), const("c", [1]), node("f", "AddV2", "x", "c"))
    assert client_graph_rows(session, ["f:0", "c"], ["unused", "x"]) == [
        ("_arg_x_0_1", "_Arg", [], CPU0), ("c", "Const", [], CPU0), ("f", "AddV2", ["_arg_x_0_1", "c"], CPU0),
        ("_retval_f_0_0", "_Retval", ["f"], CPU0), ("_retval_c_0_1", "_Retval", ["c"], CPU0)]
    nodes = session.client_graph(["f:0", "c"], ["unused", "x"])
    assert dict(nodes["_arg_x_0_1"].attrs) == {"T": dtypes.float32, "index": 1}
    assert dict(nodes["_retval_c_0_1"].attrs) == {"T": dtypes.float32, "index": 1}


def test_a_rendezvous_receives_feeds_and_sends_fetches():
    session = session_of(placeholder("x"), node("f", "Neg", "x"))
    nodes = session.client_graph(["f", "f:0"], ["x"], convention="rendezvous")
    assert [*nodes.nodes] == ["_recv_x_0", "f", "_send_f_0"]
    shared = {"send_device": CPU0.encode(), "recv_device": CPU0.encode(), "send_device_incarnation": 1,
              "client_terminated": True}
    assert dict(nodes["_recv_x_0"].attrs) == {"tensor_type": dtypes.float32, "tensor_name": b"x:0", **shared}
    assert dict(nodes["_send_f_0"].attrs) == {"T": dtypes.float32, "tensor_name": b"f:0", **shared}


def test_a_feed_replaces_one_tensor_and_control_edges_of_its_placeholder():
    session = session_of(placeholder("x"), node("a", "Neg", "x"), node("b", "Relu", "a", "^a", "^x"))
    assert client_graph_rows(session, "b", ["a", "x"]) == [
        ("_arg_a_0_0", "_Arg", [], CPU0), ("_arg_x_0_1", "_Arg", [], CPU0), ("a", "Neg", ["_arg_x_0_1"], CPU0),
        ("b", "Relu", ["_arg_a_0_0", "^a", "^_arg_x_0_1"], CPU0), ("_retval_b_0_0", "_Retval", ["b"], CPU0)]


def test_a_tensor_that_is_fed_and_fetched_goes_from_feed_to_fetch():
    session = session_of(placeholder("x"))
    assert client_graph_rows(session, "x", ["x"]) == [("_arg_x_0_0", "_Arg", [], CPU0),
                                                      ("_retval_x_0_0", "_Retval", ["_arg_x_0_0"], CPU0)]


def test_nodes_get_default_attributes_and_new_nodes_new_names():
    session = heald.Session(graph(placeholder("x", (2, 2)), node("_arg_x_0_0", "MatMul", "x", "x")))
    nodes = session.client_graph("_arg_x_0_0", ["x"])
    assert [*nodes.nodes] == ["_arg_x_0_0_1", "_arg_x_0_0", "_retval__arg_x_0_0_0_0"]
    assert nodes["_arg_x_0_0"].attrs["transpose_a"] is False
    assert session.graph["_arg_x_0_0"].attrs.get("transpose_a") is None


def test_a_default_that_is_a_shape_is_written_as_one():
    table = Node("t", "MutableHashTableOfTensorsV2", [], attrs={"key_dtype": dtypes.int64, "value_dtype": dtypes.int64})
    size = Node("size", "LookupTableSizeV2", ["t"])
    written = heald.Session(graph(table, size)).client_graph("size")
    assert isinstance(written["t"].attrs["value_shape"], ShapeAttr)
    assert isinstance(graphdef.loads(graphdef.dumps(written))["t"].attrs["value_shape"], ShapeAttr)


def test_a_client_graph_has_the_called_functions_only():
    neg = function("neg", "x", [node("n", "Neg", "x")], {"y": "n:y:0"})
    other = function("other", "x", [node("n", "Neg", "x")], {"y": "n:y:0"})
    below = function("below", "x:float32", [node("l", "Less", "x", "x")], {"z": "l:z:0"}, "z:bool_")
    session = heald.Session(program([placeholder("x"), loop("w", "below", "neg", "x"), node("n", "Neg", "x")],
                                    neg, other, below))
    assert {*session.client_graph("w", ["x"]).functions} == {"neg", "below"}
    assert {*session.client_graph("n", ["x"]).functions} == set()


def test_names_and_conventions_are_checked():
    session = session_of(placeholder("x"), node("f", "Neg", "x"))
    with pytest.raises(InvalidArgument, match="'rendezvous'") as caught:
        session.client_graph("f", ["x"], convention="rendevous")
    assert "did you mean 'rendezvous'" in caught.value.hint
    with pytest.raises(InvalidArgument, match="expected 'call_frame' or 'rendezvous'"):
        session.client_graph("f", ["x"], convention=3)
    with pytest.raises(NotFound, match="no node is called 'g'"):
        session.partitions("g", ["x"])
    with pytest.raises(InvalidArgument, match="you must feed a value for placeholder tensor 'x'"):
        session.partitions("f")


def test_host_memory_has_its_own_sends_and_receives():
    """Reshape reads its shape in host memory; constants on any device are in host memory."""
    session = session_of(placeholder("x"), const("shape", [2, 1], np.int32, device="CPU:0"),
                         const("c", [1], device="SIM:1"),
                         node("r", "Reshape", "x", "shape", device="SIM:0", Tshape=dtypes.int32),
                         node("s", "AddV2", "r", "c", device="SIM:0"))
    parts = session.partitions("s", ["x"])
    ops = {device: Counter(graph_node.op for graph_node in part) for device, part in parts.items()}
    assert ops == {
        CPU0: Counter(["_Arg", "Const", "_Retval", "_Send", "_Send", "_Recv"]),
        SIM0: Counter(["Reshape", "AddV2", "_Recv", "_HostRecv", "_Recv", "_Send"]),
        SIM1: Counter(["Const", "_HostSend"])}
    by_host = next(graph_node for graph_node in parts[SIM0] if graph_node.op == "_HostRecv")
    assert by_host.attrs["_src"] == b"shape"


def test_constants_without_a_request_go_where_their_consumers_are():
    session = session_of(placeholder("x"), const("one", [1]), const("both", [2]),
                   node("a", "AddV2", "one", "both", device="SIM:1"), node("b", "AddV2", "a", "both", device="SIM:0"))
    devices = {graph_node.name: graph_node.device for graph_node in session.client_graph("b")}
    assert (devices["one"], devices["both"]) == (SIM1, CPU0)


def v1_loop(*, split):
    build = ControlFlowBuilder()
    x = build.add("Placeholder", dtype=INT, name="x")
    exits = build.while_loop(lambda a: build.op("Less", a, x), lambda a: [build.op("Mul", a, a)], [build.const(2)])
    built = build.graph()
    sides = {"Less": "CPU:1", "Identity": "CPU:1", "Mul": "CPU:0" if split else "CPU:1"}
    return heald.Session(built.replace(nodes=[node.replace(device=sides[node.op]) for node in built
                                              if node.op in sides]), CPUS), exits[0]


def test_a_loop_of_tensorflow_1_is_whole_on_the_device_of_its_kernels():
    session, exit_ = v1_loop(split=False)
    parts = session.partitions(exit_, ["x"])
    inside = {"Enter", "Merge", "Switch", "Less", "LoopCond", "Mul", "NextIteration", "Exit"}
    assert inside <= {node.op for node in parts[CPU1]}
    assert inside.isdisjoint(node.op for node in parts[CPU0])


def test_a_loop_over_two_devices_runs_and_has_no_partitions():
    session, exit_ = v1_loop(split=True)
    assert session.run(exit_, {"x": 9}) == 16
    assert {node.device for node in session.client_graph(exit_, ["x"])} == {CPU0, CPU1}
    with pytest.raises(Unimplemented, match=r"loop .* is on several devices: 'Mul_.*CPU:0, .*CPU:1") as why:
        session.partitions(exit_, ["x"])
    assert "runs the loop as it is" in why.value.hint


@pytest.mark.parametrize("split", [False, True])
def test_a_while_whose_body_requests_devices(split):
    below = function("below", "x", [node("l", "Less", "x", "x", device="SIM:0")], {"z": "l:z:0"}, "z:bool_")
    body = function("body", "x", [node("n", "Neg", "x", device="SIM:1" if split else "SIM:0")], {"y": "n:y:0"})
    session = heald.Session(program([placeholder("x"), loop("w", "below", "body", "x")], below, body), CONFIG)
    if split:
        with pytest.raises(Unimplemented, match="'body/n' on SIM:1") as caught:
            session.partitions("w", ["x"])
        assert caught.value.node == "w"
    else:
        assert [graph_node.op for graph_node in session.partitions("w", ["x"])[SIM0]].count("While") == 1


def test_a_partition_has_the_functions_that_its_nodes_call():
    below = function("below", "x", [node("l", "Less", "x", "x", device="SIM:0")], {"z": "l:z:0"}, "z:bool_")
    body = function("body", "x", [node("n", "Neg", "x", device="SIM:0")], {"y": "n:y:0"})
    session = heald.Session(program([placeholder("x"), loop("w", "below", "body", "x"),
                                     node("n", "Neg", "w", device="SIM:1")], below, body), CONFIG)
    parts = session.partitions("n", ["x"])
    assert ({*parts[SIM0].functions}, {*parts[SIM1].functions}) == ({"below", "body"}, set())


def test_colocation_with_nodes_of_other_graphs_is_left_out():
    nodes = placeholder("x"), Node("a", "Neg", ["x"], attrs={"T": dtypes.float32, "_class": ["loc:@x", "loc:@b"]}), \
        Node("b", "Neg", ["a"], attrs={"T": dtypes.float32})
    session = session_of(*nodes)
    assert session.client_graph("b", ["x"])["a"].attrs["_class"] == (b"loc:@b",)
    assert "_class" not in session.client_graph("a", ["x"])["a"].attrs


def test_a_partition_is_written_and_read_like_any_graph():
    session = session_of(placeholder("x"), node("a", "Neg", "x", device="SIM:0"), node("b", "Neg", "a", device="SIM:1"))
    for part in session.partitions("b", ["x"]).values():
        again = graphdef.loads(graphdef.dumps(part))
        assert rows(again) == rows(part)


def test_a_run_records_the_partitions_of_its_step():
    """TensorFlow's RunOptions.output_partition_graphs and RunMetadata.partition_graphs."""
    with heald.Session(two_devices(), CPUS) as session:
        metadata = heald.RunMetadata()
        options = heald.RunOptions(partition_graphs=True)
        session.run(["z"], {"x": np.float32([1, 2])}, targets=["y"], options=options, metadata=metadata)
        parts = session.partitions(["z"], ["x"], ["y"])
        assert [*metadata.partition_graphs] == [CPU0, CPU1]
        assert {device: rows(part) for device, part in metadata.partition_graphs.items()} == {
            device: rows(part) for device, part in parts.items()}
        message = parse_message("RunMetadata", metadata.dumps())
        assert [*message.partition_graphs] == [
            parse_message("GraphDef", graphdef.dumps(part)) for part in metadata.partition_graphs.values()]
        session.run("z", {"x": np.float32([1, 2])}, options=heald.RunOptions(trace=True), metadata=metadata)
        assert metadata.partition_graphs == {}
        both = heald.RunOptions(trace=True, partition_graphs=True)
        session.run("z", {"x": np.float32([1, 2])}, options=both, metadata=metadata)
        message = parse_message("RunMetadata", metadata.dumps())
        assert (len(message.partition_graphs), len(message.step_stats.dev_stats)) == (2, 2)
        assert session.run("z", {"x": np.float32([1, 2])}, options=both).tolist() == [1, 2]


def two_devices():
    return graph(placeholder("x"), node("y", "Neg", "x", device="/device:CPU:0"),
                 node("z", "Neg", "y", device="/device:CPU:1"))
