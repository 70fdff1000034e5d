"""benchmarks/control_flow.py: its graphs compute what NumPy computes, and its table has a cell for each peer."""

import os
import sys

import heald
import numpy as np
import pytest
from heald.errors import HealdError


@pytest.fixture
def graphs(module, monkeypatch):
    module_of_graphs = module("control_flow_graphs")
    monkeypatch.setattr(module_of_graphs, "TIMES", 50)
    return module_of_graphs


def run(case):
    return heald.Session(case.graph).run(case.fetch, {f"{name}:0": array for name, array in case.feeds.items()})


def test_loops_branches_and_calls_add_what_numpy_adds(graphs):
    _, loop, nested, branch, call, *_ = graphs.cases()
    for case, times in ((loop, 50), (nested, 10_000), (branch, 1), (call, 1)):
        np.testing.assert_allclose(run(case), np.full((2, 2), 1 + times * 1e-3), 1e-4)
    assert run(branch._replace(feeds=branch.feeds | {"p": np.bool_(False)})).max() < 1


def test_loops_over_rows_compute_each_row(graphs):
    by_row, scan = graphs.cases()[5:7]
    x = by_row.feeds["x"]
    np.testing.assert_allclose(run(by_row), np.maximum(2 * x + 2, 0) - x.mean(1, keepdims=True), 1e-5, 1e-5)
    state, states = np.zeros(graphs.WIDTH, np.float32), []
    for row in x:
        state = np.tanh(state / 2 + row)
        states.append(state)
    np.testing.assert_allclose(run(scan), states, 1e-5, 1e-5)


def test_the_decoder_chooses_the_best_token_in_each_turn(graphs):
    case = graphs.cases()[7]
    words, kernel, logits = (case.graph.functions["step"].nodes[name].attrs["value"].array()
                             for name in ("words", "kernel", "logits"))
    token, state, tokens = 0, case.feeds["x"], []
    for _ in range(graphs.TOKENS):
        state = np.tanh(np.hstack([words[[token]], state]) @ kernel)
        token = int(np.argmax(state @ logits))
        tokens.append([token])
    assert run(case).tolist() == tokens


def test_the_lstm_has_the_states_of_the_formula(graphs):
    case = graphs.cases()[-1]
    kernel, bias = (case.graph[name].attrs["value"].array() for name in ("kernel", "bias"))
    c = h = np.zeros((1, graphs.UNITS), np.float32)
    states = []
    for x in case.feeds["x"]:
        enter, forget, new, leave = np.split(np.hstack([x, h]) @ kernel + bias, 4, 1)
        c = c / (1 + np.exp(-forget)) + np.tanh(new) / (1 + np.exp(-enter))
        h = np.tanh(c) / (1 + np.exp(-leave))
        states.append(h)
    np.testing.assert_allclose(run(case), states, 1e-3, 1e-4)


def test_a_network_is_the_same_in_a_branch_and_in_a_loop(graphs):
    """A network with an op of two outputs, one of them a list."""
    node, constant = graphs.node, heald.api.constant
    x, y = np.float32([[1, 2, 3, 5]]), np.zeros((1, 2), np.float32)
    net = heald.api.Graph([
        graphs.placeholder("image", x), constant("axis", np.int32(1)),
        node("halves", "Split", "axis", "image", num_split=2), node("out", "Mul", "halves", "halves:1")])
    network = graphs.network_function("network", net, "image", "out")
    branch = graphs.network_in_branch(network, x, y)
    assert heald.Session(branch).run("result:0", {"x": x, "p": True}).tolist() == [[3, 10]]
    assert heald.Session(branch).run("result:0", {"x": x, "p": False}).tolist() == [[0, 0]]
    image = x
    for _ in range(graphs.TURNS):
        out = image[:, :2] * image[:, 2:]
        image = image + graphs.SMALL * out.mean()
    np.testing.assert_allclose(heald.Session(graphs.network_in_loop(network, x, y)).run("loop:2", {"x": x}), out, 1e-5)


def test_a_graph_that_heald_cannot_run_has_its_error_in_the_row(module, graphs):
    case = graphs.cases()[1]
    unknown = case._replace(graph=case.graph.replace(without_functions=["adding"]))
    with pytest.raises(HealdError):
        run(unknown)
    assert module("control_flow").row(unknown, None, 1) == [case.title, "NotFound"]


def test_compared_works_take_turns(module):
    calls = []
    timed_works = [lambda repeat, name=name: calls.append(name) or 1.0 for name in "ab"]
    assert module("control_flow").in_rounds(timed_works, 3) == [(1.0, 1.0, 1.0), (1.0, 1.0, 1.0)]
    assert "".join(calls) == "aaabbb" + 3 * "aabb"


def test_the_process_answers_with_errors_as_text(module, tmp_path, monkeypatch):
    """A tensorflow of the test takes the place of TensorFlow; it can open no graph."""
    (tmp_path / "tensorflow.py").write_text("raise ImportError('this is no TensorFlow')")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    process = module("tensorflow_process")
    with pytest.raises(process.TensorFlowError, match="this is no TensorFlow"):
        process.TensorFlow(sys.executable, tmp_path)
    (tmp_path / "tensorflow.py").write_text("print('a library that prints')")
    with process.TensorFlow(sys.executable, tmp_path) as peer, pytest.raises(
            process.TensorFlowError, match="AttributeError.*compat"):
        peer.open(b"", "y:0", {}, one_thread=True)
