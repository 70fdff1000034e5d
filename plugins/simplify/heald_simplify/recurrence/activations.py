"""The activations of gates, as polynomials over the functions that graphs have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .polynomials import Activation, Algebra, Atom, Polynomial, scale, shift

UNARY = frozenset({"Elu", "Relu", "Relu6", "Selu", "Sigmoid", "Softplus", "Softsign", "Tanh"})


class Definition(NamedTuple):
    """`factor` * `op`(x + `offset`)."""

    op: str
    offset: float = 0.0
    factor: float = 1.0


DEFINITIONS = {  # by the name in the ops of sequences
    "elu": Definition("Elu"), "hard_sigmoid": Definition("Relu6", 3.0, 1.0 / 6.0), "relu": Definition("Relu"),
    "selu": Definition("Selu"), "sigmoid": Definition("Sigmoid"), "softplus": Definition("Softplus"),
    "softsign": Definition("Softsign"), "tanh": Definition("Tanh"),
}


def activate(algebra: Algebra, name: str, argument: Polynomial) -> Polynomial:
    definition = DEFINITIONS[name]
    return scale(algebra.polynomial(Activation(definition.op, shift(argument, definition.offset))), definition.factor)


def arguments_of(name: str, atoms: Sequence[Atom]) -> list[Polynomial]:
    """The arguments with which these atoms are the activation `name`, up to a factor."""
    definition = DEFINITIONS[name]
    return [shift(atom.argument, -definition.offset) for atom in atoms
            if isinstance(atom, Activation) and atom.op == definition.op]


def names_of(atoms: Sequence[Atom]) -> list[str]:
    """The activations that atoms may be."""
    ops = {atom.op for atom in atoms if isinstance(atom, Activation)}
    return [name for name, definition in DEFINITIONS.items() if definition.op in ops]

