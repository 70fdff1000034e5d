"""Metadata of datasets: scalar variants, whose elements have the types and shapes that the node states.

Kernels keep this promise: a consumer is linked for the stated shapes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from heald.api import Attrs, InvalidArgument, TensorMetadata, ValueInfo, dtypes, info, merge_shapes

from .iterators import components_of
from .rules import rule
from .shapes import dims_of_rank, same_dim

_SOURCE = "input_dataset"
_SCALARS: Mapping[str, tuple[str, ...]] = {  # the inputs of each op: all are scalars
    **dict.fromkeys(("FinalizeDataset", "ModelDataset", "NonSerializableDataset", "OptionsDataset", "UnbatchDataset"),
                    (_SOURCE,)),
    **dict.fromkeys(("RepeatDataset", "SkipDataset", "TakeDataset"), (_SOURCE, "count")),
    "AssertCardinalityDataset": (_SOURCE, "cardinality"),
    "BatchDataset": (_SOURCE, "batch_size"),
    "BatchDatasetV2": (_SOURCE, "batch_size", "drop_remainder"),
    "CacheDataset": (_SOURCE, "filename"),
    "CacheDatasetV2": (_SOURCE, "filename", "cache"),
    "ConcatenateDataset": (_SOURCE, "another_dataset"),
    "MaxIntraOpParallelismDataset": (_SOURCE, "max_intra_op_parallelism"),
    "ParallelBatchDataset": (_SOURCE, "batch_size", "num_parallel_calls", "drop_remainder"),
    "PrefetchDataset": (_SOURCE, "buffer_size"),
    "PrivateThreadPoolDataset": (_SOURCE, "num_threads"),
    "RangeDataset": ("start", "stop", "step"),
    "RewriteDataset": (_SOURCE, "rewrite_name"),
    "ShardDataset": (_SOURCE, "num_shards", "index"),
    "ShuffleDataset": (_SOURCE, "buffer_size", "seed", "seed2"),
    "ShuffleDatasetV2": (_SOURCE, "buffer_size", "seed_generator"),
    "ShuffleDatasetV3": (_SOURCE, "buffer_size", "seed", "seed2", "seed_generator"),
    "WindowDataset": (_SOURCE, "size", "shift", "stride", "drop_remainder"),
}
_CYCLE = ("cycle_length", "block_length")
_TRAILING: Mapping[str, tuple[str, ...]] = {  # the scalars behind the captured values of ops that call functions
    **dict.fromkeys(("FilterDataset", "FlatMapDataset", "MapDataset", "ScanDataset", "TakeWhileDataset"), ()),
    **dict.fromkeys(("ParallelMapDataset", "ParallelMapDatasetV2"), ("num_parallel_calls",)),
    "InterleaveDataset": _CYCLE,
    **dict.fromkeys(("ParallelInterleaveDatasetV2", "ParallelInterleaveDatasetV3"), (*_CYCLE, "num_parallel_calls")),
    "ParallelInterleaveDatasetV4": (*_CYCLE, "buffer_output_elements", "prefetch_input_elements",
                                    "num_parallel_calls"),
}


def dataset_of(attrs: Attrs) -> ValueInfo:
    """Return a scalar variant, whose handle has the types and shapes of the elements' components."""
    return ValueInfo(TensorMetadata(dtypes.variant, ()), handle=tuple(c.meta for c in components_of(attrs)))


def _of_scalars(names: tuple[str, ...], attrs: Attrs, *inputs: ValueInfo) -> ValueInfo:
    for value, name in zip(inputs, names, strict=True):
        dims_of_rank(value, 0, name)
    return dataset_of(attrs)


def _of_function(names: tuple[str, ...], attrs: Attrs, source: ValueInfo, *inputs: ValueInfo) -> ValueInfo:
    return _of_scalars((_SOURCE, *names), attrs, source, *inputs[len(inputs) - len(names) :])


for _op, _names in _SCALARS.items():
    rule(_op)(partial(_of_scalars, _names))
for _op, _names in _TRAILING.items():
    rule(_op)(partial(_of_function, _names))


