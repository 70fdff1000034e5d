"""Metadata of ops on arrays of tensors.

An array's handle carries the type and shape of its elements if they all have the shape given at the array's creation.
`flow` is a number that no op reads: it orders the ops on an array.
"""

from __future__ import annotations

from heald.api import Attrs, DType, Shape, TensorMetadata, ValueInfo, dtypes, info

from .rules import rule
from .shapes import dims_of_rank, same_dim, same_shape, shape_in
from .tensor_lists import rows
from .variables import handle

AGREE = "the shapes of an array's elements must agree"


def array_element_shape(x: ValueInfo) -> Shape:
    """Return the elements' shape as far as the array's handle knows it."""
    dims_of_rank(x, 0, "the handle of an array")
    return x.handle[0].shape if x.handle else None


def flow_of(flow: ValueInfo) -> ValueInfo:
    """A flow whose shape is unknown, such as that of a loop's variable, is a scalar: every array begins with one."""
    return info(dtypes.float32, () if flow.shape is None else flow.shape)


def unknown_handle() -> ValueInfo:
    return info(dtypes.resource, ())


@rule("TensorArrayV3")
def tensor_array(attrs: Attrs, size: ValueInfo) -> tuple[ValueInfo, ValueInfo]:
    dims_of_rank(size, 0, "size")
    shape = attrs["element_shape"]
    is_shape_of_all = attrs["identical_element_shapes"] or TensorMetadata(attrs["dtype"], shape).is_static
    return handle(attrs["dtype"], shape) if is_shape_of_all else unknown_handle(), info(dtypes.float32, ())


@rule("TensorArrayGradV3")
def tensor_array_grad(_: Attrs, x: ValueInfo, flow: ValueInfo) -> tuple[ValueInfo, ValueInfo]:
    return _gradient(x, array_element_shape(x), flow)


@rule("TensorArrayGradWithShape", values=("shape_to_prepend",))
def tensor_array_grad_with_shape(
    _: Attrs, x: ValueInfo, flow: ValueInfo, prefix: ValueInfo
) -> tuple[ValueInfo, ValueInfo]:
    first, shape = shape_in(prefix, "shape_to_prepend"), array_element_shape(x)
    return _gradient(x, None if first is None or shape is None else (*first, *shape), flow)


def _gradient(x: ValueInfo, shape: Shape, flow: ValueInfo) -> tuple[ValueInfo, ValueInfo]:
    return handle(x.handle[0].dtype, shape) if x.handle else unknown_handle(), flow_of(flow)


@rule("TensorArrayWriteV3")
def tensor_array_write(_: Attrs, x: ValueInfo, index: ValueInfo, value: ValueInfo, flow: ValueInfo) -> ValueInfo:
    dims_of_rank(index, 0, "index")
    same_shape((array_element_shape(x), value.shape), AGREE)
    return flow_of(flow)


@rule("TensorArrayScatterV3")
def tensor_array_scatter(_: Attrs, x: ValueInfo, indices: ValueInfo, value: ValueInfo, flow: ValueInfo) -> ValueInfo:
    (count,), value_dims = dims_of_rank(indices, 1, "indices"), rows(value, "value")
    if value_dims is not None:
        same_dim(value_dims[0], count, "the number of rows and that of indices")
        same_shape((array_element_shape(x), value_dims[1:]), AGREE)
    return flow_of(flow)


@rule("TensorArraySplitV3")
def tensor_array_split(_: Attrs, x: ValueInfo, value: ValueInfo, lengths: ValueInfo, flow: ValueInfo) -> ValueInfo:
    array_element_shape(x)
    rows(value, "value")
    dims_of_rank(lengths, 1, "lengths")
    return flow_of(flow)


@rule("TensorArrayReadV3")
def tensor_array_read(attrs: Attrs, x: ValueInfo, index: ValueInfo, _: ValueInfo) -> ValueInfo:
    dims_of_rank(index, 0, "index")
    return info(attrs["dtype"], array_element_shape(x))


@rule("TensorArrayGatherV3")
def tensor_array_gather(attrs: Attrs, x: ValueInfo, indices: ValueInfo, _: ValueInfo) -> ValueInfo:
    (count,) = dims_of_rank(indices, 1, "indices")
    shape = same_shape((array_element_shape(x), attrs["element_shape"]), AGREE)
    return info(attrs["dtype"], None if shape is None else (count, *shape))


@rule("TensorArrayConcatV3")
def tensor_array_concat(attrs: Attrs, x: ValueInfo, _: ValueInfo) -> tuple[ValueInfo, ValueInfo]:
    array_element_shape(x)
    return _concatenation(attrs["dtype"], attrs["element_shape_except0"]), info(dtypes.int64, (None,))


def _concatenation(dtype: DType, row_shape: Shape) -> ValueInfo:
    return info(dtype, None if row_shape is None else (None, *row_shape))


@rule("TensorArraySizeV3")
def tensor_array_size(_: Attrs, x: ValueInfo, __: ValueInfo) -> ValueInfo:
    array_element_shape(x)
    return info(dtypes.int32, ())


@rule("TensorArrayCloseV3")
def tensor_array_close(_: Attrs, x: ValueInfo) -> tuple[()]:
    array_element_shape(x)
    return ()
