"""Metadata of recurrent cells."""

from __future__ import annotations

from ..op import Attrs
from ..tensor import ValueInfo, info
from .rules import rule
from .shapes import ranked, same_dim


@rule("LSTMBlockCell")
def lstm_block_cell(
    attrs: Attrs, x: ValueInfo, state: ValueInfo, hidden: ValueInfo, weights: ValueInfo, *vectors: ValueInfo
) -> tuple[ValueInfo, ...]:
    """Seven matrices of the state's shape: i, cs, f, o, ci, co, h."""
    (batch, inputs), (rows, columns) = ranked(x, 2, "x"), ranked(weights, 2, "w")
    cells: int | None = None
    for given, name in ((state, "cs_prev"), (hidden, "h_prev")):
        shape = ranked(given, 2, name)
        batch = same_dim(batch, shape[0], f"the batches of x and {name}")
        cells = same_dim(cells, shape[1], "the cells of cs_prev and h_prev")
    *peepholes, bias = vectors
    if cells is not None:
        same_dim(rows, None if inputs is None else inputs + cells, "the rows of w, and the inputs and cells")
        same_dim(columns, 4 * cells, "the columns of w and four times the cells")
        same_dim(ranked(bias, 1, "b")[0], 4 * cells, "the elements of b and four times the cells")
    for peephole in peepholes if attrs["use_peephole"] else ():
        same_dim(ranked(peephole, 1, "a peephole")[0], cells, "the elements of a peephole and the cells")
    return (info(x.dtype, (batch, cells)),) * 7
