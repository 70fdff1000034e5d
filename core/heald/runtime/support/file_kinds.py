"""Kinds of files that are met in the place of a model: one table, which every command and loader asks.

A row has a kind's name, its marks, and the way out. The marks are the suffixes of its files and a pattern of their
first bytes. The first row with a mark of the file is its kind, so the rows stand in this order: downloads that failed,
formats with marks of their own, formats known by the suffix, and last the containers, which other formats use too.
A way out repeats no text of the file. A new kind is a new row.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from ...errors import DataLoss

HEAD_BYTES = 4096  # bytes at the start of a file that the patterns see


class FileKind(NamedTuple):
    """A kind of file. `name` has its article; `suffixes` are in lower case; the regular expression `pattern` matches at
    the start. It is compiled when it is first used, since a start of heald uses none.

    `is_failed_download`: True for a text that a server or Git leaves in the place of any file.
    `is_container`: True for a file that may have a model inside.
    `is_model`: True for a format of networks or of their weights.
    """

    name: str
    suffixes: frozenset[str] = frozenset()
    pattern: bytes = b""
    way_out: str | None = None
    is_failed_download: bool = False
    is_container: bool = False
    is_model: bool = False

    def matches(self, head: bytes) -> bool:
        """Return True for first bytes of this kind."""
        return bool(self.pattern) and re.match(self.pattern, head, re.DOTALL) is not None


def _kind(name: str, marks: bytes = b"", way_out: str | None = None, *, suffixes: str = "",
          is_failed_download: bool = False, is_container: bool = False, is_model: bool = False) -> FileKind:
    return FileKind(name, frozenset(suffixes.split()), marks, way_out, is_failed_download, is_container, is_model)


_FIRST_MEMBER = rb"PK\x03\x04.{26}"  # of a zip archive: the name of its first file follows
_SOURCE = "load the SavedModel or GraphDef that it was converted from"
_KERAS = "export a SavedModel with Keras: model.export('folder')"
_NO_GRAPH = "it has values and no graph: export a SavedModel with the program that wrote it"

SAVED_MODEL = _kind("a SavedModel", rb"\x08\x01\x12[\x80-\xff]{0,9}[\x00-\x7f][\n\x12\x1a]",
                    "put it into a folder of its own, under the name saved_model.pb, and load the folder",
                    is_model=True)

KINDS = (
    _kind("a Git LFS pointer", rb"version https://(?:git-lfs|hawser)\.", "fetch the file itself: git lfs pull",
          is_failed_download=True),
    _kind("an HTML page", rb"(?i:\s*+(?:<!--.*?-->\s*+)?<(?:!doctype\s++html|html|head|body)\b)",
          "download the file itself: a page came in its place", is_failed_download=True),
    _kind("an XML document", rb"(?:\xef\xbb\xbf)?\s*+<\?xml\b", "download the file itself, if an error came in its "
          "place; of an OpenVINO model, load the source"),

    _kind("a TensorFlow Lite model", rb".{4}TFL3", f"{_SOURCE}, or run it with LiteRT (pip install ai-edge-litert)",
          suffixes=".tflite .lite", is_model=True),
    _kind("a Keras model", _FIRST_MEMBER + rb"(?:metadata|config)\.json", _KERAS, suffixes=".keras", is_model=True),
    _kind("an HDF5 file (Keras weights?)", rb"\x89HDF", _KERAS, suffixes=".h5 .hdf5", is_model=True),
    _kind("a PyTorch file", _FIRST_MEMBER + rb"[^\0]{0,200}?data\.pkl", "export it with torch.onnx.export, and convert "
          "that: onnx2tf -i FILE.onnx -o FOLDER", suffixes=".pt .pth", is_model=True),
    _kind("a NumPy file", rb"\x93NUMPY|" + _FIRST_MEMBER + rb"[^/\0]{1,200}?\.npy", _NO_GRAPH, suffixes=".npy .npz"),
    _kind("a pickle", rb"\x80[\x02-\x05][\x95\x8a\]}(c]", "a pickle runs code when it is read, so heald opens none: "
          "export a SavedModel with the program that wrote it", suffixes=".pkl .pickle .joblib", is_model=True),
    _kind("a Core ML model", rb"\x08[\x02-\x0f]\x12[\x80-\xff]{0,4}[\x01-\x7f]\n", _SOURCE,
          suffixes=".mlmodel .mlpackage .mlmodelc", is_model=True),
    _kind("an ONNX model", rb"\x08[\x01-\x1f](?:\x12[\x00-\x40][\x20-\x7e]|\x3a|\x42)", "convert it to a SavedModel: "
          "onnx2tf -i FILE.onnx -o FOLDER; or run it with onnxruntime", suffixes=".onnx", is_model=True),
    SAVED_MODEL,
    _kind("a safetensors file", rb".{5}\0{3}\{\"", _NO_GRAPH, suffixes=".safetensors", is_model=True),
    _kind("a GGUF file", rb"GGUF", "run it with llama.cpp", suffixes=".gguf", is_model=True),
    _kind("a label map", rb"(?:\s|#[^\n]*+\n)*+item\s*+:?\s*+\{", "it names classes and has no graph: load the graph "
          "that it belongs to"),
    _kind("a JSON text", rb"\s*+\{\s*+\"", f"of a TensorFlow.js model, {_SOURCE}", suffixes=".json"),

    _kind("a PNG image", rb"\x89PNG"), _kind("a JPEG image", rb"\xff\xd8\xff"), _kind("a GIF image", rb"GIF8"),
    _kind("a program", rb"\x7fELF"), _kind("a PDF document", rb"%PDF"), _kind("a BEF program", rb"\x0b\xef"),
    _kind("a zip archive", rb"PK\x03\x04|PK\x05\x06", "unpack it, and load what is inside", is_container=True),
    _kind("a gzip file", rb"\x1f\x8b", "unpack it: gunzip FILE", is_container=True),
    _kind("a bzip2 file", rb"BZh", "unpack it: bunzip2 FILE", is_container=True),
    _kind("an xz file", rb"\xfd7zXZ", "unpack it: unxz FILE"),
    _kind("a tar archive", rb".{257}ustar", "unpack it, and load what is inside", is_container=True),
)


def kind_of_content(head: bytes) -> FileKind | None:
    """Return the kind of a file by its first bytes, or None."""
    return next((kind for kind in KINDS if kind.matches(head)), None)


def kind_of_file(path: Path, head: bytes) -> FileKind | None:
    """Return the kind of a file or folder by its suffix and its first bytes (b"" of a folder), or None."""
    suffix = path.suffix.lower()
    return next((kind for kind in KINDS if suffix in kind.suffixes or kind.matches(head)), None)


def check_content(head: bytes, expected: str) -> None:
    """Raises DataLoss for first bytes of a kind in the table. `expected` is the name of the kind that is read."""
    kind = kind_of_content(head)
    if kind is not None:
        raise DataLoss(f"this is {kind.name}, not {expected}", hint=kind.way_out)


def check_download(head: bytes, expected: str) -> None:
    """Raises DataLoss for the first bytes of a text that came in the place of a file."""
    kind = kind_of_content(head)
    if kind is not None and kind.is_failed_download:
        raise DataLoss(f"this is {kind.name}, not {expected}", hint=kind.way_out)
