"""Metadata of ops on lists of tensors.

A list's handle carries its elements' type and the common part of their shapes, as far as the op that made it gives it.
Later elements must have this shape. The handle of a list of rows has a second entry where all elements are known to
have a shape that the list does not ask for.
"""

from __future__ import annotations

from heald.api import Attrs, DType, InvalidArgument, Shape, TensorMetadata, ValueInfo, dtypes, info, shape_text

from .rules import rule
from .shapes import Dims, check_single, dims_of_rank, elements_in, same_dim, same_shape, vector

AGREE = "the shapes of a list's elements must agree"
ANY_RANK = 8  # most rank of a single number: TensorFlow reads one of any shape


def list_handle(dtype: DType, shape: Shape, shape_of_rows: Shape = None) -> ValueInfo:
    """Return a handle to a list of tensors of this type and shape.

    `shape_of_rows`: the shape that all elements have, if it is known to say more than `shape`.
    """
    shapes = (shape,) if shape_of_rows in (None, shape) else (shape, shape_of_rows)
    return ValueInfo(TensorMetadata(dtypes.variant, ()), handle=tuple(TensorMetadata(dtype, one) for one in shapes))


def requested_element_shape(x: ValueInfo) -> Shape:
    """Return the shape from an input: lengths, -1 for an unknown one, or the scalar -1 for an unknown rank."""
    if x.rank is not None and x.rank > 1:
        raise InvalidArgument(f"Shape must be at most rank 1 but is rank {x.rank}")
    elements_of_x = x.vector()
    if x.rank == 0:
        if elements_of_x not in (None, (-1,)):
            raise InvalidArgument("The only valid scalar shape tensor is the fully unknown shape specified as -1.")
        return None
    lengths = vector(x, "element_shape")
    for length in lengths or ():
        if length is not None and length < -1:
            raise InvalidArgument(f"Dimension {length} must be >= -1")
    return None if lengths is None else tuple(None if length == -1 else length for length in lengths)


def list_element_shape(x: ValueInfo, dtype: DType) -> Shape:
    """Return the elements' shape as far as the list's handle knows it.

    Raises InvalidArgument for a handle of another type.
    """
    dims_of_rank(x, 0, "the handle of a list")
    return known_element_shape(x, dtype)


def known_element_shape(x: ValueInfo, dtype: DType) -> Shape:
    """Like `list_element_shape`, for one handle or several."""
    if not x.handle:
        return None
    if x.handle[0].dtype is not dtype:
        raise InvalidArgument(f"Expected list with element dtype {dtype} but got list with element dtype "
                              f"{x.handle[0].dtype}")
    return x.handle[0].shape


def requested_shape(x: ValueInfo, dtype: DType, shape: ValueInfo) -> Shape:
    """Return the shape of an element taken from a list, merged from the handle and the op's input `shape`."""
    merged = same_shape((list_element_shape(x, dtype), requested_element_shape(shape)), AGREE)
    try:
        return same_shape((merged, _shape_of_rows(x)), AGREE)
    except InvalidArgument:  # the run that reads an element raises the error
        return merged


def _shape_of_rows(x: ValueInfo) -> Shape:
    """Return the shape that all elements of a list have beyond what the list asks for."""
    return x.handle[1].shape if x.handle and len(x.handle) > 1 else None


def rows(tensor: ValueInfo, name: str = "tensor") -> Dims | None:
    """Return the shape of a tensor that has rows."""
    if tensor.shape == ():
        raise InvalidArgument(f"{name} must be at least a vector, but saw shape: []")
    return tensor.shape


@rule("EmptyTensorList", values=("element_shape",))
def empty_tensor_list(attrs: Attrs, shape: ValueInfo, max_num_elements: ValueInfo) -> ValueInfo:
    dims_of_rank(max_num_elements, 0, "max_num_elements")
    return list_handle(attrs["element_dtype"], requested_element_shape(shape))


@rule("TensorListReserve", values=("element_shape",))
def tensor_list_reserve(attrs: Attrs, shape: ValueInfo, count: ValueInfo) -> ValueInfo:
    dims_of_rank(count, 0, "num_elements")
    return list_handle(attrs["element_dtype"], requested_element_shape(shape))


