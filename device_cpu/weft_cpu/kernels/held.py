"""What tensors of resources and variants hold: things that kernels hand each other, mostly one in a scalar."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from weft.api import errors

from .element_types import Array

T = TypeVar("T")
MOST_PLACES = 1 << 27  # a GiB of references


def holding(thing: Any) -> Array:
    """A scalar that holds the thing."""
    scalar = np.empty((), object)
    scalar[()] = thing
    return scalar


def held(scalar: Array, kind: type[T]) -> T:
    """The thing in a scalar. Raises InvalidArgument where it is none of this kind."""
    thing = scalar[()]
    if not isinstance(thing, kind):
        raise errors.InvalidArgument(f"a {kind.__name__} is expected here, given {_name(thing)}")
    return thing


def _name(thing: Any) -> str:
    return "nothing" if thing is None else f"a {type(thing).__name__}"


def vacant(count: int) -> list[Any]:
    """So many places that hold nothing yet. Raises ResourceExhausted for more than anybody fills."""
    if count > MOST_PLACES:
        raise errors.ResourceExhausted(f"a list of {count} tensors; {MOST_PLACES} are the most")
    return [None] * count
