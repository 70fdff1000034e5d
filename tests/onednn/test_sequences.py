"""Recurrent layers over a whole sequence by the oneDNN pack: the results are those of NumPy's kernels."""

from __future__ import annotations

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from builders.lstm import numbers
from harness.onednn_pair import AS_WRITTEN, NUMPY_ALONE
from harness.shared_runtimes import shared_runtime

GATES = {"_GRUSequence": 3, "_LSTMSequence": 4, "_RNNSequence": 1}
TIME = 5
INPUTS = {"_GRUSequence": "lxhwubr", "_LSTMSequence": "lxhcwub", "_RNNSequence": "lxhwub"}


def layer(op, inputs=3, cells=4, length=TIME, mask=False, **attrs):
    columns = GATES[op] * cells
    names = [*INPUTS[op], *("m" * mask)]
    return [placeholder("x", (TIME, None, inputs)), placeholder("h", (None, cells)), placeholder("c", (None, cells)),
             const("l", length, np.int32), const("w", numbers(inputs, columns, seed=1)),
             const("u", numbers(cells, columns, seed=2)), const("b", numbers(columns, seed=3)),
             const("r", numbers(cells, seed=4)), const("m", numbers(TIME, 2, seed=8) > 0, bool),
             node("n", op, *names, N=int(mask), **attrs)]


def kernel(nodes, fetches, inputs=3, cells=4, batch=2):
    """The kernel of the layer. Asserts that its results equal NumPy's."""
    feed = {"x": numbers(TIME, batch, inputs, seed=5), "h": numbers(batch, cells, seed=6),
            "c": numbers(batch, cells, seed=7)}
    feed = {name: value for name, value in feed.items() if name in {source.node for source in nodes[-1].inputs}}
    nodes = [one for one in nodes if one.name in feed or one.op != "Placeholder"]
    with heald.Session(graph(*nodes), shared_runtime(NUMPY_ALONE)) as session:
        want = session.run(fetches, feed)
    with heald.Session(graph(*nodes), shared_runtime(AS_WRITTEN)) as session:
        session.run(fetches, feed)  # the second run finds the frame that the first has made
        got = session.run(fetches, feed)
        name = {row["node"]: row["kernel"] for row in session.placement().table()}["n"]
    for a, b in zip(want, got, strict=True):
        np.testing.assert_allclose(b, a, rtol=0, atol=1e-5)
    return name


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("fetches", [["n:0"], ["n:1"], ["n:2"], ["n:0", "n:2"]])
@pytest.mark.parametrize("size", [(3, 4, 2), (1, 1, 1), (17, 33, 3)])
def test_results_are_those_of_numpy(op, fetches, size):
    inputs, cells, batch = size
    assert kernel(layer(op, inputs, cells), fetches, inputs, cells, batch) == f"onednn.{op}"


def test_the_last_state_of_an_lstm_is_returned():
    assert kernel(layer("_LSTMSequence"), ["n:3", "n:2"]) == "onednn._LSTMSequence"
    assert kernel(layer("_LSTMSequence"), ["n:3"]) == "onednn._LSTMSequence"


def test_the_reset_of_a_gru_may_come_before_the_product():
    assert kernel(layer("_GRUSequence", reset_after=False), ["n:0"]) == "onednn._GRUSequence"


@pytest.mark.parametrize("activation", ["relu", "sigmoid", "tanh"])
def test_a_simple_cell_has_several_activations(activation):
    assert kernel(layer("_RNNSequence", activation=activation), ["n:0"]) == "onednn._RNNSequence"


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("case", [{"activation": "softsign"}])
def test_numpy_runs_the_layers_that_the_library_lacks(op, case):
    assert kernel(layer(op, **case), ["n:0"]) == f"cpu.{op}"


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("masked", ["previous", "zeros"])
@pytest.mark.parametrize("fetches", [["n:0"], ["n:1"], ["n:0", "n:1", "n:2"]])
def test_masked_rows_keep_their_states(op, masked, fetches):
    fetches = [*fetches, *(["n:3"] if op == "_LSTMSequence" and len(fetches) > 1 else [])]
    assert kernel(layer(op, mask=True, masked=masked), fetches) == f"onednn.{op}"


