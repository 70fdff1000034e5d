"""Fusion: one kernel of a pack does the work of several, with the same results."""

from __future__ import annotations

import json
import subprocess
import sys

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from heald.errors import PluginError
from heald.graphs.graph.graph import Node
from hypothesis import given, settings
from hypothesis import strategies as st

PLUGIN = """
import numpy as np
from functools import partial
from heald.api import hookimpl

HEALD_API = (1, 0)
COMPUTE = {"Abs": np.abs, "AddV2": np.add, "Mul": np.multiply, "Neg": np.negative, "Relu": partial(np.maximum, 0),
           "MatMul": np.matmul}

@hookimpl
def heald_kernels(registry):
    registry.kernels("CPU", register, priority=9)

def register(kernels):
    for op, compute in COMPUTE.items():
        kernels.kernel(op)(lambda b, compute=compute: lambda *arrays: np.copyto(arrays[-1], compute(*arrays[:-1])))
    kernels.fusion("Elementwise", ops=["AddV2", "Mul", "Neg", "Relu"])(fused)
    kernels.fusion("Product", ops=["AddV2", "Relu"], heads=["MatMul"], leads=["Abs"], priority=1)(product)

def product(b):
    if b.outputs[0].dims[0] == 13:
        return b.decline("thirteen rows")
    if b.outputs[0].dims[0] == 14:
        raise KeyError("fourteen rows")
    return fused(b) if any(f.op == "MatMul" for f in b.fused) else b.decline("there is no product")

def fused(b):
    assert b.attrs["_fused"][-1] == b.node
    def run(*arrays):
        if 99 in arrays[0]:
            raise ValueError("boom")
        values = dict(enumerate(arrays[:-1]))
        for op, attrs, args, results, outputs in b.fused:
            values[results[0]] = COMPUTE[op](*[values[a] for a in args])
            assert values[results[0]].shape == outputs[0].dims
        arrays[-1][...] = values[results[0]]
    return run
"""
OPS = {"AddV2": 2, "Mul": 2, "Neg": 1, "Relu": 1, "Sub": 2}  # the pack has no Sub
PLAIN = {"transpose_a": False, "transpose_b": False}


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    path = tmp_path_factory.mktemp("plugin") / "fuser.py"
    path.write_text(PLUGIN)
    return {"plugins": {"load": [str(path)]}}


def calls(nodes, *arguments):
    """The result of a run, and its calls: (kernel, the nodes that it does)."""
    metadata = heald.RunMetadata()
    result = nodes.run(*arguments, options=heald.RunOptions(trace=True), metadata=metadata)
    return result, [(e.call.op, e.call.fused or (e.call.node,)) for e in metadata.trace.events]


def test_a_trace_names_the_nodes_of_a_fused_call(config):
    session = heald.Session(graph(placeholder("x", (3,)), node("a", "Neg", "x"), node("b", "Relu", "a")), config)
    metadata = heald.RunMetadata()
    session.run("b", {"x": np.float32([1, -2, 3])}, options=heald.RunOptions(trace=True), metadata=metadata)
    row, = (row for row in metadata.trace.to_chrome()["traceEvents"] if row["ph"] == "X")
    assert row["args"]["fused"] == "a, b"


def chain(*last):
    return graph(placeholder("x", (None, 4)), const("c", [1, 2, 3, 4]), node("a", "Neg", "x"),
                 node("b", "AddV2", "a", "c"), node("d", "Relu", "b"), node("e", "Mul", "d", "x"),
                 node("f", "Neg", "e"), *last)


X = np.float32([[1, -2, 3, -4], [5, -6, 7, -8]])
WANTED = -(np.maximum(-X + np.float32([1, 2, 3, 4]), 0) * X)


def test_a_chain_is_one_call_for_every_batch(config):
    session = heald.Session(chain(), config)
    for x in (X, X[:1], np.vstack([X, X])):
        result, done = calls(session, "f", {"x": x})
        assert result.tolist() == np.vstack([WANTED, WANTED])[: len(x)].tolist()
        assert done == [("Elementwise", ("a", "b", "d", "e", "f"))]


