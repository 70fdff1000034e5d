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
    Clip,
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


class LstmParts(NamedTuple):
    """`peepholes`: vectors of c in i and f, and of the new c in o. `projection`: It makes h of the cells. Clips of c
    and h: 0 for none."""

    peepholes: tuple[Block, ...] = ()
    projection: Block | None = None
    cell_clip: float = 0.0
    proj_clip: float = 0.0


class Cell(NamedTuple):
    """`states`: the indices of the loop's variables h and, of an LSTM, c. `item`: the index of the list of x.

    `item` is None for a cell above another cell, whose h is its x.
    `candidate_biases`, `candidate_shift`: of a GRU with the reset behind the product, added to the product.
    """

    op: str
    states: tuple[int, ...]
    item: int | None
    gates: tuple[Gate, ...]
    activation: str
    recurrent_activation: str | None = None
    reset_after: bool | None = None
    candidate_biases: tuple[Block, ...] = ()
    candidate_shift: float = 0.0
    parts: LstmParts = LstmParts()


def cells_of(algebra: Algebra, states: Mapping[int, Polynomial]) -> tuple[Cell, ...] | None:
    """The cells that compute these new states, by the index of the variable. Each has the h of the one before as x."""
    if any(len(algebra.atoms_of(result)) > MOST_ATOMS for result in states.values()):
        return None
    cells: list[Cell] = []
    below: Polynomial | None = None
    missing = dict(states)
    while missing:
        cell = next(_cells(algebra, missing, below), None)
        if cell is None:
            return None
        cells.append(cell)
        below = states[cell.states[0]]
        missing = {index: result for index, result in missing.items() if index not in cell.states}
    return tuple(cells) or None


def _cells(algebra: Algebra, states: Mapping[int, Polynomial], below: Polynomial | None) -> Iterator[Cell]:
    """Yield the cells of some of these states whose x is `below`, or the element of a list."""
    for hidden, state in permutations(states, 2):
        for cell in _lstms(algebra, states, hidden, state):
            yield from _with_input(algebra, cell, below)
    for hidden, result in states.items():
        for cell in (*_simple_cells(algebra, result, hidden), *_grus(algebra, result, hidden)):
            yield from _with_input(algebra, cell, below)


class _Match(NamedTuple):
    """A cell, and the polynomial that each of its gates multiplies by w."""

    cell: Cell
    x: Polynomial


def _with_input(algebra: Algebra, match: _Match, below: Polynomial | None) -> Iterator[Cell]:
    if below is not None and match.x == below:
        yield match.cell
    elif below is None:
        atom = algebra.only_atom(match.x)
        if isinstance(atom, Item):
            yield match.cell._replace(item=atom.index)


def _lstms(algebra: Algebra, states: Mapping[int, Polynomial], hidden: int, state: int) -> Iterator[_Match]:
    clipped_state, (projected, proj_clip) = states[state], _without_clip(algebra, states[hidden])
    new_state, cell_clip = _without_clip(algebra, clipped_state)
    product = algebra.only_atom(projected)
    new_hidden, projection = (product.factor, product.weights) if isinstance(product, Product) else (projected, None)
    state_atoms, hidden_atoms = algebra.atoms_of(new_state), algebra.atoms_of(new_hidden)
    parts = LstmParts((), projection, cell_clip, proj_clip)
    before = algebra.polynomial(State(state))
    for activation, recurrent_activation in _pairs(state_atoms):
        gates = arguments_of(recurrent_activation, state_atoms)
        squashed = activate(algebra, activation, clipped_state)
        outputs = arguments_of(recurrent_activation, hidden_atoms)
        for input_gate, forget_gate in permutations(gates, 2):
            i, f = (activate(algebra, recurrent_activation, gate) for gate in (input_gate, forget_gate))
            for candidate in arguments_of(activation, state_atoms):
                g = activate(algebra, activation, candidate)
                if add(algebra.multiply(f, before), algebra.multiply(i, g)) != new_state:
                    continue
                for output in outputs:
                    o = activate(algebra, recurrent_activation, output)
                    if algebra.multiply(o, squashed) == new_hidden:
                        seen = (input_gate, before), (forget_gate, before), (output, clipped_state)
                        arguments, peepholes = _without_peepholes(algebra, seen)
                        cell = Cell(LSTM, (hidden, state), None, (), activation, recurrent_activation,
                                    parts=parts._replace(peepholes=peepholes))
                        yield from _matches(algebra, cell, [*arguments[:2], candidate, arguments[2]])


