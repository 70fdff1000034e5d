"""The values of the tensors in a loop's body, as far as a recurrent cell has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from heald.api import Input

from .polynomials import Block, Polynomial, Source


@dataclass(frozen=True)
class Matrix:
    """A matrix with one row for each row of the batch. `is_row`: It has one row, without the axis of the rows."""

    value: Polynomial
    width: int
    is_row: bool = False


@dataclass(frozen=True)
class Concatenation:
    """Matrices side by side."""

    parts: tuple[Matrix, ...]


@dataclass(frozen=True)
class Scalar:
    """A floating-point constant."""

    value: float


@dataclass(frozen=True)
class Integers:
    """A constant of integers. `index`: that of the loop's argument, None for a constant of the body."""

    value: np.ndarray[Any, Any]
    index: int | None = None


@dataclass(frozen=True)
class Counter:
    """A variable that counts the steps from 0, by its index."""

    index: int


@dataclass(frozen=True)
class NextCount:
    """A counter plus one."""

    index: int


@dataclass(frozen=True)
class Invariant:
    """A tensor from outside the loop that is not weights: an input list, a resource, a number of steps."""

    index: int
    tensor: Input


@dataclass(frozen=True)
class OutputList:
    """A list that the loop fills, by its index. `array`: the handle of a TensorArray, whose flow the loop passes on."""

    index: int
    array: Input | None = None


@dataclass(frozen=True)
class WrittenList:
    """An output list with an element written at this step. `at_step`: at the step's index, else at index 0."""

    index: int
    at_step: bool
    element: Matrix | Selected


@dataclass(frozen=True)
class Mask:
    """One boolean for each row of the batch, from an input list. `width`: its columns.

    `is_of_lengths`: The argument has one length for each row instead, and rows are true up to their lengths.
    """

    index: int
    width: int
    is_of_lengths: bool = False


@dataclass(frozen=True)
class Ended:
    """One boolean for each row of the batch: its length, an element of this argument, has no more steps."""

    index: int


@dataclass(frozen=True)
class Selected:
    """A matrix where a mask is true, and elsewhere another, or None for zeros."""

    mask: Mask
    new: Matrix
    old: Matrix | None


@dataclass(frozen=True)
class Bound:
    """True while a counter is less than a number of steps."""

    counter: int
    steps: int | Input


@dataclass(frozen=True)
class Condition:
    """True while all bounds are."""

    bounds: tuple[Bound, ...]


Value = (Matrix | Concatenation | Scalar | Integers | Counter | NextCount | Invariant | OutputList | WrittenList | Mask
         | Ended | Selected | Condition | Block | Source)
Values = tuple[Value | None, ...]  # the elements of one output argument
