"""CompiledModel: a program compiled ahead of time, with everything that is needed to load it as a model.

A file of the program alone is a CompiledModel without entries.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..values.tensor import TensorMetadata
from .host_program import ProgramDef


class Port(NamedTuple):
    """An input or output: its name, its tensor in the graph, and its declared dtype and shape."""

    name: str
    tensor: str
    meta: TensorMetadata


class Entry(NamedTuple):
    """One way to run a signature of the model: a function for arguments of its types.

    `signature`: its name; "" in a model without signatures.
    `function`: takes the inputs in this order, and returns the outputs in this order.
    `initial`: the functions without arguments that make the state. Each runs once in a session, in this order, before
        the first run of the entry.
    """

    signature: str
    function: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    initial: tuple[str, ...] = ()


class Requirement(NamedTuple):
    """A plugin that the program needs: its id, its distribution, and the version that it was compiled with.

    `use`: "device", "kernels" or "ops"; ops are needed for other shapes only.
    """

    plugin: str
    distribution: str
    version: str
    use: str


class PreparedConstant(NamedTuple):
    """What a kernel prepared from constants, as an array, under the slot of `Bind.prepared`: node, device and key.

    `fingerprint`: of pack, library, version and instruction set. Where it differs, the kernel prepares anew.
    """

    node: str
    device: str
    key: str
    fingerprint: str
    value: Any


class CompiledModel(NamedTuple):
    """A program and the facts that loading it needs. `form` names the source's format, such as "SavedModel".

    `chosen`: the signature that `weft.load` returns.
    """

    program: ProgramDef
    entries: tuple[Entry, ...] = ()
    requirements: tuple[Requirement, ...] = ()
    prepared: tuple[PreparedConstant, ...] = ()
    form: str = ""
    chosen: str = ""
