"""Recurrent layers over a whole sequence: the ops that stand for loops over the steps.

The gates are in the order of Keras: i, f, c, o of an LSTM, z, r, h of a GRU. The products of x are one product of all
steps. A step then multiplies h alone.

A step of a row that the mask excludes keeps the row's states. Its output is that of the step before, or zeros. `y` has
zeros behind the steps that run; `last` has zeros where none runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from heald.api import Bind, Kernels, errors

Array = np.ndarray[Any, Any]
Activation = Callable[[Any], Any]
Step = Callable[[Array, Sequence[Array]], list[Array]]  # of the products of x and the states; h is the first state

LARGEST_PRODUCT = 260_000  # multiplications of matrices: OpenBLAS does more of them on several threads
MOST_PARTS = 32  # of a product: more work, of about half a millisecond, is worth another thread
SELU_SCALE, SELU_SCALE_ALPHA = 1.0507009873554805, 1.7580993408473768


def _tanh(x: Any) -> Any:
    return np.tanh(x, out=x)


def _sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), by tanh, which does not overflow."""
    x *= x.dtype.type(0.5)
    np.tanh(x, out=x)
    x *= x.dtype.type(0.5)
    x += x.dtype.type(0.5)
    return x


def _relu(x: Any) -> Any:
    return np.maximum(x, x.dtype.type(0), out=x)


def _hard_sigmoid(x: Array) -> Array:
    """relu6(x + 3) / 6, as Keras 3 has it."""
    x += x.dtype.type(3)
    np.minimum(np.maximum(x, x.dtype.type(0), out=x), x.dtype.type(6), out=x)
    x /= x.dtype.type(6)
    return x


def _hard_sigmoid_of_fifths(x: Array) -> Array:
    """0.2 x + 0.5 from 0 to 1, as Keras 2 has it."""
    x *= x.dtype.type(0.2)
    x += x.dtype.type(0.5)
    np.minimum(np.maximum(x, x.dtype.type(0), out=x), x.dtype.type(1), out=x)
    return x


def _elu(x: Any) -> Any:
    return np.where(x < 0, np.expm1(np.minimum(x, 0)), x)


def _selu(x: Any) -> Any:
    negative = x.dtype.type(SELU_SCALE_ALPHA) * np.expm1(np.minimum(x, 0))
    return np.where(x < 0, negative, x.dtype.type(SELU_SCALE) * x)


def _softplus(x: Any) -> Any:
    return np.logaddexp(x, x.dtype.type(0))


def _softsign(x: Any) -> Any:
    return x / (np.abs(x) + x.dtype.type(1))


ACTIVATIONS: dict[str, Activation] = {  # each may write over its argument
    "elu": _elu, "hard_sigmoid": _hard_sigmoid, "hard_sigmoid_of_fifths": _hard_sigmoid_of_fifths,
    "relu": _relu, "selu": _selu, "sigmoid": _sigmoid, "softplus": _softplus, "softsign": _softsign, "tanh": _tanh,
}


def product_with(u: Array, rows: int) -> Callable[[Array], Array]:
    """The function h u of h with so many rows, in parts that BLAS computes on the calling thread.

    A second thread that has to be woken for each step takes longer, beside busy processes up to 50 ms.
    """
    depth, columns = u.shape
    most_columns = LARGEST_PRODUCT // max(rows * depth, 1)
    if rows == 1 or columns <= most_columns or columns > most_columns * MOST_PARTS:
        return lambda hidden: np.matmul(hidden, u)
    bounds = range(0, columns, most_columns)
    parts = [(slice(start, start + most_columns), np.ascontiguousarray(u[:, start : start + most_columns]))
             for start in bounds]

    def product(hidden: Array) -> Array:
        result = np.empty((rows, columns), u.dtype)
        for part, weights in parts:
            np.matmul(hidden, weights, out=result[:, part])
        return result

    return product


def products_of(x: Array, w: Array) -> Array:
    """x w, in parts as `product_with` has them."""
    most_rows = LARGEST_PRODUCT // max(w.size, 1)
    if len(x) <= most_rows or len(x) > most_rows * MOST_PARTS:
        return np.asarray(np.matmul(x, w))
    result = np.empty((len(x), w.shape[1]), w.dtype)
    for start in range(0, len(x), most_rows):
        rows = slice(start, start + most_rows)
        np.matmul(x[rows], w, out=result[rows])
    return result


@dataclass(frozen=True)
class LstmParts:
    """The parts that few LSTMs have. `peepholes`: three vectors by which i and f see c, and o the new c.

    `projection`: the matrix that makes h of the cells. A clip of 0 is none.
    """

    peepholes: Sequence[Array] = ()
    projection: Array | None = None
    cell_clip: float = 0.0
    proj_clip: float = 0.0


def lstm_step(
    u: Array, rows: int, activation: Activation, recurrent_activation: Activation, parts: LstmParts = LstmParts()
) -> Step:
    """c' = f c + i g and h' = o act(c'), with i, f, o and g of x w + h u + b."""
    cells, times_u = u.shape[1] // 4, product_with(u, rows)
    peepholes, project = parts.peepholes, _projection(parts, rows)

    def step(products: Array, states: Sequence[Array]) -> list[Array]:
        hidden, state = states
        z = times_u(hidden)
        z += products
        if peepholes:
            z[:, :cells] += peepholes[0] * state
            z[:, cells : 2 * cells] += peepholes[1] * state
        i_and_f = recurrent_activation(z[:, : 2 * cells])
        candidate = activation(z[:, 2 * cells : 3 * cells])
        state = i_and_f[:, cells:] * state
        state += i_and_f[:, :cells] * candidate
        if parts.cell_clip > 0:
            np.clip(state, -parts.cell_clip, parts.cell_clip, out=state)
        if peepholes:
            z[:, 3 * cells :] += peepholes[2] * state
        o = recurrent_activation(z[:, 3 * cells :])
        return [project(o * activation(state.copy())), state]

    return step


