"""Prepared: an object that a kernel made from the constants of a node, with its sources.

Links of a program share it by the name of the node. Two nodes may have one name: in functions that call sites share,
and in a stranger's file. So the object serves a node only if it was made from the same op, attributes and constants.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..support.records import NamedTuple
from ..values.computed_info import ComputedInfo
from ..values.tensor import ValueInfo


class PreparedObject(NamedTuple):
    """`ops`: name and attributes of each op that the kernel computes. `constants`: the known inputs, by index."""

    ops: Sequence[tuple[str, Any]]
    constants: dict[int, Any]
    value: Any

    def serves(self, ops: Sequence[tuple[str, Any]], constants: dict[int, Any]) -> bool:
        """True when the object is the one that a node of these ops and constants would make."""
        if self.constants.keys() != constants.keys() or len(self.ops) != len(ops):
            return False
        return all(a == c and (b is d or _equal(b, d)) for (a, b), (c, d) in zip(self.ops, ops, strict=True)) and all(
            constant is constants[i] or _have_equal_elements(constant, constants[i])
            for i, constant in self.constants.items())


def constants_of(inputs: Sequence[ValueInfo]) -> dict[int, Any]:
    """The known inputs by index: arrays, and TensorValues whose elements are not computed yet."""
    return {i: info.constant if isinstance(info, ComputedInfo) else info.value
            for i, info in enumerate(inputs) if info.is_known}


def _equal(a: Any, b: Any) -> bool:
    try:
        return bool(a == b)
    except ValueError:  # an array among the attributes
        return False


def _have_equal_elements(a: Any, b: Any) -> bool:
    if hasattr(a, "tobytes") and hasattr(b, "tobytes"):
        return bool(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes())
    return hasattr(a, "raw") and _equal(a, b)  # TensorValues; a constant that a file lacks is equal to itself alone
