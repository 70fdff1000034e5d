"""Signatures: the names that a model's inputs and outputs have for its users."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..values.tensor import TensorMetadata


class Place(NamedTuple):
    """An input or output of a signature: the tensor in the graph, and what the signature says of it."""

    tensor: str
    meta: TensorMetadata


class Signature(NamedTuple):
    """Inputs and outputs by name, sorted; the parts of one that is several tensors are `name/part`. `initializers`:
    nodes to run once before anything else, in order."""

    method: str
    inputs: Mapping[str, Place]
    outputs: Mapping[str, Place]
    initializers: tuple[str, ...] = ()

    def __str__(self) -> str:
        sides = (", ".join(f"{name}: {place.meta}" for name, place in side.items())
                 for side in (self.inputs, self.outputs))
        return " -> ".join(f"({side})" for side in sides)
