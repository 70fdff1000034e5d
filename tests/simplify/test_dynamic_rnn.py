"""The pass `loops` of heald-simplify: loops of TensorFlow 1's dynamic_rnn, with frames or functions.

tests/data/dynamic_rnn.json has frozen graphs of tensorflow-cpu 2.21, inputs, and the results that TensorFlow gave.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections import Counter
from pathlib import Path

import heald
import numpy as np
import pytest
from heald.api import dtypes
from heald.errors import HealdError, InvalidArgument
from heald.graphs.graph import graphdef
from heald.graphs.graph.graph import Input, Node
from heald.graphs.graph.rewriting import constant

LAYERS = json.loads((Path(__file__).parent.parent / "data" / "dynamic_rnn.json").read_text("utf-8"))
SEQUENCES = {"gru": "_GRUSequence", "lstm": "_LSTMSequence", "rnn": "_RNNSequence"}
PLUGINS = {"numpy": {"plugins": {"block": ["onednn"]}}, "onednn": {}}
UNFUSED = PLUGINS["numpy"] | {"passes": {"disable": ["loops"]}}
LENGTHS = [name for name in LAYERS if "lengths" in name]
FRAMES = [name for name in LAYERS if "frames" in name]
LOOPS = {"While", "StatelessWhile"}


def graph_of(name):
    return graphdef.loads(zlib.decompress(base64.b64decode(LAYERS[name]["graph"])))


def feeds_of(name):
    return {tensor: np.array(array, np.int32 if "len" in tensor else np.float32)
            for tensor, array in LAYERS[name]["feeds"].items()}


def run(graph, name, config, feeds=None):
    with heald.Session(graph, config) as session:
        return session.run(LAYERS[name]["outputs"], feeds_of(name) if feeds is None else feeds)


def fused_ops(graph, name, outputs=()):
    with heald.Session(graph, PLUGINS["numpy"]) as session:
        *_, (_, rewritten) = session.graphs_by_pass([*LAYERS[name]["outputs"], *outputs], tuple(LAYERS[name]["feeds"]))
    counted = Counter(node.op for node in rewritten)
    return {op: counted[op] for op in (*SEQUENCES.values(), *LOOPS) if counted[op]}


def sequence_op(name):
    return {SEQUENCES[name.split("_")[0]]: 1}


@pytest.mark.parametrize("name", LAYERS)
def test_the_loop_is_one_op(name):
    assert fused_ops(graph_of(name), name) == sequence_op(name)


@pytest.mark.parametrize("plugins", PLUGINS)
@pytest.mark.parametrize("name", LAYERS)
def test_results_are_those_of_tensorflow(name, plugins):
    for result, recorded in zip(run(graph_of(name), name, PLUGINS[plugins]), LAYERS[name]["results"], strict=True):
        np.testing.assert_allclose(np.ravel(result), recorded, rtol=0, atol=2e-6)


@pytest.mark.parametrize("lengths", [[0, 0, 0], [5, 5, 5], [9, 1, -2], [2, 2, 1]])
@pytest.mark.parametrize("name", [name for name in LENGTHS if "any_size" in name or name == "gru_frames_lengths"])
def test_any_lengths_give_what_the_loop_gives(name, lengths):
    feeds = feeds_of(name) | {"len:0": np.array(lengths, np.int32)}
    for fused, plain in zip(run(graph_of(name), name, PLUGINS["numpy"], feeds),
                            run(graph_of(name), name, UNFUSED, feeds), strict=True):
        np.testing.assert_allclose(fused, plain, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ["lstm_frames_any_size_lengths", "lstm_functions_any_size_lengths"])
def test_lengths_for_another_number_of_rows_are_an_error(name):
    feeds = feeds_of(name) | {"len:0": np.array([3, 2], np.int32)}
    for config in (PLUGINS["numpy"], UNFUSED):
        with pytest.raises(InvalidArgument):
            run(graph_of(name), name, config, feeds)


@pytest.mark.parametrize("name", FRAMES)
def test_indices_may_end_at_the_size_of_the_array(name):
    """Graphs of earlier versions ask the array for its size."""
    graph = graph_of(name)
    gather = node_of(graph, "TensorArrayGatherV3")
    size = Node("asked", "TensorArraySizeV3", [gather.inputs[0], gather.inputs[2]])
    start, delta = constant("start", np.int32(0)), constant("delta", np.int32(1))
    indices = Node("indices", "Range", ["start", "asked", "delta"], attrs={"Tidx": dtypes.int32})
    graph = graph.replace(nodes=[size, start, delta, indices, with_input(gather, 1, Input("indices"))])
    assert fused_ops(graph, name) == sequence_op(name)
    for result, recorded in zip(run(graph, name, PLUGINS["numpy"]), LAYERS[name]["results"], strict=True):
        np.testing.assert_allclose(np.ravel(result), recorded, rtol=0, atol=2e-6)


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
    """The outputs of a row that has ended are those of the cell."""
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
    graph = graph_of(name)
    graph = graph.replace(nodes=NEAR_MISSES[case](graph))
    outputs = ["again:0"] if "again" in graph.nodes else []
    assert fused_ops(graph, name, outputs).keys() <= LOOPS
    assert outcome(graph, name, PLUGINS["numpy"], outputs) == outcome(graph, name, UNFUSED, outputs)


def outcome(graph, name, config, outputs):
    """The rounded results of a run, or the class of its error."""
    try:
        with heald.Session(graph, config) as session:
            results = session.run([*LAYERS[name]["outputs"], *outputs], feeds_of(name))
    except HealdError as error:
        return type(error)
    return [np.round(result, 5).tolist() for result in results]


def test_elements_of_any_shape_stay_where_some_are_unwritten():
    """Without a shape, the array refuses to read an element that no step has written."""
    for name, is_fused in (("lstm_frames_lengths", False), ("lstm_frames", True)):
        graph = graph_of(name)
        graph = graph.replace(nodes=[with_attrs(node, identical_element_shapes=False, element_shape=None)
                                     for node in graph if node.op == "TensorArrayV3"])
        assert (fused_ops(graph, name) == sequence_op(name)) == is_fused


@pytest.mark.parametrize("attrs", [{"use_peephole": True}, {"cell_clip": 1.0}])
def test_a_block_cell_with_more_than_an_lstm_stays(attrs):
    name = "lstm_block_functions"
    graph = graph_of(name)
    (body,) = [function for function in graph.functions.values()
               if any(node.op == "LSTMBlockCell" for node in function.nodes.values())]
    changed = body.replace(nodes=[with_attrs(node, **attrs) if node.op == "LSTMBlockCell" else node
                                  for node in body.nodes.values()])
    assert fused_ops(graph.replace(functions={**graph.functions, body.name: changed}), name).keys() <= LOOPS
