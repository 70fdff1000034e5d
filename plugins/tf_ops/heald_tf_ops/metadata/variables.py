"""Metadata of ops on resource variables.

A handle carries the type and shape of its variable, if the op that made it gives them.
"""

from __future__ import annotations

import numpy as np
from heald.api import Attrs, DType, InvalidArgument, Shape, TensorMetadata, ValueInfo, constant_info, dtypes, info

from .indexed import check_policy, check_updates, gather_nd
from .rules import rule
from .shapes import dims_of_rank, same_shape
from .slicing import gather


def handle(dtype: DType, shape: Shape) -> ValueInfo:
    """Return a scalar handle to a resource that holds tensors of this type and shape."""
    return ValueInfo(TensorMetadata(dtypes.resource, ()), handle=(TensorMetadata(dtype, shape),))


def variable(x: ValueInfo, dtype: DType) -> ValueInfo:
    """Return a variable's metadata as far as its handle knows it.

    Raises InvalidArgument for a handle of another type.
    """
    dims_of_rank(x, 0, "the handle of a variable")
    if not x.handle:
        return info(dtype, None)
    if len(x.handle) != 1:
        raise InvalidArgument("the handle is of something else than a variable")
    (meta,) = x.handle
    if meta.dtype is not dtype:
        raise InvalidArgument(f"Trying to access a variable of {meta.dtype.name} as one of {dtype.name}")
    return ValueInfo(meta)


@rule("VarHandleOp", "_TemporaryVariable")
def var_handle(attrs: Attrs) -> ValueInfo:
    return handle(attrs["dtype"], attrs["shape"])


@rule("_ReferenceVariable")
def reference_variable(attrs: Attrs) -> ValueInfo:
    return handle(attrs["dtype"], None if attrs["reshaped"] else attrs["shape"])


@rule("ReadVariableOp", "_ReadReference")
def read(attrs: Attrs, x: ValueInfo) -> ValueInfo:
    return variable(x, attrs["dtype"])


@rule("VariableShape")
def shape_of(attrs: Attrs, x: ValueInfo) -> ValueInfo:
    """Return a vector, unlike Shape's never a constant before the run: a variable may have no value."""
    dims_of_rank(x, 0, "the handle of a variable")
    shape = x.handle[0].shape if x.handle and len(x.handle) == 1 else None
    return ValueInfo(TensorMetadata(attrs["out_type"], (None if shape is None else len(shape),)), dims=shape)


@rule("VarIsInitializedOp")
def is_initialized(_: Attrs, x: ValueInfo) -> ValueInfo:
    dims_of_rank(x, 0, "the handle of a variable")
    return info(dtypes.bool_, ())


@rule("DestroyResourceOp", "DisableCopyOnRead")
def destroy(_: Attrs, x: ValueInfo) -> tuple[()]:
    dims_of_rank(x, 0, "the handle of a resource")
    return ()


@rule("AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp")
def assign(attrs: Attrs, x: ValueInfo, value: ValueInfo) -> tuple[()]:
    same_shape((variable(x, attrs["dtype"]).shape, value.shape), "a variable and what it is given must agree in shape")
    return ()


@rule("ResourceCountUpTo")
def count_up_to(attrs: Attrs, x: ValueInfo) -> ValueInfo:
    same_shape((variable(x, attrs["T"]).shape, ()), "what counts must be a scalar")
    return info(attrs["T"], ())


@rule("ResourceGather")
def resource_gather(attrs: Attrs, x: ValueInfo, indices: ValueInfo) -> ValueInfo:
    batch = constant_info(np.array(attrs["batch_dims"], np.int64))
    return gather(attrs, variable(x, attrs["dtype"]), indices, batch)


@rule(
    "ResourceScatterAdd", "ResourceScatterDiv", "ResourceScatterMax", "ResourceScatterMin", "ResourceScatterMul",
    "ResourceScatterSub", "ResourceScatterUpdate",
)
def scatter(attrs: Attrs, x: ValueInfo, indices: ValueInfo, updates: ValueInfo) -> tuple[()]:
    """A scalar updates all rows alike; other updates have a row for each index."""
    target = variable(x, attrs["dtype"]).shape
    if target == ():
        raise InvalidArgument("a scalar variable has no rows to scatter to")
    if target is not None and indices.shape is not None and updates.shape != ():
        same_shape((updates.shape, (*indices.shape, *target[1:])),
                   "the shape of indices, then that of a row, must be the shape of updates")
    return ()


@rule("ResourceScatterNdAdd", "ResourceScatterNdMax", "ResourceScatterNdMin", "ResourceScatterNdSub",
      "ResourceScatterNdUpdate")
def scatter_nd(attrs: Attrs, x: ValueInfo, indices: ValueInfo, updates: ValueInfo) -> tuple[()]:
    check_policy(attrs)
    check_updates(indices.shape, updates.shape, variable(x, attrs["T"]).shape)
    return ()


@rule("ResourceGatherNd")
def resource_gather_nd(attrs: Attrs, x: ValueInfo, indices: ValueInfo) -> ValueInfo:
    return gather_nd({"bad_indices_policy": ""}, variable(x, attrs["dtype"]), indices)
