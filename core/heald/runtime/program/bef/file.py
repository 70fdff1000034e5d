"""Host programs and compiled models in BEF files: the public module `heald.bef`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ....errors import HealdError, InvalidArgument, Location, NotFound, boundary, of_system
from ...support import mapped_file
from ...support.file_path import file_path
from ...support.mapped_file import check_unchanged
from ..compiled_model import CompiledModel
from ..host_program import ProgramDef
from ..verifier import verify
from .decode import decode
from .sections import MAGIC

__all__ = ["dump", "dumps", "load", "loads"]


@boundary
def load(path: str | os.PathLike[str], *, mmap: bool = True) -> CompiledModel:
    """The model in a file; a program alone is a model without entries. Large files are memory-mapped: arrays stay
    read-only views of the file.

    A function is decoded and verified when it is first asked for, an array when it is first asked for: both may raise
    the errors of this function.

    `mmap`: False reads the whole file, so that later changes of the file have no effect.

    Raises NotFound, PermissionDenied, DataLoss for a file that is no BEF or is damaged, Unimplemented for another
    version and for functions that heald does not run, InvalidArgument for folders and programs that are not well
    formed.
    """
    file = file_path(path)
    try:
        if file.is_dir():
            raise InvalidArgument("this is a folder, not a BEF file")
        if not file.exists():
            raise NotFound("no such file")
        return decode(mapped_file.contents(file, mapped=mmap))
    except HealdError as error:
        raise error.at(location=Location(str(file))) from error.__cause__
    except OSError as error:
        raise of_system(error, file) from error


def is_bef(file: Path) -> bool:
    """True for a file that begins as BEF."""
    try:
        with file.open("rb") as opened:
            return opened.read(len(MAGIC)) == MAGIC
    except OSError:
        return False  # the loaders report the fault of the path


@boundary
def loads(data: bytes | bytearray | memoryview) -> CompiledModel:
    """The model in `data`. Bytes are not copied: arrays are views of them. Raises as `load`."""
    try:
        view = memoryview(data)
    except TypeError:
        raise InvalidArgument(f"a BEF file is bytes, got {type(data).__name__}",
                              hint="load a file with heald.bef.load(path)") from None
    if not view.readonly or view.format != "B" or view.ndim != 1 or not view.c_contiguous:
        view = memoryview(view.tobytes())
    return decode(view)


@boundary
def dump(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a CompiledModel, a ProgramDef or a HostProgram to a file. The file appears once all of it is written.

    Raises NotFound, PermissionDenied or Unknown when the file cannot be written, else as `dumps`.
    """
    from ...support.whole_file import write_whole

    file = file_path(path)
    write_whole(file, _pieces(model))


@boundary
def dumps(model: Any) -> bytes:
    """A CompiledModel, a ProgramDef or a HostProgram as the bytes of a file. Equal models have equal bytes.

    Raises InvalidArgument for a program that is not well formed, and for constants, attributes and names that a file
    cannot hold. Raises FailedPrecondition when the file of a constant has changed.
    """
    return b"".join(_pieces(model))


def _pieces(model: Any) -> list[Any]:
    from .encode import file_pieces  # most processes write no file

    compiled = _as_compiled_model(model)
    verify(compiled.program)
    check_unchanged((*compiled.program.constants, *(one.value for one in compiled.prepared)))
    return file_pieces(compiled)


def _as_compiled_model(model: Any) -> CompiledModel:
    if isinstance(model, CompiledModel):
        return model
    if isinstance(model, ProgramDef):
        return CompiledModel(model)
    functions = getattr(model, "functions", None)  # a HostProgram, whose class is on a higher floor
    if not isinstance(functions, Mapping) or not hasattr(model, "requires"):
        raise InvalidArgument(f"a BEF file is written from a CompiledModel or a program, got {type(model).__name__}",
                              hint="a graph is written by heald.graphdef.dump")
    return CompiledModel(ProgramDef(functions, tuple(model.constants), tuple(model.requires)))
