"""Host kernels of the ops on datasets that call functions of the graph.

The first argument is the source. `trailing` numbers come last. The values between them are the state and the captured
values of the function. A function with effects returns a chain behind its results (`chain`), and so does the call.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from typing import Annotated, Any

from heald.api import (
    I1,
    AsyncValue,
    Callee,
    DType,
    HostKernels,
    HostType,
    Shape,
    Step,
    String,
    Tensor,
    errors,
    run_or_promise,
)

from ..element_types import Array
from ..resources.handles import to_handle
from .calling import (
    ElementFunction,
    FilterDataset,
    InterleaveDataset,
    MapDataset,
    ScanDataset,
    TakeWhileDataset,
    reduce_dataset,
)
from .interface import UNKNOWN, Dataset, Spec, check_element, dataset_of
from .iterator_resource import IteratorResource


def _are_types(value: Any) -> bool:
    return isinstance(value, tuple | list) and all(isinstance(dtype, DType) for dtype in value)


def _are_shapes(value: Any) -> bool:
    return isinstance(value, tuple | list) and all(shape is None or isinstance(shape, tuple | list) for shape in value)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TRAILING


MOST_TRAILING = 5  # the numbers of a parallel interleave
Types = Annotated[Sequence[DType], HostType("list of types", _are_types)]
Shapes = Annotated[Sequence[Shape], HostType("list of shapes", _are_shapes)]
Count = Annotated[int, HostType(f"number up to {MOST_TRAILING}", _is_count)]
AUTOTUNE = -1
NUMBERS_OF_A_SERIAL_INTERLEAVE = 2  # parallel ones have more, the number of calls last
Results = Generator[list[AsyncValue], None, list[Any]]


def register(kernels: HostKernels) -> None:
    kernels.kernel("dataset.map")(make_map)
    kernels.kernel("dataset.scan")(make_scan)
    kernels.kernel("dataset.filter")(make_filter)
    kernels.kernel("dataset.take_while")(make_take_while)
    kernels.kernel("dataset.flat_map")(make_flat_map)
    kernels.kernel("dataset.interleave")(make_interleave)
    kernels.kernel("dataset.reduce", step=True)(run_reduction)
    kernels.kernel("dataset.one_shot_iterator", step=True)(make_one_shot_iterator)


def make_map(
    source: Tensor, *values: Tensor, f: Callee, element_types: Types, output_types: Types, output_shapes: Shapes,
    preserve_cardinality: I1 = False, trailing: Count = 0, chain: I1 = False
) -> list[Any]:
    """Return the dataset of a function's results."""
    dataset, function = _function(f, source, element_types, values[: len(values) - trailing], chain)
    if trailing and values:
        _check_parallel_calls(values[-1])
    spec = _spec(output_types, output_shapes)
    return _dataset(MapDataset(spec, dataset, function, keeps_cardinality=preserve_cardinality), chain)


def make_scan(
    source: Tensor, *values: Tensor, f: Callee, element_types: Types, output_types: Types, output_shapes: Shapes,
    Tstate: Types, preserve_cardinality: I1 = False, chain: I1 = False,  # noqa: N803
) -> list[Any]:
    """Return the dataset of a function's results behind its state."""
    count = len(Tstate)
    dataset, function = _function(f, source, element_types, values[count:], chain)
    return _dataset(ScanDataset(_spec(output_types, output_shapes), dataset, function, values[:count],
                                keeps_cardinality=preserve_cardinality), chain)


def make_filter(
    source: Tensor, *values: Tensor, predicate: Callee, element_types: Types, output_types: Types,
    output_shapes: Shapes, chain: I1 = False
) -> list[Any]:
    """Return the dataset of the elements for which a function is true."""
    dataset, function = _function(predicate, source, element_types, values, chain)
    return _dataset(FilterDataset(_spec(output_types, output_shapes), dataset, function, UNKNOWN), chain)


def make_take_while(
    source: Tensor, *values: Tensor, predicate: Callee, element_types: Types, output_types: Types,
    output_shapes: Shapes, chain: I1 = False
) -> list[Any]:
    """Return the dataset of the elements in front of the first one for which a function is false."""
    dataset, function = _function(predicate, source, element_types, values, chain)
    return _dataset(TakeWhileDataset(_spec(output_types, output_shapes), dataset, function, UNKNOWN), chain)


def make_flat_map(
    source: Tensor, *values: Tensor, f: Callee, element_types: Types, output_types: Types, output_shapes: Shapes,
    chain: I1 = False
) -> list[Any]:
    """Return the elements of the datasets that a function returns, one dataset after the other."""
    dataset, function = _function(f, source, element_types, values, chain)
    return _dataset(InterleaveDataset(_spec(output_types, output_shapes), dataset, function, 1, 1), chain)


