"""LSTMs by the oneDNN pack: cells and sequences, from the graph or from passes, give the results of NumPy's kernels."""

from __future__ import annotations

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from builders.lstm import FLOAT, layer, numbers, outputs_of_unpack, rows, weights
from harness.onednn_pair import AS_WRITTEN, NUMPY_ALONE
from harness.shared_runtimes import shared_runtime
from heald.graphs.graph.graph import Node
from heald_onednn.kernels import recurrent
from hypothesis import given, settings
from hypothesis import strategies as st

SEQUENCES = ("BlockLSTM", "BlockLSTMV2")
WHOLE = {"n:6": "h", "n:1": "cs"}
GENTLE = settings(max_examples=30, deadline=None)


def lstm(op, inputs, cells, time=None, batch=None, **attrs):
    """The op as node `n`, over x, c and h that are fed."""
    x = (batch, inputs) if op == "LSTMBlockCell" else (time, batch, inputs)
    length = [] if op == "LSTMBlockCell" else ["length"]
    plain = {"cell_clip": -1.0, "use_peephole": False} | ({} if op == "BlockLSTMV2" else {"forget_bias": 0.7})
    return [placeholder("x", x), placeholder("c", (batch, cells)), placeholder("h", (batch, cells)),
            const("length", 0 if time is None else time, np.int64), const("w", numbers(inputs + cells, 4 * cells)),
            const("p", numbers(cells)), const("b", numbers(4 * cells, seed=1)),
            node("n", op, *length, "x", "c", "h", "w", "p", "p", "p", "b", **plain | attrs)]


def fed(op, inputs, cells, time, batch, scale=1):
    shape = (batch, inputs) if op == "LSTMBlockCell" else (time, batch, inputs)
    return {"x": numbers(*shape, seed=2) * scale, "c": numbers(batch, cells, seed=3),
            "h": numbers(batch, cells, seed=4)}


def kernel_of_node(nodes, fetches, feed, name="n"):
    """The kernel of a node. Asserts that its results equal NumPy's."""
    with heald.Session(graph(*nodes), shared_runtime(NUMPY_ALONE)) as session:
        want = session.run(fetches, feed)
    with heald.Session(graph(*nodes), shared_runtime(AS_WRITTEN)) as session:
        session.run(fetches, feed)  # the second run finds the frame that the first has made
        got = session.run(fetches, feed)
        kernel = {row["node"]: row["kernel"] for row in session.placement().table()}[name]
    for a, b in zip(want, got, strict=True):
        np.testing.assert_allclose(b, a, rtol=0, atol=1e-5)
    return kernel


@GENTLE
@given(op=st.sampled_from(["LSTMBlockCell", *SEQUENCES]), time=st.integers(1, 4), batch=st.integers(1, 5),
       inputs=st.integers(1, 40), cells=st.integers(1, 40), static=st.booleans(),
       fetches=st.lists(st.sampled_from(sorted(WHOLE)), min_size=1, unique=True))
def test_state_and_hidden_values_are_those_of_numpy(op, time, batch, inputs, cells, static, fetches):
    nodes = lstm(op, inputs, cells, time, batch if static else None)
    assert kernel_of_node(nodes, fetches, fed(op, inputs, cells, time, batch)) == f"onednn.{op}"


@pytest.mark.parametrize("op", ["LSTMBlockCell", *SEQUENCES])
def test_large_numbers_are_squashed_and_nan_stays(op):
    feed = fed(op, 3, 4, 3, 2, scale=1e4)
    kernel_of_node(lstm(op, 3, 4, 3), ["n:6", "n:1"], feed)
    feed["x"][..., 0, 0] = np.nan
    kernel_of_node(lstm(op, 3, 4, 3), ["n:6", "n:1"], feed)


