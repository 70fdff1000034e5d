"""Metadata of ops on strings."""

from __future__ import annotations

from heald.api import Attrs, InvalidArgument, ValueInfo, dtypes, errors, geometry, info, shape_text

from .rules import rule
from .shapes import count_in, dims_of_rank, elements_in, same_dim, same_shape

FILLS = ("", " ", "+", "-", "0", "#")
STREAMS = ("stdout", "stderr", "log(info)", "log(warning)", "log(error)")
METHODS = ("farmhash64",)


def scalar(x: ValueInfo, name: str) -> None:
    if x.rank:
        raise InvalidArgument(f"{name} must be a scalar, given shape {shape_text(x.shape)}")


@rule("DecodeBase64", "EncodeBase64", "StaticRegexReplace", "StringStrip")
def text(_: Attrs, x: ValueInfo) -> ValueInfo:
    return info(dtypes.string, x.shape)


@rule("StringLower", "StringUpper")
def letter_case(attrs: Attrs, x: ValueInfo) -> ValueInfo:
    if attrs["encoding"] not in ("", "utf-8"):
        raise InvalidArgument(f"encoding must be utf-8 or '', given '{attrs['encoding']}'")
    return info(dtypes.string, x.shape)


@rule("UnicodeTranscode")
def transcode(attrs: Attrs, x: ValueInfo) -> ValueInfo:
    _check_replacement(attrs)
    return info(dtypes.string, x.shape)


@rule("UnicodeDecode")
def decode(attrs: Attrs, x: ValueInfo) -> tuple[ValueInfo, ValueInfo]:
    """Return the splits and the code points of all strings."""
    _check_replacement(attrs)
    count = elements_in(x.shape)
    return info(attrs["Tsplits"], (None if count is None else count + 1,)), info(dtypes.int32, (None,))


@rule("UnicodeDecodeWithOffsets")
def decode_with_offsets(attrs: Attrs, x: ValueInfo) -> tuple[ValueInfo, ValueInfo, ValueInfo]:
    """Return the splits and the code points of all strings, and the byte at which each code point starts."""
    return *decode(attrs, x), info(dtypes.int64, (None,))


@rule("UnicodeEncode")
def encode(attrs: Attrs, points: ValueInfo, splits: ValueInfo) -> ValueInfo:
    """Return a string for each row of code points."""
    _check_replacement(attrs)
    dims_of_rank(points, 1, "input_values")
    (bounds,) = dims_of_rank(splits, 1, "input_splits")
    if bounds == 0:
        raise InvalidArgument("input_splits must have at least one element, 0")
    return info(dtypes.string, (None if bounds is None else bounds - 1,))


@rule("UnicodeScript")
def script(_: Attrs, points: ValueInfo) -> ValueInfo:
    return ValueInfo(points.meta)


def _check_replacement(attrs: Attrs) -> None:
    if not 0 <= attrs["replacement_char"] < 0x110000:
        raise InvalidArgument(f"replacement_char {attrs['replacement_char']} is no code point of Unicode")


@rule("AsString")
def as_string(attrs: Attrs, x: ValueInfo) -> ValueInfo:
    fill = attrs["fill"]
    if fill not in FILLS:
        raise InvalidArgument(f"fill must be one of ' +-0#' or empty, given '{fill}'")
    if x.dtype.kind not in "fc" and x.dtype is not dtypes.string:
        if attrs["scientific"] or attrs["shortest"]:
            raise InvalidArgument(f"scientific and shortest notation are not for {x.dtype}")
        if attrs["precision"] > -1:
            raise InvalidArgument(f"precision is not for {x.dtype}")
    if attrs["scientific"] and attrs["shortest"]:
        raise InvalidArgument("a number is written in scientific or in shortest notation, not in both")
    return info(dtypes.string, x.shape)


@rule("StringLength")
def length(_: Attrs, x: ValueInfo) -> ValueInfo:
    return info(dtypes.int32, x.shape)


@rule("StringToNumber")
def to_number(attrs: Attrs, x: ValueInfo) -> ValueInfo:
    return info(attrs["out_type"], x.shape)


@rule("StringToHashBucket", "StringToHashBucketFast", "StringToHashBucketStrong")
def hash_bucket(attrs: Attrs, x: ValueInfo) -> ValueInfo:
    if len(attrs.get("key", (0, 0))) != 2:
        raise InvalidArgument(f"key must have 2 elements, given {len(attrs['key'])}")
    return info(dtypes.int64, x.shape)


@rule("Fingerprint", values=("method",))
def fingerprint(_: Attrs, data: ValueInfo, method: ValueInfo) -> ValueInfo:
    scalar(method, "method")
    if data.rank == 0:
        raise InvalidArgument("data must have at least one dimension, given a scalar")
    method_name = None if method.value is None else bytes(method.value.reshape(())[()]).decode("latin1")
    if method_name is not None and method_name not in METHODS:
        raise InvalidArgument(f"Unsupported fingerprint method: {method_name}")
    return info(dtypes.uint8, (None if data.shape is None else data.shape[0], None if method_name is None else 8))


@rule("RegexFullMatch")
def full_match(_: Attrs, x: ValueInfo, pattern: ValueInfo) -> ValueInfo:
    scalar(pattern, "pattern")
    return info(dtypes.bool_, x.shape)


@rule("StaticRegexFullMatch")
def static_full_match(_: Attrs, x: ValueInfo) -> ValueInfo:
    return info(dtypes.bool_, x.shape)


