"""Metadata functions: ranks that inputs must have, and the types and shapes of outputs.

SIGNATURES has a row for each op whose outputs follow from ranks alone. An input is written as its rank, or `*` for any.
An output is written as a type and a shape:

    string ?       a vector of unknown length
    int64 =0       the shape of input 0
    int64 0+1      a vector, longer by 1 than input 0
    int32          a scalar

A type in braces is an attribute. Counts of tokens depend on data, so most lengths stay unknown until the run.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from heald.api import Attrs, InvalidArgument, MetadataRule, Shape, ValueInfo, dtypes, info, shape_text

SIGNATURES = {
    "CaseFoldUTF8": ("*", "string =0"),
    "FastBertNormalize": ("1 1", "string =0, int64 ?, int64 0+1"),
    "FastWordpieceTokenizeWithOffsets": ("1 1", "string ?, int64 ?, int64 ?, int64 ?, int64 ?"),
    "FindSourceOffsets": ("* 1 1", "int64 =1"),
    "NormalizeUTF8": ("*", "string =0"),
    "NormalizeUTF8WithOffsetsMap": ("*", "string =0, variant =0"),
    "PhraseTokenize": ("1 1", "string ?, int64 ?, int64 ?"),
    "RegexSplitWithOffsets": ("1 0 0", "string ?, int64 ?, int64 ?, int64 0+1"),
    "RougeL": ("1 1 1 1 0", "float ?, float ?, float ?"),
    "SentenceFragments": ("1 1 1 1 1", "int64 ?, int64 ?, int64 ?, int64 ?, int64 =0"),
    "SentenceFragmentsV2": ("1", "int64 ?, int64 ?, int64 ?, int64 ?, int64 =0"),
    "SentencepieceDetokenizeOp": ("0 1 1 0 0 0", "string ?"),
    "SentencepieceIdToStringOp": ("0 1", "string =1"),
    "SentencepieceOp": ("", "resource"),
    "SentencepieceStringToIdOp": ("0 1", "int32 =1"),
    "SentencepieceTokenizeOp": ("0 1 * * 0 0 0", "{out_type} ?, {Tsplits} ?"),
    "SentencepieceTokenizeWithOffsetsOp": ("0 1 * * 0 0 0", "{out_type} ?, {Tsplits} ?, int64 ?, int64 ?"),
    "SentencepieceVocabSizeOp": ("0", "int32"),
    "SplitMergeTokenizeWithOffsets": ("1 1 1", "string ?, int64 0+1, int64 ?, int64 ?"),
    "TFText>BoiseTagsToOffsets": ("1 1 1 1 1 1", "int32 ?, int32 ?, string ?, int64 ?"),
    "TFText>ByteSplitByOffsets": ("1 1 1 1", "string ?, int64 =3"),
    "TFText>ByteSplitWithOffsets": ("1", "uint8 ?, int64 ?, int32 ?, int32 ?"),
    "TFText>FastSentencepieceDetokenize": ("1 1 1", "string ?"),
    "TFText>FastSentencepieceTokenize": ("1 1 0 0 0 0 0", "{out_type} ?, {Tsplits} ?"),
    "TFText>FastWordpieceDetokenize": ("1 1 1", "string ?"),
    "TFText>OffsetsToBoiseTags": ("1 1 1 1 1 1 1 1 1 1 0", "string =0"),
    "TFText>PhraseDetokenize": ("1 1 1", "string ?"),
    "TFText>WhitespaceTokenizeWithOffsetsV2": ("1 0", "string ?, int64 ?, int32 ?, int32 ?"),
    "TokenizerFromLogits": ("1 3 0", "string ?, int64 0+1, int64 ?, int64 ?"),
    "UnicodeScriptTokenizeWithOffsets": ("1 1", "int32 ?, {Tsplits} ?, int64 ?, int64 ?, {Tsplits} =1"),
    "WhitespaceTokenizeWithOffsets": ("1 1", "int32 ?, {Tsplits} ?, int64 ?, int64 ?, {Tsplits} =1"),
    "WordpieceTokenizeWithOffsets": ("1 0", "string ?, int64 ?, int64 ?, int64 ?"),
}


def rule_of(op: str) -> MetadataRule | None:
    """Return the op's metadata function, or None for an op without one."""
    if op in SIGNATURES:
        ranks, outputs = SIGNATURES[op]
        return MetadataRule(partial(infer, ranks.split(), outputs.split(", ")), ())
    return MetadataRule(SPECIAL[op], ()) if op in SPECIAL else None


def infer(ranks: list[str], outputs: list[str], attrs: Attrs, *inputs: ValueInfo) -> tuple[ValueInfo, ...]:
    """Check the ranks of the inputs, and return the outputs of a row of SIGNATURES."""
    for position, (rank, value) in enumerate(zip(ranks, inputs, strict=True)):
        if rank != "*":
            check_rank(value, int(rank), position)
    return tuple(_output(text, attrs, inputs) for text in outputs)


