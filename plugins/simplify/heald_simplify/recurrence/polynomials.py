"""Polynomials over the matrices of a loop's body: the normal form in which bodies are compared."""

# A body is a function from a step's input and the states to the new states. Two bodies that compute the same may have
# different nodes: gates are cut by Split or StridedSlice, sums are associated in any order, a product of a
# concatenation is a sum of products. Their polynomials are equal.
#
# An atom is a matrix that is no sum: a state, the product of a matrix with weights, a vector of weights, an activation
# of a polynomial. Atoms are numbered in a table. A monomial is a sorted tuple of these numbers, a polynomial maps
# monomials to coefficients. So equality is equality of small integers, and a polynomial in an atom costs nothing.
#
# Columns can be cut out of a polynomial, since all its operations but the products work column by column. A product's
# columns are those of its weights.
#
# Atoms are dataclasses, for tuples of two classes with equal fields would be equal.

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from heald.api import Input

Monomial = tuple[int, ...]
Polynomial = frozenset[tuple[Monomial, float]]

MOST_TERMS = 64  # of a polynomial; a recurrent cell has a dozen
MOST_NESTED = 4  # activations of activations whose columns are cut
MOST_ATOMS = 1000  # of a body
NO_ATOMS: Monomial = ()


class Source(NamedTuple):
    """A tensor outside the loop. `is_variable`: It is a resource whose value the body reads."""

    tensor: Input
    is_variable: bool = False


class Block(NamedTuple):
    """Rows and columns of a tensor outside the loop, from the first to behind the last.

    `rows` is None for a vector. `is_row`: It is one row of a matrix, without the axis of the rows.
    """

    source: Source
    shape: tuple[int, ...]
    rows: tuple[int, int] | None
    columns: tuple[int, int]
    is_row: bool = False

    @property
    def width(self) -> int:
        return self.columns[1] - self.columns[0]

    @property
    def height(self) -> int:
        return 1 if self.rows is None else self.rows[1] - self.rows[0]

    @property
    def is_vector(self) -> bool:
        return self.rows is None or self.is_row

    @property
    def is_whole(self) -> bool:
        rows = (0, self.shape[0]) if len(self.shape) == 2 else None
        return not self.is_row and self.rows == rows and self.columns == (0, self.shape[-1])

    def column_block(self, start: int, stop: int) -> Block:
        return self._replace(columns=(self.columns[0] + start, self.columns[0] + stop))

    def row_block(self, start: int, stop: int) -> Block:
        assert self.rows is not None
        return self._replace(rows=(self.rows[0] + start, self.rows[0] + stop))


@dataclass(frozen=True)
class State:
    """A variable of the loop, by its index."""

    index: int


@dataclass(frozen=True)
class Item:
    """The element of a list for this step. `index`: the list's index among the loop's arguments."""

    index: int


@dataclass(frozen=True)
class Product:
    """A matrix times weights."""

    factor: Polynomial
    weights: Block


@dataclass(frozen=True)
class Vector:
    """Weights that are equal for all rows."""

    weights: Block


@dataclass(frozen=True)
class Activation:
    """A function of each element."""

    op: str
    argument: Polynomial


@dataclass(frozen=True)
class Clip:
    """Each element between two bounds, of which one may be missing."""

    argument: Polynomial
    low: float | None
    high: float | None


Atom = State | Item | Product | Vector | Activation | Clip


class TooLarge(Exception):
    """A body has more terms than any recurrent cell."""


class Algebra:
    """The atoms of one body, and the operations on polynomials over them.

    Raises TooLarge.
    """

    def __init__(self) -> None:
        self.atoms: list[Atom] = []
        self._numbers: dict[Atom, int] = {}

    def polynomial(self, atom: Atom) -> Polynomial:
        number = self._numbers.setdefault(atom, len(self.atoms))
        if number == len(self.atoms):
            if number == MOST_ATOMS:
                raise TooLarge
            self.atoms.append(atom)
        return frozenset([((number,), 1.0)])

    def atoms_of(self, polynomial: Polynomial) -> list[Atom]:
        """The atoms of all monomials, without repetition, in a fixed order."""
        return [self.atoms[number] for number in sorted({n for monomial, _ in polynomial for n in monomial})]

    def only_atom(self, polynomial: Polynomial) -> Atom | None:
        """The atom that a polynomial is. None for a sum, a multiple or a product of atoms."""
        atoms = self.atoms_of(polynomial)
        return atoms[0] if len(atoms) == 1 and polynomial == self.polynomial(atoms[0]) else None

    def multiply(self, a: Polynomial, b: Polynomial) -> Polynomial:
        terms: dict[Monomial, float] = {}
        if len(a) * len(b) > MOST_TERMS:
            raise TooLarge
        for left, left_coefficient in a:
            for right, right_coefficient in b:
                monomial = tuple(sorted(left + right))
                terms[monomial] = terms.get(monomial, 0.0) + left_coefficient * right_coefficient
        return _without_zeros(terms)

    def columns(self, polynomial: Polynomial, start: int, stop: int, nested: int = 0) -> Polynomial | None:
        """The columns of a polynomial, or None where an atom has no columns of its own."""
        total = constant(0.0)
        for monomial, coefficient in polynomial:
            term: Polynomial = constant(coefficient)
            for number in monomial:
                atom = self._columns_of_atom(self.atoms[number], start, stop, nested)
                if atom is None:
                    return None
                term = self.multiply(term, self.polynomial(atom))
            total = add(total, term)
        return total

    def _columns_of_atom(self, atom: Atom, start: int, stop: int, nested: int) -> Atom | None:
        if isinstance(atom, Product | Vector):
            return replace(atom, weights=atom.weights.column_block(start, stop))
        if not isinstance(atom, Activation | Clip) or nested == MOST_NESTED:
            return None
        argument = self.columns(atom.argument, start, stop, nested + 1)
        return None if argument is None else replace(atom, argument=argument)


def constant(value: float) -> Polynomial:
    return _without_zeros({NO_ATOMS: value})


def add(a: Polynomial, b: Polynomial) -> Polynomial:
    terms = dict(a)
    for monomial, coefficient in b:
        terms[monomial] = terms.get(monomial, 0.0) + coefficient
    if len(terms) > MOST_TERMS:
        raise TooLarge
    return _without_zeros(terms)


def scale(polynomial: Polynomial, factor: float) -> Polynomial:
    return _without_zeros({monomial: coefficient * factor for monomial, coefficient in polynomial})


def shift(polynomial: Polynomial, by: float) -> Polynomial:
    return add(polynomial, constant(by))


def _without_zeros(terms: Mapping[Monomial, float]) -> Polynomial:
    return frozenset((monomial, _round_coefficient(value)) for monomial, value in terms.items() if value)


def _round_coefficient(coefficient: float) -> float:
    """A coefficient with seven digits: a sixth in float32 equals a division by six."""
    return float(f"{coefficient:.7g}")
