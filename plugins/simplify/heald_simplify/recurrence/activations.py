"""The activations of gates, as polynomials over the functions that graphs have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .polynomials import Activation, Algebra, Atom, Polynomial, scale, shift

UNARY = frozenset({"Elu", "Relu", "Relu6", "Selu", "Sigmoid", "Softplus", "Softsign", "Tanh"})


UNIT_CLIP = "clip to 0 and 1"  # an activation that is several ops of graphs


class Definition(NamedTuple):
    """`factor` * `op`(`slope` * x + `offset`)."""

    op: str
    offset: float = 0.0
    factor: float = 1.0
    slope: float = 1.0


DEFINITIONS = {  # by the name in the ops of sequences
    "elu": Definition("Elu"), "hard_sigmoid": Definition("Relu6", 3.0, 1.0 / 6.0), "relu": Definition("Relu"),
    "hard_sigmoid_of_fifths": Definition(UNIT_CLIP, 0.5, slope=0.2),
    "selu": Definition("Selu"), "sigmoid": Definition("Sigmoid"), "softplus": Definition("Softplus"),
    "softsign": Definition("Softsign"), "tanh": Definition("Tanh"),
}


def activate(algebra: Algebra, name: str, argument: Polynomial) -> Polynomial:
    definition = DEFINITIONS[name]
    inner = shift(scale(argument, definition.slope), definition.offset)
    return scale(algebra.polynomial(Activation(definition.op, inner)), definition.factor)


def arguments_of(name: str, atoms: Sequence[Atom]) -> list[Polynomial]:
    """The arguments with which these atoms are the activation `name`, up to a factor."""
    definition = DEFINITIONS[name]
    return [scale(shift(atom.argument, -definition.offset), 1.0 / definition.slope) for atom in atoms
            if isinstance(atom, Activation) and atom.op == definition.op]


def names_of(atoms: Sequence[Atom]) -> list[str]:
    """The activations that atoms may be."""
    ops = {atom.op for atom in atoms if isinstance(atom, Activation)}
    return [name for name, definition in DEFINITIONS.items() if definition.op in ops]

