"""Constraints of attributes, with TensorFlow's words for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ... import attributes as a


class Constraint(NamedTuple):
    """A test of an attribute, and the words for an attribute that fails it."""

    holds: Callable[[a.Attribute], bool]
    words: str


def is_i64(attribute: a.Attribute) -> bool:
    return isinstance(attribute, a.IntegerAttr) and str(attribute.type) == "i64"


def list_of(kind: type[a.Attribute]) -> Callable[[a.Attribute], bool]:
    """The test for a list whose items are all of one class."""
    return lambda attribute: isinstance(attribute, a.ArrayAttr) and all(
        isinstance(item, kind) for item in attribute.items)


I64 = Constraint(is_i64, "64-bit signless integer attribute")
