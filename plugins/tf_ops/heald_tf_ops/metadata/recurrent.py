"""Metadata of recurrent cells."""

from __future__ import annotations

from collections.abc import Sequence

from heald.api import Attrs, ValueInfo, info

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
