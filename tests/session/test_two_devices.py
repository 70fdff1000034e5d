"""One program over several devices: what is fetched, fed, run for its effect, and how often values cross."""

from __future__ import annotations

import numpy as np
import pytest
import weft
from build import const, graph, node, placeholder
from threads import in_threads
from weft.errors import InvalidArgument

CONFIG = {"plugin": {"example": {"devices": 2}}}
FIRST, SECOND = "EXAMPLE:0", "EXAMPLE:1"


def session(*nodes, **config):
    return weft.Session(graph(*nodes), CONFIG | config)


def copies(metadata):
    """The transfers of a traced run: (node that wants the value, device)."""
    return [(e.call.node, e.device) for e in metadata.trace.events
            if e.call.code == "weft.copy" and not e.is_asynchronous]


def traced(made, *arguments, **options):
    metadata = weft.RunMetadata()
    return made.run(*arguments, options=weft.RunOptions(trace=True), metadata=metadata, **options), metadata


def test_a_target_runs_and_gives_nothing():
    made = session(const("A", [[3, 2], [-1, 0]]), const("x", [[1], [1]]),
                   node("y", "MatMul", "A", "x", device=FIRST, transpose_a=False, transpose_b=False),
                   node("neg", "Neg", "y", device=SECOND))
    results, metadata = traced(made, ["y:0"], targets=["neg"])
    assert [r.tolist() for r in results] == [[[5], [-1]]]
    assert [e.device for e in metadata.trace.events if e.call.node == "neg" and e.call.code != "weft.copy"] == [SECOND]


def test_a_constant_on_one_device_may_be_fed_for_another_and_is_itself_again_later():
    made = session(const("A", [[1, 2], [3, 4]]), const("x", [[1], [1]]), node("n", "Neg", "x", device=SECOND),
                   node("y", "Sub", "x", "n", device=FIRST), node("z", "Neg", "y", device=SECOND))
    assert made.run("z").tolist() == [[-2], [-2]]
    assert made.run("z", {"x": [[5], [6]]}).tolist() == [[-10], [-12]]
    assert made.run("z").tolist() == [[-2], [-2]]


def test_a_value_that_two_on_another_device_need_crosses_once():
    made = session(placeholder("x", (2,)), node("a", "Neg", "x", device=FIRST), node("b", "Neg", "a", device=SECOND),
                   node("c", "Relu", "a", device=SECOND), node("d", "AddV2", "b", "c", device=SECOND))
    result, metadata = traced(made, "d", {"x": np.float32([1, -2])})
    assert result.tolist() == [1, 0]
    there = [device for _, device in copies(metadata)]
    assert (there.count(FIRST), there.count(SECOND)) == (2, 2)  # x in, a out; a in, d out


def test_results_come_in_the_order_in_which_they_are_fetched_and_are_ones_own():
    made = session(const("one", [1]), const("two", [2]), node("id1", "Identity", "one", device=FIRST),
                   node("id2", "Identity", "two", device=SECOND))
    first = made.run(["id2", "id1", "id1"])
    assert [r.tolist() for r in first] == [[2], [1], [1]]
    first[1][:] = 9
    assert [r.tolist() for r in made.run(["id1", "id2"])] == [[1], [2]]
    assert first[2].tolist() == [1]


def test_a_tensor_is_fed_once():
    made = session(const("c", [1]), node("n", "Neg", "c", device=FIRST))
    with pytest.raises(InvalidArgument, match="fed more than once"):
        made.run("n", {"c": [1], "c:0": [2]})
    assert made.run("n").tolist() == [-1]


def test_a_graph_saved_for_gpus_runs_where_config_maps_them_to():
    nodes = placeholder("x", (2,)), node("n", "Neg", "x", device="/device:GPU:1")
    made = session(*nodes, placement={"remap": {"GPU:*": "EXAMPLE:0"}, "fallback": "error"})
    assert made.run("n", {"x": [1, 2]}).tolist() == [-1, -2]
    row = next(row for row in made.placement().table() if row["node"] == "n")
    assert (row["requested"], row["assigned"]) == ("/device:GPU:1", FIRST)


def test_threads_share_a_session_over_two_devices():
    made = session(placeholder("x", (2,)), node("a", "Neg", "x", device=FIRST), node("b", "Square", "a"),
                   node("c", "Neg", "b", device=SECOND))
    step = made.make_callable("c", ["x"])

    def work(thread):
        for i in range(100):
            x = np.float32([thread, i])
            assert step(x).tolist() == (-x * x).tolist()

    in_threads(work)
