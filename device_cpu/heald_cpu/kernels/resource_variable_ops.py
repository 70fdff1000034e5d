"""Kernels of resource variables. A variable's shape is checked at each use: it is not known earlier."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np
from heald.api import Bind, Kernels, errors

from ..element_types import NUMBERS, REAL, Array, zeros
from ..resources.handles import from_handle
from ..resources.variable import ReferenceVariable, Variable, reference_variable_of, variable, variable_of
from .index_checks import check_inside
from .indexed import Rows, Update, assign_rows, extreme_rows, scatter_into

Run = Callable[..., Any]
TENSOR_SCATTER = (*NUMBERS, "bool", "string")


def var_handle(b: Bind) -> Run:
    variable = variable_of(b)
    return lambda out: out.fill(variable)


def reference_handle(b: Bind) -> Run:
    variable = reference_variable_of(b)
    return lambda out: out.fill(variable)


def temporary_variable(b: Bind) -> Run:
    """A new variable in each call; it dies with its handle. TensorFlow leaves its elements undefined, here they are
    zeros."""
    name, shape, dtype, ask = b.attrs["var_name"], b.attrs["shape"], b.attrs["dtype"], b.ask
    if shape is None or None in shape:
        raise errors.InvalidArgument(f"the temporary variable '{name}' has no static shape")

    def run(out: Array) -> None:
        ask(prod(shape) * (dtype.itemsize or 8), f"the temporary variable '{name}'")
        variable = ReferenceVariable(name, None)
        variable.assign(zeros(dtype, shape))
        out.fill(variable)

    return run


def read(b: Bind) -> Run:
    dtype = b.attrs["dtype"].numpy
    return lambda handle: variable(handle).read(dtype)


def shape_of(b: Bind) -> Run:
    dtype = b.outputs[0].dtype.numpy
    return lambda handle: np.array(variable(handle).value().shape, dtype)


def is_initialized(_: Bind) -> Run:
    return lambda handle, out: out.fill(variable(handle).is_initialized)


def destroy(b: Bind) -> Run:
    ignores = b.attrs["ignore_lookup_error"]

    def run(handle: Array) -> None:
        variable = from_handle(handle, Variable)
        if variable.is_initialized or not ignores:
            variable.delete()

    return run


def leave(_: Bind) -> Run:
    """DisableCopyOnRead is a hint for faster reads. Reads are copies here in any case."""

    def run(handle: Array) -> None:
        from_handle(handle, Variable)

    return run


def assign(b: Bind) -> Run:
    validate = b.attrs["validate_shape"]
    return lambda handle, value: variable(handle).assign(value, validate_shape=validate)


def assign_with(ufunc: np.ufunc) -> Callable[[Bind], Run]:
    def run(handle: Array, value: Array) -> None:
        def change(old: Array) -> Array:
            check_shapes(old, value)
            new: Array = ufunc(old, value, dtype=old.dtype)
            return new

        variable(handle).change(change)

    return lambda _: run


def check_shapes(old: Array, value: Array) -> None:
    """Raises InvalidArgument unless an update has the variable's shape."""
    if old.shape != value.shape:
        raise errors.InvalidArgument(f"Cannot update variable with shape {list(old.shape)} using a Tensor with shape "
                                     f"{list(value.shape)}, shapes must be equal.")


def count_up_to(b: Bind) -> Run:
    """ResourceCountUpTo, which returns the value before the increment."""
    limit = b.attrs["limit"]

    def run(handle: Array, out: Array) -> None:
        def change(old: Array) -> Array:
            check_shapes(old, out)
            if old >= limit:
                raise errors.OutOfRange(f"Reached limit of {limit}")
            out[...] = old
            return np.array(old + 1)

        variable(handle).change(change)

    return run


def gather(b: Bind) -> Run:
    batch = b.attrs["batch_dims"]

    def run(handle: Array, indices: Array) -> Array:
        rows = variable(handle).value()
        dims = batch % (indices.ndim + 1) if batch < 0 else batch
        if rows.ndim <= dims:
            raise errors.InvalidArgument(f"batch_dims ({batch}) must be less than rank(params) ({rows.ndim}).")
        check_inside(indices, rows.shape[dims])
        if not dims:
            return np.asarray(rows.take(indices, 0))
        lead = np.ix_(*map(np.arange, indices.shape[:dims]))
        lead_indices = [i.reshape(*i.shape, *(1,) * (indices.ndim - i.ndim)) for i in lead]
        gathered: Array = rows[(*lead_indices, indices)]
        return gathered

    return run


