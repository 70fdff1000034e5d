"""Values of attributes that Python has no class for: shapes, and functions to call. Graphs and programs share them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from operator import index
from types import MappingProxyType
from typing import Any

from ...errors import InvalidArgument
from ..support.records import dataclass
from .tensor import MOST_DIMS, Shape

_EMPTY: Mapping[str, Any] = MappingProxyType({})


class ShapeAttr(tuple[int | None, ...]):
    """A shape of known rank, equal to the plain tuple. Its class distinguishes it from a list when it is written."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Func:
    """A function to call: its name, and the attributes of the call."""

    name: str
    attrs: Mapping[str, Any] = field(default_factory=lambda: _EMPTY)

    def __hash__(self) -> int:
        return hash((self.name, frozenset(self.attrs.items())))


def as_shape(dims: Iterable[int | None] | None) -> Shape:
    """The attribute value of a shape; a dimension of -1 is unknown. Raises InvalidArgument for dimensions that are no
    shape."""
    if dims is None:
        return None
    try:
        shape = ShapeAttr(None if d is None or d == -1 else index(d) for d in dims)
    except TypeError:
        raise InvalidArgument(f"{dims!r:.80} is not a shape", hint="dimensions are integers or None") from None
    if len(shape) > MOST_DIMS or any(d is not None and not 0 <= d < 2**63 for d in shape):
        raise InvalidArgument(f"{dims!r:.80} is not a shape",
                              hint=f"it has at most {MOST_DIMS} dimensions, each from -1 to 2**63 - 1")
    return shape
