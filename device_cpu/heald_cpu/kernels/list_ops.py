"""Kernels of tensor lists. A list retains its tensors, or views of their rows, which must not change afterwards. Reads
return copies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from heald.api import Bind, DType, Kernels, Shape, errors, shape_text

from ..element_types import Array, zeros
from ..resources.handles import check_cell_count, empty_cells, to_handle
from ..resources.partial_shape import agreed_shape, fits, is_known, shape_of
from ..resources.tensor_list import Cell, TensorList, tensor_list

Run = Callable[..., Any]


def empty(b: Bind) -> Run:
    dtype, shape = b.attrs["element_dtype"], shape_of(b, 0)
    return lambda _, max_elements, out: out.fill(TensorList(dtype, shape, [], max_elements.item()))


def reserve(b: Bind) -> Run:
    dtype, shape = b.attrs["element_dtype"], shape_of(b, 0)

    def run(_: Array, count: Array, out: Array) -> None:
        if count < 0:
            raise errors.InvalidArgument(f"The num_elements to reserve must be a non negative number, but got {count}")
        check_cell_count(count.item())
        out.fill(TensorList(dtype, shape, [], count=count.item(), filled=0))

    return run


def from_tensor(b: Bind) -> Run:
    dtype, shape = b.attrs["element_dtype"], shape_of(b, 1)
    return lambda tensor, _, out: out.fill(TensorList(dtype, shape, rows_of(tensor)))


def rows_of(tensor: Array) -> list[Cell]:
    """Views of a tensor's rows, scalars for a vector."""
    return [tensor[i, ...] for i in range(len(tensor))]


def split(b: Bind) -> Run:
    dtype, shape = b.attrs["element_dtype"], shape_of(b, 1)

    def run(tensor: Array, _: Array, lengths: Array, out: Array) -> None:
        out.fill(TensorList(dtype, shape, list(parts_of(tensor, lengths.tolist()))))

    return run


def parts_of(tensor: Array, lengths: Sequence[int]) -> list[Array]:
    """Views of `lengths` rows each. Raises InvalidArgument unless they cover the tensor exactly."""
    if lengths and min(lengths) < 0:
        raise errors.InvalidArgument(f"Invalid value in lengths: {min(lengths)}")
    ends = np.cumsum([0, *lengths]).tolist()
    for start, end in pairwise(ends):
        if end > len(tensor):
            raise errors.InvalidArgument(f"Attempting to slice [{start}, {end}] from tensor with length {len(tensor)}")
    if ends[-1] != len(tensor):
        raise errors.InvalidArgument(f"Unused values in tensor. Length of tensor: {len(tensor)} Values used: "
                                     f"{ends[-1]}")
    return [tensor[start:end] for start, end in pairwise(ends)]


def scatter(b: Bind) -> Run:
    """TensorListScatterV2, and TensorListScatter, which has no num_elements."""
    dtype, shape = b.attrs["element_dtype"], shape_of(b, 2)

    def run(tensor: Array, indices: Array, _: Array, *count_and_out: Array) -> None:
        *count, out = count_and_out
        places = indices.reshape(-1).tolist()
        cells = empty_cells(_size_for(places, count[0].item() if count else -1))
        out.fill(TensorList(dtype, shape, _with_rows(cells, places, tensor)))

    return run


def _size_for(places: Sequence[int], count: int) -> int:
    """The size of a list with rows at these indices. `count`: the size asked for, -1 for the smallest possible."""
    if count < -1:
        raise errors.InvalidArgument(f"TensorListScatter expects num_elements >= -1, found: {count}")
    if min(places, default=0) < 0:
        raise errors.InvalidArgument("Indices in TensorListScatter must all be non-negative.")
    if count != -1 and max(places, default=-1) >= count:
        raise errors.InvalidArgument(f"TensorListScatter: Trying to scatter at index {max(places)} in list with size "
                                     f"{count}")
    return max(count, 1 + max(places, default=-1))