MASKS = {  # of five steps and three rows
    "prefixes": [[1, 1, 1], [1, 1, 0], [1, 1, 0], [1, 0, 0], [1, 0, 0]],
    "an empty row": [[1, 0, 1], [1, 0, 0], [1, 0, 0], [1, 0, 0], [1, 0, 0]],
    "suffixes": [[0, 0, 0], [1, 0, 0], [1, 0, 0], [1, 1, 0], [1, 1, 1]],
    "gaps": [[1, 0, 1], [0, 1, 1], [1, 0, 0], [0, 0, 1], [1, 1, 1]],
    "nothing": [[0, 0, 0]] * 5,
    "all": [[1, 1, 1]] * 5,
    "one step": [[0, 0, 0], [1, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0]],
}


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("masked", ["previous", "zeros"])
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("length", [TIME, 3])
def test_rows_may_skip_steps(op, masked, mask, length):
    states = ["n:2", "n:3"] if op == "_LSTMSequence" else ["n:2"]
    nodes = [one for one in layer(op, length=length, mask=True, masked=masked) if one.name != "m"]
    nodes = [*nodes[:-1], const("m", np.array(MASKS[mask], bool), bool), nodes[-1]]
    for fetches in (["n:0", "n:1", "n:2"], ["n:0", *states], ["n:1"]):
        assert kernel(nodes, fetches, batch=3) == f"onednn.{op}"


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("length", [1, 3, 0, -2])
def test_a_sequence_may_end_early(op, length):
    states = ["n:2", "n:3"] if op == "_LSTMSequence" else ["n:2"]
    for fetches in (["n:0", "n:1"], states, ["n:0", *states]):
        assert kernel(layer(op, length=length), fetches) == f"onednn.{op}"


@pytest.mark.parametrize("op", GATES)
def test_a_length_may_be_known_late(op):
    nodes = layer(op)
    late = [placeholder("l", (), np.int32) if one.name == "l" else one for one in nodes]
    feeds = {"x": numbers(TIME, 2, 3, seed=5), "h": numbers(2, 4, seed=6), "c": numbers(2, 4, seed=7)}
    fed = {source.node for source in nodes[-1].inputs}
    feeds = {name: value for name, value in feeds.items() if name in fed}
    late = [one for one in late if one.name in fed or one.name == "n"]
    with heald.Session(graph(*late), NUMPY_ALONE) as plain, \
            heald.Session(graph(*late), AS_WRITTEN) as session:
        for length in (TIME, 2, 0, TIME):
            outcomes = [each.run(["n:0", "n:1", "n:2"], feeds | {"l": np.int32(length)}) for each in (plain, session)]
            for a, b in zip(*outcomes, strict=True):
                np.testing.assert_allclose(b, a, rtol=0, atol=1e-5)
        for each in (plain, session):
            with pytest.raises(heald.errors.InvalidArgument, match="more than the 5 steps"):
                each.run(["n:0"], feeds | {"l": np.int32(6)})


@pytest.mark.parametrize("op", GATES)
def test_steps_without_numbers_leave_other_steps_alone(op):
    """The library computes masked steps too, whose inputs may be anything."""
    nodes = [one for one in layer(op, mask=True) if one.name != "m"]
    nodes = [*nodes[:-1], const("m", np.array(MASKS["prefixes"], bool), bool), nodes[-1]]
    with heald.Session(graph(*[one for one in nodes if one.name in {source.node for source in nodes[-1].inputs}
                               or one.name == "n"]), AS_WRITTEN) as session:
        x = numbers(TIME, 3, 3, seed=5)
        x[2:, 2] = np.nan
        feeds = {"x": x, "h": numbers(3, 4, seed=6)} | ({"c": numbers(3, 4, seed=7)} if op == "_LSTMSequence" else {})
        for result in session.run(["n:0", "n:1", "n:2"], feeds):
            assert np.isfinite(result).all()


@pytest.mark.parametrize("mask", [False, True])
@pytest.mark.parametrize("case", [("_LSTMSequence", {}), ("_GRUSequence", {"reset_after": False}),
                                  ("_RNNSequence", {}), ("_GRUSequence", {})])
def test_weights_may_be_known_late(case, mask):
    op, attrs = case
    nodes, feeds = [], {"x": numbers(TIME, 2, 3, seed=5), "h": numbers(2, 4, seed=6), "c": numbers(2, 4, seed=7)}
    for one in layer(op, mask=mask, **attrs):
        if one.name in ("w", "u", "b", "r"):
            feeds[one.name] = one.attrs["value"].array()
            one = placeholder(one.name, feeds[one.name].shape)
        nodes.append(one)
    fed = {source.node for source in nodes[-1].inputs}
    nodes, feeds = [one for one in nodes if one.name in fed or one.name == "n"], {k: feeds[k] for k in fed & {*feeds}}
    with heald.Session(graph(*nodes), shared_runtime(NUMPY_ALONE)) as plain, \
            heald.Session(graph(*nodes), shared_runtime(AS_WRITTEN)) as session:
        for fetches in (["n:0"], ["n:0", "n:2"], ["n:1", "n:2"]):
            for a, b in zip(plain.run(fetches, feeds), session.run(fetches, feeds), strict=True):
                np.testing.assert_allclose(b, a, rtol=0, atol=1e-5)
        kernels = {row["node"]: row["kernel"] for row in session.placement().table()}
    assert kernels["n"] == ("cpu" if case == ("_GRUSequence", {}) else "onednn") + f".{op}"