@pytest.mark.parametrize("op", ["LSTMBlockCell", *SEQUENCES])
@pytest.mark.parametrize("case", ["another output", "peepholes", "clipping", "no rows", "weights that are fed"])
def test_numpy_runs_the_lstms_that_the_library_lacks(op, case):
    attrs = {"peepholes": {"use_peephole": True}, "clipping": {"cell_clip": 0.5}}.get(case, {})
    feed = fed(op, 3, 4, 3, 0 if case == "no rows" else 2)
    nodes = lstm(op, 3, 4, 3, 0 if case == "no rows" else 2, **attrs)
    if case == "weights that are fed":
        feed["w"] = numbers(7, 16, seed=8)
    fetches = ["n:6", "n:3"] if case == "another output" else ["n:6"]
    assert kernel_of_node(nodes, fetches, feed) == f"cpu.{op}"


@pytest.mark.parametrize("op", SEQUENCES)
def test_a_sequence_that_may_end_early_is_numpy_s(op):
    nodes, feed = lstm(op, 3, 4, 3), fed(op, 3, 4, 3, 2)
    assert kernel_of_node(nodes, ["n:6"], feed | {"length": 2}) == f"cpu.{op}"
    assert kernel_of_node([*(old for old in nodes if old.name != "length"), const("length", 2, np.int64)],
                          ["n:6"], feed) == f"cpu.{op}"


def test_an_output_that_is_needed_later_is_right_too():
    nodes, feed = lstm("BlockLSTM", 3, 4, 3), fed("BlockLSTM", 3, 4, 3, 2)
    with heald.Session(graph(*nodes), shared_runtime(NUMPY_ALONE)) as numpy, \
            heald.Session(graph(*nodes), shared_runtime(AS_WRITTEN)) as ours:
        for fetches in (["n:6"], ["n:6", "n:1"], ["n:0", "n:6"], ["n:6"], ["n:1"]):
            for a, b in zip(numpy.run(fetches, feed), ours.run(fetches, feed), strict=True):
                np.testing.assert_allclose(b, a, rtol=0, atol=1e-5)


def test_cells_with_the_same_weights_share_their_packed_form(monkeypatch):
    nodes = [*rows(2, 6, 5), *weights(6), *layer(outputs_of_unpack(5)), node("y", "Neg", "4.h")]
    others = [old.replace(attrs={"value": numbers(6, 16, seed=9)}) if old.name == "w" else old for old in nodes]
    packed_arguments, pack = [], recurrent.pack_array
    monkeypatch.setattr(recurrent, "pack_array",
                        lambda *arguments: packed_arguments.append(arguments) or pack(*arguments))
    feed = {"x": numbers(5, 2, 6, seed=3)}
    for count, old in ((2, nodes), (4, others)):
        with heald.Session(graph(*old), NUMPY_ALONE) as session:
            want = session.run("y", feed)
        with heald.Session(graph(*old), {"passes": {"disable": ["sequences"]}}) as session:
            np.testing.assert_allclose(session.run("y", feed), want, rtol=0, atol=1e-5)
        assert len(packed_arguments) == count


@pytest.mark.parametrize("style", ["keras", "tf1"])
@pytest.mark.parametrize("fetches", [["y"], ["y", "z"], ["all"]])
def test_steps_that_are_written_out_are_one_call(style, fetches):
    pack = Node("all", "Pack", [f"{t}.h" for t in range(5)], attrs={"T": FLOAT, "N": 5, "axis": 0})
    nodes = [*rows(None, 6, 5), *weights(6, style), *layer(outputs_of_unpack(5), style), node("y", "Neg", "4.h"),
             node("z", "Neg", "4.c"), pack]
    metadata = heald.RunMetadata()
    for batch in (2, 1):
        feed = {"x": numbers(5, batch, 6, seed=3)}
        with heald.Session(graph(*nodes), shared_runtime(NUMPY_ALONE)) as session:
            want = session.run(fetches, feed)
        with heald.Session(graph(*nodes)) as session:
            got = session.run(fetches, feed, options=heald.RunOptions(trace=True), metadata=metadata)
        for a, b in zip(want, got, strict=True):
            np.testing.assert_allclose(b, a, rtol=0, atol=1e-5)
        calls = [event.call.code for event in metadata.trace.events]
        others = (".Identity", ".Neg", ".StridedSlice")
        assert [code for code in calls if not code.endswith(others)] == ["onednn.BlockLSTM"]
