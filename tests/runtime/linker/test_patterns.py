"""Patterns: a pack's own function finds nodes of any shapes, and one of its kernels does them at once."""

from __future__ import annotations

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from heald.errors import PluginError
from heald.graphs.graph.graph import Node

PLUGIN = """
import numpy as np
from heald.api import hookimpl

HEALD_API = (1, 0)
COMPUTE = {"AddV2": np.add, "Neg": np.negative, "Sub": np.subtract, "Mul": np.multiply,
           "Mean": lambda x, axes: x.mean(tuple(axes), keepdims=True)}

@hookimpl
def heald_kernels(registry):
    registry.kernels("CPU", register, priority=9)

def register(kernels):
    for op, compute in COMPUTE.items():
        kernels.kernel(op)(lambda b, compute=compute: lambda *arrays: np.copyto(arrays[-1], compute(*arrays[:-1])))
    kernels.fusion("Elementwise", ops=["AddV2", "Mul", "Neg", "Sub"])(lambda b: lambda *arrays: run(b, arrays))
    kernels.pattern("Centred", ends=["Sub"], find=centred)(bind)

def centred(last, made, known):
    x, mean = last.args
    if known[x].meta.dims[0] == 14:
        raise KeyError("fourteen rows")
    mean = made.get(mean)
    if mean is None or mean.op != "Mean" or mean.args[0] != x or known[mean.args[1]].value is None:
        return ()
    return (last, mean)  # in no order

def bind(b):
    if b.outputs[0].dims[0] == 13:
        return b.decline("thirteen rows")
    return lambda *arrays: run(b, arrays)

def run(b, arrays):
    values = dict(enumerate(arrays[:-1]))
    for op, attrs, args, results, outputs in b.fused:
        values[results[0]] = COMPUTE[op](*[values[a] for a in args])
        assert values[results[0]].shape == outputs[0].dims
    arrays[-1][...] = values[results[0]]
"""
MEAN = {"keep_dims": True}
CENTRED = [const("axis", [1], np.int32), node("mean", "Mean", "x", "axis", **MEAN), node("centred", "Sub", "x", "mean")]
X = np.float32([[1, 2, 6], [5, 5, 8]])
WANTED = X - X.mean(1, keepdims=True)


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    path = tmp_path_factory.mktemp("plugin") / "finder.py"
    path.write_text(PLUGIN)
    return {"plugins": {"load": [str(path)]}}


def calls(nodes, config, fetch, feeds):
    """The result of a run, and its calls: (kernel, the nodes that it does)."""
    metadata = heald.RunMetadata()
    result = heald.Session(graph(*nodes), config).run(fetch, feeds, options=heald.RunOptions(trace=True),
                                                      metadata=metadata)
    return result, [(e.call.op, e.call.fused or (e.call.node,)) for e in metadata.trace.events]


def test_nodes_of_several_shapes_are_one_call_for_every_batch(config):
    nodes = [placeholder("x", (None, 3)), *CENTRED]
    for x in (X, X[:1], np.vstack([X, X])):
        result, done = calls(nodes, config, "centred", {"x": x})
        np.testing.assert_allclose(result, x - x.mean(1, keepdims=True), rtol=1e-6)
        assert done == [("Centred", ("mean", "centred"))]


def test_calls_around_a_pattern_are_fused_without_it(config):
    nodes = [placeholder("given", (None, 3)), node("half", "Neg", "given"), node("x", "Neg", "half"), *CENTRED,
             node("a", "Neg", "centred"), node("b", "AddV2", "a", "x")]
    result, done = calls(nodes, config, "b", {"given": X})
    np.testing.assert_allclose(result, X - WANTED, rtol=1e-6)
    assert done == [("Elementwise", ("half", "x")), ("Centred", ("mean", "centred")), ("Elementwise", ("a", "b"))]


def test_two_patterns_are_two_calls(config):
    again = [Node(f"{original.name}2", original.op, [*original.inputs], attrs=dict(original.attrs))
             for original in CENTRED[1:]]
    again[0] = again[0].replace(inputs=["centred", "axis"])
    again[1] = again[1].replace(inputs=["centred", "mean2"])
    result, done = calls([placeholder("x", (None, 3)), *CENTRED, *again], config, "centred2", {"x": X})
    np.testing.assert_allclose(result, WANTED, rtol=1e-6, atol=1e-6)
    assert done == [("Centred", ("mean", "centred")), ("Centred", ("mean2", "centred2"))]


@pytest.mark.parametrize("last", [[node("y", "AddV2", "centred", "mean")], [node("y", "Mul", "mean", "centred")]])
def test_nodes_whose_inner_values_others_need_are_left(config, last):
    _, done = calls([placeholder("x", (None, 3)), *CENTRED, *last], config, "y", {"x": X})
    assert ("Mean", ("mean",)) in done
    assert not any(op == "Centred" for op, _ in done)


def test_nodes_whose_inner_values_are_fetched_or_waited_for_are_left(config):
    nodes = [placeholder("x", (None, 3)), *CENTRED]
    _, done = calls(nodes, config, ["mean", "centred"], {"x": X})
    assert done == [("Mean", ("mean",)), ("Sub", ("centred",))]
    later = Node("later", "Neg", ["x", "^mean"], attrs=dict(node("later", "Neg", "x").attrs))
    _, done = calls([*nodes, later, node("y", "AddV2", "later", "centred")], config, "y", {"x": X})
    assert not any(op == "Centred" for op, _ in done)


@pytest.mark.parametrize(("fetches", "rows", "refusal"), [
    (["mean", "centred"], 2, ("finder.Centred", "mean", "its value is also needed outside the pattern")),
    (["centred"], 13, ("finder.Centred", "centred", "thirteen rows")),
])
def test_a_refusal_of_a_pattern_names_its_node_and_the_reason(config, fetches, rows, refusal):
    session = heald.Session(graph(placeholder("x", (None, 3)), *CENTRED), config)
    executable = session.prepare(fetches, ["x"]).executable(((rows, 3),))
    assert [(found.pattern, found.node, found.reason) for found in executable.report.fusion_refusals] == [refusal]


def test_nodes_are_done_one_by_one_where_the_kernel_declines(config):
    x = np.ones((13, 3), np.float32)
    result, done = calls([placeholder("x", (None, 3)), *CENTRED], config, "centred", {"x": x})
    assert not result.any()
    assert done == [("Mean", ("mean",)), ("Sub", ("centred",))]


def test_a_function_that_raises_is_named(config):
    with pytest.raises(PluginError, match="function of pattern 'Centred' of plugin finder raised KeyError") as raised:
        calls([placeholder("x", (None, 3)), *CENTRED], config, "centred", {"x": np.ones((14, 3), np.float32)})
    assert raised.value.node == "centred"
    assert raised.value.hint == '[passes] disable = ["fusion"] runs the graph without patterns'


def test_the_function_of_a_pattern_is_not_asked_if_fusion_is_disabled(config):
    plain = {**config, "passes": {"disable": ["fusion"]}}
    result, done = calls([placeholder("x", (None, 3)), *CENTRED], plain, "centred", {"x": np.ones((14, 3), np.float32)})
    assert not result.any()
    assert done == [("Mean", ("mean",)), ("Sub", ("centred",))]


def test_patterns_are_switched_off_with_fusion(config):
    nodes = [placeholder("x", (None, 3)), *CENTRED]
    result, done = calls(nodes, config | {"passes": {"disable": ["fusion"]}}, "centred", {"x": X})
    np.testing.assert_allclose(result, WANTED, rtol=1e-6)
    assert done == [("Mean", ("mean",)), ("Sub", ("centred",))]