def test_two_copies_of_the_last_output_are_made():
    assert kernel(layer("_GRUSequence"), ["n:1", "n:2"]) == "onednn._GRUSequence"


def lstm_with_parts(peepholes=True, projection=True, cells=5, late=(), length=TIME, mask=None, **attrs):
    """An LSTM of three columns, and its feeds."""
    outputs = 2 if projection else cells
    arrays = {"x": numbers(TIME, 2, 3, seed=5), "h": numbers(2, outputs, seed=6), "c": numbers(2, cells, seed=7),
              "w": numbers(3, 4 * cells, seed=1), "u": numbers(outputs, 4 * cells, seed=2),
              "b": numbers(4 * cells, seed=3)}
    arrays |= {f"p{gate}": numbers(cells, seed=10 + gate) for gate in range(3 * peepholes)}
    arrays |= {"r": numbers(cells, outputs, seed=14)} if projection else {}
    feeds = {name: arrays[name] for name in ("x", "h", "c", *late)}
    nodes = [placeholder(name, array.shape) if name in feeds else const(name, array) for name, array in arrays.items()]
    inputs = ["l", *arrays]
    if mask is not None:
        nodes.append(const("m", np.array(mask, bool), bool))
        inputs.append("m")
    attrs |= {"N": int(mask is not None), "P": 3 * peepholes, "R": int(projection)}
    return [*nodes, const("l", length, np.int32), node("n", "_LSTMSequence", *inputs, **attrs)], feeds


def kernel_of(case, fetches):
    """The kernel of a layer with feeds. Asserts that its results equal NumPy's."""
    nodes, feeds = case
    with heald.Session(graph(*nodes), shared_runtime(NUMPY_ALONE)) as plain, \
            heald.Session(graph(*nodes), shared_runtime(AS_WRITTEN)) as session:
        for a, b in zip(plain.run(fetches, feeds), session.run(fetches, feeds), strict=True):
            np.testing.assert_allclose(b, a, rtol=0, atol=1e-5)
        return {row["node"]: row["kernel"] for row in session.placement().table()}["n"]


@pytest.mark.parametrize("fetches", [["n:0"], ["n:1", "n:2", "n:3"], ["n:3"], ["n:0", "n:3"]])
@pytest.mark.parametrize("parts", [(True, False), (False, True), (True, True)])
def test_the_library_has_peepholes_and_projections(parts, fetches):
    assert kernel_of(lstm_with_parts(*parts), fetches) == "onednn._LSTMSequence"
    assert kernel_of(lstm_with_parts(*parts, length=3), fetches) == "onednn._LSTMSequence"
    assert kernel_of(lstm_with_parts(*parts, cells=64), fetches) == "onednn._LSTMSequence"


@pytest.mark.parametrize("masked", ["previous", "zeros"])
@pytest.mark.parametrize("mask", MASKS)
def test_rows_of_layers_with_a_projection_may_skip_steps(mask, masked):
    case = lstm_with_parts(mask=np.array(MASKS[mask])[:, :2], masked=masked)
    for fetches in (["n:0", "n:1", "n:2", "n:3"], ["n:1"]):
        assert kernel_of(case, fetches) == "onednn._LSTMSequence"


@pytest.mark.parametrize("clip", ["cell_clip", "proj_clip"])
def test_numpy_runs_layers_that_clip_their_states(clip):
    assert kernel_of(lstm_with_parts(**{clip: 0.1}), ["n:0", "n:3"]) == "cpu._LSTMSequence"
    assert kernel_of(lstm_with_parts(**{clip: -1.0}), ["n:0", "n:3"]) == "onednn._LSTMSequence"


@pytest.mark.parametrize("late", ["w", "b", "r", "p1"])
def test_each_part_may_be_known_late(late):
    """The library takes three peepholes as one array, which is made when the kernel is bound."""
    for mask in (None, MASKS["gaps"]):
        mask = None if mask is None else np.array(mask)[:, :2]
        kernel = kernel_of(lstm_with_parts(late=[late], mask=mask), ["n:0", "n:1", "n:2", "n:3"])
        assert kernel == "cpu._LSTMSequence"
        if late != "p1":
            case = lstm_with_parts(peepholes=False, late=[late], mask=mask)
            assert kernel_of(case, ["n:0", "n:1", "n:2", "n:3"]) == "onednn._LSTMSequence"
