"""The cost graph of RunMetadata: calls, their times and sizes, and the edges between them."""

from __future__ import annotations

import heald
import numpy as np
from builders.control_flow import function, loop, program
from builders.graphs import FLOAT, const, graph, node, placeholder
from heald.graphs.graph.graph import Node
from heald.graphs.protobuf.descriptor_pool import parse_message

CONFIG = {"passes": {"disable": ["fusion"]}}
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def costs_of(nodes, fetches, feeds):
    metadata = heald.RunMetadata()
    with heald.Session(nodes, CONFIG) as session:
        session.run(fetches, feeds, options=heald.RunOptions(trace=True), metadata=metadata)
    return metadata.trace, parse_message("RunMetadata", metadata.dumps()).cost_graph.node


def test_a_node_has_its_time_its_results_and_the_nodes_before_it():
    """TensorFlow 2.21 writes the same names, edges, shapes and sizes for this graph, beside its _Arg and _Retval."""
    nodes = graph(placeholder("x", (2, 3)),
                  Node("y", "MatMul", ["x", "x"], attrs={"T": FLOAT, "transpose_b": True}),
                  node("z", "Neg", "y"), node("w", "AddV2", "y", "z"))
    trace, costs = costs_of(nodes, "w", {"x": X})
    assert [(row.name, row.device.rpartition("/")[2], row.id) for row in costs] == [
        ("y", "device:CPU:0", 0), ("z", "device:CPU:0", 1), ("w", "device:CPU:0", 2)]
    assert [[(edge.preceding_node, edge.preceding_port) for edge in row.input_info] for row in costs] == [
        [], [(0, 0)], [(0, 0), (1, 0)]]
    assert [row.is_final for row in costs] == [False, False, True]
    for row in costs:
        output, = row.output_info
        assert (output.size, output.dtype, output.alias_input_port) == (16, 1, -1)
        assert [dim.size for dim in output.shape.dim] == [2, 2]
    assert [row.compute_cost for row in costs] == [event.duration_ns // 1000 for event in trace.events]


def test_edges_name_the_output_and_transfers_have_nodes_of_their_own():
    nodes = graph(placeholder("x", (2, 4)), Node("n", "Unpack", ["x"], attrs={"T": FLOAT, "num": 2, "axis": 0}),
                  node("a", "Neg", "n:1"), node("b", "Neg", "a", device="EXAMPLE:0"))
    _, costs = costs_of(nodes, "b", {"x": np.zeros((2, 4), np.float32)})
    rows = {row.name: row for row in costs}
    assert len(rows["n"].output_info) == 2
    edge, = rows["a"].input_info
    assert (edge.preceding_node, edge.preceding_port) == (rows["n"].id, 1)
    copies = [row for row in costs if row.name.endswith(":copy")]
    assert [row.id for row in costs] == [*range(len(costs))]
    assert not copies or copies[0].input_info


def test_a_call_of_a_loop_is_one_node_with_its_longest_time():
    below = function("below", "i x", [const("most", 5), node("test", "Less", "i", "most:output:0")],
                     {"go": "test:z:0"}, results="go:bool_")
    step = function("step", "i x", [const("one", 1), node("next", "AddV2", "i", "one:output:0"),
                                    node("more", "Tanh", "x")], {"i": "next:z:0", "x": "more:y:0"})
    nodes = program([placeholder("i", ()), placeholder("x", ()), loop("w", "below", "step", "i", "x")], below, step)
    trace, costs = costs_of(nodes, "w:1", {"i": 0, "x": 1})
    turns = [event for event in trace.events if event.call.op == "Tanh"]
    row, = [row for row in costs if row.name == turns[0].call.node]
    assert len(turns) == 5
    assert row.compute_cost == max(event.duration_ns for event in turns) // 1000


def test_a_run_without_a_trace_has_no_cost_graph():
    assert not parse_message("RunMetadata", heald.RunMetadata().dumps()).HasField("cost_graph")