def check_rank(value: ValueInfo, rank: int, position: int) -> None:
    if value.rank not in (None, rank):
        raise InvalidArgument(f"input {position} must have rank {rank}, given shape {shape_text(value.shape)}")


def _output(text: str, attrs: Attrs, inputs: tuple[ValueInfo, ...]) -> ValueInfo:
    kind, _, shape = text.partition(" ")
    dtype = attrs[kind[1:-1]] if kind.startswith("{") else dtypes.named(kind)
    return info(dtype, _shape(shape, inputs))


def _shape(text: str, inputs: tuple[ValueInfo, ...]) -> Shape:
    if not text or text == "?":
        return (None,) if text else ()
    if text.startswith("="):
        return inputs[int(text[1:])].shape
    shape = inputs[int(text.removesuffix("+1"))].shape
    return (None if shape is None or shape[0] is None else shape[0] + 1,)


def constrained_sequence(attrs: Attrs, *inputs: ValueInfo) -> tuple[ValueInfo, ...]:
    scores, lengths, allowed, weights = inputs
    check_rank(scores, 3, 0)
    check_rank(lengths, 1, 1)
    for position, matrix in ((2, allowed), (3, weights)):
        if matrix.rank not in (None, 2) and 0 not in (matrix.shape or ()):
            check_rank(matrix, 2, position)
    count = None if lengths.shape is None or lengths.shape[0] is None else lengths.shape[0] + 1
    return info(dtypes.int32, (None,)), info(attrs["Tsplits"], (count,))


def max_spanning_tree(_: Attrs, num_nodes: ValueInfo, scores: ValueInfo) -> tuple[ValueInfo, ...]:
    check_rank(num_nodes, 1, 0)
    check_rank(scores, 3, 1)
    batch = num_nodes.shape[0] if num_nodes.shape else None
    size = scores.shape[1] if scores.shape else None
    return info(scores.dtype, (batch,)), info(dtypes.int32, (batch, size))


def ngrams_string_join(attrs: Attrs, values: ValueInfo, *splits: ValueInfo) -> tuple[ValueInfo, ...]:
    """Only the innermost dimension, axis -1, is joined, as in TensorFlow Text. Without row splits it shrinks."""
    if attrs["axis"] != -1:
        raise InvalidArgument(f"axis must be -1, given {attrs['axis']}")
    if attrs["width"] < 1:
        raise InvalidArgument(f"width must be at least 1, given {attrs['width']}")
    for position, row in enumerate(splits, 1):
        check_rank(row, 1, position)
    rows = tuple(info(attrs["Tsplits"], row.shape) for row in splits)
    if splits:
        check_rank(values, 1, 0)
        return info(dtypes.string, (None,)), *rows
    return (info(dtypes.string, ngram_shape(values.shape, attrs["width"])),)


def ngram_shape(shape: Shape, width: int) -> Shape:
    if shape is None:
        return None
    if not shape:
        raise InvalidArgument("n-grams need an axis, given a scalar")
    return *shape[:-1], None if shape[-1] is None else max(0, shape[-1] - width + 1)


def round_robin_trim(attrs: Attrs, limit: ValueInfo, *values_and_splits: ValueInfo) -> tuple[ValueInfo, ...]:
    values, splits = _check_segments(attrs, limit, values_and_splits)
    return *(info(attrs["T"], (None,)) for _ in values), *(info(attrs["Tsplits"], row.shape) for row in splits)


def round_robin_masks(attrs: Attrs, limit: ValueInfo, *values_and_splits: ValueInfo) -> tuple[ValueInfo, ...]:
    values, _ = _check_segments(attrs, limit, values_and_splits)
    return tuple(info(dtypes.named("bool"), x.shape) for x in values)


def _check_segments(
    attrs: Attrs, limit: ValueInfo, tensors: tuple[ValueInfo, ...]
) -> tuple[tuple[ValueInfo, ...], tuple[ValueInfo, ...]]:
    check_rank(limit, 0, 0)
    for position, tensor in enumerate(tensors, 1):
        check_rank(tensor, 1, position)
    return tensors[: attrs["N"]], tensors[attrs["N"] :]


def utf8_binarize(attrs: Attrs, tokens: ValueInfo) -> ValueInfo:
    for name in ("word_length", "bits_per_char"):
        if attrs[name] < 0:
            raise InvalidArgument(f"{name} must not be negative, given {attrs[name]}")
    check_rank(tokens, 1, 0)
    width = attrs["word_length"] * attrs["bits_per_char"]
    return info(dtypes.float32, (tokens.shape[0] if tokens.shape else None, width))


SPECIAL: dict[str, Callable[..., ValueInfo | tuple[ValueInfo, ...]]] = {
    "ConstrainedSequence": constrained_sequence,
    "MaxSpanningTree": max_spanning_tree,
    "TFText>NgramsStringJoin": ngrams_string_join,
    "TFText>RoundRobinGenerateMasks": round_robin_masks,
    "TFText>RoundRobinTrim": round_robin_trim,
    "TFText>Utf8Binarize": utf8_binarize,
}
