"""Helpers of passes: new names, constants, placement of new nodes, pruning."""

from __future__ import annotations

import numpy as np
from builders.graphs import const, graph, node, placeholder
from heald.api import constant, dtypes, new_name, placed_like, pruned, without_idle_controls
from heald.graphs.graph.graph import TensorValue


def test_a_name_that_is_taken_is_given_with_the_first_number_that_is_free():
    used_names = {"n", "n_1", "m"}
    assert [new_name(preferred_name, used_names) for preferred_name in ("n", "n", "m", "free", "n_2")] == [
        "n_2", "n_3", "m_1", "free", "n_2_1"]
    assert used_names == {"n", "n_1", "n_2", "n_2_1", "n_3", "m", "m_1", "free"}


def test_the_array_of_a_constant_is_its_elements_and_no_copy():
    array = np.float32([1, 2])
    const_node = constant("c", array, "CPU:0")
    assert (const_node.op, const_node.device, const_node.attrs["dtype"]) == ("Const", "CPU:0", dtypes.float32)
    assert np.shares_memory(const_node.attrs["value"].array(), array)
    assert not array.flags.writeable


def test_a_constant_of_a_value_has_that_value():
    value = TensorValue(np.array([b"a"], object))
    const_node = constant("c", value)
    assert (const_node.device, const_node.attrs["dtype"], const_node.attrs["value"]) == ("", dtypes.string, value)


def test_a_node_that_is_placed_like_another_asks_for_its_device_and_its_partners():
    like = node("a", "Neg", "x", device="GPU:1", _class=[b"loc:@x"])
    placed = placed_like(constant("c", np.float32(1)), like)
    assert (placed.name, placed.op, placed.device, placed.attrs["_class"]) == ("c", "Const", "GPU:1", (b"loc:@x",))
    assert "_class" not in placed_like(constant("c", np.float32(1)), node("b", "Neg", "x")).attrs


def test_nodes_without_a_path_to_kept_nodes_are_pruned():
    tested_graph = graph(placeholder("x"), node("idle", "Neg", "x"), node("first", "NoOp"),
                         node("y", "Neg", "x", "^first"), node("later", "Neg", "y"), node("z", "Neg", "y"))
    assert [*pruned(tested_graph, ["z"]).nodes] == ["x", "first", "y", "z"]


def test_control_edges_from_idle_nodes_are_dropped():
    """`gate` waits for a constant alone, `after` for that and for something that is run."""
    tested_graph = graph(placeholder("x"), const("c", 1), node("run", "Neg", "x"), node("gate", "NoOp", "^c"),
                         node("after", "NoOp", "^gate", "^run"), node("y", "Neg", "x", "^gate", "^after"))
    controls = {graph_node.name: graph_node.controls
                for graph_node in without_idle_controls(tested_graph) if graph_node.controls}
    assert controls == {"after": ("run",), "y": ("after",)}
    controls = {graph_node.name: graph_node.controls
                for graph_node in without_idle_controls(tested_graph, ["run"]) if graph_node.controls}
    assert controls == {}


def test_a_graph_in_which_nobody_waits_in_vain_stays_the_same():
    tested_graph = graph(placeholder("x"), node("run", "Neg", "x"), node("y", "Neg", "x", "^run"))
    assert without_idle_controls(tested_graph) is tested_graph
