"""Recurrent cells: one step of an LSTM."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from weft.api import Bind, Kernels


def _sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)), by tanh, which does not overflow."""
    return np.float32(0.5) * np.tanh(np.float32(0.5) * x) + np.float32(0.5)


def lstm_block_cell(b: Bind) -> Callable[..., None]:
    """With [i, ci, f, o] = [x, h_prev] w + b, and wci, wcf, wco the weights of peepholes:

    cs = tanh(ci) * sigmoid(i + wci cs_prev) + cs_prev * sigmoid(f + forget_bias + wcf cs_prev), clipped;
    h = tanh(cs) * sigmoid(o + wco cs). Zaremba et al., https://arxiv.org/abs/1409.2329; computed in float32.
    """
    forget_bias, clip = np.float32(b.attrs["forget_bias"]), np.float32(b.attrs["cell_clip"])
    has_peepholes, inputs = b.attrs["use_peephole"], b.inputs[0].meta.dims[1]

    def run(*arrays: Any) -> None:
        x, state, hidden, weights, *peepholes, bias = (a.astype(np.float32, copy=False) for a in arrays[:8])
        products = x @ weights[:inputs] + hidden @ weights[inputs:] + bias
        i, candidate, f, o = np.split(products, 4, axis=1)
        wci, wcf, wco = peepholes if has_peepholes else (np.float32(0),) * 3
        i, f = _sigmoid(i + wci * state), _sigmoid(f + forget_bias + wcf * state)
        candidate = np.tanh(candidate)
        cell = candidate * i + state * f
        if clip > 0:
            cell = np.clip(cell, -clip, clip)
        o = _sigmoid(o + wco * cell)
        squashed = np.tanh(cell)
        for out, value in zip(arrays[8:], (i, cell, f, o, candidate, squashed, squashed * o), strict=True):
            out[...] = value

    return run


def register(kernels: Kernels) -> None:
    kernels.kernel("LSTMBlockCell", dtypes={"T": ("float16", "float32")})(lstm_block_cell)
