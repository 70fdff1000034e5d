"""A loop over the steps of a recurrent layer: its cell, and its variables by kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from heald.api import DType, Input, Node

from .body_values import Counter, Mask, Matrix, NextCount, OutputList, Selected, Value, WrittenList
from .cells import Cell
from .polynomials import Algebra, Polynomial


class Loop(NamedTuple):
    """A loop whose body is a cell, or several, each of which has the h of the one before as its x.

    `item`: the index of the list of x. `bounds`: the numbers of steps, the smallest of which counts.

    `is_aligned`: x, the states and the mask are sure to have as many rows. `broadcasts_rows`: If not, the body makes x
    and h as long as the longest. `is_mask_as_long`: The mask is sure to have
    as many steps as x.
    """

    node: Node
    cells: tuple[Cell, ...]
    item: int
    dtype: DType
    bounds: tuple[int | Input, ...]
    mask: Mask | None
    masked: str
    previous: int | None  # the variable of the last output
    written: WrittenList | None
    invariants: frozenset[int]
    counters: frozenset[int]
    is_aligned: bool = True
    broadcasts_rows: bool = True
    is_mask_as_long: bool = True

    @property
    def states(self) -> list[int]:
        """The variables that are states of the cells."""
        return [state for cell in self.cells for state in cell.states]

    @property
    def output(self) -> int:
        """The variable h of the last cell."""
        return self.cells[-1].states[0]


class LoopVariables:
    """The variables of a loop by kind, from their values before and after a step."""

    def __init__(self, arguments: Sequence[Value | None], results: Sequence[Value | None]) -> None:
        self.counters: set[int] = set()
        self.invariants: set[int] = set()
        self._states: dict[int, Matrix | Selected] = {}
        self.are_regular = True
        for index, (argument, result) in enumerate(zip(arguments, results, strict=True)):
            if isinstance(argument, Counter) and result == NextCount(index):
                self.counters.add(index)
            elif isinstance(argument, OutputList):
                self.are_regular &= isinstance(result, WrittenList) and result.index == index
            elif isinstance(argument, Matrix):
                self.are_regular &= isinstance(result, Matrix | Selected)
                if isinstance(result, Matrix | Selected):
                    self._states[index] = result
            elif argument is None or isinstance(argument, Counter):
                self.are_regular = False
            else:
                self.invariants.add(index)
        self._own = {index: value for index, value in enumerate(arguments) if isinstance(value, Matrix)}

    def previous_output(self, outputs: Sequence[WrittenList]) -> int | None:
        """The variable that is the masked output of the step before. It differs from h in its first value."""
        element = outputs[0].element if outputs else None
        if not isinstance(element, Selected):
            return None
        return next((index for index, state in self._own.items()
                     if element.old in (None, state) and self._states.get(index) == element
                     and self._has_twin(index, element)), None)

    def _has_twin(self, index: int, element: Selected) -> bool:
        """True where another variable has the same new value: then this one is the output, and that one is h."""
        return any(isinstance(other, Selected) and other.new == element.new
                   for position, other in self._states.items() if position != index)

    def new_states(self, algebra: Algebra, previous: int | None) -> dict[int, Polynomial] | None:
        """The new states before the mask. None where a masked state is not its own old value."""
        new: dict[int, Polynomial] = {}
        for index, value in self._states.items():
            if index == previous:
                continue
            matrix = value.new if isinstance(value, Selected) else value
            if isinstance(value, Selected) and value.old != self._own[index]:
                return None
            if matrix.is_row or matrix.width != self._own[index].width:
                return None
            new[index] = matrix.value
        return new

    def masks(self, cells: Sequence[Cell]) -> list[Mask]:
        """The masks of the states. They are all equal, or the loop is none of a layer."""
        values = [self._states[index] for cell in cells for index in cell.states]
        masks = [value.mask for value in values if isinstance(value, Selected)]
        return masks if len(masks) in (0, len(values)) else [*masks, Mask(-1, 1)]


def masked_attribute(
    written: WrittenList | None, cell: Cell, states: Mapping[int, Polynomial], masks: Sequence[Mask],
    previous: int | None,
) -> str | None:
    """The attribute `masked` of the op. None where the list's element is not the output h of the cell."""
    if written is None:
        return "previous"
    element = written.element
    new = element.new if isinstance(element, Selected) else element
    if new.value != states[cell.states[0]] or new.is_row or isinstance(element, Selected) != bool(masks):
        return None
    if not isinstance(element, Selected):
        return "previous"
    if element.mask != masks[0]:
        return None
    if element.old is None:
        return "zeros"
    return None if previous is None else "previous"
