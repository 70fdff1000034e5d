"""Integers that a kernel reads when it is bound: elements of inputs that the op's metadata function reads too."""

from __future__ import annotations

from weft.api import Bind


def integers(b: Bind, index: int) -> list[int]:
    value = b.inputs[index].value
    assert value is not None
    return [int(v) for v in value.reshape(-1)]


def integer(b: Bind, index: int) -> int:
    (number,) = integers(b, index)
    return number


def pairs(b: Bind, index: int) -> list[tuple[int, int]]:
    """The rows of a matrix of two columns."""
    numbers = integers(b, index)
    return list(zip(numbers[::2], numbers[1::2], strict=True))
