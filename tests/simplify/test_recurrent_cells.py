"""The pass `loops` of heald-simplify: LSTMs with peepholes, projections and clips, and several cells in one loop.

tests/data/recurrent_cells.json has loops of tensorflow-cpu 2.21: dynamic_rnn with frames or functions, and stacked
cells of Keras 3.15 and tf_keras 2.21. It has inputs, and the results that TensorFlow gave.
"""

from __future__ import annotations

from collections import Counter

import heald
import numpy as np
import pytest
from builders.recorded_layers import LOOPS, ON_NUMPY, SEQUENCES, UNFUSED, recorded_layers
from harness.shared_runtimes import shared_runtime
from heald.api import dtypes
from heald.graphs.graph.graph import Input, Node
from heald.graphs.graph.rewriting import constant

LAYERS = recorded_layers("recurrent_cells.json")
FRAMES = "lstm_all_frames_lengths"
STACKED_FRAMES = "2_gru_frames_lengths"
ANY_SIZE = ["lstm_projection_functions_lengths", "lstm_all_frames_lengths", "2_lstm_frames_lengths",
            "2_lstm_peepholes_both_ways_frames_lengths"]


def ops_of(name):
    """The op of each cell that the name of a layer lists; a number stands in front of equal ones."""
    words = name.split("_")
    cells = Counter(SEQUENCES[word] for word in words if word in SEQUENCES)
    count = int(words[0]) if words[0].isdigit() else 1
    return {op: number * count for op, number in cells.items()}


@pytest.mark.parametrize("name", LAYERS)
def test_the_loop_is_one_op_for_each_cell(name):
    assert LAYERS[name].loop_ops() == ops_of(name)


@pytest.mark.parametrize("config", [ON_NUMPY, {}], ids=["numpy", "onednn"])
@pytest.mark.parametrize("name", LAYERS)
def test_results_are_those_of_tensorflow(name, config):
    for result, recorded in zip(LAYERS[name].run(config), LAYERS[name].results, strict=True):
        np.testing.assert_allclose(np.ravel(result), recorded, rtol=0, atol=2e-6)


@pytest.mark.parametrize("lengths", [[0, 0], [5, 5], [9, -2], [2, 1]])
@pytest.mark.parametrize("name", ANY_SIZE)
def test_any_lengths_give_what_the_loop_gives(name, lengths):
    LAYERS[name].check_unfused({"len:0": np.array(lengths, np.int32)})


@pytest.mark.parametrize("rows", [1, 3, 0])
@pytest.mark.parametrize("name", ["lstm_peepholes_functions", "3_lstm_functions", "lstm_gru_rnn_frames"])
def test_any_number_of_rows_gives_what_the_loop_gives(name, rows):
    layer = LAYERS[name]
    layer.check_unfused({"x:0": np.resize(layer.feeds["x:0"], (rows, *layer.feeds["x:0"].shape[1:]))})


def changed(name, nodes):
    """The layer with these nodes, in the place of those with their names."""
    layer = LAYERS[name]
    return layer._replace(graph=layer.graph.replace(nodes=nodes))


def with_input(name, node_name, number, source):
    """The node of a layer, with this input instead of its own."""
    node = LAYERS[name].graph[node_name]
    inputs = [*node.inputs]
    inputs[number] = Input(source)
    return node.replace(inputs=inputs)


CELL = "rnn/while/lstm_cell"
UPPER = "rnn/while/rnn/multi_rnn_cell/cell_1/gru_cell"
LOWER_H = "rnn/while/Identity_3"  # before the step
MINIMUM, MAXIMUM = f"{CELL}/clip_by_value/Minimum", f"{CELL}/clip_by_value"
NEAR_MISSES = {
    "o sees the old c": (FRAMES, [(f"{CELL}/mul_4", 1, LOWER_H)]),
    "i sees h": (FRAMES, [(f"{CELL}/mul_2", 1, f"{CELL}/Tanh")]),
    "f sees nothing": (FRAMES, [(f"{CELL}/Sigmoid", 0, f"{CELL}/add")]),
    "a clip on one side": (FRAMES, [(f"{CELL}/Tanh_1", 0, MINIMUM), (f"{CELL}/mul_4", 1, MINIMUM),
                                    ("rnn/while/Select_1", 2, MINIMUM)]),
    "a clip of h alone": (FRAMES, [("rnn/while/Select_1", 2, f"{CELL}/add_3")]),
    "the upper cell takes the old h of the lower": (STACKED_FRAMES, [(f"{UPPER}/concat", 0, LOWER_H),
                                                                     (f"{UPPER}/concat_1", 0, LOWER_H)]),
    "the upper cell takes two inputs": (STACKED_FRAMES, [(f"{UPPER}/concat", 0, LOWER_H)]),
    "the output of the lower cell": (STACKED_FRAMES, [
        ("rnn/while/Select", 2, "rnn/while/rnn/multi_rnn_cell/cell_0/gru_cell/add")]),
    "only one cell has lengths": (STACKED_FRAMES, [("rnn/while/NextIteration_3", 0, f"{UPPER.replace('1', '0')}/add")]),
}


