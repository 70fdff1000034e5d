"""Statements of kernels as data: each dialect writes them in its own words.

A body is a sequence of statements. A string among them is a line of C, which only dialects of C can take.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Union

from heald.api import DType

from .tree import Call, Number, Operand, Tree, Word, tree_of

# Places for the statements of a loop or a condition in a text. "behind" its head, or in "braces" behind it. A "block"
# has braces and lines of its own, "indented" or not. "below" has lines of its own without braces.
Layout = Literal["behind", "braces", "block", "indented", "below"]
Statement = Union["Define", "Array", "Assign", "Store", "When", "Loop", "Exit", "Barrier", "SameLine", "Indented",
                  str]
Body = Sequence[Statement]


@dataclass(frozen=True, slots=True)
class Define:
    """New variables of one type."""

    type_name: str
    values: Mapping[str, Tree]
    constant: bool = True


@dataclass(frozen=True, slots=True)
class Array:
    """An array of a work-item, or one that its group shares."""

    type_name: str
    name: str
    length: int
    is_shared: bool = False


@dataclass(frozen=True, slots=True)
class Assign:
    """`operator` "+" adds the value, and so on."""

    variable: Tree
    value: Tree
    operator: str = ""


@dataclass(frozen=True, slots=True)
class Store:
    """Write an element of a buffer; the value is of the element's type in registers."""

    dtype: DType
    buffer: str
    index: Tree
    value: Tree


@dataclass(frozen=True, slots=True)
class When:
    condition: Tree
    body: Body
    layout: Layout = "behind"


@dataclass(frozen=True, slots=True)
class Step:
    """A variable of a loop, with its change after each turn."""

    name: str
    start: Tree
    operator: str
    by: Tree


@dataclass(frozen=True, slots=True)
class Loop:
    type_name: str
    steps: tuple[Step, ...]
    condition: Tree
    body: Body
    layout: Layout = "behind"
    unroll: bool = False


@dataclass(frozen=True, slots=True)
class Exit:
    """The work-item has no more to do."""


@dataclass(frozen=True, slots=True)
class Barrier:
    """All work-items of a group come here, and see what the others wrote to shared arrays."""


@dataclass(frozen=True, slots=True)
class SameLine:
    """Statements that stand on one line of a text."""

    body: Body


@dataclass(frozen=True, slots=True)
class Indented:
    """Statements that stand two columns to the right."""

    body: Body


def work_item(dimension: int) -> Tree:
    return Call("GLOBAL_ID", (Number(dimension),))


def count_up(type_name: str, name: str, end: Operand, body: Body, layout: Layout = "behind", *, start: Operand = 0,
             by: Operand = 1) -> Loop:
    """A loop over `name` from `start` to before `end`."""
    step = Step(name, tree_of(start), "+", tree_of(by))
    return Loop(type_name, (step,), Word(name) < tree_of(end), body, layout)


def exit_beyond(index: str, end: Tree) -> When:
    """End work-items that have no element: launches are rounded up to whole groups."""
    return When(Word(index) >= end, [Exit()])
