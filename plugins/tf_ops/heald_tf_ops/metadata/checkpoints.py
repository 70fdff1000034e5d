"""Metadata of the ops that save and restore tensors: names and slices are vectors with an element for each tensor."""

from __future__ import annotations

from collections.abc import Sequence

from heald.api import Attrs, ValueInfo, errors, info, shape_text

from .rules import rule
from .shapes import check_single


@rule("SaveV2")
def save_v2(attrs: Attrs, prefix: ValueInfo, names: ValueInfo, specs: ValueInfo, *tensors: ValueInfo) -> tuple[()]:
    check_single(prefix, "prefix")
    _check_vectors(names, specs, len(tensors), "tensors")
    return ()


@rule("RestoreV2")
def restore_v2(attrs: Attrs, prefix: ValueInfo, names: ValueInfo, specs: ValueInfo) -> tuple[ValueInfo, ...]:
    check_single(prefix, "prefix")
    _check_vectors(names, specs, len(attrs["dtypes"]), "expected dtypes")
    return tuple(info(dtype, None) for dtype in attrs["dtypes"])


@rule("MergeV2Checkpoints")
def merge_v2_checkpoints(_: Attrs, prefixes: ValueInfo, destination: ValueInfo) -> tuple[()]:
    if prefixes.shape is not None and len(prefixes.shape) != 1:
        raise errors.InvalidArgument("Input checkpoint_prefixes should be an 1-D tensor, got "
                                     f"{shape_text(prefixes.shape)} instead.")
    check_single(destination, "destination_prefix")
    return ()


def _check_vectors(names: ValueInfo, specs: ValueInfo, count: int, what: str) -> None:
    shapes: Sequence[tuple[int | None, ...] | None] = (names.shape, specs.shape)
    if any(shape is not None and len(shape) != 1 for shape in shapes):
        raise errors.InvalidArgument("Input tensor_names and shape_and_slices should be an 1-D tensors, got "
                                     f"{shape_text(names.shape)} and {shape_text(specs.shape)} instead.")
    for shape, label in zip(shapes, ("tensor names", "shapes and slices"), strict=True):
        if shape is not None and shape[0] not in (None, count):
            raise errors.InvalidArgument(f"Got {shape[0]} {label} but {count} {what}.")
