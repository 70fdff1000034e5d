"""ProgramDef: the result of lowering a graph, as pure data: a flat list of kernel calls over registers.

Registers are numbered within a function; its arguments come first. A call names its kernel: an op's kernel as
"<pack>.<Op>", a host kernel by its code, such as "tfrt.add.i32". A call's stream is the index of its device in
`requires`. The calls stand in an order in which they may run one after the other.

The runtime itself serves four codes:

- `heald.constant` has the attribute `index` into the program's constants.
- `heald.copy` moves a value into or out of a device's memory; the attribute `to` is "device" or "host".
- `heald.event` returns a chain that is filled when the device has done all work enqueued before.
- `heald.group` names a compiler and a function of the program, the group that the compiler may take. A link asks the
  compiler, and puts the function's calls in the place of the call when it declines (`groups`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ...errors import Location
from ..support.records import NamedTuple
from ..values import dtypes
from ..values.tensor import TensorMetadata

CONSTANT = "heald.constant"
COPY = "heald.copy"
EVENT = "heald.event"
GROUP = "heald.group"
RUNTIME_CODES = frozenset({CONSTANT, COPY, EVENT, GROUP})  # the runtime's own codes
NATIVE = "tfrt.native."  # begins the codes of the host kernels that stand for native functions
HOST = -1  # the stream of values in host memory, of host kernels, and of the runtime's own calls there

RegisterType = TensorMetadata | str  # a tensor's metadata, or the name of a host type: "i32", "!tfrt.chain"
OPAQUE = TensorMetadata(dtypes.variant, None)  # stands for a host type in shape inference and memory planning


class Call(NamedTuple):
    """One kernel call.

    `node`: the graph node that it stands for, for messages and traces.
    `functions`: names of the program's functions that the kernel receives.
    `nonstrict`: True when it runs as soon as one argument is available, even if its kernel is declared strict.
    `after`: registers that must be filled before it runs, beside its arguments.
    `chain`: in a call without results, the register that is filled when it has run.
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
        return self.stream == HOST and self.code not in RUNTIME_CODES

    @property
    def needs(self) -> tuple[int, ...]:
        """All registers that must be filled before the call runs."""
        return self.args if not self.after else (*self.args, *self.after)

    @property
    def gives(self) -> tuple[int, ...]:
        """All registers that the call fills."""
        return self.results if self.chain is None else (*self.results, self.chain)

    @property
    def fused(self) -> tuple[str, ...]:
        """The nodes that the call does at once; empty when it does one node."""
        fused: tuple[str, ...] = self.attrs.get("_fused", ())
        return fused

    @property
    def op(self) -> str:
        return self.code.partition(".")[2]

    @property
    def pack(self) -> str:
        return self.code.partition(".")[0]


class ProgramFunction(NamedTuple):
    """One function of a program.

    `register_types`: the type of every register; of tensors as much as is known without feeds.
    `results`: the registers that it returns.
    `targets`: registers that it fills for their calls' effects alone.
    `streams`: for each call the number of its stream, as TFRT's stream analysis has it; empty for the default analysis.
        Streams affect the order of independent host kernels only.
    `is_sync`: True when TFRT runs it without its scheduler. heald runs it like any other.
    `is_compiled`: True when its constants were computed for arguments of the declared types: it serves no others,
        and linking it folds nothing.
    """

    name: str
    arg_names: tuple[str, ...]
    register_types: tuple[RegisterType, ...]
    kernels: tuple[Call, ...]
    results: tuple[int, ...]
    targets: tuple[int, ...] = ()
    location: Location | None = None
    is_compiled: bool = False
    streams: tuple[int, ...] = ()
    is_sync: bool = False

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
    """Functions by name, the constants that they share, and the required devices (`CPU:0`), one for each stream."""

    functions: Mapping[str, ProgramFunction]
    constants: tuple[Any, ...] = ()
    requires: tuple[str, ...] = ()


def native_function(
    name: str, arguments: Sequence[RegisterType], results: Sequence[RegisterType], location: Location | None = None
) -> ProgramFunction:
    """Return a function that stands for a native one: it calls the host kernel NATIVE + name, which a plugin
    registers."""
    count = len(arguments)
    result_registers = tuple(range(count, count + len(results)))
    call = Call(NATIVE + name, tuple(range(count)), result_registers, location=location)
    names = tuple(f"arg{index}" for index in range(count))
    return ProgramFunction(name, names, (*arguments, *results), (call,), result_registers, location=location)


def meta_of(register_type: RegisterType) -> TensorMetadata:
    """Return the metadata of a register, OPAQUE when it holds no tensor."""
    return OPAQUE if isinstance(register_type, str) else register_type
