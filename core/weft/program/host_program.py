"""ProgramDef: what a graph is lowered to, as pure data. A flat list of kernel calls over registers.

Registers are numbered within a function; its arguments are the first of them. A call names its kernel: that of an op
as "<pack>.<Op>", a host kernel by its code, such as "tfrt.add.i32". The runtime itself has three codes:
`weft.constant` (attribute `index` into the program's constants), `weft.copy` (a value enters or leaves a device's
memory; attribute `to`: "device" or "host") and `weft.event` (its result, a chain, is there when the device has done
what was enqueued before). A call's stream is the index of its device in `requires`. The calls stand in an order in
which they may run one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from ..errors import Location
from ..values import dtypes
from ..values.tensor import TensorMetadata

CONSTANT = "weft.constant"
COPY = "weft.copy"
EVENT = "weft.event"
OWN = frozenset({CONSTANT, COPY, EVENT})  # the runtime's own codes
HOST = -1  # the stream of values in host memory, of host kernels, and of what the runtime itself does there

RegisterType = TensorMetadata | str  # of a tensor; or the name of a host type: "i32", "!tfrt.chain"
OPAQUE = TensorMetadata(dtypes.variant, None)  # what shape inference and memory planning see of a host type


class Call(NamedTuple):
    """One kernel call. `node` is the graph node it stands for, for messages and traces.

    `functions`: names of functions of the program that the kernel is given. `nonstrict`: it runs when one argument is
    there, whatever its kernel declares. `after`: registers whose values must be there before it runs, whoever reads
    them. `chain`: of a call without results, the register that tells that it has run.
    """

    code: str
    args: tuple[int, ...]
    results: tuple[int, ...]
    attrs: Mapping[str, Any] = MappingProxyType({})
    stream: int = HOST
    node: str = ""
    functions: tuple[str, ...] = ()
    nonstrict: bool = False
    location: Location | None = None
    after: tuple[int, ...] = ()
    chain: int | None = None

    @property
    def is_host_kernel(self) -> bool:
        return self.stream == HOST and self.code not in OWN

    @property
    def needs(self) -> tuple[int, ...]:
        """Every register that must have its value before the call."""
        return self.args if not self.after else (*self.args, *self.after)

    @property
    def gives(self) -> tuple[int, ...]:
        """Every register that has its value after the call."""
        return self.results if self.chain is None else (*self.results, self.chain)

    @property
    def fused(self) -> tuple[str, ...]:
        """The nodes that it does at once; none where it is one node's."""
        fused: tuple[str, ...] = self.attrs.get("_fused", ())
        return fused

    @property
    def op(self) -> str:
        return self.code.partition(".")[2]

    @property
    def pack(self) -> str:
        return self.code.partition(".")[0]


class Function(NamedTuple):
    """`register_types` has the type of every register, of tensors as far as it is known without feeds; `results` are
    the registers that it returns, `targets` those computed for their effect alone."""

    name: str
    arg_names: tuple[str, ...]
    register_types: tuple[RegisterType, ...]
    kernels: tuple[Call, ...]
    results: tuple[int, ...]
    targets: tuple[int, ...] = ()
    location: Location | None = None

    @property
    def arg_types(self) -> tuple[RegisterType, ...]:
        return self.register_types[: len(self.arg_names)]

    @property
    def arg_metas(self) -> tuple[TensorMetadata, ...]:
        return tuple(map(meta_of, self.arg_types))

    @property
    def result_metas(self) -> tuple[TensorMetadata, ...]:
        return tuple(meta_of(self.register_types[r]) for r in self.results)


class ProgramDef(NamedTuple):
    """Functions by name, the constants they share, and the devices they need: `CPU:0`, one for each stream."""

    functions: Mapping[str, Function]
    constants: tuple[Any, ...] = ()
    requires: tuple[str, ...] = ()


def meta_of(register_type: RegisterType) -> TensorMetadata:
    """The metadata of a register, OPAQUE where it holds no tensor."""
    return OPAQUE if isinstance(register_type, str) else register_type