def test_a_value_with_other_consumers_ends_a_chain(config):
    session = heald.Session(chain(), config)
    (first, last), done = calls(session, ["b", "f"], {"x": X})
    assert (first.tolist(), last.tolist()) == ((-X + [1, 2, 3, 4]).tolist(), WANTED.tolist())
    assert done == [("Elementwise", ("a", "b")), ("Elementwise", ("d", "e", "f"))]
    session = heald.Session(chain(node("g", "Sub", "d", "f")), config)
    assert calls(session, "g", {"x": X})[1] == [
        ("Elementwise", ("a", "b", "d")), ("Elementwise", ("e", "f")), ("Sub", ("g",))]


def test_a_node_with_a_control_input_needs_it(config):
    session = heald.Session(chain(Node("g", "Sub", ["x", "x", "^d"], attrs=node("g", "Neg").attrs),
                                  node("h", "AddV2", "g", "f")), config)
    result, done = calls(session, "h", {"x": X})
    assert result.tolist() == WANTED.tolist()
    assert ("Elementwise", ("a", "b", "d")) in done


def refusals(nodes, config, fetch, *shapes):
    """The refusals of the link of a graph: (pattern, node, reason)."""
    session = heald.Session(nodes, config)
    feeds = [name for name in session.graph.nodes if session.graph[name].op == "Placeholder"]
    executable = session.prepare(fetch, feeds).executable(shapes)
    return [(refusal.pattern, refusal.node, refusal.reason) for refusal in executable.report.fusion_refusals]


def test_a_chain_that_is_one_call_has_no_refusal(config):
    assert refusals(chain(), config, ["f"], (2, 4)) == []


@pytest.mark.parametrize(("last", "fetches", "node_name", "reason"), [
    ([], ["b", "f"], "b", "its value is fetched, or another node waits for it"),
    ([node("g", "Sub", "d", "f")], ["g"], "d", "its value is also read by 'g'"),
    ([node("g", "Sub", "d", "x"), node("h", "Sub", "d", "g"), node("i", "Sub", "d", "h"), node("k", "Sub", "f", "i")],
     ["k"], "d", "its value is also read by 'g', 'h' and more"),
])
def test_a_refusal_names_the_node_that_stays_apart_and_why(config, last, fetches, node_name, reason):
    found = refusals(chain(*last), config, fetches, (2, 4))
    assert [refusal for refusal in found if refusal[0] == "fuser.Elementwise"] == [
        ("fuser.Elementwise", node_name, reason)]


def test_a_value_of_another_shape_is_a_refusal(config):
    nodes = graph(placeholder("x", (2, 1)), placeholder("y", (2, 3)), node("b", "Neg", "x"),
                  node("c", "AddV2", "b", "y"), node("d", "Neg", "c"))
    assert refusals(nodes, config, ["d"], (2, 1), (2, 3)) == [
        ("fuser.Elementwise", "b", "its shape [2, 1] is not the shape [2, 3] of 'd'")]


def test_a_kernel_that_declines_gives_the_reason_of_a_refusal(config):
    assert ("fuser.Product", "r", "thirteen rows") in refusals(product(13), config, ["m"], (13, 2))
    assert not [reason for *_, reason in refusals(product(2), config, ["m"], (2, 2)) if "thirteen" in reason]


def test_values_of_another_shape_are_computed_apart(config):
    session = heald.Session(graph(placeholder("x", (2, 1)), placeholder("y", (2, 3)), node("a", "Neg", "x"),
                                  node("b", "Neg", "a"), node("c", "AddV2", "b", "y"), node("d", "Neg", "c")), config)
    result, done = calls(session, "d", {"x": [[1], [2]], "y": np.ones((2, 3))})
    assert result.tolist() == [[-2] * 3, [-3] * 3]
    assert done == [("Elementwise", ("a", "b")), ("Elementwise", ("c", "d"))]


def product(rows):
    return graph(placeholder("x", (rows, 2)), const("w", [[1, 2], [3, 4]]), const("bias", [-10, 10]),
                 node("neg", "Neg", "x"), node("p", "MatMul", "neg", "w", **PLAIN), node("s", "AddV2", "p", "bias"),
                 node("r", "Relu", "s"), node("q", "Sub", "r", "bias"), node("n", "Neg", "q"), node("m", "Neg", "n"))


