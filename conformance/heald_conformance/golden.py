"""Cases computed by real TensorFlow: op, attributes, inputs, and outputs with a tolerance, or the error's code.

FOLDER has the oldest cases, and a subfolder for each family that was recorded by itself. Each of these folders has the
same three files, so that two families never change one file.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from heald import errors, graphdef
from heald.api import Graph, dtypes

Array = np.ndarray[Any, Any]
FOLDER = Path(__file__).parent / "data" / "golden"


@dataclass(frozen=True)
class Case:
    """One recorded call of an op.

    `outputs`: one array for each output, None where TensorFlow leaves it open; None as a whole for an error.
    `static`: the output shapes that TensorFlow infers without values (None: unknown), or its error.
    """

    id: str
    op: str
    attrs: dict[str, Any]
    inputs: list[Array]
    outputs: list[Array | None] | None
    code: int | None
    message: str
    tolerance: tuple[float, float]
    static: Any
    folder: Path = FOLDER

    def graph(self) -> Graph:
        """The case as a graph: placeholders i0, i1, ... of unknown shape, and the node `op`."""
        return graphdef.loads(graph_archive(self.folder).read(f"{self.id}.pb"))


@cache
def cases() -> dict[str, list[Case]]:
    """All cases by op."""
    by_op: dict[str, list[Case]] = {}
    for folder in case_folders():
        for case in _cases_in(folder):
            by_op.setdefault(case.op, []).append(case)
    return by_op


def case_folders() -> list[Path]:
    return [FOLDER, *sorted(path.parent for path in FOLDER.glob("*/index.json"))]


def _cases_in(folder: Path) -> Iterator[Case]:
    blob = np.load(folder / "data.npz")["blob"].tobytes()
    for row in json.loads((folder / "index.json").read_text())["cases"]:
        yield Case(
            row["id"], row["op"], row["attrs"], [_array(ref, blob) for ref in row["in"]],
            [None if ref is None else _array(ref, blob) for ref in row["out"]] if "out" in row else None,
            row.get("error", {}).get("code"), row.get("error", {}).get("message", ""),
            tuple(row.get("tol", (0, 0))), row["static"], folder,
        )


def disagreements(case: Case, got: Sequence[Array] | errors.HealdError) -> list[str]:
    """Describe the faults of the outputs, or of the error, that the case's op returned. Empty without a fault."""
    if isinstance(got, errors.HealdError):
        # TensorFlow calls a missing kernel InvalidArgument, and its shape functions refuse some calls that run there.
        no_kernel = "No OpKernel" in case.message and isinstance(got, errors.Unimplemented)
        refused_by_shape = isinstance(case.static, dict) and case.outputs is not None
        if got.code == case.code or no_kernel or refused_by_shape:
            return []
        expected = "results" if case.code is None else f"{code_name(case.code)}: {case.message}"
        return [f"{case.id}: {type(got).__name__}: {got}; TensorFlow: {expected}"]
    if case.outputs is None:
        return [f"{case.id}: no error, TensorFlow raises {code_name(case.code)}: {case.message}"]
    return [f"{case.id}: output {i} is {g!r}, expected {w!r}"
            for i, (g, w) in enumerate(zip(got, case.outputs, strict=True))
            if w is not None and not agree(g, w, case.tolerance)]


def code_name(code: int | None) -> str:
    """The name of a status code, as heald.errors has it."""
    return next((kind.__name__ for kind in errors.HealdError.__subclasses__() if kind.code == code), str(code))


def agree(got: Array, want: Array, tolerance: tuple[float, float]) -> bool:
    """True for equal types and shapes, and elements within the tolerance (relative, absolute)."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return False
    if want.dtype.kind in "fcV" and not want.dtype.names:
        wide = np.complex128 if want.dtype.kind == "c" else np.float64
        relative, absolute = tolerance
        with np.errstate(all="ignore"):
            return bool(np.allclose(got.astype(wide), want.astype(wide), relative, absolute, equal_nan=True))
    return bool(np.array_equal(got, want))


def _array(ref: list[Any], blob: bytes) -> Array:
    kind, shape, content = ref
    if kind == "string":
        array = np.empty(len(content), object)
        array[:] = [text.encode("latin1") for text in content]
        return array.reshape(shape)
    return np.frombuffer(blob, dtypes.named(kind).numpy, int(np.prod(shape)), content).reshape(shape)


@cache
def graph_archive(folder: Path) -> zipfile.ZipFile:
    """The recorded graphs of a folder: a GraphDef for each case, under the case's id."""
    return zipfile.ZipFile(folder / "graphs.zip")
