"""Resizing of images: linear interpolation between the centers of pixels, and the nearest pixel."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from heald.api import Attrs, Bind, Kernels, errors

from ..attributes import attributes, number
from ..library import library
from ..memory import dense
from ..primitives import INFERENCE, RESULT, SOURCE, Primitive, describe_primitive
from .binding import check_elements, declining

LINEAR, NEAREST = number("dnnl_resampling_linear"), number("dnnl_resampling_nearest")
Fits = Callable[[Attrs, Sequence[int], Sequence[int]], bool]  # takes height and width before and after


def between_centers(attrs: Attrs, _before: Sequence[int], _after: Sequence[int]) -> bool:
    return bool(attrs["half_pixel_centers"])


def whole_times(attrs: Attrs, before: Sequence[int], after: Sequence[int]) -> bool:
    """True if each pixel becomes a whole number of pixels: all of TensorFlow's choices of centers agree then."""
    return not attrs["align_corners"] and all(b % a == 0 for a, b in zip(before, after, strict=True))


def resize(kind: int, fits: Fits) -> Callable[[Bind], Primitive]:
    def bind(b: Bind) -> Primitive:
        images, result_dims = b.inputs[0].meta, b.outputs[0].dims
        check_elements(images.dims, result_dims)
        if not fits(b.attrs, images.dims[1:3], result_dims[1:3]):
            raise errors.Unimplemented("the library places the centers of pixels elsewhere")
        source, result = dense(images.dims, images.dtype), dense(result_dims, b.outputs[0].dtype)
        description = describe_primitive(library().c.dnnl_resampling_forward_primitive_desc_create, INFERENCE, kind,
                                         library().ffi.NULL, source.descriptor, result.descriptor, attributes())
        return Primitive(description, {SOURCE: (source, 0), RESULT: (result, len(b.inputs))})

    return bind


def register_kernels(kernels: Kernels, types: Collection[str]) -> None:
    linear_types = ("float32", "int8", "uint8")  # results are float32 in any case
    kernels.kernel("ResizeBilinear", dtypes={"T": linear_types})(declining(resize(LINEAR, between_centers)))
    kernels.kernel("ResizeNearestNeighbor", dtypes={"T": types})(declining(resize(NEAREST, whole_times)))
