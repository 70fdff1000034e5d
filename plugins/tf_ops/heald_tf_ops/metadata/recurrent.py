"""Metadata of recurrent cells."""

from __future__ import annotations

from collections.abc import Sequence

from heald.api import Attrs, InvalidArgument, ValueInfo, info

from .rules import rule
from .shapes import check_single, dims_of_rank, same_dim


@rule("LSTMBlockCell")
def lstm_block_cell(
    attrs: Attrs, x: ValueInfo, state: ValueInfo, hidden: ValueInfo, weights: ValueInfo, *vectors: ValueInfo
) -> tuple[ValueInfo, ...]:
    """Return seven matrices of the state's shape: i, cs, f, o, ci, co, h."""
    batch, inputs = dims_of_rank(x, 2, "x")
    *peepholes, bias = vectors
    batch, cells = _state(batch, inputs, state, hidden, weights, bias)
    _check_peepholes(peepholes if attrs["use_peephole"] else (), cells)
    return (info(x.dtype, (batch, cells)),) * 7


@rule("BlockLSTM", "BlockLSTMV2")
def block_lstm(
    _: Attrs, length: ValueInfo, x: ValueInfo, state: ValueInfo, hidden: ValueInfo, weights: ValueInfo,
    *vectors: ValueInfo,
) -> tuple[ValueInfo, ...]:
    """Return seven arrays [time, batch, cells]: i, cs, f, o, ci, co, h of every step of x [time, batch, inputs]."""
    check_single(length, "seq_len_max")
    time, batch, inputs = dims_of_rank(x, 3, "x")
    *peepholes, bias = vectors
    batch, cells = _state(batch, inputs, state, hidden, weights, bias)
    _check_peepholes(peepholes, cells)
    return (info(x.dtype, (time, batch, cells)),) * 7


def _state(
    batch: int | None, inputs: int | None, state: ValueInfo, hidden: ValueInfo, weights: ValueInfo, bias: ValueInfo
) -> tuple[int | None, int | None]:
    """Return the batch and the cells of a state; the hidden values have the same shape."""
    rows, columns = dims_of_rank(weights, 2, "w")
    cells: int | None = None
    for input_info, name in ((state, "cs_prev"), (hidden, "h_prev")):
        shape = dims_of_rank(input_info, 2, name)
        batch = same_dim(batch, shape[0], f"the batches of x and {name}")
        cells = same_dim(cells, shape[1], "the cells of cs_prev and h_prev")
    if cells is not None:
        same_dim(rows, None if inputs is None else inputs + cells, "the rows of w, and the inputs and cells")
        same_dim(columns, 4 * cells, "the columns of w and four times the cells")
        same_dim(dims_of_rank(bias, 1, "b")[0], 4 * cells, "the elements of b and four times the cells")
    return batch, cells


def _check_peepholes(peepholes: Sequence[ValueInfo], cells: int | None) -> None:
    for peephole in peepholes:
        same_dim(dims_of_rank(peephole, 1, "a peephole")[0], cells, "the elements of a peephole and the cells")


@rule("GRUBlockCell")
def gru_block_cell(_: Attrs, *inputs: ValueInfo) -> tuple[ValueInfo, ...]:
    """Return four matrices of the state's shape: r, u, c, h."""
    batch, _inputs, cells = _gru_lengths(inputs)
    return (info(inputs[0].dtype, (batch, cells)),) * 4


@rule("GRUBlockCellGrad")
def gru_block_cell_gradient(_: Attrs, *inputs: ValueInfo) -> tuple[ValueInfo, ...]:
    batch, features, cells = _gru_lengths(inputs[:6])
    for x, name in zip(inputs[6:], ("r", "u", "c", "d_h"), strict=True):
        shape = dims_of_rank(x, 2, name)
        batch = same_dim(batch, shape[0], f"the batches of x and {name}")
        cells = same_dim(cells, shape[1], f"the cells of h_prev and {name}")
    lengths = features, cells, cells, None if cells is None else 2 * cells
    return tuple(info(inputs[0].dtype, (batch, length)) for length in lengths)


def _gru_lengths(inputs: Sequence[ValueInfo]) -> tuple[int | None, int | None, int | None]:
    """Return batch, inputs and cells of x, h_prev, w_ru, w_c, b_ru and b_c."""
    x, hidden, gate_weights, weights, gate_bias, bias = inputs
    batch, features = dims_of_rank(x, 2, "x")
    rows, cells = dims_of_rank(hidden, 2, "h_prev")
    batch = same_dim(batch, rows, "the batches of x and h_prev")
    together = None if features is None or cells is None else features + cells
    for matrix, vector, gates, names in (
        (gate_weights, gate_bias, 2, ("w_ru", "b_ru")), (weights, bias, 1, ("w_c", "b_c")),
    ):
        width = None if cells is None else gates * cells
        rows, columns = dims_of_rank(matrix, 2, names[0])
        same_dim(rows, together, f"the rows of {names[0]}, and the inputs and cells")
        same_dim(columns, width, f"the columns of {names[0]} and {gates} times the cells")
        same_dim(dims_of_rank(vector, 1, names[1])[0], width, f"the elements of {names[1]} and {gates} times the cells")
    return batch, features, cells