def _with_rows(cells: list[Cell], places: Sequence[int], tensor: Array) -> list[Cell]:
    for index, row in zip(places, rows_of(tensor), strict=True):
        cells[index] = row
    return cells


def scatter_into(b: Bind) -> Run:
    dtype = b.attrs["element_dtype"]

    def run(handle: Array, tensor: Array, indices: Array, out: Array) -> None:
        cell_list, places = tensor_list(handle, dtype), indices.tolist()
        missing = max(0, _size_for(places, -1) - cell_list.count)
        out.fill(cell_list.holding(_with_rows([*cell_list.cells, *empty_cells(missing)], places, tensor)))

    return run


def length(_: Bind) -> Run:
    return lambda handle, out: out.fill(tensor_list(handle).count)


def element_shape(b: Bind) -> Run:
    dtype = b.outputs[0].dtype.numpy

    def run(handle: Array) -> Array:
        shape = tensor_list(handle).shape
        return np.array(-1 if shape is None else [-1 if n is None else n for n in shape], dtype)

    return run


def push(b: Bind) -> Run:
    dtype = b.attrs["element_dtype"]

    def run(handle: Array, tensor: Array, out: Array) -> None:
        cell_list = tensor_list(handle, dtype)
        cell_list.check_room()
        out.fill(cell_list.with_pushed(tensor))

    return run


def push_batch(b: Bind) -> Run:
    """TensorListPushBackBatch. As in TensorFlow, there is no test for room."""
    dtype = b.attrs["element_dtype"]

    def run(handles: Array, tensor: Array, out: Array) -> None:
        for i in range(len(handles)):
            out[i] = tensor_list(handles[i, ...], dtype).with_pushed(tensor[i, ...])

    return run


def pop(b: Bind) -> Run:
    dtype, asked_shape, output_shape = b.attrs["element_dtype"], shape_of(b, 1), b.outputs[1].shape

    def run(handle: Array, _: Array) -> tuple[Array, Array]:
        cell_list = tensor_list(handle, dtype)
        if not cell_list.count:
            raise errors.InvalidArgument("Trying to pop from an empty list.")
        return to_handle(cell_list.without_last()), _read(cell_list, cell_list.count - 1, asked_shape, output_shape)

    return run


def get(b: Bind) -> Run:
    dtype, asked_shape, output_shape = b.attrs["element_dtype"], shape_of(b, 2), b.outputs[0].shape

    def run(handle: Array, index: Array, _: Array) -> Array:
        cell_list, element = tensor_list(handle, dtype), index.item()
        if not 0 <= element < cell_list.count:
            raise errors.InvalidArgument(f"Trying to access element {element} in a list with {cell_list.count} "
                                         "elements.")
        return _read(cell_list, element, asked_shape, output_shape)

    return run


def _read(cell_list: TensorList, element: int, asked_shape: Shape, output_shape: Shape) -> Array:
    """A copy of an element. Raises InvalidArgument where the inferred output shape differs."""
    tensor = cell_list.cell(element)
    if tensor is None:
        return cell_list.blank(asked_shape)
    if not fits(tensor.shape, output_shape):
        raise errors.InvalidArgument(f"element {element} of the list has shape {shape_text(tensor.shape)}, asked for "
                                     f"was {shape_text(output_shape)}")
    return tensor.copy()


def set_item(b: Bind) -> Run:
    dtype, grows = b.attrs["element_dtype"], b.attrs["resize_if_index_out_of_bounds"]

    def run(handle: Array, index: Array, item: Array, out: Array) -> None:
        cell_list, element = tensor_list(handle, dtype), index.item()
        if element < 0 or (element >= cell_list.count and not grows):
            raise errors.InvalidArgument(f"Trying to modify element {element} in a list with {cell_list.count} "
                                         "elements.")
        enough = cell_list if element < cell_list.count else cell_list.with_count(element + 1)
        out.fill(enough.with_element(element, item))

    return run