def _projection(parts: LstmParts, rows: int) -> Callable[[Array], Array]:
    """The function from the cells' outputs to h."""
    times_projection = _unchanged if parts.projection is None else product_with(parts.projection, rows)
    clip = parts.proj_clip
    return times_projection if clip <= 0 else lambda outputs: np.clip(times_projection(outputs), -clip, clip)


def _unchanged(outputs: Array) -> Array:
    return outputs


def gru_step(
    u: Array, rows: int, candidate_bias: Array, activation: Activation, recurrent_activation: Activation, *,
    reset_after: bool,
) -> Step:
    """h' = z h + (1 - z) act(x w + b + r (h u + rb)), or act(x w + b + (r h) u) where the reset comes before."""
    cells = u.shape[0]
    times_u = product_with(u if reset_after else u[:, : 2 * cells], rows)
    times_candidate_of_u = product_with(np.ascontiguousarray(u[:, 2 * cells :]), rows)

    def step(products: Array, states: Sequence[Array]) -> list[Array]:
        (hidden,) = states
        product = times_u(hidden)
        gates = product[:, : 2 * cells]
        gates += products[:, : 2 * cells]
        gates = recurrent_activation(gates)
        update, reset = gates[:, :cells], gates[:, cells:]
        if reset_after:
            candidate = product[:, 2 * cells :]
            candidate += candidate_bias
            candidate *= reset
        else:
            candidate = times_candidate_of_u(reset * hidden)
        candidate += products[:, 2 * cells :]
        candidate = activation(candidate)
        mixed = update * hidden
        mixed += (1 - update) * candidate
        return [mixed]

    return step


def rnn_step(u: Array, rows: int, activation: Activation) -> Step:
    """h' = act(x w + h u + b)."""
    times_u = product_with(u, rows)

    def step(products: Array, states: Sequence[Array]) -> list[Array]:
        z = times_u(states[0])
        z += products
        return [activation(z)]

    return step


def _lstm(b: Bind, weights: Sequence[Array], rows: int) -> Step:
    peepholes, projections = weights[2 : 2 + b.attrs["P"]], weights[2 + b.attrs["P"] :]
    parts = LstmParts(peepholes, projections[0] if projections else None, b.attrs["cell_clip"], b.attrs["proj_clip"])
    return lstm_step(weights[0], rows, _activation(b), _activation(b, "recurrent_activation"), parts)


def _gru(b: Bind, weights: Sequence[Array], rows: int) -> Step:
    return gru_step(weights[0], rows, weights[2], _activation(b), _activation(b, "recurrent_activation"),
                    reset_after=b.attrs["reset_after"])


def _rnn(b: Bind, weights: Sequence[Array], rows: int) -> Step:
    return rnn_step(weights[0], rows, _activation(b))


def _activation(b: Bind, name: str = "activation") -> Activation:
    return ACTIVATIONS[b.attrs[name]]


CELLS: dict[str, tuple[int, int, Callable[[Bind, Sequence[Array], int], Step]]] = {
    # states, weights behind w that each layer has, and the step of each op
    "_GRUSequence": (1, 3, _gru), "_LSTMSequence": (2, 2, _lstm), "_RNNSequence": (1, 2, _rnn),
}


def sequence(b: Bind) -> Callable[..., None]:
    """All steps of a sequence, `length` of them."""
    state_count, weight_count, make_step = CELLS[b.op]
    weight_count += b.attrs.get("P", 0) + b.attrs.get("R", 0)
    keeps_output = b.attrs["masked"] == "previous"

    def run(length: Array, x: Array, *arrays: Array) -> None:
        time = steps_of(length, x)
        states = [*arrays[:state_count]]
        w, *weights = arrays[state_count : state_count + 1 + weight_count]
        masks = arrays[state_count + 1 + weight_count : len(b.inputs) - 2]
        y, last, *ends = arrays[len(b.inputs) - 2 :]
        step = make_step(b, weights, x.shape[1])
        products = products_of(x[:time].reshape(-1, x.shape[2]), w)
        products += weights[1]
        products = products.reshape(time, x.shape[1], w.shape[1])
        output: Any = np.zeros_like(last)
        for t in range(time):
            new_states = step(products[t], states)
            if masks and not (mask := masks[0][t][:, None]).all():
                output = np.where(mask, new_states[0], output if keeps_output else 0)
                states = [np.where(mask, new, old) for new, old in zip(new_states, states, strict=True)]
            else:
                states, output = new_states, new_states[0]
            y[t] = output
        y[time:] = 0
        last[...] = output
        for end, state in zip(ends, states, strict=True):
            end[...] = state

    return run


def steps_of(length: Array, x: Array) -> int:
    """The number of steps that run. Raises InvalidArgument for more than x has."""
    steps = max(int(length), 0)
    if steps > x.shape[0]:
        raise errors.InvalidArgument(f"length {steps} is more than the {x.shape[0]} steps of x")
    return steps


def register_kernels(kernels: Kernels) -> None:
    for op in CELLS:
        kernels.kernel(op, dtypes={"T": ("float32", "float64")})(sequence)
