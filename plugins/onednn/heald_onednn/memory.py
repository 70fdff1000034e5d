"""Memory: the library's descriptors of arrays, and its memory objects over them.

Dimensions are in the library's order: batch, channels, height, width. Strides, in elements, give the array's own order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from math import prod
from typing import Any

import numpy as np
from heald.api import DType, PlainAllocator, dtypes, errors

from .declarations import ffi
from .library import library

Array = np.ndarray[Any, Any]
# An index among the inputs and outputs of a kernel, a constant, or a function that returns a constant when needed.
Operand = int | Array | Callable[[], Array]
ANY = "any"
LAYOUTS = 512  # in the cache: the layers of a network share many
PLAIN = PlainAllocator()
FLOAT = dtypes.float32
TYPES = {  # element types, with the library's names
    FLOAT: "dnnl_f32", dtypes.bfloat16: "dnnl_bf16", dtypes.int8: "dnnl_s8", dtypes.uint8: "dnnl_u8",
}


class Layout:
    """A memory descriptor. `reach`: see `extent`."""

    def __init__(self, descriptor: Any, reach: int | None = None) -> None:
        self.descriptor = descriptor
        self._reach = reach

    @staticmethod
    def of(dims: Sequence[int], strides: Sequence[int] | str, dtype: DType = FLOAT) -> Layout:
        """The layout with these dimensions and strides. With strides ANY the primitive chooses the layout."""
        return _layout(tuple(dims), ANY if strides == ANY else tuple(strides), dtype)

    @classmethod
    def like(cls, descriptor: Any) -> Layout:
        """A copy of a descriptor that the library owns."""
        return cls(library().make("memory_desc", library().c.dnnl_memory_desc_clone, descriptor))

    @cached_property
    def nbytes(self) -> int:
        return int(library().c.dnnl_memory_desc_get_size(self.descriptor))

    @property
    def extent(self) -> int:
        """The bytes from the first element to the end of the last: all that the library touches."""
        return self.nbytes if self._reach is None else self._reach

    @cached_property
    def name(self) -> str:
        """A name that two layouts share if they place all elements alike."""
        c = library().c
        dims_and_strides = [self._numbers(what, c.dnnl_query_ndims_s32) for what in (c.dnnl_query_padded_dims,
                                                                                     c.dnnl_query_strides)]
        blocks = [self._numbers(what, c.dnnl_query_inner_nblks_s32) for what in (c.dnnl_query_inner_idxs,
                                                                                 c.dnnl_query_inner_blks)]
        return f"{dims_and_strides}/{blocks}"

    def _numbers(self, what: int, how_many: int) -> list[int]:
        c = library().c
        count, numbers = ffi.new("int *"), ffi.new("int64_t **")
        library().check(c.dnnl_memory_desc_query(self.descriptor, how_many, count), "layout")
        library().check(c.dnnl_memory_desc_query(self.descriptor, what, numbers), "layout")
        return ffi.unpack(numbers[0], count[0]) if count[0] else []

    def memory(self, array: Array | None = None) -> Any:
        """A memory object over an array, which it does not keep alive, or over no array yet.

        Raises InvalidArgument for an array that is smaller than this layout.
        """
        if array is not None and array.nbytes < self.extent:
            raise errors.InvalidArgument(f"an array of {array.nbytes} bytes, where oneDNN touches {self.extent}",
                                         hint="give an array of the type and shape that the kernel was bound for")
        c = library().c
        data = ffi.NULL if array is None else ffi.from_buffer(array)
        return library().make("memory", c.dnnl_memory_create, self.descriptor, library().engine, data)


@lru_cache(maxsize=LAYOUTS)
def _layout(dims: tuple[int, ...], strides: tuple[int, ...] | str, dtype: DType) -> Layout:
    c, elements = library().c, ffi.integer_const(TYPES[dtype])
    if isinstance(strides, str):
        create, how, reach = c.dnnl_memory_desc_create_with_tag, c.dnnl_format_tag_any, None
    else:
        create, how, reach = c.dnnl_memory_desc_create_with_strides, list(strides), _reach(dims, strides, dtype)
    return Layout(library().make("memory_desc", create, len(dims), list(dims), elements, how), reach)


def _reach(dims: Sequence[int], strides: Sequence[int], dtype: DType) -> int:
    last = sum((n - 1) * stride for n, stride in zip(dims, strides, strict=True))
    return (last + 1) * dtype.itemsize if all(dims) else 0


def aligned_bytes(nbytes: int) -> Array:
    """A new byte array whose address is a multiple of the cache line's length."""
    memory: Array = PLAIN.allocate(nbytes)
    return memory


def row_major_strides(dims: Sequence[int]) -> list[int]:
    """The strides, in elements, of a row-major array."""
    return [prod(dims[i + 1 :]) for i in range(len(dims))]


def row_major(shape: Sequence[int], dtype: DType = FLOAT) -> Layout:
    """The layout of a row-major array of this shape, with the axes in their own order."""
    return Layout.of(shape, row_major_strides(shape), dtype)


def dense(shape: Sequence[int], dtype: DType = FLOAT) -> Layout:
    """The layout of a row-major array of this shape. Images have channels last, and the layout has them second."""
    order = channels_second(len(shape))
    strides = row_major_strides(shape)
    return Layout.of([shape[i] for i in order], [strides[i] for i in order], dtype)


def channels_second(rank: int) -> list[int]:
    """The library's order of the axes of an array; for images and volumes: batch, channels, then the spatial axes."""
    return list(range(rank)) if rank < 4 else [0, rank - 1, *range(1, rank - 1)]
