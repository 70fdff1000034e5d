"""Kernels of tensor arrays. An array retains its tensors, or views of their rows, which must not change afterwards.

An array is mutable. The ops pass a number along, the flow, whose edges order them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from heald.api import Bind, DType, Kernels, Shape, errors, shape_text

from ..element_types import Array, zeros
from ..resources.handles import empty_cells
from ..resources.partial_shape import fits, is_known
from ..resources.tensor_array import TensorArray, array_to_read, array_to_write, check_shapes, tensor_array
from .const_inputs import integers
from .list_ops import parts_of, stack_tensors

Run = Callable[..., Any]


def make(b: Bind) -> Run:
    a = b.attrs
    name, dtype, shape = a["tensor_array_name"] or b.node, a["dtype"], a["element_shape"]

    def run(size: Array, handle: Array, flow: Array) -> None:
        if size < 0:
            raise errors.InvalidArgument("Size should be >= 0.")
        handle.fill(TensorArray(name, dtype, shape, empty_cells(size.item()), grows=a["dynamic_size"],
                                clears=a["clear_after_read"], is_uniform=a["identical_element_shapes"]))
        flow.fill(0)

    return run


def gradient(b: Bind) -> Run:
    """TensorArrayGradV3 and TensorArrayGradWithShape."""
    source, prefix = b.attrs["source"], tuple(integers(b, 2)) if len(b.inputs) > 2 else ()

    def run(handle: Array, flow: Array, *prefix_and_outs: Array) -> None:
        *_, out, out_flow = prefix_and_outs
        out.fill(tensor_array(handle).gradient(source, prefix))
        out_flow[...] = flow

    return run


def write(b: Bind) -> Run:
    dtype = b.attrs["T"]

    def run(handle: Array, index: Array, value: Array, flow: Array, out: Array) -> None:
        array_to_write(handle, dtype).write((index.item(),), (value,))
        out[...] = flow

    return run


def read(b: Bind) -> Run:
    dtype, output_shape = b.attrs["dtype"], b.outputs[0].shape

    def run(handle: Array, index: Array, _: Array) -> Array:
        tensor = array_to_read(handle, dtype).read_copy(index.item())
        if not fits(tensor.shape, output_shape):
            raise errors.InvalidArgument(f"the tensor at index {index} has shape {shape_text(tensor.shape)}, not "
                                         f"{shape_text(output_shape)}")
        return tensor

    return run


def size(_: Bind) -> Run:
    return lambda handle, flow, out: out.fill(tensor_array(handle).size())


def close(_: Bind) -> Run:
    return lambda handle: tensor_array(handle).close()


def scatter(b: Bind) -> Run:
    dtype = b.attrs["T"]

    def run(handle: Array, indices: Array, value: Array, flow: Array, out: Array) -> None:
        array, places = array_to_write(handle, dtype), indices.tolist()
        last, count = max(places, default=-1), array.size()
        if last >= count and not array.grows:
            raise errors.InvalidArgument(f"Max scatter index must be < array size ({last} vs. {count})")
        array.write(places, [value[i, ...] for i in range(len(value))])
        out[...] = flow

    return run


def split(b: Bind) -> Run:
    dtype = b.attrs["T"]

    def run(handle: Array, value: Array, lengths: Array, flow: Array, out: Array) -> None:
        array, parts = array_to_write(handle, dtype), parts_of(value, lengths.tolist())
        count = array.size()
        if count > len(parts) or (count < len(parts) and not array.grows):
            raise errors.InvalidArgument(f"TensorArray's size is not equal to the size of lengths ({count} vs. "
                                         f"{len(parts)}), and the TensorArray is not marked as dynamically resizeable")
        array.mark(len(parts))
        array.write(range(len(parts)), parts)
        out[...] = flow

    return run


def gather(b: Bind) -> Run:
    dtype, shape = b.attrs["dtype"], b.attrs["element_shape"]

    def run(handle: Array, indices: Array, _: Array) -> Array:
        array = array_to_read(handle, dtype)
        array.narrow(shape)
        tensors = array.read(indices.tolist())
        if not tensors:
            return _nothing(dtype, shape)
        _check_first(tensors[0].shape, shape, "element_shape")
        check_shapes([tensor.shape for tensor in tensors], "shape")
        return stack_tensors(tensors, tensors[0].shape, dtype)

    return run


def concat(b: Bind) -> Run:
    dtype, shape = b.attrs["dtype"], b.attrs["element_shape_except0"]

    def run(handle: Array, _: Array) -> tuple[Array, Array]:
        array = array_to_read(handle, dtype)
        tensors = array.read(range(array.size_to_join()))
        if not tensors:
            return _nothing(dtype, shape), np.zeros(0, np.int64)
        _check_vectors(tensors)
        _check_first(tensors[0].shape[1:], shape, "element_shape_except0")
        check_shapes([tensor.shape[1:] for tensor in tensors], "(excepting dimension 0) shape")
        return np.concatenate(tensors), np.array([len(tensor) for tensor in tensors], np.int64)

    return run


def _nothing(dtype: DType, shape: Shape) -> Array:
    """An array of 0 elements. Raises Unimplemented where the element shape is not fully known."""
    if not is_known(shape):
        raise errors.Unimplemented(f"TensorArray has size zero, but element shape {shape_text(shape)} is not fully "
                                   "defined. Currently only static shapes are supported for zero-size TensorArrays.")
    return zeros(dtype, (0, *shape))


def _check_vectors(tensors: list[Array]) -> None:
    for i, tensor in enumerate(tensors):
        if not tensor.ndim:
            raise errors.InvalidArgument(f"Concat saw a scalar shape at index {i} but requires at least vectors.  Did "
                                         "you mean to call pack?")


def _check_first(actual_dims: tuple[int, ...], shape: Shape, what: str) -> None:
    if not fits(actual_dims, shape):
        raise errors.InvalidArgument(f"TensorArray was passed {what} {shape_text(shape)} which does not match the "
                                     f"Tensor at index 0: {shape_text(actual_dims)}")


def register_kernels(kernels: Kernels) -> None:
    for op, bind in {"TensorArrayV3": make, "TensorArrayGradV3": gradient, "TensorArrayGradWithShape": gradient,
                     "TensorArraySizeV3": size, "TensorArrayCloseV3": close}.items():
        kernels.kernel(op)(bind)
    for op, bind in {"TensorArrayWriteV3": write, "TensorArrayScatterV3": scatter, "TensorArraySplitV3": split}.items():
        kernels.kernel(op, retains=("value",))(bind)
    for op, bind in {"TensorArrayReadV3": read, "TensorArrayGatherV3": gather, "TensorArrayConcatV3": concat}.items():
        kernels.kernel(op, allocates=True)(bind)