def _without_clip(algebra: Algebra, polynomial: Polynomial) -> tuple[Polynomial, float]:
    """What is clipped to -bound and bound, and the bound. The polynomial and 0 where nothing is."""
    clip = algebra.only_atom(polynomial)
    if isinstance(clip, Clip) and clip.low is not None and clip.high == -clip.low and clip.high > 0:
        return clip.argument, clip.high
    return polynomial, 0.0


def _without_peepholes(
    algebra: Algebra, seen: Sequence[tuple[Polynomial, Polynomial]]
) -> tuple[list[Polynomial], tuple[Block, ...]]:
    """The arguments of gates without the products of their states with vectors, and the vectors. `seen`: arguments and
    states. The arguments as they are, where one has no such product."""
    peepholes = [_peephole(algebra, argument, state) for argument, state in seen]
    if not all(peepholes):
        return [argument for argument, _ in seen], ()
    rest = [add(argument, scale(algebra.multiply(algebra.polynomial(peephole), state), -1.0))
            for (argument, state), peephole in zip(seen, peepholes, strict=True) if peephole is not None]
    return rest, tuple(peephole.weights for peephole in peepholes if peephole is not None)


def _peephole(algebra: Algebra, argument: Polynomial, state: Polynomial) -> Vector | None:
    """The vector whose product with the state is a part of the argument."""
    terms = {monomial for monomial, _ in argument if len(monomial) > 1}
    for number in sorted({number for monomial in terms for number in monomial}):
        atom = algebra.atoms[number]
        if isinstance(atom, Vector) and {m for m, _ in algebra.multiply(algebra.polynomial(atom), state)} == terms:
            return atom
    return None


def _matches(algebra: Algebra, cell: Cell, arguments: Sequence[Polynomial]) -> Iterator[_Match]:
    """Yield the cell with the gates that have these arguments."""
    gates = [_gate(algebra, argument, cell.states[0]) for argument in arguments]
    inputs = {gate[1] for gate in gates if gate is not None}
    if len(inputs) == 1 and None not in gates:
        yield _Match(cell._replace(gates=tuple(gate[0] for gate in gates if gate is not None)), inputs.pop())


def _simple_cells(algebra: Algebra, result: Polynomial, hidden: int) -> Iterator[_Match]:
    atoms = algebra.atoms_of(result)
    for activation in names_of(atoms):
        for argument in arguments_of(activation, atoms):
            if activate(algebra, activation, argument) == result:
                yield from _matches(algebra, Cell(RNN, (hidden,), None, (), activation), [argument])


def _grus(algebra: Algebra, result: Polynomial, hidden: int) -> Iterator[_Match]:
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
) -> Iterator[_Match]:
    before = algebra.polynomial(State(hidden))
    atoms = algebra.atoms_of(candidate)
    if len(atoms) > MOST_ATOMS:
        return
    resets = arguments_of(activations[1], atoms)
    inner = [atom for atom in atoms if isinstance(atom, Product)]
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
            cell = Cell(GRU, (hidden,), None, (), *activations, product.factor == before, *recurrent)
            yield from _matches(algebra, cell, (update, reset, gates))


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


def _pairs(atoms: Sequence[Atom]) -> Iterator[tuple[str, str]]:
    names = names_of(atoms)
    yield from ((activation, recurrent) for activation in names for recurrent in names)


def _gate(algebra: Algebra, argument: Polynomial, hidden: int) -> tuple[Gate, Polynomial] | None:
    """A gate, and x. None unless it is one product of x, one of h, vectors and a number."""
    before = algebra.polynomial(State(hidden))
    products: list[Product] = []
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
        elif isinstance(atom, Product):
            products.append(atom)
        else:
            return None
    if u is None or len(products) != 1:
        return None
    return Gate(products[0].weights, u, tuple(biases), shift), products[0].factor
