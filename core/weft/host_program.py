"""HostProgram: what a graph is lowered to, as pure data. A flat list of kernel calls over registers.

Registers are numbered within a function; its arguments are the first of them. A call names its kernel as
"<pack>.<Op>". The runtime itself has two codes: `weft.constant` (attribute `index` into the program's constants) and
`weft.copy` (a value enters or leaves a device's memory; attribute `to`: "device" or "host"). A call's stream is the
index of its device in `requires`. The calls stand in an order in which they may run one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .tensor import TensorMetadata

CONSTANT = "weft.constant"
COPY = "weft.copy"
HOST = -1  # the stream of values in host memory, and of what the runtime itself does there


@dataclass(frozen=True, slots=True)
class Call:
    """One kernel call. `node` is the graph node it stands for, for messages and traces."""

    code: str
    args: tuple[int, ...]
    results: tuple[int, ...]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    stream: int = HOST
    node: str = ""

    @property
    def op(self) -> str:
        return self.code.partition(".")[2]

    @property
    def pack(self) -> str:
        return self.code.partition(".")[0]


@dataclass(frozen=True, slots=True)
class Function:
    """`register_types` has the metadata of every register as far as it is known without feeds; `results` are the
    registers that it returns, `targets` those computed for their effect alone."""

    name: str
    arg_names: tuple[str, ...]
    register_types: tuple[TensorMetadata, ...]
    kernels: tuple[Call, ...]
    results: tuple[int, ...]
    targets: tuple[int, ...] = ()

    @property
    def arg_types(self) -> tuple[TensorMetadata, ...]:
        return self.register_types[: len(self.arg_names)]

    @property
    def result_types(self) -> tuple[TensorMetadata, ...]:
        return tuple(self.register_types[r] for r in self.results)


@dataclass(frozen=True, slots=True)
class HostProgram:
    """Functions by name, the constants they share, and the devices they need: `CPU:0`, one for each stream."""

    functions: Mapping[str, Function]
    constants: tuple[Any, ...] = ()
    requires: tuple[str, ...] = ()
