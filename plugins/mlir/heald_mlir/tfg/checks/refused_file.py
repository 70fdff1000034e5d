"""Files of GraphDefs that core's reader refuses, told in the words of TensorFlow's importer where it has any."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from heald.api import errors
from heald.graphs.graph import graphdef_text
from heald.runtime.support import file_path
from heald.runtime.values import Buffer

from ..signatures.result_types import Declarations
from .function_import_checks import check_graphdef

_BINARY, _TEXT = ".pb", ".pbtxt"


def importer_error(model: str, ops: Any) -> errors.InvalidArgument | None:
    """The error of TensorFlow's importer for a file; None where it has none, and for other files than GraphDefs."""
    path = file_path.file_path(model)
    try:
        raw = _graphdef_bytes(path)
        if raw is not None:
            check_graphdef(raw, lambda signatures: Declarations(ops, signatures))
    except errors.InvalidArgument as error:
        if error.location is not None:
            return None  # the text form of a GraphDef is malformed
        error.at(location=errors.Location(str(path)))
        return error
    except (errors.HealdError, OSError):
        return None
    return None


def _graphdef_bytes(path: Path) -> Buffer | None:
    suffix = path.suffix.lower()
    if suffix not in (_BINARY, _TEXT) or not path.is_file():
        return None
    data = path.read_bytes()
    return memoryview(graphdef_text.parse(data, str(path)) if suffix == _TEXT else data)