@pytest.mark.parametrize("case", NEAR_MISSES)
def test_a_loop_that_differs_stays(case):
    name, edits = NEAR_MISSES[case]
    layer = changed(name, [with_input(name, *edit) for edit in edits])
    assert layer.loop_ops().keys() <= LOOPS
    layer.check_unfused()


@pytest.mark.parametrize(("low", "high"), [(-0.5, 0.25), (0.5, -0.5)])
def test_a_clip_with_other_bounds_keeps_the_loop(low, high):
    functions = {}
    layer = LAYERS["lstm_all_functions"]
    for function in layer.graph.functions.values():
        nodes = [constant(node.name, np.float32(high if node.name.endswith("/Minimum/y") else low))
                 if node.op == "Const" and "clip_by_value/" in node.name else node for node in function.nodes.values()]
        functions[function.name] = function.replace(nodes=nodes)
    layer = layer._replace(graph=layer.graph.replace(functions=functions))
    assert layer.loop_ops().keys() <= LOOPS
    layer.check_unfused()


@pytest.mark.parametrize("attrs", [{"use_peephole": True, "cell_clip": -1.0}, {"use_peephole": False, "cell_clip": 0.4},
                                   {"cell_clip": 0.0, "use_peephole": False}])
def test_attributes_of_a_block_cell_are_those_of_the_op(attrs):
    layer = LAYERS["lstm_block_peepholes_clip_functions_lengths"]
    graph = layer.graph
    (body,) = [function for function in graph.functions.values()
               if any(node.op == "LSTMBlockCell" for node in function.nodes.values())]
    body = body.replace(nodes=[node.replace(attrs=node.attrs | attrs) if node.op == "LSTMBlockCell" else node
                               for node in body.nodes.values()])
    layer = layer._replace(graph=graph.replace(functions={**graph.functions, body.name: body}))
    assert layer.loop_ops() == {"_LSTMSequence": 1}
    layer.check_unfused()


def test_states_with_rows_of_their_own_keep_the_loop_of_several_cells():
    """Behind the loop, each state has the rows to which its own cell broadcasts it."""
    zeros = "rnn/MultiRNNCellZeroState/GRUCellZeroState/zeros"
    layer = changed(STACKED_FRAMES, [constant(zeros, np.zeros((1, 4), np.float32))])
    assert layer.loop_ops().keys() <= LOOPS


def test_weights_may_be_variables():
    """The ops read the variables where the loop would."""
    layer = LAYERS["lstm_all_frames_lengths"]
    nodes, feeds = [], {}
    for node in layer.graph:
        if node.op == "Const" and node.name.startswith("rnn/lstm_cell/"):
            value = node.attrs["value"].array()
            handle = {"dtype": dtypes.float32, "shape": value.shape, "container": "", "shared_name": node.name}
            nodes += [Node(f"{node.name}/handle", "VarHandleOp", attrs=handle),
                      constant(f"{node.name}/value", value),
                      Node(f"{node.name}/set", "AssignVariableOp", [f"{node.name}/handle", f"{node.name}/value"],
                           attrs={"dtype": dtypes.float32}),
                      Node(node.name, "ReadVariableOp", [f"{node.name}/handle"], attrs={"dtype": dtypes.float32})]
            feeds[f"{node.name}/set"] = value
    layer = changed("lstm_all_frames_lengths", nodes)
    for config in (ON_NUMPY, {}, UNFUSED):
        with heald.Session(layer.graph, shared_runtime(config)) as session:
            session.run([], targets=[*feeds])
            for result, recorded in zip(session.run(layer.outputs, layer.feeds), layer.results, strict=True):
                np.testing.assert_allclose(np.ravel(result), recorded, rtol=0, atol=2e-6)
    assert layer.loop_ops() == {"_LSTMSequence": 1}
