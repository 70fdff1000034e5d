"""Kernels of optionals: variants that hold the components of a value, or none. An optional retains its components,
which must not change afterwards. Reads return copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from heald.api import Bind, Kernels, errors, shape_text

from ..element_types import Array
from ..resources.partial_shape import fits

Run = Callable[..., Any]


class Optional(NamedTuple):
    """The tensors of a value; None for no value."""

    components: tuple[Array, ...] | None


def from_value(_: Bind) -> Run:
    def run(*components_and_out: Array) -> None:
        *components, out = components_and_out
        out.fill(Optional(tuple(components)))

    return run




def none(_: Bind) -> Run:
    return lambda out: out.fill(Optional(None))


def has_value(_: Bind) -> Run:
    return lambda variant, out: out.fill(_optional(variant).components is not None)


def get_value(b: Bind) -> Run:
    types, shapes = b.attrs["output_types"], b.attrs["output_shapes"]

    def run(variant: Array) -> tuple[Array, ...]:
        components = _optional(variant).components
        if components is None:
            raise errors.InvalidArgument("The given optional does not have a value.")
        if len(components) != len(types):
            raise errors.InvalidArgument(f"The given optional has {len(components)} components, expected {len(types)}.")
        for i, (component, dtype, shape) in enumerate(zip(components, types, shapes, strict=True)):
            if component.dtype != dtype.numpy or not fits(component.shape, shape):
                raise errors.InvalidArgument(f"The given optional's component {i} is {component.dtype}"
                                             f"{shape_text(component.shape)}, expected {dtype.name}{shape_text(shape)}")
        return tuple(component.copy() for component in components)

    return run


def _optional(variant: Array) -> Optional:
    optional = variant[()]
    if not isinstance(optional, Optional):
        raise errors.InvalidArgument(f"the variant is no optional, but a {type(optional).__name__}")
    return optional


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("OptionalFromValue", retains=("components",))(from_value)
    kernels.kernel("OptionalNone")(none)
    kernels.kernel("OptionalHasValue")(has_value)
    kernels.kernel("OptionalGetValue", allocates=True)(get_value)