@rule("RegexReplace")
def regex_replace(_: Attrs, x: ValueInfo, pattern: ValueInfo, rewrite: ValueInfo) -> ValueInfo:
    scalar(pattern, "pattern")
    scalar(rewrite, "rewrite")
    return info(dtypes.string, x.shape)


@rule("Substr")
def substr(_: Attrs, x: ValueInfo, pos: ValueInfo, length: ValueInfo) -> ValueInfo:
    parts = same_shape((pos.shape, length.shape), "pos and len must have the same shape")
    return info(dtypes.string, geometry.broadcast_shapes(x.shape, parts))


@rule("StringSplit", "StringSplitV2")
def split(_: Attrs, x: ValueInfo, separator: ValueInfo) -> tuple[ValueInfo, ...]:
    """Return indices, values and dense shape of a sparse matrix, a row each string."""
    dims_of_rank(x, 1, "input")
    scalar(separator, "the separator")
    return info(dtypes.int64, (None, 2)), info(dtypes.string, (None,)), info(dtypes.int64, (2,))


@rule("StringJoin")
def join(_: Attrs, *xs: ValueInfo) -> ValueInfo:
    """Scalars are repeated; all others have one shape."""
    if all(x.rank == 0 for x in xs):
        return info(dtypes.string, ())
    return info(dtypes.string, same_shape([x.shape for x in xs if x.rank], "Input shapes do not match"))


@rule("ReduceJoin", values=("reduction_indices",))
def reduce_join(attrs: Attrs, x: ValueInfo, axes: ValueInfo) -> ValueInfo:
    """Axes may have any shape; the op joins them in the order of their elements."""
    axis_values = axes.vector()
    if x.shape is None or axis_values is None or None in axis_values:
        return info(dtypes.string, None)
    reduced_axes = _reduced_axes([axis for axis in axis_values if axis is not None], len(x.shape))
    if attrs["keep_dims"]:
        return info(dtypes.string, tuple(1 if i in reduced_axes else n for i, n in enumerate(x.shape)))
    return info(dtypes.string, tuple(n for i, n in enumerate(x.shape) if i not in reduced_axes))


def _reduced_axes(axes: list[int], rank: int) -> set[int]:
    for axis in axes:
        if not -rank <= axis < rank:
            raise errors.OutOfRange(f"Invalid reduction dimension {axis} for input with {rank} dimension(s)")
    reduced_axes = {axis % rank for axis in axes}
    if len(reduced_axes) < len(axes):
        raise InvalidArgument(f"Duplicate reduction dimension among {axes}")
    return reduced_axes


@rule("UnsortedSegmentJoin", values=("num_segments",))
def unsorted_segment_join(_: Attrs, x: ValueInfo, ids: ValueInfo, count: ValueInfo) -> ValueInfo:
    segments = count_in(count, "num_segments")
    if ids.rank == 0:
        raise InvalidArgument("segment_ids must have at least one dimension, given a scalar")
    if x.shape is None or ids.shape is None:
        return info(dtypes.string, None)
    if len(ids.shape) > len(x.shape):
        raise InvalidArgument(f"segment_ids {shape_text(ids.shape)} have more dimensions than the input "
                              f"{shape_text(x.shape)}")
    for i, (a, b) in enumerate(zip(x.shape, ids.shape, strict=False)):
        same_dim(a, b, f"dimension {i} of the input and segment_ids")
    return info(dtypes.string, (segments, *x.shape[len(ids.shape) :]))


@rule("StringNGrams")
def ngrams(attrs: Attrs, data: ValueInfo, splits: ValueInfo) -> tuple[ValueInfo, ...]:
    dims_of_rank(data, 1, "data")
    (count,) = dims_of_rank(splits, 1, "data_splits")
    for width in attrs["ngram_widths"]:
        if width < 1:
            raise InvalidArgument(f"ngram_widths must be positive, given {width}")
    return info(dtypes.string, (None,)), info(attrs["Tsplits"], (count,))


@rule("StringFormat")
def format_(attrs: Attrs, *xs: ValueInfo) -> ValueInfo:
    template, placeholder = attrs["template"], attrs["placeholder"]
    between = len(template.encode("utf-8", "surrogateescape")) - 1  # positions of an empty placeholder
    slots = template.count(placeholder) if placeholder else max(0, between)
    if slots != len(xs):
        raise InvalidArgument(f"num placeholders in template and num inputs must match: {slots} vs. {len(xs)}")
    return info(dtypes.string, ())


@rule("ShardedFilename", "ShardedFilespec")
def sharded_filename(_: Attrs, *xs: ValueInfo) -> ValueInfo:
    for name, x in zip(("basename", *("shard",) * (len(xs) - 2), "num_shards"), xs, strict=True):
        scalar(x, name)
    return info(dtypes.string, ())


@rule("Assert")
def assert_(_: Attrs, condition: ValueInfo, *__: ValueInfo) -> tuple[ValueInfo, ...]:
    scalar(condition, "condition")
    return ()


@rule("Print")
def print_(_: Attrs, x: ValueInfo, *__: ValueInfo) -> ValueInfo:
    return ValueInfo(x.meta, None, x.dims, x.handle)


@rule("PrintV2")
def print_v2(attrs: Attrs, x: ValueInfo) -> tuple[ValueInfo, ...]:
    stream = attrs["output_stream"]
    if stream.startswith("file://"):
        raise errors.Unimplemented(f"PrintV2 to {stream}: a graph writes no files here")
    if stream not in STREAMS:
        raise InvalidArgument(f"Unknown output stream: {stream}, Valid streams are: {' '.join(STREAMS)}")
    scalar(x, "input")
    return ()
