"""Metadata of connectionist temporal classification and of the distance between sequences."""

from __future__ import annotations

from heald.api import Attrs, InvalidArgument, ValueInfo, dtypes, info, shape_text

from .rules import rule
from .shapes import Dims, dims_of_rank, elements_in, same_dim, vector


@rule("CTCLoss")
def ctc_loss(
    _: Attrs, logits: ValueInfo, indices: ValueInfo, values: ValueInfo, lengths: ValueInfo
) -> tuple[ValueInfo, ValueInfo]:
    """Return the loss of each sequence, and its gradient for the logits."""
    shape = _logits(logits, lengths)
    _check_rows(indices, values, "labels")
    if dims_of_rank(indices, 2, "labels_indices")[1] not in (2, None):
        raise InvalidArgument(f"labels_indices must have 2 columns, given {shape_text(indices.shape)}")
    return info(logits.dtype, shape[1:2]), info(logits.dtype, shape)


def _logits(logits: ValueInfo, lengths: ValueInfo) -> Dims:
    """Return time, batch, classes."""
    time, batch, classes = dims_of_rank(logits, 3, "inputs")
    batch = same_dim(batch, dims_of_rank(lengths, 1, "sequence_length")[0],
                     "the batch and the elements of sequence_length")
    if elements_in((time, batch, classes)) == 0:
        raise InvalidArgument(f"inputs must not be empty, given {shape_text(logits.shape)}")
    return time, batch, classes


def _check_rows(indices: ValueInfo, values: ValueInfo, name: str) -> None:
    (count,), (rows, _) = dims_of_rank(values, 1, f"{name}_values"), dims_of_rank(indices, 2, f"{name}_indices")
    same_dim(rows, count, f"the rows of {name}_indices and the elements of {name}_values")


@rule("CTCGreedyDecoder")
def ctc_greedy_decoder(attrs: Attrs, logits: ValueInfo, lengths: ValueInfo) -> tuple[ValueInfo, ...]:
    _, batch, classes = _logits(logits, lengths)
    if classes is not None and not -classes <= attrs["blank_index"] < classes:
        raise InvalidArgument(f"blank_index expected to be between {-classes} and {classes - 1} but was "
                              f"{attrs['blank_index']}")
    return (*_decoded_paths(1), info(logits.dtype, (batch, 1)))


@rule("CTCBeamSearchDecoder")
def ctc_beam_search_decoder(attrs: Attrs, logits: ValueInfo, lengths: ValueInfo) -> tuple[ValueInfo, ...]:
    _, batch, _ = _logits(logits, lengths)
    paths = attrs["top_paths"]
    if paths > attrs["beam_width"]:
        raise InvalidArgument(f"requested more paths ({paths}) than the beam width ({attrs['beam_width']})")
    return (*_decoded_paths(paths), info(logits.dtype, (batch, paths)))


def _decoded_paths(paths: int) -> tuple[ValueInfo, ...]:
    """Return indices, values and shape of a sparse matrix for each path: all indices come first."""
    indices, values, shape = (info(dtypes.int64, s) for s in ((None, 2), (None,), (2,)))
    return (*[indices] * paths, *[values] * paths, *[shape] * paths)


@rule("EditDistance", values=("hypothesis_shape", "truth_shape"))
def edit_distance(
    _: Attrs, indices: ValueInfo, values: ValueInfo, shape: ValueInfo, truth_indices: ValueInfo,
    truth_values: ValueInfo, truth_shape: ValueInfo,
) -> ValueInfo:
    """Return a distance for each sequence: sequences lie along the last dimension of both sparse tensors."""
    _check_rows(indices, values, "hypothesis")
    _check_rows(truth_indices, truth_values, "truth")
    rank: int | None = None
    for shape_input, name in ((shape, "hypothesis_shape"), (truth_shape, "truth_shape")):
        rank = same_dim(rank, dims_of_rank(shape_input, 1, name)[0], "the ranks of truth and hypothesis")
    for shape_input, name in ((indices, "hypothesis_indices"), (truth_indices, "truth_indices")):
        rank = same_dim(rank, dims_of_rank(shape_input, 2, name)[1], f"the rank and the columns of {name}")
    if rank is not None and rank < 2:
        raise InvalidArgument(f"sequences must be sparse tensors of rank at least 2, given {rank}")
    shapes = [vector(shape_input, "a shape") or (None,) for shape_input in (shape, truth_shape)]
    lengths = [[n for n in dims if n is not None] for dims in shapes]
    if any(len(some) < len(dims) for some, dims in zip(lengths, shapes, strict=True)):
        return info(dtypes.float32, None)
    output = tuple(map(max, *(some[:-1] for some in lengths)))
    if min(*lengths[0], *lengths[1]) < 0 or 0 in output:
        raise InvalidArgument(f"the shapes of sequences must be positive, given {lengths[0]} and {lengths[1]}")
    return info(dtypes.float32, output)
