"""The passes `cells` and `sequences` of heald-simplify: LSTMs that graphs have as the ops of their steps.

Their results are compared with the original graph's, by NumPy's kernels.
"""

from __future__ import annotations

from collections import Counter

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from builders.lstm import CELLS, FLOAT, layer, numbers, outputs_of_unpack, rows, step, weights
from harness.shared_runtimes import shared_runtime
from heald.graphs.graph.graph import Node
from heald.runtime.values import dtypes

STYLES = ("keras", "tf1")
PASSES = {"cells": ["sequences"], "sequences": []}
TIME, INPUTS = 3, 5


def session(nodes, *disabled, **config):
    settings = {"plugins": {"block": ["onednn"]}, "passes": {"disable": [*disabled]}} | config
    return heald.Session(graph(*nodes), shared_runtime(settings))


def rewrite_lstm(nodes, fetches=("y",), passes="sequences", batch=2, feed=None, **config):
    """The graph after the passes, which gives what the plain one gives."""
    feeds = {"x": numbers(TIME, batch, INPUTS, seed=9)} if feed is None else feed
    plain, ours = session(nodes, "cells", "sequences", **config), session(nodes, *PASSES[passes], **config)
    for a, b in zip(*(lstm_session.run(list(fetches), feeds) for lstm_session in (plain, ours)), strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(b.astype(float), a.astype(float), rtol=0, atol=1e-5 if a.itemsize > 2 else 5e-3)
    *_, (_, rewritten) = ours.graphs_by_pass(list(fetches), tuple(feeds))
    return rewritten


def count(rewritten, *ops):
    counted = Counter(graph_node.op for graph_node in rewritten)
    return {op: counted[op] for op in ops or ("LSTMBlockCell", "BlockLSTM", "Tanh") if counted[op]}


FEED = {"x": numbers(2, INPUTS, seed=9), "c": numbers(2, CELLS, seed=8), "h": numbers(2, CELLS, seed=7)}


def one_step(style="keras", **changed):
    placeholders = [placeholder(name, value.shape) for name, value in FEED.items()]
    ops = [changed.get(graph_node.name.removeprefix("s."), graph_node)
           for graph_node in step("s.", "x", "c", "h", style)]
    return [*placeholders, *weights(INPUTS, style), *ops]


def rewrite_step(nodes, fetches=("s.h", "y"), **more):
    last = [] if any(graph_node.name == "y" for graph_node in nodes) else [node("y", "Neg", "s.c")]
    rewritten = rewrite_lstm([*nodes, *last], fetches, "cells", feed=FEED, **more)
    return count(rewritten, "LSTMBlockCell", "Tanh")


# cells


@pytest.mark.parametrize("style", STYLES)
def test_the_ops_of_a_step_are_one_cell(style):
    assert rewrite_step([*one_step(style), node("z", "Neg", "s.h")], ("y", "z")) == {"LSTMBlockCell": 1}


@pytest.mark.parametrize("style", STYLES)
def test_a_result_that_is_fetched_keeps_its_name(style):
    nodes = [*one_step(style), node("z", "Neg", "s.h")]
    assert rewrite_step(nodes, ("s.h", "z")) == {"LSTMBlockCell": 1}


def test_a_state_that_is_fetched_keeps_its_step_apart():
    assert rewrite_step(one_step(), ("s.h", "s.c")) == {"Tanh": 2}


@pytest.mark.parametrize("name", ["s.sum", "s.z", "s.split", "s.split:2", "s.f", "s.g", "s.fc", "s.ig", "s.t"])
def test_a_fetch_within_a_step_keeps_it_apart(name):
    assert rewrite_step(one_step(), ("s.h", "y", name)) == {"Tanh": 2}


@pytest.mark.parametrize("name", ["s.xw", "s.z", "s.f", "s.fc", "s.c", "s.t", "s.h"])
def test_a_feed_within_a_step_decides_its_result(name):
    nodes = [*one_step(), node("y", "Neg", "s.h"), node("z", "Neg", "s.c")]
    feed = FEED | {name: numbers(2, 16 if name in ("s.xw", "s.z") else CELLS, seed=4)}
    rewrite_lstm(nodes, ("y", "z"), "cells", feed=feed)
    plain, ours = session(nodes, "cells"), session(nodes)
    for target in (name, "s.c"):  # it is fed, and run as well
        np.testing.assert_allclose(ours.run("y", feed, targets=[target]), plain.run("y", feed, targets=[target]),
                                   atol=1e-5)


TURNED = {
    "sum": node("s.sum", "Add", "s.hu", "s.xw"), "fc": node("s.fc", "Mul", "c", "s.f"),
    "ig": node("s.ig", "Mul", "s.g", "s.i"), "c": node("s.c", "AddV2", "s.ig", "s.fc"),
    "h": node("s.h", "Mul", "s.t", "s.o"), "z": node("s.z", "AddV2", "b", "s.sum"),
}


@pytest.mark.parametrize("name", TURNED)
def test_operands_may_be_turned(name):
    assert rewrite_step(one_step(**{name: TURNED[name]})) == {"LSTMBlockCell": 1}
    assert rewrite_step(one_step(**TURNED)) == {"LSTMBlockCell": 1}


def test_gates_may_be_in_any_order_and_have_constants_added():
    turned = {gate: node(f"s.{gate}", "Tanh" if gate == "g" else "Sigmoid", f"s.split:{number}")
              for number, gate in enumerate("ogfi")}
    assert rewrite_step(one_step(**turned)) == {"LSTMBlockCell": 1}
    more = [const("more", numbers(CELLS, seed=8)), node("more.o", "Sub", "s.split:3", "more"),
            const("less", [[0.5]]), node("less.g", "AddV2", "less", "s.split:2")]
    changed = {"o": node("s.o", "Sigmoid", "more.o"), "g": node("s.g", "Tanh", "less.g")}
    assert rewrite_step([*one_step(**changed), *more]) == {"LSTMBlockCell": 1}


OTHERS = {
    "another function": {"o": node("s.o", "Relu", "s.split:3")},
    "two candidates": {"i": node("s.i", "Tanh", "s.split")},
    "tanh of another": {"t": node("s.t", "Tanh", "s.ig")},
    "no tanh": {"t": node("s.t", "Neg", "s.c")},
    "a difference": {"c": node("s.c", "Sub", "s.fc", "s.ig")},
    "one gate twice": {"h": node("s.h", "Mul", "s.i", "s.t")},
    "a product of parts": {"ig": node("s.ig", "AddV2", "s.i", "s.g")},
    "weights turned": {"hu": node("s.hu", "MatMul", "h", "u2", transpose_b=True)},
    "scaled gates": {"f": node("s.f", "Sigmoid", "scaled")},
    "an operand that waits": {"fc": node("s.fc", "Mul", "s.f", "c").replace(controls=["x"])},
    "another place": {"fc": node("s.fc", "Mul", "s.f", "c", device="EXAMPLE:0")},
}


@pytest.mark.parametrize("case", OTHERS)
def test_a_near_miss_of_a_step_stays(case):
    more = [const("u2", numbers(16, CELLS)), const("f2", 2.0), node("scaled", "Mul", "s.split:1", "f2")]
    nodes = [*one_step(**OTHERS[case]), *more]
    assert rewrite_step(nodes, placement={"fallback": "allow"}).get("LSTMBlockCell", 0) == 0


def test_a_consumer_or_control_edge_within_a_step_keeps_it_apart():
    for name in ("s.z", "s.g", "s.ig", "s.t"):
        nodes = [*one_step(), node("other", "Neg", name)]
        assert rewrite_step(nodes, ("s.h", "y", "other")) == {"Tanh": 2}
        waits = [*one_step(), node("other", "Neg", "x").replace(controls=[name])]
        assert rewrite_step(waits, ("s.h", "y", "other")) == {"Tanh": 2}


def test_control_edges_from_a_result_stay():
    nodes = [*one_step(), node("other", "Neg", "x").replace(controls=["s.h", "s.c"])]
    assert rewrite_step(nodes, ("s.h", "y", "other")) == {"LSTMBlockCell": 1}


@pytest.mark.parametrize(("dtype", "is_taken"), [(dtypes.float16, True), (dtypes.float64, False)])
def test_cells_are_of_the_types_that_the_op_has(dtype, is_taken):
    nodes = []
    for graph_node in [*one_step("tf1"), node("y", "Neg", "s.c")]:
        types = {key: dtype for key in ("T", "dtype") if graph_node.attrs.get(key) is FLOAT}
        if "dtype" in types and graph_node.op == "Const":
            types["value"] = graph_node.attrs["value"].array().astype(dtype.numpy)
        nodes.append(graph_node.replace(attrs=types))
    rewritten = rewrite_lstm(nodes, ("s.h", "y"), "cells",
                             feed={name: x.astype(dtype.numpy) for name, x in FEED.items()})
    assert count(rewritten, "LSTMBlockCell") == ({"LSTMBlockCell": 1} if is_taken else {})


@pytest.mark.parametrize("shapes", [((None, INPUTS), (2, CELLS), (2, CELLS)), ((2, INPUTS), (1, CELLS), (2, CELLS)),
                                    ((2, INPUTS), (2, CELLS), (1, CELLS)), ((2, INPUTS), (2, 1), (2, CELLS)),
                                    ((1, INPUTS), (2, CELLS), (2, CELLS))])
def test_operands_that_broadcast_keep_a_step_apart(shapes):
    x, c, h = shapes
    nodes = [placeholder("x", x), const("c", numbers(*c)), const("h", numbers(*h)), placeholder("k", c),
             *weights(INPUTS), *step("s.", "x", "k", "h"), node("y", "Neg", "s.c")]
    feed = {"x": numbers(x[0] or 2, INPUTS), "k": numbers(*c)}
    assert count(rewrite_lstm(nodes, ("s.h", "y"), "cells", feed=feed), "LSTMBlockCell") == {}


def test_a_step_that_fails_tells_where_it_did():
    wrong = {"hu": node("s.hu", "MatMul", "h", "w")}
    with pytest.raises(heald.errors.InvalidArgument) as caught:
        session([*one_step(**wrong), node("y", "Neg", "s.c")]).run("y", FEED)
    assert caught.value.node == "s.hu"


# sequences


def sequence(style="keras", batch=None, time=TIME):
    """A layer over x, whose rows may be unknown."""
    return [*rows(batch, INPUTS, time), *weights(INPUTS, style), *layer(outputs_of_unpack(time), style)]


def pack(name, count_of, prefix="", what="h"):
    return Node(name, "Pack", [f"{prefix}{t}.{what}" for t in range(count_of)],
                attrs={"T": FLOAT, "N": count_of, "axis": 0})


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("batch", [None, 2])
@pytest.mark.parametrize("passes", PASSES)
def test_cells_over_the_rows_of_a_tensor_are_a_sequence(style, batch, passes):
    rewritten = rewrite_lstm([*sequence(style, batch), node("y", "Neg", "2.h")], passes=passes)
    assert count(rewritten) == ({"BlockLSTM": 1} if passes == "sequences" else {"LSTMBlockCell": 3})
    assert len({graph_node.inputs[4].node for graph_node in rewritten if graph_node.op == "BlockLSTM"}) < 2
    # one constant for all
    assert len({graph_node.inputs[3].node for graph_node in rewritten if graph_node.op == "LSTMBlockCell"}) < 2


@pytest.mark.parametrize("batch", [1, 0, 7])
def test_a_sequence_has_as_many_rows_as_are_fed(batch):
    rewrite_lstm([*sequence(), node("y", "Neg", "2.h")], batch=batch)


@pytest.mark.parametrize("time", [1, 2])
def test_a_single_step_is_a_cell(time):
    nodes = [*rows(None, INPUTS, time), *weights(INPUTS), *layer(outputs_of_unpack(time)),
             node("y", "Neg", f"{time - 1}.h")]
    rewritten = rewrite_lstm(nodes, feed={"x": numbers(time, 2, INPUTS)})
    assert count(rewritten) == ({"LSTMBlockCell": 1} if time == 1 else {"BlockLSTM": 1})


def test_consumers_of_single_steps_read_the_sequence():
    nodes = [*sequence(), node("y", "Neg", "0.h"), node("z", "AddV2", "1.h", "2.h"), node("last", "Neg", "2.c"),
             node("first", "Neg", "0.c"), node("end", "Neg", "2.h")]
    for fetches, left in ((("y", "z"), {"Unpack": 1}), (("last", "first", "z"), {"Unpack": 2}), (("end",), {}),
                          (("last", "end"), {}), (("last", "z"), {"Unpack": 1})):
        rewritten = rewrite_lstm(nodes, fetches)
        assert count(rewritten, "BlockLSTM", "Unpack") == {"BlockLSTM": 1} | left


def test_steps_that_are_put_together_are_the_sequence_itself():
    nodes = [*sequence(), pack("p", TIME), node("y", "Neg", "p")]
    assert count(rewrite_lstm(nodes), "BlockLSTM", "Pack", "Unpack", "StridedSlice") == {
        "BlockLSTM": 1, "Pack": 1, "StridedSlice": 1}  # these are of the states' rows
    assert count(rewrite_lstm(nodes, ("y", "p")), "BlockLSTM", "Pack", "Identity") == {
        "BlockLSTM": 1, "Pack": 1, "Identity": 1}
    across = [*nodes[:-2], nodes[-2].replace(attrs={"axis": 1}), nodes[-1]]
    assert count(rewrite_lstm(across), "BlockLSTM", "Pack", "Unpack") == {"BlockLSTM": 1, "Pack": 2, "Unpack": 1}


@pytest.mark.parametrize("apart", [False, True])
def test_layers_upon_each_other_are_sequences(apart):
    second = [*weights(CELLS, name="second.", seed=5),
              *layer(outputs_of_unpack(TIME, "p_t") if apart else [f"{t}.h" for t in range(TIME)], name="second.")]
    between = [pack("p", TIME), node("p_t", "Unpack", "p", num=TIME, axis=0)] if apart else []
    rewritten = rewrite_lstm([*sequence(), *between, *second, node("y", "Neg", "second.2.h")])
    assert count(rewritten) == {"BlockLSTM": 2}
    assert not any(graph_node.op == "Unpack" for graph_node in rewritten)


def test_a_layer_that_goes_backwards_is_a_sequence_of_what_is_turned():
    nodes = [*rows(None, INPUTS, TIME), *weights(INPUTS), *layer(outputs_of_unpack(TIME)[::-1]), pack("p", TIME),
             node("y", "Neg", "p")]
    assert count(rewrite_lstm(nodes), "BlockLSTM", "ReverseV2") == {"BlockLSTM": 1, "ReverseV2": 1}


def test_two_layers_over_the_same_rows_are_two_sequences():
    back = [*weights(INPUTS, name="back.", seed=7), *layer(outputs_of_unpack(TIME)[::-1], name="back.")]
    nodes = [*sequence(), *back, node("y", "AddV2", "2.h", "back.2.h")]
    assert count(rewrite_lstm(nodes)) == {"BlockLSTM": 2}


def test_states_of_zeros_that_were_computed_away_begin_a_sequence():
    nodes = [placeholder("x", (TIME, 2, INPUTS)), node("x_t", "Unpack", "x", num=TIME, axis=0),
             *(const(name, np.zeros((2, CELLS))) for name in ("c", "h")), *weights(INPUTS),
             *layer(outputs_of_unpack(TIME)),
             node("y", "Neg", "2.h")]
    assert count(rewrite_lstm(nodes)) == {"BlockLSTM": 1}
    full = [graph_node.replace(attrs={"value": np.ones((2, CELLS), np.float32)})
            if graph_node.name == "h" else graph_node
            for graph_node in nodes]
    assert count(rewrite_lstm(full)) == {"LSTMBlockCell": 2, "Tanh": 2}


BROKEN = {
    "other weights": lambda t: step("1.", "x_t:1", "0.c", "0.h", layer="other."),
    "another step's x": lambda t: step("1.", "x_t:0", "0.c", "0.h"),
    "another h": lambda t: step("1.", "x_t:1", "0.c", "h"),
    "another c": lambda t: step("1.", "x_t:1", "c", "0.h"),
    "something between": lambda t: [node("n", "Neg", "0.h"), *step("1.", "x_t:1", "0.c", "n")],
}


@pytest.mark.parametrize("case", BROKEN)
def test_cells_that_do_not_follow_each_other_are_no_sequence(case):
    other = step("1.", "x_t:1", "0.c", "0.h")
    remaining = [graph_node for graph_node in sequence(batch=2)
                 if graph_node.name not in {graph_node.name for graph_node in other}]
    nodes = [*remaining, *weights(INPUTS, name="other.", seed=5), *BROKEN[case](1), node("y", "Neg", "2.h")]
    assert count(rewrite_lstm(nodes), "BlockLSTM") == {}


def test_fetches_and_feeds_between_the_steps_keep_their_values():
    nodes = [*sequence(batch=2), node("y", "Neg", "2.h"), node("z", "Neg", "1.h")]
    x = numbers(TIME, 2, INPUTS)
    for fetches in (("y", "1.h"), ("1.h", "z"), ("0.c", "y"), ("x_t:1", "y"), ("2.h",), ("1.g", "y")):
        rewrite_lstm(nodes, fetches)
    for name, shape in (("1.h", (2, CELLS)), ("0.c", (2, CELLS)), ("x_t:1", (2, INPUTS)), ("h", (2, CELLS))):
        rewrite_lstm(nodes, ("y", "z"), feed={"x": x, name: numbers(*shape, seed=6)})
    ours, plain = session(nodes), session(nodes, "cells", "sequences")
    for _ in range(2):  # one session, several steps of it
        for fetches in ("y", "z", ["y", "z"], "1.c"):
            np.testing.assert_allclose(ours.run(fetches, {"x": x}), plain.run(fetches, {"x": x}), atol=1e-5)


def test_passes_can_be_switched_off_by_name():
    nodes = [*sequence(), node("y", "Neg", "2.h")]
    assert count(_last(nodes, "cells")) == {"Tanh": 6}
    assert count(_last(nodes, "sequences")) == {"LSTMBlockCell": 3}


def _last(nodes, *disabled):
    *_, (_, rewritten) = session(nodes, *disabled).graphs_by_pass(["y"], ["x"])
    return rewritten
