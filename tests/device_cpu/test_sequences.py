"""The ops of recurrent layers over a whole sequence, compared with a plain loop in float64."""

from __future__ import annotations

import numpy as np
import pytest
from harness.run_op import outputs as run
from heald.errors import InvalidArgument
from heald_cpu.kernels.sequences import product_with, products_of

TIME, BATCH, INPUTS, CELLS = 5, 2, 3, 4
GATES = {"_GRUSequence": 3, "_LSTMSequence": 4, "_RNNSequence": 1}
ACTIVATIONS = {
    "elu": lambda x: np.where(x < 0, np.expm1(np.minimum(x, 0)), x), "hard_sigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "hard_sigmoid_of_fifths": lambda x: np.clip(0.2 * x + 0.5, 0, 1), "relu": lambda x: np.maximum(x, 0),
    "selu": lambda x: 1.0507009873554805 * np.where(x < 0, 1.6732632423543772 * np.expm1(np.minimum(x, 0)), x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "softplus": lambda x: np.log1p(np.exp(x)),
    "softsign": lambda x: x / (1 + np.abs(x)), "tanh": np.tanh,
}


def normal(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).normal(0, 0.4, shape).astype(dtype)  # small: states without bounds grow


def operands(op, dtype=np.float32):
    """x, the states, and the weights."""
    states = [normal(BATCH, CELLS, seed=seed, dtype=dtype) for seed in range(1, 3 if op == "_LSTMSequence" else 2)]
    columns = GATES[op] * CELLS
    weights = [normal(INPUTS, columns, seed=3, dtype=dtype), normal(CELLS, columns, seed=4, dtype=dtype),
               normal(columns, seed=5, dtype=dtype)]
    if op == "_GRUSequence":
        weights.append(normal(CELLS, seed=6, dtype=dtype))
    return normal(TIME, BATCH, INPUTS, dtype=dtype), states, weights


def step(op, x, states, weights, activation, recurrent_activation, reset_after):
    act, gate = ACTIVATIONS[activation], ACTIVATIONS[recurrent_activation]
    w, u, b, *more = (a.astype(float) for a in weights)
    (hidden, *rest), from_x = states, np.split(x @ w + b, GATES[op], axis=1)
    from_h = np.split(hidden @ u, GATES[op], axis=1)
    if op == "_RNNSequence":
        return [act(from_x[0] + from_h[0])]
    if op == "_LSTMSequence":
        i, f, g, o = (a + c for a, c in zip(from_x, from_h, strict=True))
        cell = gate(f) * rest[0] + gate(i) * act(g)
        return [gate(o) * act(cell), cell]
    z, r = gate(from_x[0] + from_h[0]), gate(from_x[1] + from_h[1])
    inner = r * (from_h[2] + more[0]) if reset_after else (r * hidden) @ u[:, 2 * CELLS :]
    return [z * hidden + (1 - z) * act(from_x[2] + inner)]


def expected(op, x, states, weights, length=TIME, mask=None, masked="previous", activation="tanh",
             recurrent_activation="sigmoid", reset_after=True):
    states, y = [state.astype(float) for state in states], np.zeros((TIME, BATCH, CELLS))
    output = np.zeros((BATCH, CELLS))
    for t in range(length):
        new = step(op, x[t].astype(float), states, weights, activation, recurrent_activation, reset_after)
        row = np.ones((BATCH, 1), bool) if mask is None else mask[t][:, None]
        output = np.where(row, new[0], output if masked == "previous" else 0)
        states = [np.where(row, a, b) for a, b in zip(new, states, strict=True)]
        y[t] = output
    return [y, output, *states]


def check(op, length=TIME, mask=None, dtype=np.float32, **attrs):
    x, states, weights = operands(op, dtype)
    masks = [] if mask is None else [mask]
    if op == "_RNNSequence":
        attrs = {name: value for name, value in attrs.items() if name in ("activation", "masked")}
    got = run(op, np.int32(length), x, *states, *weights, *masks, N=len(masks), **attrs)
    for a, b in zip(got, expected(op, x, states, weights, max(length, 0), mask, **attrs), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5 if dtype is np.float32 else 1e-12)


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("length", [-1, 0, 1, TIME])
def test_the_steps_up_to_the_length_run(op, length):
    check(op, length)


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("masked", ["previous", "zeros"])
def test_masked_rows_keep_their_states(op, masked):
    check(op, mask=normal(TIME, BATCH, seed=8) > 0, masked=masked)


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_every_activation(op, activation):
    check(op, activation=activation)
    check(op, recurrent_activation=activation)


def test_the_reset_of_a_gru_may_come_before_the_product():
    check("_GRUSequence", reset_after=False)
    check("_GRUSequence", reset_after=False, dtype=np.float64)


@pytest.mark.parametrize("op", GATES)
def test_float64_keeps_its_precision(op):
    check(op, dtype=np.float64)


OUTPUTS = 2  # of a projection


def lstm_operands(peepholes, projection, dtype):
    """x, the states, and the weights of an LSTM with these parts."""
    outputs = OUTPUTS if projection else CELLS
    vectors = [normal(CELLS, seed=seed, dtype=dtype) for seed in (21, 22, 23)] if peepholes else []
    matrices = [normal(CELLS, OUTPUTS, seed=24, dtype=dtype)] if projection else []
    states = [normal(BATCH, outputs, seed=1, dtype=dtype), normal(BATCH, CELLS, seed=2, dtype=dtype)]
    weights = [normal(INPUTS, 4 * CELLS, seed=3, dtype=dtype), normal(outputs, 4 * CELLS, seed=4, dtype=dtype),
               normal(4 * CELLS, seed=5, dtype=dtype)]
    return normal(TIME, BATCH, INPUTS, dtype=dtype), states, weights, vectors, matrices


def expected_lstm(x, states, weights, peepholes, projections, cell_clip, proj_clip):
    """LSTMCell of TensorFlow 1, in float64."""
    (hidden, state), (w, u, b) = (np.float64(array) for array in states), map(np.float64, weights)
    sigmoid, y = ACTIVATIONS["sigmoid"], []
    for step_input in np.float64(x):
        i, f, g, o = np.split(step_input @ w + hidden @ u + b, 4, axis=1)
        wi, wf, wo = peepholes or (0, 0, 0)
        state = sigmoid(f + wf * state) * state + sigmoid(i + wi * state) * np.tanh(g)
        state = np.clip(state, -cell_clip, cell_clip) if cell_clip > 0 else state
        hidden = sigmoid(o + wo * state) * np.tanh(state)
        hidden = hidden @ projections[0] if projections else hidden
        hidden = np.clip(hidden, -proj_clip, proj_clip) if proj_clip > 0 else hidden
        y.append(hidden)
    return [np.array(y), hidden, hidden, state]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("clips", [(0, 0), (0.1, 0), (0, 0.05), (0.1, 0.05), (-1, -1)])
@pytest.mark.parametrize("projection", [False, True])
@pytest.mark.parametrize("peepholes", [False, True])
def test_an_lstm_may_have_peepholes_a_projection_and_clips(peepholes, projection, clips, dtype):
    x, states, weights, vectors, matrices = lstm_operands(peepholes, projection, dtype)
    attrs = {"P": len(vectors), "R": len(matrices), "cell_clip": clips[0], "proj_clip": clips[1]}
    results = run("_LSTMSequence", np.int32(TIME), x, *states, *weights, *vectors, *matrices, N=0, **attrs)
    for a, b in zip(results, expected_lstm(x, states, weights, vectors, matrices, *clips), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-6 if dtype is np.float32 else 1e-12)


def test_masked_rows_of_a_projection_keep_their_states():
    x, states, weights, vectors, matrices = lstm_operands(True, True, np.float32)
    mask = np.array([[True, False]] * TIME)
    y, last, hidden, state = run("_LSTMSequence", np.int32(TIME), x, *states, *weights, *vectors, *matrices, mask, N=1,
                                 P=3, R=1, masked="zeros")
    want = expected_lstm(x, states, weights, vectors, matrices, 0, 0)
    np.testing.assert_allclose(y[:, 0], want[0][:, 0], rtol=0, atol=1e-6)
    assert not y[:, 1].any()
    assert not last[1].any()
    np.testing.assert_array_equal(hidden[1], states[0][1])
    np.testing.assert_array_equal(state[1], states[1][1])


@pytest.mark.parametrize("case", ["two peepholes", "a peephole", "projections", "rows", "columns", "columns of h"])
def test_parts_of_an_lstm_that_do_not_fit_are_refused(case):
    x, states, weights, vectors, matrices = lstm_operands(True, True, np.float32)
    if case == "two peepholes":
        vectors = vectors[:2]
    elif case == "a peephole":
        vectors[1] = vectors[1][1:]
    elif case == "projections":
        matrices *= 2
    elif case == "rows":
        matrices[0] = matrices[0][1:]
    elif case == "columns":
        matrices[0] = matrices[0][:, 1:]
    else:
        states[0] = np.zeros((BATCH, CELLS), np.float32)
    with pytest.raises(InvalidArgument):
        run("_LSTMSequence", np.int32(TIME), x, *states, *weights, *vectors, *matrices, N=0, P=len(vectors),
            R=len(matrices))


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("case", ["length", "rank", "states", "rows", "columns", "bias", "mask", "two masks"])
def test_operands_that_do_not_fit_are_refused(op, case):
    x, states, weights = operands(op)
    length, masks = TIME, []
    if case == "length":
        length = TIME + 1
    elif case == "rank":
        x = x[0]
    elif case == "states":
        states[0] = states[0][:1]
    elif case == "rows":
        weights[0] = weights[0][1:]
    elif case == "columns":
        weights[1] = weights[1][:, 1:]
    elif case == "bias":
        weights[2] = weights[2][1:]
    else:
        masks = [np.ones((TIME - 1, BATCH), bool)] if case == "mask" else [np.ones((TIME, BATCH), bool)] * 2
    with pytest.raises(InvalidArgument):
        run(op, np.int32(length), x, *states, *weights, *masks, N=len(masks))


@pytest.mark.parametrize("rows", [1, 8, 100])
def test_a_product_in_parts_is_the_whole_product(rows):
    """OpenBLAS would do these products on several threads."""
    u, w = normal(128, 512, seed=1), normal(64, 512, seed=2)
    hidden, x = normal(rows, 128, seed=3), normal(rows * 3, 64, seed=4)
    np.testing.assert_allclose(product_with(u, rows)(hidden), hidden @ u, rtol=0, atol=1e-5)
    np.testing.assert_allclose(products_of(x, w), x @ w, rtol=0, atol=1e-5)