def gather_nd(_: Bind) -> Run:
    def run(handle: Array, indices: Array) -> Array:
        params = variable(handle).value()
        _check_depth(params, indices.shape[-1])
        rows = Rows(params.shape, indices.shape[-1], skips=False)
        numbers, _ = rows.row_numbers(indices)
        gathered: Array = params.reshape(rows.matrix)[numbers]
        return gathered.reshape(*indices.shape[:-1], *params.shape[rows.depth :])

    return run


def scatter(update: Update) -> Callable[[Bind], Run]:
    """The bind function of an update of rows. A scalar update applies to all of them."""

    def run(handle: Array, indices: Array, updates: Array) -> None:
        def change(old: Array) -> Array:
            _check_depth(old, 1)
            row = old.shape[1:]
            if updates.ndim:
                _check_updates(old, indices, updates, (*indices.shape, *row))
            check_inside(indices, len(old))
            new = old.copy()
            news = np.broadcast_to(updates, (*indices.shape, *row)).reshape(indices.size, *row)
            update(new, indices.reshape(-1), news)
            return new

        variable(handle).change(change)

    return lambda _: run


def scatter_nd(update: Update) -> Callable[[Bind], Run]:
    def bind(b: Bind) -> Run:
        skips = b.attrs["bad_indices_policy"] == "IGNORE"

        def run(handle: Array, indices: Array, updates: Array) -> None:
            def change(old: Array) -> Array:
                depth = indices.shape[-1]
                _check_depth(old, depth)
                _check_updates(old, indices, updates, (*indices.shape[:-1], *old.shape[depth:]))
                new = old.copy()
                scatter_into(Rows(old.shape, depth, skips), update)(indices, updates, new)
                return new

            variable(handle).change(change)

        return run

    return bind


def _check_depth(params: Array, depth: int) -> None:
    if depth > params.ndim:
        raise errors.InvalidArgument(f"index innermost dimension length must be <= params rank; saw: {depth} vs. "
                                     f"{params.ndim}")


def _check_updates(old: Array, indices: Array, updates: Array, expected_dims: tuple[int, ...]) -> None:
    if updates.shape != expected_dims:
        raise errors.InvalidArgument(f"updates must have shape {list(expected_dims)} for indices of shape "
                                     f"{list(indices.shape)} into {list(old.shape)}, given {list(updates.shape)}")


def divide_rows(matrix: Array, numbers: Array, news: Array) -> None:
    """Divide rows in place; integers round towards zero. Raises InvalidArgument for integer division by zero."""
    if matrix.dtype.kind not in "iu":
        np.divide.at(matrix, numbers, news)
        return
    if not news.all():
        raise errors.InvalidArgument("updates must not contain 0")
    for number, new in zip(numbers, news, strict=True):  # a row may occur several times
        row = matrix[number]
        quotient = row // new
        matrix[number] = quotient + ((quotient < 0) & (quotient * new != row))


# suffix of the op, update of rows, dtypes
UPDATES: tuple[tuple[str, Update, tuple[str, ...]], ...] = (
    ("Add", np.add.at, NUMBERS), ("Sub", np.subtract.at, NUMBERS), ("Mul", np.multiply.at, NUMBERS),
    ("Div", divide_rows, NUMBERS), ("Max", partial(extreme_rows, np.fmax), REAL),
    ("Min", partial(extreme_rows, np.fmin), REAL), ("Update", assign_rows, TENSOR_SCATTER),
)


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("VarHandleOp")(var_handle)
    kernels.kernel("_ReferenceVariable")(reference_handle)
    kernels.kernel("_TemporaryVariable")(temporary_variable)
    for op, bind in {"ReadVariableOp": read, "_ReadReference": read, "VariableShape": shape_of,
                     "ResourceGather": gather, "ResourceGatherNd": gather_nd}.items():
        kernels.kernel(op, allocates=True)(bind)
    for op, bind in {"VarIsInitializedOp": is_initialized, "DestroyResourceOp": destroy, "DisableCopyOnRead": leave,
                     "AssignVariableOp": assign, "ResourceCountUpTo": count_up_to}.items():
        kernels.kernel(op)(bind)
    kernels.kernel("AssignAddVariableOp", dtypes={"dtype": NUMBERS})(assign_with(np.add))
    kernels.kernel("AssignSubVariableOp", dtypes={"dtype": NUMBERS})(assign_with(np.subtract))
    for name, update, types in UPDATES:
        kernels.kernel(f"ResourceScatter{name}", dtypes={"dtype": types})(scatter(update))
        if name not in ("Mul", "Div"):
            more = ("bool",) if name == "Add" else ()
            kernels.kernel(f"ResourceScatterNd{name}", dtypes={"T": (*types, *more)})(scatter_nd(update))