def resize(_: Bind) -> Run:
    def run(handle: Array, size: Array, out: Array) -> None:
        if size < 0:
            raise errors.InvalidArgument(f"TensorListSlice expects size to be non-negative. Got: {size}")
        out.fill(tensor_list(handle).with_count(size.item()))

    return run


def stack(b: Bind) -> Run:
    dtype, asked_shape, count = b.attrs["element_dtype"], shape_of(b, 1), b.attrs["num_elements"]

    def run(handle: Array, _: Array) -> Array:
        cell_list = tensor_list(handle, dtype)
        if count not in (-1, cell_list.count):
            raise errors.InvalidArgument(f"Operation expected a list with {count} elements but got a list with "
                                         f"{cell_list.count} elements.")
        return _stack_cells(b, cell_list, cell_list.cells, asked_shape, "stack")

    return run


def gather(b: Bind) -> Run:
    dtype, asked_shape = b.attrs["element_dtype"], shape_of(b, 2)

    def run(handle: Array, indices: Array, _: Array) -> Array:
        cell_list, places = tensor_list(handle, dtype), indices.reshape(-1).tolist()
        for element in places:
            if not 0 <= element < cell_list.count:
                raise errors.InvalidArgument(f"Trying to gather element {element} in a list with {cell_list.count} "
                                             "elements.")
        return _stack_cells(b, cell_list, [cell_list.cell(element) for element in places], asked_shape, "gather")

    return run


def _stack_cells(b: Bind, cell_list: TensorList, cells: Sequence[Cell], asked_shape: Shape, what: str) -> Array:
    """The stack of these cells of a list. Raises InvalidArgument where their shapes differ or are not known."""
    shape = cell_list.element_shape(asked_shape, cells)
    if not is_known(shape):
        raise errors.InvalidArgument(f"Tried to {what} {'uninitialized' if cells else 'no'} elements of a list with "
                                     f"non-fully-defined element_shape: {shape_text(shape)}")
    b.ask(len(cells) * prod(shape) * cell_list.dtype.numpy.itemsize, "the stack of a list")
    tensors = [zeros(cell_list.dtype, shape) if cell is None else cell for cell in cells]
    return stack_tensors(tensors, shape, cell_list.dtype)


def stack_tensors(tensors: Sequence[Array], shape: tuple[int, ...], dtype: DType) -> Array:
    """The stack of tensors of one shape. np.stack takes several times as long for small tensors."""
    if shape and tensors:
        return np.concatenate(tensors).reshape(len(tensors), *shape)
    out = np.empty((len(tensors), *shape), dtype.numpy)
    if tensors:
        out[:] = [tensor[()] for tensor in tensors]
    return out


def concat(b: Bind) -> Run:
    dtype, asked_shape = b.attrs["element_dtype"], shape_of(b, 1)

    def run(handle: Array, _: Array, leading_dims: Array) -> tuple[Array, Array]:
        cell_list = tensor_list(handle, dtype)
        return _concat_cells(cell_list, agreed_shape(asked_shape, cell_list.shape), leading_dims.tolist())

    return run


def concat_without_lengths(b: Bind) -> Run:
    """TensorListConcat. Uninitialized elements get the common length of the others, and are an error without one."""
    dtype, asked_shape = b.attrs["element_dtype"], b.attrs["element_shape"]
    shape = None if asked_shape is None else (None, *asked_shape[1:])
    return lambda handle: _concat_cells(tensor_list(handle, dtype), shape, ())