@rule("TensorListFromTensor", values=("element_shape",))
def tensor_list_from_tensor(attrs: Attrs, tensor: ValueInfo, shape: ValueInfo) -> ValueInfo:
    return _of_rows(attrs, rows(tensor), shape, is_whole=True)


def _of_rows(attrs: Attrs, tensor_dims: Dims | None, shape: ValueInfo, *, is_whole: bool = False) -> ValueInfo:
    """Return a handle to a list of a tensor's rows. `is_whole`: True where each element is a row."""
    item_shape = requested_element_shape(shape)
    if tensor_dims is None:
        return list_handle(attrs["element_dtype"], item_shape)
    shape_of_rows = same_shape((item_shape, tensor_dims[1:]), "the rows of the tensor must have the elements' shape")
    return list_handle(attrs["element_dtype"], item_shape, shape_of_rows if is_whole else None)


@rule("TensorListSplit", values=("element_shape",))
def tensor_list_split(attrs: Attrs, tensor: ValueInfo, shape: ValueInfo, lengths: ValueInfo) -> ValueInfo:
    dims_of_rank(lengths, 1, "lengths")
    tensor_dims, item_shape = rows(tensor), requested_element_shape(shape)
    if item_shape == ():
        raise InvalidArgument("TensorListSplit requires element_shape to be at least of rank 1, but saw: []")
    if tensor_dims is not None and item_shape is not None:
        same_shape((item_shape[1:], tensor_dims[1:]),
                   f"a tensor of shape {shape_text(tensor_dims)} has no parts of {shape_text(item_shape)}")
    return list_handle(attrs["element_dtype"], item_shape)


@rule("TensorListScatter", "TensorListScatterV2", values=("element_shape",))
def tensor_list_scatter(
    attrs: Attrs, tensor: ValueInfo, indices: ValueInfo, shape: ValueInfo, *count: ValueInfo
) -> ValueInfo:
    for x in count:
        dims_of_rank(x, 0, "num_elements")
    _check_count(rows(tensor), elements_in(indices.shape))
    return _of_rows(attrs, tensor.shape, shape)


def _check_count(tensor_dims: Dims | None, count: int | None) -> None:
    if tensor_dims is not None:
        same_dim(tensor_dims[0], count, "the number of rows and that of indices")


@rule("TensorListScatterIntoExistingList")
def tensor_list_scatter_into(attrs: Attrs, x: ValueInfo, tensor: ValueInfo, indices: ValueInfo) -> ValueInfo:
    (count,) = dims_of_rank(indices, 1, "indices")
    _check_count(rows(tensor), count)
    return list_handle(attrs["element_dtype"], list_element_shape(x, attrs["element_dtype"]))


@rule("TensorListLength")
def tensor_list_length(_: Attrs, x: ValueInfo) -> ValueInfo:
    dims_of_rank(x, 0, "the handle of a list")
    return info(dtypes.int32, ())


@rule("TensorListElementShape")
def tensor_list_element_shape(attrs: Attrs, x: ValueInfo) -> ValueInfo:
    """The output is a vector, or the scalar -1 if not even the rank is known."""
    dims_of_rank(x, 0, "the handle of a list")
    shape = x.handle[0].shape if x.handle else None
    return info(attrs["shape_type"], None if shape is None else (len(shape),))


@rule("TensorListPushBack")
def tensor_list_push_back(attrs: Attrs, x: ValueInfo, _: ValueInfo) -> ValueInfo:
    return list_handle(attrs["element_dtype"], list_element_shape(x, attrs["element_dtype"]))


@rule("TensorListPushBackBatch")
def tensor_list_push_back_batch(attrs: Attrs, x: ValueInfo, tensor: ValueInfo) -> ValueInfo:
    (count,), tensor_dims = dims_of_rank(x, 1, "input_handles"), rows(tensor)
    if tensor_dims is not None:
        count = same_dim(count, tensor_dims[0], "the number of lists and that of the tensor's rows")
    shape = known_element_shape(x, attrs["element_dtype"])
    return ValueInfo(TensorMetadata(dtypes.variant, (count,)), handle=(TensorMetadata(attrs["element_dtype"], shape),))


