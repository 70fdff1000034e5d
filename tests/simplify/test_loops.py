"""The pass `loops` of heald-simplify: loops over the steps of recurrent layers.

tests/data/recurrent_loops.json has layers of Keras 3 (tensorflow-cpu 2.21), frozen with their loops, an input, and the
results that TensorFlow gave. `frames` is the same graph with control flow of TensorFlow 1.
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
from harness.shared_runtimes import shared_runtime
from heald.errors import HealdError
from heald.graphs.graph import graphdef
from heald.graphs.graph.graph import Input, Node
from heald.graphs.graph.rewriting import constant
from hypothesis import given, settings
from hypothesis import strategies as st

LAYERS = json.loads((Path(__file__).parent.parent / "data" / "recurrent_loops.json").read_text("utf-8"))
SEQUENCES = {"gru": "_GRUSequence", "lstm": "_LSTMSequence", "rnn": "_RNNSequence"}
PLUGINS = {"numpy": {"plugins": {"block": ["onednn"]}}, "onednn": {}}
UNFUSED = PLUGINS["numpy"] | {"passes": {"disable": ["loops"]}}
FRAMED = [name for name, layer in LAYERS.items() if "frames" in layer]


def graph_of(name, form="graph"):
    return graphdef.loads(zlib.decompress(base64.b64decode(LAYERS[name][form])))


def input_of(name):
    return np.array(LAYERS[name]["x"], np.float32)


def run(graph, name, config, x=None):
    layer = LAYERS[name]
    with heald.Session(graph, shared_runtime(config)) as session:
        return session.run(layer["outputs"], {layer["input"]: input_of(name) if x is None else x})


def fused_ops(graph, name):
    layer = LAYERS[name]
    with heald.Session(graph, shared_runtime(PLUGINS["numpy"])) as session:
        *_, (_, rewritten) = session.graphs_by_pass(layer["outputs"], (layer["input"],))
    counted = Counter(node.op for node in rewritten)
    return {op: counted[op] for op in (*SEQUENCES.values(), "While", "StatelessWhile") if counted[op]}


@pytest.mark.parametrize("form", ["graph", "frames"])
@pytest.mark.parametrize("name", LAYERS)
def test_the_loop_of_a_layer_is_one_op(name, form):
    if form in LAYERS[name]:
        count = 2 if name.endswith("both_ways") else 1
        assert fused_ops(graph_of(name, form), name) == {SEQUENCES[name.split("_")[0]]: count}


@pytest.mark.parametrize("plugins", PLUGINS)
@pytest.mark.parametrize("name", LAYERS)
def test_results_are_those_of_tensorflow(name, plugins):
    for result, recorded in zip(run(graph_of(name), name, PLUGINS[plugins]), LAYERS[name]["results"], strict=True):
        np.testing.assert_allclose(result, recorded, rtol=0, atol=2e-6)


@pytest.mark.parametrize("plugins", PLUGINS)
@pytest.mark.parametrize("name", FRAMED)
def test_frames_of_tensorflow_1_give_the_same(name, plugins):
    for result, recorded in zip(run(graph_of(name, "frames"), name, PLUGINS[plugins]), LAYERS[name]["results"],
                                strict=True):
        np.testing.assert_allclose(result, recorded, rtol=0, atol=2e-6)


@pytest.mark.parametrize("plugins", PLUGINS)
@pytest.mark.parametrize("value", [np.nan, np.inf, 1e30])
def test_numbers_without_bounds_give_what_the_loop_gives(value, plugins):
    for name in ("lstm", "gru", "lstm_relu", "lstm_mask"):
        x = input_of(name)
        x[0, 1, 0] = value
        for fused, plain in zip(run(graph_of(name), name, PLUGINS[plugins], x),
                                run(graph_of(name), name, UNFUSED, x), strict=True):
            np.testing.assert_allclose(fused, plain, rtol=1e-5, atol=1e-5)


def body_of(graph):
    loop = next(node for node in graph if node.op in ("While", "StatelessWhile"))
    return loop, graph.functions[loop.attrs["body"].name]


def with_body_nodes(graph, *nodes):
    """The graph with these nodes in the body of its first loop, in the place of those with their names."""
    _, body = body_of(graph)
    changed = body.replace(nodes=({**body.nodes} | {node.name: node for node in nodes}).values())
    return graph.replace(functions={**graph.functions, body.name: changed})


def body_node(graph, op, number=0):
    return [node for node in body_of(graph)[1].nodes.values() if node.op == op][number]


def other_function(op):
    return lambda graph: [node.replace(op=op) for node in [body_node(graph, "Sigmoid")]]


def other_gate(graph):
    first, second = body_node(graph, "Sigmoid"), body_node(graph, "Sigmoid", 1)
    return [first.replace(inputs=second.inputs)]


def scaled_gate(graph):
    gate = body_node(graph, "Sigmoid")
    factor = constant("factor", np.float32(2))
    scaled = Node("scaled", "Mul", [*gate.inputs, Input("factor", "output")], attrs={"T": gate.attrs["T"]})
    return [factor, scaled, gate.replace(inputs=[Input("scaled", "z")])]


def other_step(graph):
    counters = [node for node in body_of(graph)[1].nodes.values() if node.op == "AddV2" and node.name.endswith("add")]
    name = counters[0].inputs[1].node
    return [constant(name, np.int32(2))]


def difference(graph):
    return [body_node(graph, "AddV2", number).replace(op="Sub") for number in range(8)
            if len([node for node in body_of(graph)[1].nodes.values() if node.op == "AddV2"]) > number
            and "cell" in body_node(graph, "AddV2", number).name]


def printed(graph):
    gate = body_node(graph, "Sigmoid")
    shown = Node("shown", "Print", [*gate.inputs, *gate.inputs],
                 attrs={"T": gate.attrs["T"], "U": (gate.attrs["T"],), "message": "x", "first_n": 0})
    return [shown, gate.replace(inputs=[Input("shown", "output")])]


NEAR_MISSES = {
    "another function": other_function("Softsign"), "another gate": other_gate, "a gate that is scaled": scaled_gate,
    "two steps at once": other_step, "differences": difference, "an effect": printed,
}


@pytest.mark.parametrize("case", NEAR_MISSES)
@pytest.mark.parametrize("name", ["lstm", "lstm_mask"])
def test_a_loop_that_differs_stays(name, case):
    graph = graph_of(name)
    graph = with_body_nodes(graph, *NEAR_MISSES[case](graph))
    assert fused_ops(graph, name) == {"While": 1}


def test_a_body_of_many_nodes_stays():
    graph = graph_of("lstm")
    split = body_node(graph, "Split")
    chain = [Node("deep0", "Tanh", split.inputs[1:], attrs={"T": split.attrs["T"]})]
    for number in range(300):
        chain.append(Node(f"deep{number + 1}", "Tanh", [Input(chain[-1].name, "y")], attrs={"T": split.attrs["T"]}))
    graph = with_body_nodes(graph, *chain, split.replace(inputs=[split.inputs[0], Input(chain[-1].name, "y")]))
    assert fused_ops(graph, "lstm") == {"While": 1}


@pytest.mark.parametrize("name", ["lstm", "gru"])
def test_operands_may_be_turned(name):
    graph = graph_of(name)
    turned = [node.replace(inputs=node.inputs[::-1]) for node in body_of(graph)[1].nodes.values()
              if node.op in ("AddV2", "Mul")]
    graph = with_body_nodes(graph, *turned)
    assert fused_ops(graph, name) == {SEQUENCES[name]: 1}


def test_a_fetch_of_the_loop_keeps_it():
    graph, layer = graph_of("lstm"), LAYERS["lstm"]
    loop, _ = body_of(graph)
    with heald.Session(graph, shared_runtime(PLUGINS["numpy"])) as session:
        *_, (_, rewritten) = session.graphs_by_pass([f"{loop.name}:4", *layer["outputs"]], (layer["input"],))
    assert "While" in {node.op for node in rewritten}


def outcome(graph, name, config):
    """The results of a run, or the class of its error."""
    try:
        return run(graph, name, config)
    except HealdError as error:
        return type(error)


SWAPS = {"Sigmoid": ("Tanh", "Relu"), "Tanh": ("Sigmoid", "Relu"), "AddV2": ("Sub", "Mul"), "Mul": ("AddV2", "Sub"),
         "Sub": ("AddV2", "Mul")}


def mutated(graph, draw):
    """The graph with a random change in the body of its loop."""
    _, body = body_of(graph)
    nodes = [node for node in body.nodes.values() if node.inputs and node.op != "NoOp"]
    node = draw(st.sampled_from(nodes))
    kind = draw(st.sampled_from(["op", "turn", "rewire", "output", "result"]))
    if kind == "op" and node.op in SWAPS:
        return with_body_nodes(graph, node.replace(op=draw(st.sampled_from(SWAPS[node.op]))))
    if kind == "turn":
        return with_body_nodes(graph, node.replace(inputs=node.inputs[::-1]))
    if kind == "output":
        inputs = [source._replace(index=draw(st.integers(0, 3))) if source.output == "output" else source
                  for source in node.inputs]
        return with_body_nodes(graph, node.replace(inputs=inputs))
    if kind == "result":
        names = list(body.ret)
        first, second = draw(st.sampled_from(names)), draw(st.sampled_from(names))
        changed = body.replace(ret={**body.ret, first: body.ret[second], second: body.ret[first]})
        return graph.replace(functions={**graph.functions, body.name: changed})
    tensors = sorted({source for other in nodes for source in other.inputs}, key=str)
    inputs = [*node.inputs]
    inputs[draw(st.integers(0, len(inputs) - 1))] = draw(st.sampled_from(tensors))
    return with_body_nodes(graph, node.replace(inputs=inputs))


@settings(max_examples=40, deadline=None)
@given(data=st.data(), name=st.sampled_from(["lstm", "gru", "rnn", "lstm_mask", "gru_reset_before", "gru_mask_zeros"]),
       changes=st.integers(1, 2))
def test_a_changed_body_gives_what_the_unfused_loop_gives(data, name, changes):
    graph = graph_of(name)
    try:
        for _ in range(changes):
            graph = mutated(graph, data.draw)
    except HealdError:
        return  # a circle, for example
    if not fused_ops_or_none(graph, name):
        return
    plain = outcome(graph, name, UNFUSED)
    fused = outcome(graph, name, PLUGINS["numpy"])
    if isinstance(plain, type) or isinstance(fused, type):
        assert plain == fused
        return
    for a, b in zip(plain, fused, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-5)


def fused_ops_or_none(graph, name):
    """The fused ops. None where the loop stays, which may never end, and where the graph has an error."""
    try:
        ops = fused_ops(graph, name)
    except HealdError:
        return None
    return ops if not ops.keys() & {"While", "StatelessWhile"} else None