GATES = {"_GRUSequence": 3, "_LSTMSequence": 4, "_RNNSequence": 1}


@rule("_LSTMSequence")
def lstm_sequence(
    attrs: Attrs, length: ValueInfo, x: ValueInfo, hidden: ValueInfo, state: ValueInfo, *rest: ValueInfo
) -> tuple[ValueInfo, ...]:
    """Return y [time, batch, outputs], the last step's output, and the states after the last step: h, c.

    A projection [cells, outputs] makes h of the cells. Without one there are as many outputs as cells.
    """
    w, u, b, *others = rest
    peepholes, others = others[: attrs["P"]], others[attrs["P"] :]
    projections, masks = others[: attrs["R"]], others[attrs["R"] :]
    if attrs["P"] not in (0, 3) or attrs["R"] > 1:
        raise InvalidArgument(f"an LSTM takes no peepholes or three, and one projection at most, not {attrs['P']} and "
                              f"{attrs['R']}")
    batch, cells = dims_of_rank(state, 2, "a state")
    _check_peepholes(peepholes, cells)
    if not projections:
        return _sequence("_LSTMSequence", length, x, (hidden, state), w, u, b, masks)
    cells, outputs = _dims_of_projection(projections[0], cells)
    batch = same_dim(batch, dims_of_rank(hidden, 2, "a state")[0], "the batches of the states")
    hidden = info(hidden.dtype, (batch, same_dim(dims_of_rank(hidden, 2, "a state")[1], outputs,
                                                 "the columns of h and of the projection")))
    y, last, _ = _sequence("_LSTMSequence", length, x, (hidden,), w, u, b, masks, cells)
    return y, last, last, info(x.dtype, (last.shape[0] if last.shape else None, cells))


def _dims_of_projection(projection: ValueInfo, cells: int | None) -> tuple[int | None, int | None]:
    rows, columns = dims_of_rank(projection, 2, "a projection")
    return same_dim(rows, cells, "the rows of the projection and the cells"), columns


@rule("_GRUSequence")
def gru_sequence(
    _: Attrs, length: ValueInfo, x: ValueInfo, hidden: ValueInfo, *rest: ValueInfo
) -> tuple[ValueInfo, ...]:
    """Return y [time, batch, cells], the last step's output, and the state after the last step."""
    w, u, b, candidate_bias, *masks = rest
    outputs = _sequence("_GRUSequence", length, x, (hidden,), w, u, b, masks)
    same_dim(dims_of_rank(candidate_bias, 1, "rb")[0], outputs[1].shape[1] if outputs[1].shape else None,
             "the elements of rb and the cells")
    return outputs


@rule("_RNNSequence")
def rnn_sequence(
    _: Attrs, length: ValueInfo, x: ValueInfo, hidden: ValueInfo, *rest: ValueInfo
) -> tuple[ValueInfo, ...]:
    """Return y [time, batch, cells], the last step's output, and the state after the last step."""
    w, u, b, *masks = rest
    return _sequence("_RNNSequence", length, x, (hidden,), w, u, b, masks)


def _sequence(
    op: str, length: ValueInfo, x: ValueInfo, states: Sequence[ValueInfo], w: ValueInfo, u: ValueInfo, b: ValueInfo,
    masks: Sequence[ValueInfo], projected_cells: int | None = None,
) -> tuple[ValueInfo, ...]:
    """`projected_cells`: of a layer whose states are projections of the cells."""
    check_single(length, "length")
    time, batch, inputs = dims_of_rank(x, 3, "x")
    outputs: int | None = None
    for state in states:
        shape = dims_of_rank(state, 2, "a state")
        batch = same_dim(batch, shape[0], "the batches of x and a state")
        outputs = same_dim(outputs, shape[1], "the cells of the states")
    for mask in masks:
        shape = dims_of_rank(mask, 2, "a mask")
        time = same_dim(time, shape[0], "the steps of x and a mask")
        batch = same_dim(batch, shape[1], "the batches of x and a mask")
    rows, columns = dims_of_rank(w, 2, "w")
    same_dim(rows, inputs, "the rows of w and the inputs")
    u_rows, u_columns = dims_of_rank(u, 2, "u")
    outputs = same_dim(outputs, u_rows, "the rows of u and the cells")
    cells = outputs if projected_cells is None else projected_cells
    if cells is not None:
        columns = same_dim(columns, cells * GATES[op], f"the columns of w and {GATES[op]} times the cells")
    same_dim(u_columns, columns, "the columns of u and w")
    same_dim(dims_of_rank(b, 1, "b")[0], columns, "the elements of b and the columns of w")
    if len(masks) > 1:
        raise InvalidArgument(f"a sequence takes one mask at most, {len(masks)} are given")
    matrix = info(x.dtype, (batch, outputs))
    return info(x.dtype, (time, batch, outputs)), matrix, *[matrix for _ in states]