@pytest.mark.parametrize(("rows", "expected"), [
    (2, [("Neg", ("neg",)), ("Product", ("p", "s", "r")), ("Sub", ("q",)), ("Elementwise", ("n", "m"))]),
    (13, [("Neg", ("neg",)), ("MatMul", ("p",)), ("Elementwise", ("s", "r")), ("Sub", ("q",)),
          ("Elementwise", ("n", "m"))]),
])
def test_a_head_takes_what_follows_and_where_it_declines_the_rest_stays_together(config, rows, expected):
    x = np.arange(2 * rows, dtype=np.float32).reshape(rows, 2)
    result, done = calls(heald.Session(product(rows), config), "m", {"x": x})
    assert result.tolist() == (np.maximum(-x @ [[1, 2], [3, 4]] + [-10, 10], 0) - [-10, 10]).tolist()
    assert done == expected


@pytest.mark.parametrize(("rows", "fetched", "expected"), [
    (2, "s", [("Product", ("a", "p", "s"))]),
    (13, "s", [("Abs", ("a",)), ("MatMul", ("p",)), ("AddV2", ("s",))]),
    (2, ["s", "a"], [("Abs", ("a",)), ("Product", ("p", "s"))]),
])
def test_a_call_that_leads_to_a_head_alone_is_fused_with_it(config, rows, fetched, expected):
    session = heald.Session(graph(
        placeholder("x", (rows, 2)), const("w", [[1, 2], [3, 4]]), const("bias", [-10, 10]), node("a", "Abs", "x"),
        node("p", "MatMul", "a", "w", **PLAIN), node("s", "AddV2", "p", "bias")), config)
    x = -np.arange(2 * rows, dtype=np.float32).reshape(rows, 2)
    result, done = calls(session, fetched, {"x": x})
    product = np.abs(x) @ [[1, 2], [3, 4]] + [-10, 10]
    assert (result if fetched == "s" else result[0]).tolist() == product.tolist()
    assert done == expected


def test_nodes_that_a_pass_has_made_are_fused_too(config, tmp_path):
    path = tmp_path / "squares.py"
    path.write_text("""
from heald.api import hookimpl
HEALD_API = (1, 0)

def twice_negated(graph, _):
    node = graph["f"]
    first, second = (node.replace(name=name, inputs=[source]) for name, source in (("f/1", "e"), ("f/2", "f/1")))
    return graph.replace(nodes=[first, second, node.replace(inputs=["f/2"])])

@hookimpl
def heald_passes(registry):
    registry.add("twice-negated", twice_negated)
""")
    session = heald.Session(chain(), {"plugins": {"load": [*config["plugins"]["load"], str(path)]}})
    result, done = calls(session, "f", {"x": X})
    assert result.tolist() == WANTED.tolist()
    assert done == [("Elementwise", ("a", "b", "d", "e", "f/1", "f/2", "f"))]
    assert {row["node"]: row["fused"] for row in session.placement().table() if row.get("fused")}.keys() >= {"a", "f"}


def test_a_bind_that_fails_is_named(config):
    with pytest.raises(PluginError, match=r"fuser's kernel for Product raised KeyError: 'fourteen rows'") as caught:
        heald.Session(product(14), config).run("m", {"x": np.zeros((14, 2))})
    assert caught.value.node == "r"


def test_a_kernel_that_fails_is_named_by_its_last_node(config):
    session = heald.Session(chain(), config)
    with pytest.raises(PluginError, match="boom") as caught:
        session.run("f", {"x": X * 0 + 99})
    assert (caught.value.node, caught.value.op) == ("f", "Elementwise")
    assert "[passes] disable = ['fusion'] leaves it out" in caught.value.hint
    assert calls(session, "f", {"x": X})[0].tolist() == WANTED.tolist()


def test_fusion_can_be_switched_off(config):
    session = heald.Session(chain(), config | {"passes": {"disable": ["fusion"]}})
    assert [nodes for _, nodes in calls(session, "f", {"x": X})[1]] == [("a",), ("b",), ("d",), ("e",), ("f",)]


