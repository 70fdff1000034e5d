"""Recurrent cells: a body's polynomials are compared with those of an LSTM, a GRU and a simple cell.

A candidate for each gate is read from the body. The cell's own polynomials are made from the candidates, and the cell
matches where they equal the body's. So a match never rests on the order or the names of nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from typing import NamedTuple

from .activations import activate, arguments_of, names_of
from .polynomials import (
    NO_ATOMS,
    Algebra,
    Atom,
    Block,
    Item,
    Polynomial,
    Product,
    State,
    Vector,
    add,
    constant,
    scale,
)

MOST_ATOMS = 16  # of a new state; an LSTM has four, and the candidate of a GRU five or a few more
LSTM, GRU, RNN = "_LSTMSequence", "_GRUSequence", "_RNNSequence"


class Gate(NamedTuple):
    """x w + h u + the sum of `biases` + `shift`."""

    w: Block
    u: Block
    biases: tuple[Block, ...]
    shift: float


class Cell(NamedTuple):
    """`states`: the indices of the loop's variables h and, of an LSTM, c. `item`: the index of the list of x.

    `candidate_biases`, `candidate_shift`: of a GRU with the reset behind the product, added to the product.
    """

    op: str
    states: tuple[int, ...]
    item: int
    gates: tuple[Gate, ...]
    activation: str
    recurrent_activation: str | None = None
    reset_after: bool | None = None
    candidate_biases: tuple[Block, ...] = ()
    candidate_shift: float = 0.0


def cell_of(algebra: Algebra, states: Mapping[int, Polynomial]) -> Cell | None:
    """The cell that computes these new states, by the index of the variable."""
    if any(len(algebra.atoms_of(result)) > MOST_ATOMS for result in states.values()):
        return None
    if len(states) == 2:
        return next((cell for hidden, state in permutations(states)
                     for cell in _lstms(algebra, states, hidden, state)), None)
    if len(states) == 1:
        (hidden,) = states
        result = states[hidden]
        cells = (*_simple_cells(algebra, result, hidden), *_grus(algebra, result, hidden))
        return cells[0] if cells else None
    return None


def _lstms(algebra: Algebra, states: Mapping[int, Polynomial], hidden: int, state: int) -> Iterator[Cell]:
    new_state, new_hidden = states[state], states[hidden]
    state_atoms, hidden_atoms = algebra.atoms_of(new_state), algebra.atoms_of(new_hidden)
    before = algebra.polynomial(State(state))
    for activation, recurrent_activation in _pairs(state_atoms):
        gates = arguments_of(recurrent_activation, state_atoms)
        squashed = activate(algebra, activation, new_state)
        outputs = arguments_of(recurrent_activation, hidden_atoms)
        for input_gate, forget_gate in permutations(gates, 2):
            i, f = (activate(algebra, recurrent_activation, gate) for gate in (input_gate, forget_gate))
            for candidate in arguments_of(activation, state_atoms):
                g = activate(algebra, activation, candidate)
                if add(algebra.multiply(f, before), algebra.multiply(i, g)) != new_state:
                    continue
                for output in outputs:
                    o = activate(algebra, recurrent_activation, output)
                    arguments = input_gate, forget_gate, candidate, output
                    if algebra.multiply(o, squashed) == new_hidden:
                        yield from _cell(algebra, LSTM, arguments, (hidden, state), activation, recurrent_activation)


def _cell(
    algebra: Algebra, op: str, arguments: Sequence[Polynomial], states: tuple[int, ...], activation: str,
    recurrent_activation: str | None = None,
) -> Iterator[Cell]:
    gates = [_gate(algebra, argument, states[0]) for argument in arguments]
    items = {gate[1] for gate in gates if gate is not None}
    if len(items) == 1 and None not in gates:
        yield Cell(op, states, items.pop(), tuple(gate[0] for gate in gates if gate is not None), activation,
                   recurrent_activation)


def _simple_cells(algebra: Algebra, result: Polynomial, hidden: int) -> Iterator[Cell]:
    atoms = algebra.atoms_of(result)
    for activation in names_of(atoms):
        for argument in arguments_of(activation, atoms):
            if activate(algebra, activation, argument) == result:
                yield from _cell(algebra, RNN, [argument], (hidden,), activation)


def _grus(algebra: Algebra, result: Polynomial, hidden: int) -> Iterator[Cell]:
    atoms = algebra.atoms_of(result)
    before = algebra.polynomial(State(hidden))
    for activation, recurrent_activation in _pairs(atoms):
        for update in arguments_of(recurrent_activation, atoms):
            z = activate(algebra, recurrent_activation, update)
            for candidate in arguments_of(activation, atoms):
                g = activate(algebra, activation, candidate)
                renewal = algebra.multiply(add(constant(1.0), scale(z, -1.0)), g)
                if add(algebra.multiply(z, before), renewal) == result:
                    yield from _grus_of(algebra, update, candidate, hidden, (activation, recurrent_activation))


def _grus_of(
    algebra: Algebra, update: Polynomial, candidate: Polynomial, hidden: int, activations: tuple[str, str]
) -> Iterator[Cell]:
    before = algebra.polynomial(State(hidden))
    atoms = algebra.atoms_of(candidate)
    if len(atoms) > MOST_ATOMS:
        return
    resets = arguments_of(activations[1], atoms)
    inner = [atom for atom in atoms if isinstance(atom, Product) and not _is_of_item(algebra, atom)]
    for product in inner:
        for reset in (*resets, *arguments_of(activations[1], algebra.atoms_of(product.factor))):
            r = activate(algebra, activations[1], reset)
            plain = algebra.polynomial(replace(product, factor=before))
            if product.factor == algebra.multiply(r, before):  # the reset is in front of the product
                others = add(candidate, scale(algebra.polynomial(product), -1.0))
                gates = add(others, plain)
                recurrent: tuple[tuple[Block, ...], float] = (), 0.0
            elif product.factor == before:
                parts = _recurrent_part(algebra, candidate, r, product)
                if parts is None:
                    continue
                gates, recurrent = add(parts[0], plain), parts[1]
            else:
                continue
            for cell in _cell(algebra, GRU, (update, reset, gates), (hidden,), *activations):
                biases, shift = recurrent
                yield cell._replace(reset_after=product.factor == before, candidate_biases=biases,
                                    candidate_shift=shift)


def _recurrent_part(
    algebra: Algebra, candidate: Polynomial, r: Polynomial, product: Product
) -> tuple[Polynomial, tuple[tuple[Block, ...], float]] | None:
    """The candidate without r (h u + rb), and rb as vectors and a number. None where a part is neither."""
    factors = {number for monomial, _ in r for number in monomial}
    (reset_factor,) = [coefficient for _, coefficient in r] if len(r) == 1 else (0.0,)
    if not reset_factor:
        return None
    reset_monomial = next(iter(r))[0]
    biases, shift = [], 0.0
    for monomial, coefficient in candidate:
        if not factors.intersection(monomial):
            continue
        cofactor = [*monomial]
        for number in reset_monomial:
            if number not in cofactor:
                return None
            cofactor.remove(number)
        atom = algebra.atoms[cofactor[0]] if len(cofactor) == 1 else None
        if not cofactor:
            shift = coefficient / reset_factor
        elif isinstance(atom, Vector):
            biases.append(atom.weights)
        elif atom != product:
            return None
    inner = add(algebra.polynomial(product), constant(shift))
    for bias in biases:
        inner = add(inner, algebra.polynomial(Vector(bias)))
    rest_of_candidate = add(candidate, scale(algebra.multiply(r, inner), -1.0))
    if factors & {number for monomial, _ in rest_of_candidate for number in monomial}:
        return None  # a bias with a factor
    return rest_of_candidate, (tuple(biases), shift)


def _is_of_item(algebra: Algebra, product: Product) -> bool:
    return any(isinstance(atom, Item) for atom in algebra.atoms_of(product.factor))


def _pairs(atoms: Sequence[Atom]) -> Iterator[tuple[str, str]]:
    names = names_of(atoms)
    yield from ((activation, recurrent) for activation in names for recurrent in names)


def _gate(algebra: Algebra, argument: Polynomial, hidden: int) -> tuple[Gate, int] | None:
    """A gate, and the index of its list. None unless it is one product of x, one of h, vectors and a number."""
    before = algebra.polynomial(State(hidden))
    w: tuple[Block, int] | None = None
    u: Block | None = None
    biases, shift = [], 0.0
    for monomial, coefficient in sorted(argument):
        atom = algebra.atoms[monomial[0]] if len(monomial) == 1 else None
        if monomial == NO_ATOMS:
            shift = coefficient
        elif coefficient != 1.0 or atom is None:
            return None
        elif isinstance(atom, Vector):
            biases.append(atom.weights)
        elif isinstance(atom, Product) and atom.factor == before and u is None:
            u = atom.weights
        elif isinstance(atom, Product) and w is None and (item := _item(algebra, atom.factor)) is not None:
            w = atom.weights, item
        else:
            return None
    return None if w is None or u is None else (Gate(w[0], u, tuple(biases), shift), w[1])


def _item(algebra: Algebra, factor: Polynomial) -> int | None:
    """The index of the list whose element a polynomial is."""
    atoms = algebra.atoms_of(factor)
    is_item = len(atoms) == 1 and isinstance(atoms[0], Item) and factor == algebra.polynomial(atoms[0])
    return atoms[0].index if is_item and isinstance(atoms[0], Item) else None