def _concat_cells(cell_list: TensorList, shape: Shape, lengths: Sequence[int]) -> tuple[Array, Array]:
    """The concatenation of all elements, and their lengths. `lengths`: of uninitialized elements."""
    if shape == ():
        raise errors.InvalidArgument("Concat requires elements to be at least vectors, found scalars instead.")
    first, inner_shape = (None, None) if shape is None else (shape[0], shape[1:])
    cells = cell_list.cells
    if not is_known(cell_list.shape) and cells:
        first, inner_shape = _common_dims(cells, first, inner_shape)
    if not is_known(inner_shape):
        what = "only uninitialized tensors" if cells else "no tensors"
        raise errors.InvalidArgument(f"Trying to concat list with {what} but element_shape_except_first_dim is not "
                                     f"fully defined: {shape_text(inner_shape)}")
    tensors = [zeros(cell_list.dtype, (_length(i, lengths, first), *inner_shape)) if cell is None else cell
               for i, cell in enumerate(cells)]
    return (np.concatenate([zeros(cell_list.dtype, (0, *inner_shape)), *tensors]),
            np.fromiter((len(part) for part in tensors), np.int64, len(tensors)))


def _common_dims(cells: Sequence[Cell], first: int | None, inner_shape: Shape) -> tuple[int | None, Shape]:
    """The common first dimension (None where the elements differ) and the common remaining shape."""
    there = [(i, cell.shape) for i, cell in enumerate(cells) if cell is not None]
    for i, shape in there:
        if not shape:
            raise errors.InvalidArgument(f"Concat saw a scalar shape at index {i} but requires at least vectors.")
        inner_shape = agreed_shape(inner_shape, shape[1:])
        if first not in (None, shape[0]):
            raise errors.InvalidArgument("First entry of element_shape input does not match the first dim of list "
                                         f"element at index: {i} Expected: {first} Actual: {shape[0]}")
    lengths = {shape[0] for _, shape in there}
    return (lengths.pop() if len(lengths) == 1 else first), inner_shape


def _length(index: int, lengths: Sequence[int], first: int | None) -> int:
    """The length of an uninitialized element."""
    length = lengths[index] if index < len(lengths) else first
    if length is None:
        raise errors.InvalidArgument(f"List contains uninitialized tensor at index {index} but leading_dims has only "
                                     f"{len(lengths)} elements.")
    if length < 0:
        raise errors.InvalidArgument(f"leading_dims must not be negative: {length} at index {index}")
    return length


def concat_lists(b: Bind) -> Run:
    dtype = b.attrs["element_dtype"]

    def run(first: Array, second: Array, out: Array) -> None:
        for at in np.ndindex(out.shape):
            a, z = tensor_list(first[(*at, ...)], dtype), tensor_list(second[(*at, ...)], dtype)
            if a.shape != z.shape:
                raise errors.InvalidArgument("input_a and input_b TensorList element shapes are not identical at index "
                                             f"{at}. Saw {shape_text(a.shape)} vs. {shape_text(z.shape)}")
            out[at] = a.holding([*a.cells, *z.cells])

    return run


# op, bind, the inputs that the list retains
MADE: tuple[tuple[str, Callable[[Bind], Run], tuple[str, ...]], ...] = (
    ("EmptyTensorList", empty, ()), ("TensorListReserve", reserve, ()), ("TensorListResize", resize, ()),
    ("TensorListFromTensor", from_tensor, ("tensor",)), ("TensorListSplit", split, ("tensor",)),
    ("TensorListScatter", scatter, ("tensor",)), ("TensorListScatterV2", scatter, ("tensor",)),
    ("TensorListScatterIntoExistingList", scatter_into, ("tensor",)), ("TensorListPushBack", push, ("tensor",)),
    ("TensorListPushBackBatch", push_batch, ("tensor",)), ("TensorListSetItem", set_item, ("item",)),
    ("TensorListConcatLists", concat_lists, ()), ("TensorListLength", length, ()),
)
READ: dict[str, Callable[[Bind], Run]] = {
    "TensorListGetItem": get, "TensorListPopBack": pop, "TensorListStack": stack, "TensorListGather": gather,
    "TensorListConcat": concat_without_lengths, "TensorListConcatV2": concat, "TensorListElementShape": element_shape,
}


def register_kernels(kernels: Kernels) -> None:
    for op, bind, retained_inputs in MADE:
        kernels.kernel(op, retains=retained_inputs)(bind)
    for op, bind in READ.items():
        kernels.kernel(op, allocates=True)(bind)
