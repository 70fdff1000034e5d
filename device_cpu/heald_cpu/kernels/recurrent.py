"""Recurrent cells: one step of an LSTM, and many; one step of a GRU, and its gradient."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from heald.api import Attrs, Bind, Kernels, errors

ORDERS = {  # the quarters of a product that are the gates i, ci, f, o
    "BlockLSTM": (0, 1, 2, 3),
    "BlockLSTMV2": (0, 2, 1, 3),
}
CELL, HIDDEN = 1, 6  # outputs


def _sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)), by tanh, which does not overflow."""
    return np.float32(0.5) * np.tanh(np.float32(0.5) * x) + np.float32(0.5)


def _quarters(products: Any) -> list[Any]:
    cells = products.shape[1] // 4
    return [products[:, start : start + cells] for start in range(0, 4 * cells, cells)] if cells else [products] * 4


def _cell(attrs: Attrs) -> Callable[[Sequence[Any], Any, Sequence[Any]], tuple[Any, ...]]:
    """One step of an LSTM: a function from the products i, ci, f, o, the state cs_prev, and the weights wci, wcf, wco
    of peepholes, if any, to i, cs, f, o, ci, co, h.

    cs = tanh(ci) * sigmoid(i + wci cs_prev) + cs_prev * sigmoid(f + forget_bias + wcf cs_prev), clipped;
    h = tanh(cs) * sigmoid(o + wco cs). Zaremba et al., https://arxiv.org/abs/1409.2329; computed in float32.
    """
    forget_bias, clip = np.float32(attrs.get("forget_bias", 0)), np.float32(attrs["cell_clip"])
    has_peepholes = attrs["use_peephole"]

    def step(products: Sequence[Any], state: Any, peepholes: Sequence[Any]) -> tuple[Any, ...]:
        i, candidate, f, o = products
        f = f + forget_bias
        if has_peepholes:
            i, f = i + peepholes[0] * state, f + peepholes[1] * state
        i, f, candidate = _sigmoid(i), _sigmoid(f), np.tanh(candidate)
        cell = candidate * i + state * f
        if clip > 0:
            cell = np.clip(cell, -clip, clip)
        o = _sigmoid(o + peepholes[2] * cell if has_peepholes else o)
        squashed = np.tanh(cell)
        return i, cell, f, o, candidate, squashed, squashed * o

    return step


def lstm_block_cell(b: Bind) -> Callable[..., None]:
    """One step, with [i, ci, f, o] = [x, h_prev] w + b."""
    step, needed_outputs, inputs = _cell(b.attrs), sorted(b.needed), b.inputs[0].meta.dims[1]

    def run(*arrays: Any) -> None:
        x, state, hidden, weights, *peepholes, bias = (a.astype(np.float32, copy=False) for a in arrays[:8])
        products = x @ weights[:inputs] + hidden @ weights[inputs:] + bias
        values = step(_quarters(products), state, peepholes)
        for number in needed_outputs:
            arrays[8 + number][...] = values[number]

    return run


def block_lstm(b: Bind) -> Callable[..., None]:
    """seq_len_max steps over x [time, batch, inputs], each with the previous step's state and hidden values. For later
    steps TensorFlow leaves zeros in cs and h, and undefined numbers in the other outputs."""
    step, order = _cell(b.attrs), ORDERS[b.op]
    time, _, inputs = b.inputs[1].meta.dims
    needed_outputs = sorted(b.needed | {CELL, HIDDEN})

    def run(length: Any, *arrays: Any) -> None:
        steps = int(length)
        if not 0 <= steps <= time:
            raise errors.InvalidArgument(f"seq_len_max {steps} is not in [0, {time}], the steps of x")
        x, state, hidden, weights, *peepholes, bias = (a.astype(np.float32, copy=False) for a in arrays[:8])
        outputs = arrays[8:]
        input_products, recurrent = x[:steps] @ weights[:inputs] + bias, weights[inputs:]
        for t in range(steps):
            parts = _quarters(input_products[t] + hidden @ recurrent)
            values = step([parts[quarter] for quarter in order], state, peepholes)
            for number in needed_outputs:
                outputs[number][t] = values[number]
            state, hidden = (outputs[number][t].astype(np.float32, copy=False) for number in (CELL, HIDDEN))
        for number in needed_outputs:
            outputs[number][steps:] = 0

    return run


def gru_block_cell(b: Bind) -> Callable[..., None]:
    """One step: [r, u] = sigmoid([x, h_prev] w_ru + b_ru), c = tanh([x, h_prev r] w_c + b_c),
    h = h_prev u + c (1 - u). Cho et al., https://arxiv.org/abs/1406.1078."""
    inputs, cells = b.inputs[0].meta.dims[1], b.inputs[1].meta.dims[1]

    def run(
        x: Any, hidden: Any, gate_weights: Any, weights: Any, gate_bias: Any, bias: Any, r: Any, u: Any, c: Any, h: Any
    ) -> None:
        gates = _sigmoid(x @ gate_weights[:inputs] + hidden @ gate_weights[inputs:] + gate_bias)
        r[...], u[...] = gates[:, :cells], gates[:, cells:]
        c[...] = np.tanh(x @ weights[:inputs] + (hidden * r) @ weights[inputs:] + bias)
        h[...] = hidden * u + c * (1 - u)

    return run


def gru_block_cell_gradient(b: Bind) -> Callable[..., None]:
    """The gradients of x and h_prev, and those of the arguments of tanh and sigmoid."""
    inputs, cells = b.inputs[0].meta.dims[1], b.inputs[1].meta.dims[1]

    def run(*arrays: Any) -> None:
        _, hidden, gate_weights, weights, _, _, r, u, c, d_h, d_x, d_hidden, d_candidate, d_gates = arrays
        d_candidate[...] = d_h * (1 - u) * (1 - c * c)
        through_candidate = d_candidate @ weights.T
        d_reset = through_candidate[:, inputs:]
        d_gates[:, :cells] = d_reset * hidden * r * (1 - r)
        d_gates[:, cells:] = d_h * (hidden - c) * u * (1 - u)
        through_gates = d_gates @ gate_weights.T
        d_x[...] = through_candidate[:, :inputs] + through_gates[:, :inputs]
        d_hidden[...] = d_reset * r + through_gates[:, inputs:] + d_h * u

    return run


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("LSTMBlockCell", dtypes={"T": ("float16", "float32")})(lstm_block_cell)
    kernels.kernel("GRUBlockCell", dtypes={"T": ("float32",)})(gru_block_cell)
    kernels.kernel("GRUBlockCellGrad", dtypes={"T": ("float32",)})(gru_block_cell_gradient)
    for op in ORDERS:
        kernels.kernel(op, dtypes={"T": ("float16", "float32")})(block_lstm)
