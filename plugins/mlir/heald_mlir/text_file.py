"""Host programs in text files: the public functions of `heald.mlir`, and the Source of `.mlir` files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from heald.api import Description, errors
from heald.runtime.program import CompiledModel, ProgramDef
from heald.runtime.support import file_path, gc_pause, whole_file

from .dialects.registry import KernelDialects
from .dialects.verifier import verify as verify_module
from .ir import Operation
from .parser import parse
from .printer import print_module
from .program_reader import InvalidProgram, read_program
from .program_writer import write_program

if TYPE_CHECKING:
    import heald


@errors.boundary
def loads(text: str | bytes, *, file: str = "-") -> heald.HostProgram:
    """The program in a text. `file`: its name in locations.

    Raises MalformedText, an InvalidArgument, with file, line and column, for a text that is no module, and
    InvalidProgram for a module that is no host program.
    """
    return _host_program(program_of(decode_text(text, file), file))


@errors.boundary
def load(path: str | os.PathLike[str]) -> heald.HostProgram:
    """The program in a file. Raises as `loads`; NotFound and others for a file that cannot be read."""
    return _host_program(_load(file_path.file_path(path)))


@errors.boundary
def dumps(program: Any, *, generic: bool = False, locations: bool = False) -> str:
    """A HostProgram, or a ProgramDef, as text.

    `generic`: True for the generic form of all operations, functions and modules included.
    `locations`: True for the location of each operation.

    Raises Unimplemented for a compiled model, and for values that text does not hold.
    """
    module = write_program(definition(program), declared_callees)
    return print_module(module, dialects(), generic=generic, locations=locations)


@errors.boundary
def dump(program: Any, path: str | os.PathLike[str], *, generic: bool = False, locations: bool = False) -> None:
    """Write a program to a text file. Raises as `dumps`; NotFound and others for a file that cannot be written."""
    text = dumps(program, generic=generic, locations=locations)
    whole_file.write_whole(file_path.file_path(path), [text.encode("utf-8", "surrogateescape")])


def decode_text(text: str | bytes, file: str) -> str:
    """Text from bytes of UTF-8. Raises InvalidArgument for other objects."""
    if isinstance(text, bytes):
        return text.decode("utf-8", "surrogateescape")
    if not isinstance(text, str):
        raise errors.InvalidArgument(f"a text is a str, got {type(text).__name__}",
                                     hint="load a file with heald.mlir.load(path)")
    return text


@gc_pause.gc_paused()
def program_of(text: str, file: str, line: int = 1) -> ProgramDef:
    """The program in a text, whose first line has the number `line`.

    Raises Unimplemented for the text of a graph, others as `loads`.
    """
    declared = dialects()
    module = parse(text, file, line, declared)
    _refuse_graphs(module, file)
    verify_module(module, declared)
    return read_program(module, declared_callees)


def _refuse_graphs(module: Operation, file: str) -> None:
    for operation in module.walk():
        if operation.name.startswith("tfg."):
            raise errors.Unimplemented("this is the text of a graph, not of a host program",
                                       location=errors.Location(file), hint="read it with heald.tfg.loads")


def _load(path: Path) -> ProgramDef:
    try:
        return program_of(path.read_bytes().decode("utf-8", "surrogateescape"), str(path))
    except OSError as error:
        raise errors.of_system(error, path) from error


def _host_program(program: ProgramDef) -> heald.HostProgram:
    from heald import HostProgram

    return HostProgram(program.functions, program.constants, program.requires)


def definition(program: Any) -> ProgramDef:
    """The program of an object that has one. Raises Unimplemented for a compiled model, InvalidArgument for others."""
    if isinstance(program, CompiledModel):
        if program.entries:
            raise errors.Unimplemented("text holds no signatures and no packed weights of a compiled model",
                                       hint="write its program alone: heald.mlir.dumps(model.program)")
        return program.program
    if not isinstance(getattr(program, "functions", None), Mapping) or not hasattr(program, "requires"):
        raise errors.InvalidArgument(f"text is written from a program, got {type(program).__name__}",
                                     hint="a graph is written by heald.tfg.dump")
    return ProgramDef(program.functions, tuple(program.constants), tuple(program.requires))


def dialects() -> KernelDialects:
    """The operations that the host kernels of the process declare."""
    import heald

    return KernelDialects(heald.default_host().registries.host_kernels)


def declared_callees(code: str) -> tuple[tuple[str, ...], bool]:
    """The names under which a kernel receives functions, and whether its one name stands for several."""
    import heald

    try:
        kernel = heald.default_host().registries.host_kernels.get(code)
    except errors.NotFound:
        return (), False
    return kernel.callees, kernel.takes_more_callees


class MlirSource:
    """The program of a text."""

    signatures: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, program: ProgramDef) -> None:
        self._program = program

    def describe(self) -> Description:
        return Description("MLIR")

    def program(self) -> ProgramDef:
        return self._program

    def initial_state(self) -> tuple[Any, ...]:
        return ()


def read_program_file(path: Path) -> MlirSource:
    """The Source of a file. Raises the errors of `load`."""
    return MlirSource(_load(path))


__all__ = ["InvalidProgram", "dump", "dumps", "load", "loads"]