def make_interleave(
    source: Tensor, *values: Tensor, f: Callee, element_types: Types, output_types: Types, output_shapes: Shapes,
    trailing: Count = 2, chain: I1 = False
) -> list[Any]:
    """Return the elements of the datasets that a function returns, of several datasets in turn.

    The first two trailing numbers are the length of the cycle and of a block.
    """
    captured = len(values) - trailing
    if captured < 0 or trailing < NUMBERS_OF_A_SERIAL_INTERLEAVE:
        raise errors.InvalidArgument(f"an interleave of {trailing} numbers has {len(values)} values")
    cycle, block = (_scalar(value, name) for value, name in
                    zip(values[captured:], ("cycle_length", "block_length"), strict=False))
    if trailing > NUMBERS_OF_A_SERIAL_INTERLEAVE:
        _check_parallel_calls(values[-1], cycle)
    if cycle == AUTOTUNE:
        cycle = os.cpu_count() or 1
    dataset, function = _function(f, source, element_types, values[:captured], chain)
    return _dataset(InterleaveDataset(_spec(output_types, output_shapes), dataset, function, cycle, block), chain)


def _function(
    callee: Callee, source: Any, element_types: Sequence[DType], captured: Sequence[Array], chain: bool
) -> tuple[Dataset, ElementFunction]:
    """Return the dataset in front, and the function of its elements. Raises InvalidArgument for other types of them."""
    dataset = dataset_of(source)
    if dataset.spec.types != tuple(element_types):
        raise errors.InvalidArgument(f"function '{callee.name}' takes elements of {_names(element_types)}, its dataset "
                                     f"has {_names(dataset.spec.types)}")
    return dataset, ElementFunction(callee, tuple(captured), dataset.spec, chain)


def _spec(types: Sequence[DType], shapes: Sequence[Shape]) -> Spec:
    if len(types) != len(shapes):
        raise errors.InvalidArgument(f"{len(types)} types of components, but {len(shapes)} shapes")
    return Spec(tuple(types), tuple(shapes))


def _names(types: Sequence[DType]) -> str:
    return f"({', '.join(dtype.name for dtype in types)})"


def _check_parallel_calls(value: Array, cycle: int = AUTOTUNE) -> None:
    """Raises InvalidArgument for a number of calls that TensorFlow refuses. It has no other effect."""
    calls = _scalar(value, "num_parallel_calls")
    if calls <= 0 and calls != AUTOTUNE:
        raise errors.InvalidArgument("num_parallel_calls must be greater than zero.")
    if calls > cycle > 0:
        raise errors.InvalidArgument(
            "If `cycle_length` is set to a fixed value, `num_parallel_calls` must be either `tf.data.AUTOTUNE` or a "
            f"value less than or equal to `cycle_length`. However, `num_parallel_calls` is {calls} and `cycle_length` "
            f"is {cycle}.")


def _scalar(value: Array, name: str) -> int:
    if value.shape:
        raise errors.InvalidArgument(f"{name} must be a scalar")
    return int(value)


def _dataset(dataset: Dataset, chain: bool) -> list[Any]:
    return [to_handle(dataset)] + [None] * chain


def run_reduction(
    step: Step, source: Tensor, *values: Tensor, f: Callee, element_types: Types, output_types: Types,
    output_shapes: Shapes, Tstate: Types, chain: I1 = False,  # noqa: N803
) -> list[Any]:
    """Return the state after a function was called with it and each element."""
    count = len(Tstate)
    dataset, function = _function(f, source, element_types, values[count:], chain)
    turns = _reduce(step, dataset, values[:count], function, _spec(output_types, output_shapes))
    return run_or_promise(step, turns, len(output_types) + chain)


def _reduce(step: Step, source: Dataset, state: Sequence[Array], function: ElementFunction, spec: Spec) -> Results:
    results = yield from reduce_dataset(step, source, state, function)
    check_element(spec, results)
    return results + [None] * function.has_effects


def make_one_shot_iterator(
    step: Step, *, dataset_factory: Callee, output_types: Types, output_shapes: Shapes, container: String,
    shared_name: String, name: String, chain: I1 = False
) -> list[Any]:
    """Return the session's iterator over the dataset that a function returns, which is called once."""
    owner = f"{container!r}/{shared_name!r}" if shared_name else name
    spec = _spec(output_types, output_shapes)
    resource = step.resources.get(f"one-shot iterator of {owner}", lambda: OneShotIterator(spec), container)
    function = ElementFunction(dataset_factory, (), _spec((), ()), chain)
    return run_or_promise(step, _start(step, resource, function), 1 + chain)


class OneShotIterator(IteratorResource):
    """An iterator that starts at its first use."""

    is_started = False


def _start(step: Step, resource: OneShotIterator, function: ElementFunction) -> Results:
    if not resource.is_started:
        (handle,) = yield from function.call(step, ())
        dataset = dataset_of(handle)
        if not resource.is_started:  # another run may have started it meanwhile
            resource.start(dataset)
            resource.is_started = True
    return [to_handle(resource)] + [None] * function.has_effects
