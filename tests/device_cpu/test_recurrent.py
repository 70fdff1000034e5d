"""Recurrent cells. tests/data/block_lstm.json has what BlockLSTM and BlockLSTMV2 of tensorflow-cpu 2.21, called by
themselves, gave for numbers of a normal distribution."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from harness.run_op import outputs as run
from heald.errors import InvalidArgument

DATA = json.loads((Path(__file__).parent.parent / "data" / "block_lstm.json").read_text("utf-8"))
NAMES = ("i", "cs", "f", "o", "ci", "co", "h")
SEQUENCES = ("BlockLSTM", "BlockLSTMV2")


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def lstm(x, state, hidden, weights, peepholes, bias, **attrs):
    return run("LSTMBlockCell", x, state, hidden, weights, *peepholes, bias, **attrs)


@pytest.mark.parametrize("use_peephole", [True, False])
@pytest.mark.parametrize("cell_clip", [0.5, -1.0])
def test_an_lstm_steps_as_its_equations_say(use_peephole, cell_clip):
    x, state, hidden, weights, peepholes, bias = (
        normal(2, 3), normal(2, 4), normal(2, 4, seed=1), normal(7, 16), normal(3, 4), normal(16))
    got = lstm(x, state, hidden, weights, peepholes, bias, forget_bias=2.0, cell_clip=cell_clip,
               use_peephole=use_peephole)
    i, ci, f, o = np.split(np.hstack([x, hidden]).astype(float) @ weights + bias, 4, axis=1)
    wci, wcf, wco = peepholes * use_peephole
    i, f, ci = (1 / (1 + np.exp(-(i + wci * state))), 1 / (1 + np.exp(-(f + 2 + wcf * state))), np.tanh(ci))
    cs = ci * i + state * f
    cs = np.clip(cs, -cell_clip, cell_clip) if cell_clip > 0 else cs
    o = 1 / (1 + np.exp(-(o + wco * cs)))
    for value, want in zip(got, (i, cs, f, o, ci, np.tanh(cs), np.tanh(cs) * o), strict=True):
        np.testing.assert_allclose(value, want, rtol=1e-4, atol=1e-6)


def test_a_state_that_is_no_number_goes_no_further_without_peepholes():
    state = np.float32([[np.inf, 0, 0, 0]])
    cell = lstm(normal(1, 3), state, normal(1, 4), normal(7, 16), normal(3, 4), normal(16), cell_clip=-1.0)
    assert cell[1][0, 0] == np.inf
    assert np.isfinite([cell[0], cell[6]]).all()


def test_weights_that_do_not_fit_an_lstm_are_refused():
    good = [normal(2, 3), normal(2, 4), normal(2, 4), normal(7, 16), normal(3, 4), normal(16)]
    for number, bad in ((0, normal(3, 3)), (2, normal(2, 3)), (3, normal(7, 12)), (3, normal(6, 16)), (5, normal(12))):
        with pytest.raises(InvalidArgument):
            lstm(*good[:number], bad, *good[number + 1 :])


@pytest.mark.parametrize("case", DATA["cases"], ids=lambda case: f"{case['op']}-{case['seq_len_max']}-{case['dtype']}")
def test_the_steps_of_a_sequence_are_tensorflow_s(case):
    inputs = [np.array(x, case["dtype"]) for x in DATA["inputs"].values()]
    got = run(case["op"], np.int64(case["seq_len_max"]), *inputs, **case["attrs"])
    for name, value in zip(NAMES, got, strict=True):
        want = np.array(case["outputs"][name])
        assert (value.shape, value.dtype) == ((3, 2, 2), np.dtype(case["dtype"]))
        close = 1e-6 if case["dtype"] == "float32" else 4e-3
        np.testing.assert_allclose(value.reshape(-1)[: want.size].astype(float), want, rtol=close, atol=close)
        assert want.size == 12 or name not in ("cs", "h")


def sequence(op="BlockLSTM", length=5, **changed):
    inputs = {"x": normal(5, 2, 3), "cs_prev": normal(2, 4), "h_prev": normal(2, 4, seed=1), "w": normal(7, 16),
              "wci": normal(4), "wcf": normal(4), "wco": normal(4), "b": normal(16)} | changed
    return run(op, np.int64(length), *inputs.values())


def test_a_sequence_is_its_cells_one_after_the_other():
    state, hidden = normal(2, 4), normal(2, 4, seed=1)
    got = sequence()
    for t in range(5):
        cell = lstm(normal(5, 2, 3)[t], state, hidden, normal(7, 16), [normal(4)] * 3, normal(16))
        for value, want in zip(got, cell, strict=True):
            np.testing.assert_allclose(value[t], want, rtol=1e-5, atol=1e-6)
        state, hidden = cell[1], cell[6]


@pytest.mark.parametrize("op", SEQUENCES)
@pytest.mark.parametrize(("changed", "shape"), [
    ({"x": normal(0, 2, 3), "length": 0}, (0, 2, 4)), ({"x": normal(5, 2, 0), "w": normal(4, 16)}, (5, 2, 4)),
    ({"x": normal(5, 0, 3), "cs_prev": normal(0, 4), "h_prev": normal(0, 4)}, (5, 0, 4)),
    ({"cs_prev": normal(2, 0), "h_prev": normal(2, 0), "w": normal(3, 0), "b": normal(0), "wci": normal(0),
      "wcf": normal(0), "wco": normal(0)}, (5, 2, 0)),
])
def test_an_empty_input_of_a_sequence_is_refused(op, changed, shape):
    assert [value.shape for value in sequence(op, **changed)] == [shape] * 7


@pytest.mark.parametrize("op", SEQUENCES)
@pytest.mark.parametrize("changed", [
    {"x": normal(2, 3)}, {"cs_prev": normal(3, 4)}, {"h_prev": normal(2, 3)}, {"h_prev": normal(3, 4)},
    {"w": normal(6, 16)}, {"w": normal(7, 12)}, {"b": normal(12)}, {"b": normal(1, 16)}, {"wci": normal(3)},
    {"wco": normal(1, 4)}, {"length": [5]}, {"length": 6}, {"length": -1},
])
def test_an_input_that_does_not_fit_a_sequence_is_refused(op, changed):
    with pytest.raises(InvalidArgument):
        sequence(op, **changed)


def gru(batch=2, inputs=3, cells=4):
    both = inputs + cells
    shapes = (batch, inputs), (batch, cells), (both, 2 * cells), (both, cells), (2 * cells,), (cells,)
    return [normal(*shape, seed=seed) for seed, shape in enumerate(shapes)]


def test_a_gru_steps_as_its_equations_say():
    x, hidden, gate_weights, weights, gate_bias, bias = arrays = gru()
    r, u, c, h = run("GRUBlockCell", *arrays)
    gates = 1 / (1 + np.exp(-(np.hstack([x, hidden]) @ gate_weights + gate_bias)))
    np.testing.assert_allclose(np.hstack([r, u]), gates, rtol=1e-4)
    np.testing.assert_allclose(c, np.tanh(np.hstack([x, hidden * r]) @ weights + bias), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(h, u * hidden + (1 - u) * c, rtol=1e-4, atol=1e-6)


def test_gradients_of_a_gru_are_the_limits_of_differences():
    arrays, grad = gru(), normal(2, 4, seed=9)
    r, u, c, _ = run("GRUBlockCell", *arrays)
    d_x, d_hidden, d_candidate, d_gates = run("GRUBlockCellGrad", *arrays, r, u, c, grad)
    gradients = {0: d_x, 1: d_hidden, 4: d_gates.sum(0), 5: d_candidate.sum(0)}
    for index, gradient in gradients.items():
        change = normal(*arrays[index].shape, seed=7) * np.float32(1e-2)
        moved = [run("GRUBlockCell", *(x + sign * change if i == index else x for i, x in enumerate(arrays)))[3]
                 for sign in (1, -1)]
        np.testing.assert_allclose((gradient * change).sum(), (grad * (moved[0] - moved[1])).sum() / 2, rtol=2e-2)


@pytest.mark.parametrize(("index", "shape"), [
    (0, (3, 3)), (0, (2, 3, 1)), (1, (2, 5)), (1, (4,)), (2, (7, 7)), (2, (6, 8)), (3, (7, 3)), (4, (4,)), (5, (4, 1)),
    (6, (2, 5)), (8, (3, 4)), (9, (4,)),
])
def test_shapes_that_make_no_gru_are_refused(index, shape):
    arrays = [*gru(), *(normal(2, 4, seed=seed) for seed in range(4))]
    arrays[index] = normal(*shape)
    with pytest.raises(InvalidArgument):
        run("GRUBlockCellGrad", *arrays)
    if index < 6:
        with pytest.raises(InvalidArgument):
            run("GRUBlockCell", *arrays[:6])
