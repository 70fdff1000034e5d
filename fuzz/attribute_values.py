"""Other values of attributes: of the same class as a rule, at the edges of its range."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
from heald.runtime.program.typed_attribute import ShapeAttribute, TypedNumber
from heald.runtime.values import dtypes
from heald.runtime.values.attribute_values import ShapeAttr
from heald.runtime.values.dtypes import DType

from .raw import EDGES

EDGE_FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, float("inf"), float("-inf"), float("nan"), 1e30, 1e-40, 3.4e38)
_TEXTS = ("", "SAME", "VALID", "EXPLICIT", "NHWC", "NCHW", "NDHWC", "WILD", "max", "min", "linear", "reflect", "UTF-8",
          "MIN_COMBINED", "a\0b", "\u00e9", "shared", "ij,jk->ik", "%d")
_STRANGE: tuple[Any, ...] = (None, True, -3, 7.5, "WILD", (), (1, -3, 3, 1), (None,), dtypes.float32, (("a", 1),))
_SMALL = (-1, 0, 1, 2, 3, 4, 7, 8, 64)


def other_value(rng: Random, value: Any) -> Any:
    """Another value, in one case of twenty of any class."""
    if rng.random() < 0.05:
        return rng.choice(_STRANGE)
    return next((change(rng, value) for kind, change in _BY_CLASS if isinstance(value, kind)), value)


def _integer(rng: Random, value: int) -> int:
    """Small numbers as a rule: a step that takes long ends by its deadline."""
    new = rng.choice((rng.choice(_SMALL), int(value) + rng.choice((-1, 1)), -int(value), rng.choice(EDGES)))
    return _fitting(value, new)


def _fitting(value: Any, new: Any) -> Any:
    """A number of the same typed class, in its range."""
    if not isinstance(value, TypedNumber):
        return new
    bits = 8 * value.dtype.itemsize
    least = 0 if value.dtype.name.startswith("u") else -(1 << bits - 1)
    return type(value)(least + (new - least) % (1 << bits))


def _float(rng: Random, value: float) -> Any:
    return type(value)(rng.choice((rng.choice(EDGE_FLOATS), value * 2, -value)))


def _items(rng: Random, value: tuple[Any, ...]) -> tuple[Any, ...]:
    items = list(value)
    choice = rng.random()
    if items and choice < 0.6:
        at = rng.randrange(len(items))
        items[at] = other_value(rng, items[at])
    elif items and choice < 0.75:
        del items[rng.randrange(len(items))]
    elif items:
        items.insert(rng.randrange(len(items)), rng.choice(items))
    else:
        items.append(rng.choice(_SMALL))
    return tuple(items)


def _shape(rng: Random, value: tuple[int | None, ...]) -> Any:
    dims = [rng.choice((0, 1, 2, 3, 5, 1000, 1 << 33)) if rng.random() < 0.4 else dim for dim in value]
    if rng.random() < 0.3:
        dims = dims[1:] if rng.random() < 0.5 else [*dims, 1]
    return type(value)(dims)


def _array(rng: Random, value: Any) -> Any:
    return value.reshape(-1) if rng.random() < 0.5 else np.zeros(rng.choice((0, 1, 3)), value.dtype)


_BY_CLASS: tuple[tuple[Any, Callable[[Random, Any], Any]], ...] = (
    (bool, lambda _, value: not value), (int, _integer), (float, _float),
    (str, lambda rng, _: rng.choice(_TEXTS)), (bytes, lambda rng, _: rng.choice(_TEXTS).encode()),
    (DType, lambda rng, _: rng.choice(dtypes.ALL)), ((ShapeAttr, ShapeAttribute), _shape), (tuple, _items),
    (np.ndarray, _array), (type(None), lambda rng, _: rng.choice(((), (2, 3), 1, None))))