@rule("ReduceDataset")
def reduce_dataset(attrs: Attrs, source: ValueInfo, *_: ValueInfo) -> tuple[ValueInfo, ...]:
    dims_of_rank(source, 0, _SOURCE)
    if attrs["output_types"] != attrs["Tstate"]:
        raise InvalidArgument("the results of a reduction are its state: output_types must be Tstate")
    return components_of(attrs)


@rule("DatasetToSingleElement")
def dataset_to_single_element(attrs: Attrs, dataset: ValueInfo) -> tuple[ValueInfo, ...]:
    dims_of_rank(dataset, 0, "dataset")
    return components_of(attrs)


@rule("DatasetCardinality")
def dataset_cardinality(_: Attrs, dataset: ValueInfo) -> ValueInfo:
    dims_of_rank(dataset, 0, _SOURCE)
    return info(dtypes.int64, ())


@rule("DummyMemoryCache", "DummySeedGenerator")
def empty_handle(_: Attrs) -> ValueInfo:
    return info(dtypes.resource, ())


@rule("AnonymousMemoryCache")
def memory_cache_with_deleter(_: Attrs) -> tuple[ValueInfo, ValueInfo]:
    return info(dtypes.resource, ()), info(dtypes.variant, ())


@rule("AnonymousRandomSeedGenerator", "AnonymousSeedGenerator")
def seed_generator(_: Attrs, *seeds: ValueInfo) -> tuple[ValueInfo, ValueInfo]:
    for value, name in zip(seeds, ("seed", "seed2", "reshuffle"), strict=False):
        dims_of_rank(value, 0, name)
    return info(dtypes.resource, ()), info(dtypes.variant, ())


@rule("DirectedInterleaveDataset", "ZipDataset")
def of_datasets(attrs: Attrs, *sources: ValueInfo) -> ValueInfo:
    return _of_scalars(("input_datasets",) * len(sources), attrs, *sources)


@rule("UnwrapDatasetVariant", "WrapDatasetVariant")
def same_dataset(_: Attrs, dataset: ValueInfo) -> ValueInfo:
    dims_of_rank(dataset, 0, "input_handle")
    return ValueInfo(TensorMetadata(dtypes.variant, ()), handle=dataset.handle)


@rule("TensorDataset")
def tensor_dataset(attrs: Attrs, *components: ValueInfo) -> ValueInfo:
    for i, (component, stated) in enumerate(zip(components, components_of(attrs), strict=True)):
        _check_stated(i, component, stated)
    return dataset_of(attrs)


@rule("TensorSliceDataset")
def tensor_slice_dataset(attrs: Attrs, *components: ValueInfo) -> ValueInfo:
    count = None
    for i, (component, stated) in enumerate(zip(components, components_of(attrs), strict=True)):
        if component.shape is None:
            continue
        if not component.shape:
            raise InvalidArgument(f"All components must be at least 1-dimensional, component {i} is a scalar")
        count = same_dim(count, component.shape[0], "the sizes of the components in dimension 0")
        _check_stated(i, info(component.dtype, component.shape[1:]), stated)
    return dataset_of(attrs)


def _check_stated(number: int, component: ValueInfo, stated: ValueInfo) -> None:
    try:
        merge_shapes(component.shape, stated.shape)
    except ValueError as error:
        raise InvalidArgument(f"component {number} and its stated shape differ: {error}") from None


@rule("PaddedBatchDataset", "PaddedBatchDatasetV2")
def padded_batch_dataset(attrs: Attrs, source: ValueInfo, size: ValueInfo, *inputs: ValueInfo) -> ValueInfo:
    count = attrs["N"]
    components = components_of(attrs)
    if count != len(components):
        raise InvalidArgument(f"{count} padded shapes, but {len(components)} types of components")
    for shape in inputs[:count]:
        dims_of_rank(shape, 1, "padded_shapes")
    scalars = (source, size, *inputs[count:])
    for value in scalars:
        dims_of_rank(value, 0, "input_dataset, batch_size, padding_values and drop_remainder")
    return dataset_of(attrs)
