"""Cases computed by real TensorFlow: op, attributes, inputs, and outputs with a tolerance, or the error's code.

The folder of recorded cases is an archive of three files, and so is each folder in it: a part. A recording writes the
files of one archive anew, so families of ops in parts of their own change apart from each other. A plugin with ops of
its own brings a folder of cases in the same format: `recordings` of heald-conformance.toml.

    index.json   {"cases": [{"id", "op", "attrs", "in", "out" or "error", "tol", "static"}, ...]}
    data.npz     the elements of all tensors but strings, as the bytes `blob`
    graphs.zip   ID.pb for each case: placeholders i0, i1, ... and the node `op`
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
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
    `folder`: the folder of its graph.
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
        name = f"{self.id}.pb"
        return graphdef.loads(recorded_graphs(self.folder)[name].read(name))


def cases(recordings: Path | None = None) -> dict[str, list[Case]]:
    """All cases by op, those of a plugin's folder included."""
    return cases_of(FOLDER) | (cases_of(recordings) if recordings is not None else {})


@cache
def cases_of(folder: Path) -> dict[str, list[Case]]:
    """The cases of a folder and its parts by op."""
    by_op: dict[str, list[Case]] = {}
    for archive in archive_folders(folder):
        blob = np.load(archive / "data.npz")["blob"].tobytes()
        for row in json.loads((archive / "index.json").read_text("utf-8"))["cases"]:
            by_op.setdefault(row["op"], []).append(_case(row, blob, folder))
    return by_op


def archive_folders(folder: Path = FOLDER) -> list[Path]:
    """A folder of recorded cases, and its parts."""
    return [index.parent for index in (folder / "index.json", *sorted(folder.glob("*/index.json")))]


def plain(array: Array) -> Array:
    """Quantised numbers, which have one field of integers, as the plain integers of results; other arrays stay."""
    return array.view(array.dtype[0]) if array.dtype.names else array


def _case(row: dict[str, Any], blob: bytes, folder: Path) -> Case:
    error, outputs = row.get("error", {}), row.get("out")
    return Case(
        row["id"], row["op"], row["attrs"], [_array(ref, blob) for ref in row["in"]],
        None if outputs is None else [None if ref is None else plain(_array(ref, blob)) for ref in outputs],
        error.get("code"), error.get("message", ""), tuple(row.get("tol", (0, 0))), row["static"], folder,
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
    if want.dtype.kind in "fcV":
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
def recorded_graphs(folder: Path) -> dict[str, zipfile.ZipFile]:
    """The archive of each recorded graph of a folder: a GraphDef for each case, under the case's id."""
    archives = [zipfile.ZipFile(archive / "graphs.zip") for archive in archive_folders(folder)]
    return {name: archive for archive in archives for name in archive.namelist()}
