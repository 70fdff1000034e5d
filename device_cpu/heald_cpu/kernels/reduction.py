"""Kernels that reduce along axes, and softmax, which normalises along the last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from heald.api import Bind, DType, Kernels, geometry

from ..element_types import FLOATS, NARROW, NUMBERS, REAL, Array, through_float32

Function = Callable[..., Any]  # of inputs and output
BindFunction = Callable[[Bind], Function]

# reduce(x, axis, dtype, out, keepdims)
add: Function = np.add.reduce
largest: Function = np.maximum.reduce
SUMS: dict[str, Function] = {"Prod": np.multiply.reduce, "Sum": add}
LOGICAL: dict[str, Function] = {"All": np.logical_and.reduce, "Any": np.logical_or.reduce}
EXTREMES: dict[str, tuple[Function, str]] = {  # op: function, the limit that loses against every number
    "Max": (largest, "min"),
    "Min": (np.minimum.reduce, "max"),
}
ARG_EXTREMES = {  # op: method, function that prefers a number to NaN, the limit that loses, output types
    "ArgMax": (np.ndarray.argmax, np.fmax, "min", ("int16", "uint16", "int32", "int64")),
    "ArgMin": (np.ndarray.argmin, np.fmin, "max", ("int32", "int64")),
}
WIDEST = {"i": np.dtype(np.int64), "u": np.dtype(np.uint64)}  # by kind
MOST_SCANNED_FOR_NAN = 4096  # elements up to which one maximum takes less time than a look at each found place


def register_kernels(kernels: Kernels) -> None:
    for op, reduce in SUMS.items():
        kernels.kernel(op, dtypes={"T": NUMBERS})(total(reduce))
    for op, reduce in LOGICAL.items():
        kernels.kernel(op)(total(reduce))
    for op, (reduce, loser) in EXTREMES.items():
        kernels.kernel(op, dtypes={"T": REAL})(extreme(reduce, loser))
    for op, (find, number, loser, indices) in ARG_EXTREMES.items():
        types = {"T": (*REAL, "bool"), "output_type": indices}
        kernels.kernel(op, dtypes=types)(arg_extreme(find, number, loser))
    kernels.kernel("Mean", dtypes={"T": NUMBERS})(mean)
    kernels.kernel("EuclideanNorm", dtypes={"T": NUMBERS})(euclidean_norm)
    kernels.kernel("L2Loss", dtypes={"T": FLOATS})(l2_loss)
    kernels.kernel("Softmax", dtypes={"T": FLOATS}, inplace={0: 0})(normalisation(softmax))
    kernels.kernel("LogSoftmax", dtypes={"T": FLOATS}, inplace={0: 0})(normalisation(log_softmax))


def total(reduce: Function) -> BindFunction:
    def bind(b: Bind) -> Function:
        axes, keep, within = _axes(b), b.attrs["keep_dims"], _at_least_float32(b.outputs[0].dtype)
        return lambda x, _, out: reduce(x, axes, within, out, keep)

    return bind


def extreme(reduce: Function, loser: str) -> BindFunction:
    def bind(b: Bind) -> Function:
        axes, keep, of_nothing = _axes(b), b.attrs["keep_dims"], _limit(b.outputs[0].dtype, loser)
        if not b.inputs[0].size:
            return lambda _x, _, out: out.fill(of_nothing)
        return lambda x, _, out: reduce(x, axes, None, out, keep)

    return bind


def mean(b: Bind) -> Function:
    x, dtype = b.inputs[0].meta, b.outputs[0].dtype
    axes, keep = _axes(b), b.attrs["keep_dims"]
    if not x.size:
        of_nothing = np.nan if dtype.kind == "f" else 0
        return lambda _x, _, out: out.fill(of_nothing)
    within = WIDEST.get(dtype.kind, _at_least_float32(dtype))
    count = np.array(np.prod([x.dims[axis] for axis in axes], dtype=np.int64), within)
    divide = np.divide if dtype.kind in "fc" else _truncating_divide

    def run(x: Array, _: Array, out: Array) -> None:
        np.divide(add(x, axes, within, out, keep), count, out)

    def run_wider(x: Array, _: Array, out: Array) -> None:
        out[...] = divide(add(x, axes, within, None, keep), count)

    return run if divide is np.divide and within == dtype.numpy else run_wider


def _truncating_divide(x: Array, y: Array) -> Any:
    return (x - np.fmod(x, y)) // y


def euclidean_norm(b: Bind) -> Function:
    """Integers are squared and summed with wrap-around."""
    dtype = b.outputs[0].dtype
    axes, keep, within = _axes(b), b.attrs["keep_dims"], _at_least_float32(dtype)
    square = _squared_magnitude if dtype.kind == "c" else np.square

    def run(x: Array, _: Array, out: Array) -> None:
        total = add(square(x.astype(within, copy=False)), axes, within, None, keep)
        np.copyto(out, np.sqrt(total), casting="unsafe")

    return run


def _squared_magnitude(x: Array) -> Any:
    return x * x.conj()


def l2_loss(b: Bind) -> Function:
    within = _at_least_float32(b.outputs[0].dtype)

    def run(x: Array, out: Array) -> None:
        flat = x.astype(within, copy=False).reshape(-1)
        out[...] = add(np.square(flat), 0, within) / 2

    return run


def arg_extreme(find: Function, number: np.ufunc, loser: str) -> BindFunction:
    def bind(b: Bind) -> Function:
        dtype, rank, dimension = b.inputs[0].dtype, b.inputs[0].rank, b.inputs[1].value
        assert rank is not None
        assert dimension is not None
        axis = int(dimension) % rank
        least = np.array(_limit(dtype, loser), dtype.numpy) if dtype.kind == "f" else None

        def run(x: Array, _: Array, out: Array) -> None:
            np.copyto(out, find(x, axis), casting="unsafe")

        def run_beside_nan(x: Array, _: Array, out: Array) -> None:
            positions = find(x, axis)  # the first NaN, where there is one
            if 0 < x.size <= MOST_SCANNED_FOR_NAN and not np.isnan(np.maximum.reduce(x, None)):
                np.copyto(out, positions, casting="unsafe")
                return
            if np.isnan(np.take_along_axis(x, np.expand_dims(positions, axis), axis)).any():
                positions = find(number(x, least), axis)
            np.copyto(out, positions, casting="unsafe")

        return run if least is None else run_beside_nan

    return bind


def softmax(x: Array, out: Array) -> None:
    np.subtract(x, largest(x, -1, None, None, True), out)
    np.exp(out, out)
    np.divide(out, add(out, -1, None, None, True), out)


def log_softmax(x: Array, out: Array) -> None:
    np.subtract(x, largest(x, -1, None, None, True), out)
    np.subtract(out, np.log(add(np.exp(out), -1, None, None, True)), out)


def normalisation(function: Callable[[Array, Array], None]) -> BindFunction:
    def bind(b: Bind) -> Function:
        if not b.outputs[0].size:
            return lambda _x, _out: None
        return through_float32(function) if b.outputs[0].dtype.name in NARROW else function

    return bind


def _axes(b: Bind) -> tuple[int, ...]:
    rank, axes = b.inputs[0].rank, b.inputs[1].value
    assert rank is not None
    assert axes is not None
    return geometry.reduction_axes(rank, [int(axis) for axis in axes.flat])


def _at_least_float32(dtype: DType) -> np.dtype[Any]:
    return np.dtype(np.float32) if dtype.name in NARROW else dtype.numpy


def _limit(dtype: DType, which: str) -> Any:
    if dtype.kind in "iu":
        return getattr(np.iinfo(dtype.numpy), which)
    return {"min": -np.inf, "max": np.inf}[which]
