"""_SwitchN: TensorFlow's lowered form of Case, as a function of each branch and with dead values."""

from __future__ import annotations

from pathlib import Path

import heald
import numpy as np
import pytest
from builders.graphs import FLOAT, node, placeholder
from heald.errors import InvalidArgument
from heald.graphs.compiler.functionalize import functionalize
from heald.graphs.graph.graph import Graph, Node
from heald.graphs.graph.graphdef import load
from heald.graphs.graph.verifier import verify
from heald.runtime.contract.structural import V1_CONTROL_FLOW
from heald.runtime.service.runtime import runtime
from heald.runtime.values import dtypes

LOWERED = Path(__file__).parents[2] / "data" / "graphs" / "v1_switch_case.pb"  # two nested tf.switch_case


def test_a_lowered_case_becomes_a_case_of_functions():
    result = functionalize(load(LOWERED), ["Identity", "Identity_1"], runtime().host.registries.ops)
    verify(result)
    ops = [node.op for node in result]
    for function in result.functions.values():
        ops += [node.op for node in function.nodes.values()]
    assert V1_CONTROL_FLOW.isdisjoint(ops)
    assert ops.count("StatelessCase") == 2


@pytest.mark.parametrize(("index", "expected", "branch"), [  # TensorFlow's results
    (-1, [9, 16], 2), (0, [4, 5], 0), (1, [6, 8], 1), (2, [9, 16], 2), (3, [9, 16], 2), (7, [9, 16], 2)])
def test_a_lowered_case_gives_the_results_of_tensorflow(index, expected, branch):
    with heald.Session(load(LOWERED)) as session:
        values, number = session.run(["Identity:0", "Identity_1:0"],
                                     {"i:0": np.int32(index), "x:0": np.array([3, 4], np.float32)})
    assert values.tolist() == expected
    assert number == branch


def unstructured_switch():
    """A _SwitchN of three outputs, of which a Merge takes two: one output has no way out."""
    return Graph([placeholder("x", ()), placeholder("i", None, dtypes.int32),
                  Node("s", "_SwitchN", ["x", "i"], attrs={"T": FLOAT, "num_outs": 3}), node("neg", "Neg", "s:1"),
                  Node("y", "Merge", ["s", "neg"], attrs={"T": FLOAT, "N": 2})])


@pytest.mark.parametrize(("index", "result", "live_output"), [(0, 3, 0), (1, -3, 1)])
def test_outputs_that_do_not_become_functions_pass_dead_values_on(index, result, live_output):
    with heald.Session(unstructured_switch()) as session:
        assert session.run(["y:0", "y:1"], {"x": np.float32(3), "i": np.int32(index)}) == [result, live_output]


@pytest.mark.parametrize("index", [2, 5, -1])
def test_the_last_output_is_alive_for_an_index_out_of_range(index):
    with heald.Session(unstructured_switch()) as session:
        feeds = {"x": np.float32(3), "i": np.int32(index)}
        assert session.run("s:2", feeds) == 3
        with pytest.raises(InvalidArgument, match="dead"):
            session.run("y:0", feeds)


@pytest.mark.parametrize(("index", "alive"), [(0, "s:0"), (1, "s:1"), (2, "s:2")])
def test_a_fetched_output_of_a_branch_that_was_not_taken_is_an_error(index, alive):
    feeds = {"x": np.float32(3), "i": np.int32(index)}
    with heald.Session(unstructured_switch()) as session:
        for dead in sorted({"s:0", "s:1", "s:2"} - {alive}):
            with pytest.raises(InvalidArgument, match=f"'{dead}' is dead") as caught:
                session.run([alive, dead], feeds)
            assert caught.value.node == "s"
            with pytest.raises(InvalidArgument, match=f"'{dead}' is dead"):
                session.run(dead, feeds)
        assert session.run(alive, feeds) == 3


@pytest.mark.parametrize(("condition", "alive", "dead"), [(True, "s:1", "s:0"), (False, "s:0", "s:1")])
@pytest.mark.parametrize("options", [None, heald.RunOptions(timeout=60), heald.RunOptions(trace=True)],
                         ids=["plain", "deadline", "trace"])
def test_a_fetched_dead_output_of_a_switch_without_consumers_is_an_error(condition, alive, dead, options):
    lone = Graph([placeholder("x", ()), placeholder("p", None, dtypes.bool_),
                  Node("s", "Switch", ["x", "p"], attrs={"T": FLOAT}), node("after", "Neg", dead)])
    feeds = {"x": np.float32(3), "p": np.bool_(condition)}
    with heald.Session(lone) as session:
        for fetched in (dead, [alive, dead], [dead, alive], [alive, "after"]):
            with pytest.raises(InvalidArgument, match="is dead"):
                session.run(fetched, feeds, options=options)
        assert session.run(alive, feeds, options=options) == 3
        assert session.run([], feeds, targets=["s"], options=options) == []


def test_an_index_that_is_no_scalar_is_refused():
    with heald.Session(unstructured_switch()) as session, pytest.raises(InvalidArgument, match=r"shape \[2\]"):
        session.run("y:0", {"x": np.float32(3), "i": np.zeros(2, np.int32)})