@rule("TensorListPopBack", values=("element_shape",))
def tensor_list_pop_back(attrs: Attrs, x: ValueInfo, shape: ValueInfo) -> tuple[ValueInfo, ValueInfo]:
    """Input `shape` does not refine the output's shape: it describes only an element without a value."""
    requested_element_shape(shape)
    item_shape = list_element_shape(x, attrs["element_dtype"])
    return ValueInfo(TensorMetadata(dtypes.variant, ()), handle=x.handle), info(attrs["element_dtype"], item_shape)


@rule("TensorListGetItem", values=("element_shape",))
def tensor_list_get_item(attrs: Attrs, x: ValueInfo, index: ValueInfo, shape: ValueInfo) -> ValueInfo:
    check_single(index, "index", most_rank=ANY_RANK)
    return info(attrs["element_dtype"], requested_shape(x, attrs["element_dtype"], shape))


@rule("TensorListSetItem")
def tensor_list_set_item(attrs: Attrs, x: ValueInfo, index: ValueInfo, item: ValueInfo) -> ValueInfo:
    check_single(index, "index", most_rank=ANY_RANK)
    item_shape = list_element_shape(x, attrs["element_dtype"])
    same_shape((item_shape, item.shape), AGREE)
    shape_of_rows = _shape_of_rows(x)
    return list_handle(attrs["element_dtype"], item_shape, shape_of_rows if shape_of_rows == item.shape else None)


@rule("TensorListResize")
def tensor_list_resize(_: Attrs, x: ValueInfo, size: ValueInfo) -> ValueInfo:
    dims_of_rank(x, 0, "the handle of a list")
    dims_of_rank(size, 0, "size")
    return ValueInfo(TensorMetadata(dtypes.variant, ()), handle=x.handle and x.handle[:1])


@rule("TensorListStack", values=("element_shape",))
def tensor_list_stack(attrs: Attrs, x: ValueInfo, shape: ValueInfo) -> ValueInfo:
    count, item_shape = attrs["num_elements"], requested_shape(x, attrs["element_dtype"], shape)
    return info(attrs["element_dtype"], None if item_shape is None else (None if count == -1 else count, *item_shape))


@rule("TensorListGather", values=("element_shape",))
def tensor_list_gather(attrs: Attrs, x: ValueInfo, indices: ValueInfo, shape: ValueInfo) -> ValueInfo:
    """The output has one row for each index, for indices of any shape."""
    item_shape = requested_shape(x, attrs["element_dtype"], shape)
    return info(attrs["element_dtype"], None if item_shape is None else (elements_in(indices.shape), *item_shape))


@rule("TensorListConcat")
def tensor_list_concat(attrs: Attrs, x: ValueInfo) -> tuple[ValueInfo, ValueInfo]:
    shape = same_shape((list_element_shape(x, attrs["element_dtype"]), attrs["element_shape"]), AGREE)
    return _concatenation(attrs["element_dtype"], shape)


@rule("TensorListConcatV2", values=("element_shape",))
def tensor_list_concat_v2(
    attrs: Attrs, x: ValueInfo, shape: ValueInfo, leading_dims: ValueInfo
) -> tuple[ValueInfo, ValueInfo]:
    dims_of_rank(leading_dims, 1, "leading_dims")
    return _concatenation(attrs["element_dtype"], requested_shape(x, attrs["element_dtype"], shape))


def _concatenation(dtype: DType, shape: Shape) -> tuple[ValueInfo, ValueInfo]:
    """Return the concatenated elements, and the length of each."""
    if shape == ():
        raise InvalidArgument("Concat requires elements to be at least vectors, found scalars instead.")
    return info(dtype, None if shape is None else (None, *shape[1:])), info(dtypes.int64, (None,))


@rule("TensorListConcatLists")
def tensor_list_concat_lists(attrs: Attrs, a: ValueInfo, z: ValueInfo) -> ValueInfo:
    """Concatenates two lists, or the pairs of two tensors of lists."""
    shape = same_shape((a.shape, z.shape), "Incompatible input TensorList tensor shapes")
    dtype = attrs["element_dtype"]
    item_shape = same_shape((known_element_shape(a, dtype), known_element_shape(z, dtype)), AGREE)
    return ValueInfo(TensorMetadata(dtypes.variant, shape), handle=(TensorMetadata(dtype, item_shape),))
