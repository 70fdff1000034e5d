"""HostProgram: a host program that users can run."""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import InvalidArgument, NotFound, boundary
from ..contract.host_kernel import Callee
from ..contract.loader import LoadOptions
from ..executor.step import RunOptions
from ..host.host import Host
from ..host.host_memory import HostMemory
from ..host.resources import Resources
from ..linker.checked_program import CheckedFunctions
from ..linker.host_binding import check_argument
from ..linker.link import LinkedFunction
from ..program.execution_order import in_execution_order
from ..program.host_program import Call, ProgramDef, ProgramFunction, RegisterType
from ..program.verifier import verify
from ..support.file_path import file_path
from ..values.async_value import AsyncValue
from .feeds import convert_feed
from .request import NO_OPTIONS, RequestContext
from .runtime import runtime


@dataclass(frozen=True)
class HostProgram:
    """Functions of kernel calls over registers, by name; their constants; one device for each stream.

    Raises InvalidArgument, with kernel and location, for a program that is not well formed.
    """

    functions: Mapping[str, ProgramFunction]
    constants: tuple[Any, ...] = ()
    requires: tuple[str, ...] = ()

    @boundary
    def __post_init__(self) -> None:
        verify(ProgramDef(self.functions, self.constants, self.requires))

    @classmethod
    @boundary
    def load(
        cls, path: str | os.PathLike[str], *, format: str | None = None, mmap: bool = True,  # noqa: A002
    ) -> HostProgram:
        """The program in a file: BEF, or a format that a plugin reads. `format` and `mmap` are as of `heald.load`.

        Raises InvalidArgument for a file of a graph, others as `heald.load`.
        """
        from .loading import open_file  # programs that are made in memory need no loaders

        registries = runtime().host.registries
        program = open_file(file_path(path), LoadOptions(registries.ops, mmap=mmap), registries, format).program()
        return cls(program.functions, program.constants, program.requires)

    @boundary
    def dump(self, path: str | os.PathLike[str]) -> None:
        """Write the program to a BEF file. Raises as `heald.bef.dump`."""
        from ..program.bef import file  # programs that stay in memory need no codec

        file.dump(ProgramDef(self.functions, self.constants, self.requires), path)

    @boundary
    def run(
        self, function: str, *arguments: Any, request: RequestContext | None = None, options: RunOptions = NO_OPTIONS
    ) -> list[AsyncValue]:
        """Run a function and return its results, which may come later; wait for them with `host.await_values`.

        Arrays in `arguments` must not change before all results are available. A kernel that fails makes errors of its
        results and of their dependents; independent work goes on. Without a request, the program runs in a request of
        its own, on the host of the process. `options` limits this run alone: missing results become DeadlineExceeded
        or Cancelled, and calls that have not started are skipped. Its time begins behind the linking of the function.

        Raises NotFound for an unknown function or kernel, and InvalidArgument for arguments and calls that do not fit.
        """
        definition = self.functions.get(function)
        if definition is None:
            have = ", ".join(self.functions) or "none"
            raise NotFound(f"the program has no function '{function}'", hint=f"its functions: {have}")
        if len(arguments) != len(definition.arg_names):
            raise InvalidArgument(f"function '{function}' takes {len(definition.arg_names)} arguments, "
                                  f"{len(arguments)} given", location=definition.location)
        request = RequestContext(runtime().host) if request is None else request
        linked = self._linked_functions(request.host)[function]
        typed_arguments = zip(arguments, definition.arg_types, definition.arg_names, strict=True)
        feeds = [_argument(*typed_argument, request.host.memory) for typed_argument in typed_arguments]
        return request.execute(linked.executable, feeds, options)

    def _repr_html_(self) -> str:
        from ..support.notebook_table import notebook_table

        signatures = [{"function": name, "arguments": ", ".join(_argument_texts(function)),
                       "results": ", ".join(str(function.register_types[r]) for r in function.results),
                       "calls": str(len(function.kernels))} for name, function in self.functions.items()]
        calls = [{"function": name, "call": str(number), "kernel": call.code, "node": call.node,
                  "device": _stream_name(call, self.requires), "arguments": _register_texts(call.args),
                  "results": _register_texts(call.gives)}
                 for name, function in self.functions.items() for number, call in enumerate(function.kernels)]
        title = f"HostProgram of {len(signatures)} functions and {len(calls)} calls"
        return (notebook_table(title, signatures, ("function", "arguments", "results", "calls"))
                + notebook_table("Calls", calls, (
                    "function", "call", "kernel", "device", "arguments", "results", "node"), "device"))

    def _linked_functions(self, host: Host) -> dict[str, Callee]:
        """Return the functions by name, each linked on first call, once per host. Every call is checked first.

        The host holds the links, and they hold its kernels. So a program that outlives a host keeps nothing of it.
        """
        key = id(self)
        if key not in host.linked:
            checked = CheckedFunctions(self.functions, host.registries)
            linked: dict[str, Callee] = {}
            resources = Resources()
            ordered = {name: in_execution_order(function) for name, function in checked.items()}
            definition = ProgramDef(ordered, self.constants, self.requires)  # the links would keep `self` alive
            for name in self.functions:
                linked[name] = LinkedFunction(definition, name, host, linked, resources)
            host.linked[key] = linked
            weakref.finalize(self, _forget, weakref.ref(host), key).atexit = False
        return host.linked[key]  # type: ignore[no-any-return]


def _argument_texts(function: ProgramFunction) -> list[str]:
    return [f"{name} {kind}" for name, kind in zip(function.arg_names, function.arg_types, strict=True)]


def _register_texts(registers: Sequence[int]) -> str:
    return ", ".join(f"%{register}" for register in registers)


def _stream_name(call: Call, devices: Sequence[str]) -> str:
    """Return the device of a call's stream, "host" for a call of the host."""
    return devices[call.stream] if 0 <= call.stream < len(devices) else "host"


def _forget(of: weakref.ref[Host], key: int) -> None:
    host = of()
    if host is not None:
        host.linked.pop(key, None)


def _argument(value: Any, kind: RegisterType, name: str, memory: HostMemory) -> Any:
    if isinstance(value, AsyncValue) or isinstance(kind, str):
        check_argument(value, kind, name)
        return value
    return convert_feed(value, kind, name, memory)
