"""The loader of BEF files. Every load of a file imports this module, so `open` imports the code that reads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ....errors import HealdError, InvalidArgument, Location
from ...contract.loader import Description, Initializer, LoadOptions, SignatureDef
from .sections import MAGIC, VERSION

if TYPE_CHECKING:
    from ..compiled_model import CompiledModel
    from ..host_program import ProgramDef

_HEAD = MAGIC + bytes((VERSION,))


class BefLoader:
    """Recognises files by their first three bytes."""

    def recognise(self, _path: Path, head: bytes) -> bool:
        return head.startswith(_HEAD)

    def open(self, path: Path, options: LoadOptions) -> BefSource:
        """Raises the errors of `heald.bef.load`."""
        from . import file

        return BefSource(file.load(path, mmap=options.mmap), path)


class BefSource:
    """A compiled model. Its program is complete: it declares no state for a session, and has no graph."""

    signatures: Mapping[str, SignatureDef | HealdError] = MappingProxyType({})

    def __init__(self, model: CompiledModel, path: Path) -> None:
        self.model = model
        self._path = path

    def describe(self) -> Description:
        return Description("BEF")

    def graph(self) -> Any:
        """Raises InvalidArgument: programs cannot be turned back into graphs."""
        raise InvalidArgument("this is a host program, not a graph", location=Location(str(self._path)),
                              hint="heald.HostProgram.load(path) runs it")

    def program(self) -> ProgramDef:
        return self.model.program

    def initial_state(self) -> tuple[Initializer, ...]:
        return ()


LOADER = BefLoader()
