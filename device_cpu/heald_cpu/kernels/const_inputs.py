"""Constant inputs: integers that a kernel reads at bind. Metadata functions read them too, so they are known."""

from __future__ import annotations

from heald.api import Bind


def integers(b: Bind, index: int) -> list[int]:
    """The elements of an input in row-major order."""
    value = b.inputs[index].value
    assert value is not None
    return [int(v) for v in value.reshape(-1)]


def integer(b: Bind, index: int) -> int:
    (number,) = integers(b, index)
    return number


def pairs(b: Bind, index: int) -> list[tuple[int, int]]:
    """The rows of an input of shape [n, 2]."""
    numbers = integers(b, index)
    return list(zip(numbers[::2], numbers[1::2], strict=True))
