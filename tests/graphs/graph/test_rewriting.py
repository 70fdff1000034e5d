"""What passes make new nodes with."""

from __future__ import annotations

import numpy as np
from builders.graphs import const, graph, node, placeholder
from heald.api import constant, dtypes, new_name, placed_like, pruned, without_idle_controls
from heald.graphs.graph.graph import TensorValue


def test_a_name_that_is_taken_is_given_with_the_first_number_that_is_free():
    taken = {"n", "n_1", "m"}
    assert [new_name(wanted, taken) for wanted in ("n", "n", "m", "free", "n_2")] == [
        "n_2", "n_3", "m_1", "free", "n_2_1"]
    assert taken == {"n", "n_1", "n_2", "n_2_1", "n_3", "m", "m_1", "free"}


def test_the_array_of_a_constant_is_its_elements_and_no_copy():
    array = np.float32([1, 2])
    made = constant("c", array, "CPU:0")
    assert (made.op, made.device, made.attrs["dtype"]) == ("Const", "CPU:0", dtypes.float32)
    assert np.shares_memory(made.attrs["value"].array(), array)
    assert not array.flags.writeable


def test_a_constant_of_a_value_has_that_value():
    value = TensorValue(np.array([b"a"], object))
    made = constant("c", value)
    assert (made.device, made.attrs["dtype"], made.attrs["value"]) == ("", dtypes.string, value)


def test_a_node_that_is_placed_like_another_asks_for_its_device_and_its_partners():
    like = node("a", "Neg", "x", device="GPU:1", _class=[b"loc:@x"])
    made = placed_like(constant("c", np.float32(1)), like)
    assert (made.name, made.op, made.device, made.attrs["_class"]) == ("c", "Const", "GPU:1", (b"loc:@x",))
    assert "_class" not in placed_like(constant("c", np.float32(1)), node("b", "Neg", "x")).attrs


def test_what_neither_data_nor_control_edges_lead_to_is_pruned():
    given = graph(placeholder("x"), node("idle", "Neg", "x"), node("first", "NoOp"),
                  node("y", "Neg", "x", "^first"), node("later", "Neg", "y"), node("z", "Neg", "y"))
    assert [*pruned(given, ["z"]).nodes] == ["x", "first", "y", "z"]


def test_nobody_waits_for_what_waits_for_nothing():
    """`gate` waits for a constant alone, `after` for that and for something that is run."""
    given = graph(placeholder("x"), const("c", 1), node("run", "Neg", "x"), node("gate", "NoOp", "^c"),
                  node("after", "NoOp", "^gate", "^run"), node("y", "Neg", "x", "^gate", "^after"))
    controls = {each.name: each.controls for each in without_idle_controls(given) if each.controls}
    assert controls == {"after": ("run",), "y": ("after",)}
    controls = {each.name: each.controls for each in without_idle_controls(given, ["run"]) if each.controls}
    assert controls == {}


def test_a_graph_in_which_nobody_waits_in_vain_stays_the_same():
    given = graph(placeholder("x"), node("run", "Neg", "x"), node("y", "Neg", "x", "^run"))
    assert without_idle_controls(given) is given
