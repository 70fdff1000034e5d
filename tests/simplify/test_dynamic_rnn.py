"""The pass `loops` of heald-simplify: loops of TensorFlow 1's dynamic_rnn, with frames or functions.

tests/data/dynamic_rnn.json has frozen graphs of tensorflow-cpu 2.21, inputs, and the results that TensorFlow gave.
"""

from __future__ import annotations

import numpy as np
import pytest
from builders.recorded_layers import LOOPS, ON_NUMPY, UNFUSED, recorded_layers
from heald.api import dtypes
from heald.errors import InvalidArgument
from heald.graphs.graph.graph import Input, Node
from heald.graphs.graph.rewriting import constant

LAYERS = recorded_layers("dynamic_rnn.json")
LENGTHS = [name for name in LAYERS if "lengths" in name]
FRAMES = [name for name in LAYERS if "frames" in name]


@pytest.mark.parametrize("name", LAYERS)
def test_the_loop_is_one_op(name):
    assert LAYERS[name].loop_ops() == LAYERS[name].sequence_ops()


@pytest.mark.parametrize("config", [ON_NUMPY, {}], ids=["numpy", "onednn"])
@pytest.mark.parametrize("name", LAYERS)
def test_results_are_those_of_tensorflow(name, config):
    for result, recorded in zip(LAYERS[name].run(config), LAYERS[name].results, strict=True):
        np.testing.assert_allclose(np.ravel(result), recorded, rtol=0, atol=2e-6)


@pytest.mark.parametrize("lengths", [[0, 0, 0], [5, 5, 5], [9, 1, -2], [2, 2, 1]])
@pytest.mark.parametrize("name", [name for name in LENGTHS if "any_size" in name or name == "gru_frames_lengths"])
def test_any_lengths_give_what_the_loop_gives(name, lengths):
    LAYERS[name].check_unfused({"len:0": np.array(lengths, np.int32)})


@pytest.mark.parametrize("rows", [(3, 1), (1, 3), (1, 1), (3, 2)])
@pytest.mark.parametrize("name", [name for name in LAYERS if "state_input" in name])
def test_rows_of_states_are_broadcast_as_in_the_loop(name, rows):
    layer = LAYERS[name]
    counts = {"x:0": rows[0], "state:0": rows[1], "len:0": rows[0]}
    layer.check_unfused({tensor: np.resize(array, (counts[tensor], *array.shape[1:]))
                         for tensor, array in layer.feeds.items()})


@pytest.mark.parametrize("name", ["lstm_frames_any_size_lengths", "lstm_functions_any_size_lengths"])
def test_lengths_for_another_number_of_rows_are_an_error(name):
    for config in (ON_NUMPY, UNFUSED):
        with pytest.raises(InvalidArgument):
            LAYERS[name].run(config, {"len:0": np.array([3, 2], np.int32)})


@pytest.mark.parametrize("name", FRAMES)
def test_indices_may_end_at_the_size_of_the_array(name):
    """Graphs of earlier versions ask the array for its size."""
    graph = LAYERS[name].graph
    gather = node_of(graph, "TensorArrayGatherV3")
    size = Node("asked", "TensorArraySizeV3", [gather.inputs[0], gather.inputs[2]])
    start, delta = constant("start", np.int32(0)), constant("delta", np.int32(1))
    indices = Node("indices", "Range", ["start", "asked", "delta"], attrs={"Tidx": dtypes.int32})
    layer = changed(name, [size, start, delta, indices, with_input(gather, 1, Input("indices"))])
    assert layer.loop_ops() == layer.sequence_ops()
    for result, recorded in zip(layer.run(ON_NUMPY), layer.results, strict=True):
        np.testing.assert_allclose(np.ravel(result), recorded, rtol=0, atol=2e-6)


def changed(name, nodes):
    """The layer with these nodes, in the place of those with their names."""
    layer = LAYERS[name]
    return layer._replace(graph=layer.graph.replace(nodes=nodes))


