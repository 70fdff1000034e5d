"""The pass `loops` of heald-simplify: layers of Keras with dropout, clipped gates, and states and masks as inputs.

tests/data/recurrent_variants.json has layers of Keras 3.15 and tf_keras 2.21, frozen and run by tensorflow-cpu 2.21.
"""

from __future__ import annotations

import heald
import numpy as np
import pytest
from builders.recorded_layers import LOOPS, ON_NUMPY, UNFUSED, recorded_layers
from harness.shared_runtimes import shared_runtime
from heald.api import dtypes
from heald.errors import InvalidArgument
from heald.graphs.graph.graph import Node
from heald.graphs.graph.rewriting import constant

LAYERS = recorded_layers("recurrent_variants.json")
STATE_INPUTS = [name for name in LAYERS if "state" in name]
MASK_INPUTS = [name for name in LAYERS if "mask_input" in name]


@pytest.mark.parametrize("name", LAYERS)
def test_the_loop_is_one_op(name):
    layer = LAYERS[name]
    assert layer.loop_ops() == layer.sequence_ops(2 if "both_ways" in name else 1)


@pytest.mark.parametrize("config", [ON_NUMPY, {}], ids=["numpy", "onednn"])
@pytest.mark.parametrize("name", LAYERS)
def test_results_are_those_of_tensorflow(name, config):
    for result, recorded in zip(LAYERS[name].run(config), LAYERS[name].results, strict=True):
        np.testing.assert_allclose(np.ravel(result), recorded, rtol=0, atol=2e-6)


def with_rows(layer, rows):
    """Feeds with these numbers of rows, in turn."""
    return {tensor: np.resize(array, (count, *array.shape[1:]))
            for (tensor, array), count in zip(layer.feeds.items(), rows, strict=False)}


@pytest.mark.parametrize("rows", [(3, 1, 1, 1), (1, 3, 3, 3), (3, 3, 3, 1), (1, 1, 1, 1), (3, 1, 3, 3), (3, 2, 2, 2)])
@pytest.mark.parametrize("name", [*STATE_INPUTS, "rnn_mask_input"])
def test_rows_are_broadcast_as_in_the_loop(name, rows):
    layer = LAYERS[name]
    feeds = with_rows(layer, rows)
    assert (layer.check_unfused(feeds) is InvalidArgument) == (2 in rows)


@pytest.mark.parametrize("steps", [3, 4, 6])
@pytest.mark.parametrize("name", MASK_INPUTS)
def test_a_mask_may_have_another_number_of_steps(name, steps):
    layer = LAYERS[name]
    (mask,) = [tensor for tensor, array in layer.feeds.items() if array.dtype == bool]
    array = layer.feeds[mask]
    feeds = {mask: np.resize(array, (len(array), steps))}
    if steps < 5:
        assert isinstance(layer.outcome(ON_NUMPY, feeds), type)
        assert isinstance(layer.outcome(UNFUSED, feeds), type)
    else:
        layer.check_unfused(feeds)


def changed_constant(layer, like, value):
    """The layer with this value for the constants of its body whose elements are `like`."""
    functions = {}
    for function in layer.graph.functions.values():
        nodes = [constant(node.name, value(node.attrs["value"].array()))
                 if node.op == "Const" and is_like(node.attrs["value"].array(), like) else node
                 for node in function.nodes.values()]
        functions[function.name] = function.replace(nodes=nodes)
    return layer._replace(graph=layer.graph.replace(functions=functions))


def is_like(array, like):
    return array.dtype == np.float32 and array.ndim == like.ndim and np.allclose(array, like)


def set_first(array):
    array = array.copy()
    array[0, 0] = 0
    return array


NEAR_MISSES = {
    "dropout of one element": ("lstm_dropout", np.ones((1, 1)), set_first),
    "factors of two": ("lstm_dropout", np.ones((1, 1)), lambda array: 2 * array),
    "another slope": ("lstm_clipped_by_gate", np.array(0.2), lambda array: np.float32(0.25) + 0 * array),
    "another bound": ("lstm_clipped_by_gate", np.array(1.0), lambda array: np.float32(2) + 0 * array),
    "another lower bound": ("lstm_clipped_by_gate", np.array(0.0), lambda array: np.float32(-1) + 0 * array),
}


@pytest.mark.parametrize("case", NEAR_MISSES)
def test_a_loop_that_differs_stays(case):
    layer = changed_constant(LAYERS[NEAR_MISSES[case][0]], *NEAR_MISSES[case][1:])
    assert layer.loop_ops().keys() <= LOOPS
    layer.check_unfused()


def test_factors_with_rows_of_their_own_keep_the_loop():
    """Ones of one row are broadcast to the batch, ones of three rows broadcast a batch of one row."""
    layer = changed_constant(LAYERS["rnn_dropout"], np.ones((1, 1)),
                             lambda array: np.ones((3, array.shape[1]), np.float32))
    assert layer.loop_ops().keys() <= LOOPS


def test_a_state_may_be_a_variable_that_is_assigned_behind_the_loop():
    """A stateful layer goes on where the step before has ended."""
    layer = LAYERS["gru_state_input"]
    _, state = layer.feeds
    name, end = state.removesuffix(":0"), layer.outputs[1]
    handle = {"dtype": dtypes.float32, "shape": (3, 4), "container": "", "shared_name": "kept"}
    nodes = [Node("kept", "VarHandleOp", attrs=handle), constant("zeros", np.zeros((3, 4), np.float32)),
             Node("init", "AssignVariableOp", ["kept", "zeros"], attrs={"dtype": dtypes.float32}),
             Node(name, "ReadVariableOp", ["kept"], attrs={"dtype": dtypes.float32}),
             Node("assign", "AssignVariableOp", ["kept", end.removesuffix(":0")], attrs={"dtype": dtypes.float32})]
    x = {tensor: array for tensor, array in layer.feeds.items() if tensor != state}
    runs = []
    for config in (ON_NUMPY, {}, UNFUSED):
        with heald.Session(layer.graph.replace(nodes=nodes), shared_runtime(config)) as session:
            session.run([], targets=["init"])
            runs.append([session.run(layer.outputs, x, targets=["assign"])[0] for _ in range(3)])
            if config is ON_NUMPY:
                *_, (_, rewritten) = session.graphs_by_pass(layer.outputs, tuple(x))
                assert not any(node.op in LOOPS for node in rewritten)
    for run in runs[:2]:
        np.testing.assert_allclose(run, runs[2], rtol=0, atol=1e-5)
    assert np.abs(runs[2][0] - runs[2][1]).max() > 0.01
