"""Kernels of datasets that call no function. A dataset retains the tensors that it is made of, which must not change
afterwards. Buffers, threads and options have no effect: elements are computed when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any

from heald.api import AsyncValue, Bind, Kernels, Step, errors, run_or_promise

from ..datasets.batching import BatchDataset, PaddedBatchDataset, UnbatchDataset, WindowDataset
from ..datasets.interface import Dataset, Spec, check_element, dataset_of
from ..datasets.selection import (
    AssertCardinalityDataset,
    CacheDataset,
    ConcatenateDataset,
    DirectedInterleaveDataset,
    RepeatDataset,
    ShardDataset,
    SkipDataset,
    TakeDataset,
    ZipDataset,
)
from ..datasets.shuffling import SeedGenerator, ShuffleDataset
from ..datasets.sources import ElementsDataset, RangeDataset, TensorSliceDataset
from ..element_types import Array
from ..resources.handles import from_handle

Run = Callable[..., Any]
Make = Callable[..., Dataset]  # (spec, source datasets..., numbers...) -> dataset
PASSED_ON = ("FinalizeDataset", "MaxIntraOpParallelismDataset", "ModelDataset", "NonSerializableDataset",
             "OptionsDataset", "PrefetchDataset", "PrivateThreadPoolDataset", "RewriteDataset")
AUTOTUNE = -1


def spec_of(b: Bind) -> Spec:
    """The types and shapes of elements that a node states."""
    types = b.attrs["Toutput_types"] if "Toutput_types" in b.attrs else b.attrs["output_types"]
    return Spec(types, b.attrs["output_shapes"])


def source(make: Callable[[Spec, tuple[Array, ...]], Dataset]) -> Callable[[Bind], Run]:
    """The bind function of a dataset made of tensors."""

    def bind(b: Bind) -> Run:
        spec = spec_of(b)
        return lambda *components_and_out: components_and_out[-1].fill(make(spec, components_and_out[:-1]))

    return bind


def tensor(spec: Spec, components: tuple[Array, ...]) -> Dataset:
    check_element(spec, components)
    return ElementsDataset(spec, [components])


def tensor_slices(spec: Spec, components: tuple[Array, ...]) -> Dataset:
    dataset = TensorSliceDataset(spec, components)
    if dataset.cardinality:
        check_element(spec, dataset.element(0))
    return dataset


def numbers(spec: Spec, bounds: tuple[Array, ...]) -> Dataset:
    return RangeDataset(spec, *map(int, bounds))


def from_datasets(make: Make, count: int = 1) -> Callable[[Bind], Run]:
    """The bind function of a dataset made of `count` datasets and of numbers."""

    def bind(b: Bind) -> Run:
        spec = spec_of(b)

        def run(*operands: Array) -> None:
            *inputs, out = operands
            sources = [dataset_of(handle) for handle in inputs[:count]]
            out.fill(make(spec, *sources, *(value.item() for value in inputs[count:])))

        return run

    return bind


def passed_on(b: Bind) -> Run:
    """The same elements. Some of these ops have one more input."""
    checks_buffer, spec = b.op == "PrefetchDataset", spec_of(b)

    def run(handle: Array, *more: Array) -> None:
        if checks_buffer and more[0] < AUTOTUNE:
            raise errors.InvalidArgument(f"buffer_size must be >= 0 or set buffer_size to be {AUTOTUNE} for "
                                         "auto-tuning")
        more[-1].fill(dataset_of(handle).with_spec(spec))

    return run


def zipped(b: Bind) -> Run:
    spec = spec_of(b)

    def run(*operands: Array) -> None:
        *handles, out = operands
        out.fill(ZipDataset(spec, [dataset_of(handle) for handle in handles]))

    return run


def directed_interleave(b: Bind) -> Run:
    spec, stops = spec_of(b), b.attrs["stop_on_empty_dataset"]

    def run(*operands: Array) -> None:
        selector, *sources = map(dataset_of, operands[:-1])
        operands[-1].fill(DirectedInterleaveDataset(spec, selector, sources, stops=stops))

    return run


def batch(spec: Spec, input_dataset: Dataset, size: int, drops_remainder: bool = False) -> Dataset:
    return BatchDataset(spec, input_dataset, size, drops_remainder=drops_remainder)


def parallel_batch(spec: Spec, input_dataset: Dataset, size: int, calls: int, drops_remainder: bool) -> Dataset:
    if calls <= 0 and calls != AUTOTUNE:
        raise errors.InvalidArgument("num_parallel_calls must be greater than zero.")
    return BatchDataset(spec, input_dataset, size, drops_remainder=drops_remainder)


def padded_batch(b: Bind) -> Run:
    spec, count, has_remainder = spec_of(b), b.attrs["N"], b.op.endswith("V2")

    def run(handle: Array, size: Array, *operands: Array) -> None:
        shapes = [tuple(map(int, shape)) for shape in operands[:count]]
        values = operands[count : 2 * count]
        drops_remainder = has_remainder and bool(operands[2 * count])
        operands[-1].fill(PaddedBatchDataset(spec, dataset_of(handle), int(size), shapes, values,
                                             drops_remainder=drops_remainder))

    return run


def shuffled(b: Bind) -> Run:
    """A shuffle by seeds, by a generator of seeds, or by seeds where the generator is a dummy."""
    spec, reshuffles = spec_of(b), b.attrs.get("reshuffle_each_iteration", True)

    def run(handle: Array, size: Array, *seeds_and_out: Array) -> None:
        *seeds, out = seeds_and_out
        if len(seeds) == 1 or (len(seeds) == 3 and seeds[2][()] is not None):
            generator = from_handle(seeds[-1], SeedGenerator)
        else:
            generator = SeedGenerator(int(seeds[0]), int(seeds[1]), reshuffles=reshuffles)
        out.fill(ShuffleDataset(spec, dataset_of(handle), int(size), generator))

    return run


def seed_generator(b: Bind) -> Run:
    always = b.op == "AnonymousRandomSeedGenerator"

    def run(seed: Array, seed2: Array, *operands: Array) -> None:
        handle, deleter = operands[-2:]
        handle.fill(SeedGenerator(int(seed), int(seed2), reshuffles=always or bool(operands[0])))
        deleter.fill(None)

    return run


def cache(b: Bind) -> Run:
    spec = spec_of(b)

    def run(handle: Array, filename: Array, *more: Array) -> None:
        if filename.item():
            raise errors.Unimplemented("a cache of elements in a file", hint="leave the file's name empty")
        more[-1].fill(CacheDataset(spec, dataset_of(handle)))

    return run


def single_element(b: Bind) -> Run:
    spec = spec_of(b)

    def run(step: Step, handle: Array) -> list[Any]:
        return run_or_promise(step, _single(dataset_of(handle), spec, step), len(spec.types))

    return run


def _single(dataset: Dataset, spec: Spec, step: Step) -> Generator[list[AsyncValue], None, list[Array]]:
    iterator = dataset.iterator()
    element = yield from iterator.pull(step)
    if element is None:
        raise errors.InvalidArgument("Dataset was empty.")
    if (yield from iterator.pull(step)) is not None:
        raise errors.InvalidArgument("Dataset had more than one element.")
    check_element(spec, element)
    return [component.copy() for component in element]


def empty_handles(_: Bind) -> Run:
    def run(*outs: Array) -> None:
        for out in outs:
            out.fill(None)

    return run


OF_ONE_DATASET: Mapping[str, Make] = {  # ops whose further inputs are numbers
    "TakeDataset": TakeDataset, "SkipDataset": SkipDataset, "RepeatDataset": RepeatDataset,
    "ShardDataset": ShardDataset, "UnbatchDataset": UnbatchDataset, "BatchDataset": batch, "BatchDatasetV2": batch,
    "AssertCardinalityDataset": AssertCardinalityDataset, "ParallelBatchDataset": parallel_batch,
    "WindowDataset": WindowDataset,
}


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("TensorDataset", retains=("components",))(source(tensor))
    kernels.kernel("TensorSliceDataset", retains=("components",))(source(tensor_slices))
    kernels.kernel("RangeDataset")(source(numbers))
    kernels.kernel("ZipDataset")(zipped)
    kernels.kernel("DirectedInterleaveDataset")(directed_interleave)
    kernels.kernel("ConcatenateDataset")(from_datasets(ConcatenateDataset, 2))
    for op, make in OF_ONE_DATASET.items():
        kernels.kernel(op)(from_datasets(make))
    for op in ("PaddedBatchDataset", "PaddedBatchDatasetV2"):
        kernels.kernel(op, retains=("padding_values",))(padded_batch)
    for op in ("CacheDataset", "CacheDatasetV2"):
        kernels.kernel(op)(cache)
    for op in ("UnwrapDatasetVariant", "WrapDatasetVariant"):
        kernels.kernel(op)(lambda _: lambda handle, out: out.fill(dataset_of(handle)))
    for op in PASSED_ON:
        kernels.kernel(op)(passed_on)
    for op in ("ShuffleDataset", "ShuffleDatasetV2", "ShuffleDatasetV3"):
        kernels.kernel(op)(shuffled)
    for op in ("AnonymousSeedGenerator", "AnonymousRandomSeedGenerator"):
        kernels.kernel(op)(seed_generator)
    for op in ("AnonymousMemoryCache", "DummyMemoryCache", "DummySeedGenerator"):
        kernels.kernel(op)(empty_handles)
    for op in ("DeleteMemoryCache", "DeleteRandomSeedGenerator", "DeleteSeedGenerator"):
        kernels.kernel(op)(lambda _: lambda *_handles: None)
    kernels.kernel("DatasetCardinality")(lambda _: lambda handle, out: out.fill(dataset_of(handle).cardinality))
    kernels.kernel("DatasetToSingleElement", asynchronous=True, step=True)(single_element)