def test_the_report_says_what_is_done_together(config):
    session = heald.Session(chain(), config)
    session.run("f", {"x": X})
    rows = {row["node"]: (row["kernel"], row["fused"]) for row in session.placement().table()}
    assert rows["a"] == rows["f"] == ("fuser.Elementwise", "with f")
    assert rows["c"] == ("", "")
    session.run("a", {"x": X})
    rows = {row["node"]: (row["kernel"], row["fused"]) for row in session.placement().table()}
    assert rows["a"] == ("fuser.Neg", "")


def test_explain_shows_the_fused_nodes(config, tmp_path):
    path = tmp_path / "chain.pb"
    heald.graphdef.dump(chain(), path)
    command = [sys.executable, "-m", "heald", "explain", str(path), "--input", "x=2,4", "--config", "chain.toml"]
    (plugin,) = config["plugins"]["load"]
    (tmp_path / "chain.toml").write_text(f"[plugins]\nload = [{json.dumps(plugin)}]\n")
    output = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert "with f" in output


@st.composite
def programs(draw):
    """Calls (op, arguments) over values 0 of shape [3] and 1 of shape [2, 3], and the values to fetch."""
    nodes = []
    for i in range(draw(st.integers(1, 12))):
        op = draw(st.sampled_from(sorted(OPS)))
        nodes.append((op, [draw(st.integers(max(0, i - 3), i + 1)) for _ in range(OPS[op])]))
    return nodes, draw(st.lists(st.integers(2, len(nodes) + 1), min_size=1, max_size=3, unique=True))


@given(programs())
@settings(max_examples=150, deadline=None)
def test_fused_programs_give_what_others_give(config, program):
    graph_nodes, fetched = program
    nodes = [placeholder("v0", (3,)), placeholder("v1", (2, 3))]
    nodes += [node(f"v{i}", op, *(f"v{a}" for a in args)) for i, (op, args) in enumerate(graph_nodes, 2)]
    feeds = {"v0": np.float32([1, -2, 3]), "v1": np.float32([[2, -1, 0], [1, 1, -3]])}
    names = [f"v{i}" for i in fetched]
    alone = heald.Session(graph(*nodes), config | {"passes": {"disable": ["fusion"]}}).run(names, feeds)
    session = heald.Session(graph(*nodes), config)
    for _ in range(2):
        together = session.run(names, feeds)
        assert [t.tolist() for t in together] == [a.tolist() for a in alone]


def test_another_name_of_a_value_ends_no_chain(config):
    session = heald.Session(graph(placeholder("x", (None, 4)), node("a", "Neg", "x"), node("b", "Relu", "a"),
                                  node("n", "IdentityN", "b", "a", T=[heald.api.dtypes.float32] * 2),
                                  node("c", "Neg", "n")), config)
    result, done = calls(session, "c", {"x": X})
    assert result.tolist() == (-np.maximum(-X, 0)).tolist()
    assert done == [("Elementwise", ("a", "b", "c"))]
    names, _ = calls(session, ["n", "n:1", "c"], {"x": X})
    assert [name.tolist() for name in names] == [np.maximum(-X, 0).tolist(), (-X).tolist(), result.tolist()]


def test_two_heads_that_meet_take_what_is_theirs_alone(config):
    session = heald.Session(graph(
        placeholder("x", (2, 2)), const("w", [[1, 2], [3, 4]]), const("bias", [-10, 10]),
        node("p", "MatMul", "x", "w", **PLAIN), node("q", "MatMul", "w", "x", **PLAIN),
        node("s", "AddV2", "p", "bias"), node("t", "AddV2", "q", "bias"), node("u", "Relu", "t"),
        node("m", "AddV2", "s", "u"), node("r", "Relu", "m")), config)
    x = np.float32([[1, 2], [-3, 4]])
    result, done = calls(session, "r", {"x": x})
    w, bias = np.float32([[1, 2], [3, 4]]), np.float32([-10, 10])
    assert result.tolist() == np.maximum(x @ w + bias + np.maximum(w @ x + bias, 0), 0).tolist()
    assert sorted(done) == [("Product", ("p", "s", "m", "r")), ("Product", ("q", "t", "u"))]