def node_of(graph, op, number=0):
    return [node for node in graph if node.op == op][number]


def with_input(node, number, source):
    inputs = [*node.inputs]
    inputs[number] = source
    return node.replace(inputs=inputs)


def with_attrs(node, **attrs):
    return node.replace(attrs=node.attrs | attrs)


def shifted_indices(graph):
    gather = node_of(graph, "TensorArrayGatherV3")
    return [constant("shifted", np.arange(1, 5, dtype=np.int32)), with_input(gather, 1, Input("shifted"))]


def turned_indices(graph):
    scatter = node_of(graph, "TensorArrayScatterV3")
    return [constant("turned", np.arange(5, dtype=np.int32)[::-1].copy()), with_input(scatter, 1, Input("turned"))]


def larger_array(graph):
    array = graph[node_of(graph, "TensorArrayGatherV3").inputs[0].node]
    return [constant("larger", np.int32(6)), with_input(array, 0, Input("larger"))]


def kept_elements(graph):
    """The array of x is read again behind the loop."""
    array = graph[node_of(graph, "TensorArrayScatterV3").inputs[0].node]
    flow = node_of(graph, "TensorArrayScatterV3").name
    return [with_attrs(array, clear_after_read=False), constant("zero", np.int32(0)),
            Node("again", "TensorArrayReadV3", [array.name, "zero", flow], attrs={"dtype": dtypes.float32})]


def other_write(graph):
    write = node_of(graph, "TensorArrayWriteV3")
    return [Node("negative", "Neg", [write.inputs[2]], attrs={"T": dtypes.float32}),
            with_input(write, 2, Input("negative"))]


def write_at_another_index(graph):
    write = node_of(graph, "TensorArrayWriteV3")
    step = write.inputs[1]
    last = Node("last", "Const", [], controls=[step.node], attrs=constant("last", np.int32(4)).attrs)
    return [last, Node("turned", "Sub", [Input("last"), step], attrs={"T": dtypes.int32}),
            with_input(write, 1, Input("turned"))]


def other_condition(graph):
    return [node.replace(op="Greater") for node in graph if node.op == "GreaterEqual"]


def ones_instead_of_zeros(graph):
    select = next(node for node in graph if node.op == "Select" and graph[node.inputs[1].node].op == "Enter")
    zeros = graph[graph[select.inputs[1].node].inputs[0].node]
    return [constant(zeros.name, np.ones((2, 4), np.float32))]


def old_output(graph):
    """Rows that have ended return the output of the cell."""
    select = next(node for node in graph if node.op == "Select")
    return [with_input(select, 1, select.inputs[2])]


NEAR_MISSES = {
    "gathered from the second": shifted_indices, "scattered backwards": turned_indices, "a larger array": larger_array,
    "x is read again": kept_elements, "another element": other_write, "written backwards": write_at_another_index,
    "longer than the length": other_condition, "ones": ones_instead_of_zeros, "outputs of rows that ended": old_output,
}


@pytest.mark.parametrize("case", NEAR_MISSES)
def test_a_loop_that_differs_stays(case):
    name = "lstm_frames_lengths"
    layer = changed(name, NEAR_MISSES[case](LAYERS[name].graph))
    outputs = ["again:0"] if "again" in layer.graph.nodes else []
    assert layer.loop_ops(outputs).keys() <= LOOPS
    layer.check_unfused(outputs=outputs)


def test_elements_of_any_shape_stay_where_some_are_unwritten():
    """Without a shape, the array refuses to read an element that no step has written."""
    for name, is_fused in (("lstm_frames_lengths", False), ("lstm_frames", True)):
        layer = changed(name, [with_attrs(node, identical_element_shapes=False, element_shape=None)
                               for node in LAYERS[name].graph if node.op == "TensorArrayV3"])
        assert (layer.loop_ops() == layer.sequence_ops()) == is_fused
