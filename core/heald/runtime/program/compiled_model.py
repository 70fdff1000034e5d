"""CompiledModel: a program compiled ahead of time, with everything that is needed to load it as a model.

A file of the program alone is a CompiledModel without entries.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from ...errors import FailedPrecondition
from ..support.records import NamedTuple
from ..values.dtypes import DType
from ..values.tensor import TensorMetadata
from .host_program import ProgramDef

COMPILE_AGAIN = "compile the model again on this host ('heald compile'), or without strip"


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

    `use`: "device", "kernels" or "ops".
    """

    plugin: str
    distribution: str
    version: str
    use: str


class StrippedConstant:
    """A constant whose elements a file lacks, since its kernels have prepared forms. It stands for a TensorValue."""

    is_filled, scaling, file = False, None, None

    def __init__(self, dtype: DType, shape: tuple[int, ...]) -> None:
        self.dtype, self.shape = dtype, shape

    def __repr__(self) -> str:
        return f"<{TensorMetadata(self.dtype, self.shape)}, stripped>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StrippedConstant) and (self.dtype, self.shape) == (other.dtype, other.shape)

    def __hash__(self) -> int:
        return hash((self.dtype, self.shape))

    def array(self) -> Any:
        """Raises FailedPrecondition: there are no elements."""
        raise FailedPrecondition(f"the elements of this constant, {TensorMetadata(self.dtype, self.shape)}, were left "
                                 "out of the compiled file: its kernels had prepared forms when it was compiled",
                                 hint=COMPILE_AGAIN)


class PreparedConstant(NamedTuple):
    """An array that a kernel prepared from constants, under the slot of `Bind.prepared`: function, node, device, key.

    `fingerprint`: of pack, library, version and instruction set. A kernel with another one prepares anew.
    """

    function: str
    node: str
    device: str
    key: str
    fingerprint: str
    value: Any


class CompiledModel(NamedTuple):
    """A program and the facts that loading it needs. `form` names the source's format, such as "SavedModel".

    `chosen_signature`: the signature that `heald.load` returns.
    `left_out`: the signatures that were not compiled, with the reasons; a file does not have them.
    """

    program: ProgramDef
    entries: tuple[Entry, ...] = ()
    requirements: tuple[Requirement, ...] = ()
    prepared: tuple[PreparedConstant, ...] = ()
    form: str = ""
    chosen_signature: str = ""
    left_out: Mapping[str, str] = MappingProxyType({})
