"""Metadata of ops that parse tf.train.SequenceExample messages: features of a context, and of lists over time."""

from __future__ import annotations

from collections.abc import Sequence

from heald.api import Attrs, InvalidArgument, Shape, ValueInfo, dtypes, info, shape_text

from .parsing import check_counts, check_names, sparse_features, splits_of
from .rules import rule
from .shapes import Dims, dims_of_rank, elements_in, same_dim
from .strings import scalar

Results = tuple[ValueInfo, ...]
KEYS = (("context_sparse_keys", "Ncontext_sparse"), ("context_dense_keys", "Ncontext_dense"),
        ("feature_list_sparse_keys", "Nfeature_list_sparse"), ("feature_list_dense_keys", "Nfeature_list_dense"))


@rule("ParseSequenceExample")
def parse_sequence_example(attrs: Attrs, serialized: ValueInfo, names: ValueInfo, *defaults: ValueInfo) -> Results:
    for keys, count in KEYS:
        check_counts(attrs[count], attrs[keys], what=keys)
    check_counts(attrs["Ncontext_dense"], attrs["Tcontext_dense"], what="Tcontext_dense")
    dims_of_rank(serialized, 1, "serialized")
    check_names(serialized, names)
    return _results(attrs, serialized, defaults)


@rule("ParseSequenceExampleV2")
def parse_sequence_example_v2(attrs: Attrs, serialized: ValueInfo, names: ValueInfo, *inputs: ValueInfo) -> Results:
    counts = (attrs["Ncontext_sparse"], len(attrs["Tcontext_dense"]), len(attrs["context_ragged_value_types"]),
              attrs["Nfeature_list_sparse"], attrs["Nfeature_list_dense"],
              len(attrs["feature_list_ragged_value_types"]), attrs["Nfeature_list_dense"])
    for keys, count in zip(inputs[:7], counts, strict=True):
        same_dim(dims_of_rank(keys, 1, "keys")[0], count, "the numbers of keys and of their types")
    if serialized.rank not in (None, 0, 1):
        raise InvalidArgument(f"serialized must be a scalar or vector, given shape {shape_text(serialized.shape)}")
    check_names(serialized, names)
    return _results(attrs, serialized, inputs[7:])


@rule("ParseSingleSequenceExample")
def parse_single_sequence_example(attrs: Attrs, serialized: ValueInfo, empty: ValueInfo, *inputs: ValueInfo) -> Results:
    """The last input is a name for errors. Dense lists have no outputs of lengths."""
    scalar(serialized, "serialized")
    dims_of_rank(empty, 1, "feature_list_dense_missing_assumed_empty")
    key_count = sum(attrs[count] for _, count in KEYS)
    for key in (*inputs[:key_count], inputs[-1]):
        scalar(key, "a key")
    check_counts(attrs["Ncontext_dense"], attrs["Tcontext_dense"], what="Tcontext_dense")
    results = _results(attrs, serialized, inputs[key_count:-1])
    return results[: len(results) - attrs["Nfeature_list_dense"]]


def _results(attrs: Attrs, serialized: ValueInfo, defaults: Sequence[ValueInfo]) -> Results:
    """Return all outputs in the order of the ops."""
    _check_types(attrs)
    batch, rank = serialized.shape, serialized.rank
    dense = [info(t, _after(batch, shape)) for t, shape in
             zip(attrs["Tcontext_dense"], _defined(attrs["context_dense_shapes"], "context_dense_shapes"), strict=True)]
    for default, shape in zip(defaults, attrs["context_dense_shapes"], strict=True):
        _check_default(default, shape)
    lists = zip(attrs["feature_list_dense_types"],
                _defined(attrs["feature_list_dense_shapes"], "feature_list_dense_shapes"), strict=True)
    ragged = attrs.get("context_ragged_value_types", ()), attrs.get("context_ragged_split_types", ())
    ragged_lists = attrs.get("feature_list_ragged_value_types", ()), attrs.get("feature_list_ragged_split_types", ())
    outer: Dims = splits_of(batch)
    return (
        *sparse_features(attrs["context_sparse_types"], None if rank is None else rank + 1), *dense,
        *(info(t, (None,)) for t in ragged[0]), *(info(t, outer) for t in ragged[1]),
        *sparse_features(attrs["feature_list_sparse_types"], None if rank is None else rank + 2),
        *(info(t, _after(batch, (None, *shape))) for t, shape in lists),
        *(info(dtypes.int64, batch) for _ in attrs["feature_list_dense_types"]),
        *(info(t, (None,)) for t in ragged_lists[0]), *(info(t, outer) for t in ragged_lists[1]),
        *(info(t, (None,)) for t in ragged_lists[1]),
    )


def _check_types(attrs: Attrs) -> None:
    for types, count in (("context_sparse_types", "Ncontext_sparse"), ("feature_list_sparse_types",
                         "Nfeature_list_sparse"), ("feature_list_dense_types", "Nfeature_list_dense"),
                         ("feature_list_dense_shapes", "Nfeature_list_dense")):
        check_counts(attrs[count], attrs[types], what=types)
    check_counts(len(attrs["Tcontext_dense"]), attrs["context_dense_shapes"], what="context_dense_shapes")
    for values, splits in (("context_ragged_value_types", "context_ragged_split_types"),
                           ("feature_list_ragged_value_types", "feature_list_ragged_split_types")):
        check_counts(len(attrs.get(values, ())), attrs.get(splits, ()), what=splits)


def _defined(shapes: Sequence[Shape], name: str) -> list[Dims]:
    defined: list[Dims] = []
    for shape in shapes:
        if shape is None or None in shape:
            raise InvalidArgument(f"{name}: shape {shape_text(shape)} is not fully defined")
        defined.append(shape)
    return defined


def _after(batch: Shape, shape: Dims) -> Shape:
    return None if batch is None else (*batch, *shape)


def _check_default(default: ValueInfo, shape: Dims) -> None:
    """Raise InvalidArgument for a default of another shape. An empty one stands for none."""
    if default.meta.is_static and elements_in(default.shape) and default.shape != tuple(shape):
        raise InvalidArgument(f"a default of shape {shape_text(default.shape)} is none of shape {shape_text(shape)}")
