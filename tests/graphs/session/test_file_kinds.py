"""Files in the place of a model: each is told for its kind, with a way out, in every command."""

from __future__ import annotations

import io
import pickle
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import heald
import numpy as np
import pytest
from heald.cli import main
from heald.errors import DataLoss, InvalidArgument, NotFound
from heald.runtime.support import file_kinds

DATA = Path(__file__).parents[2] / "data"
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 93000000\n"
HTML = b"<!DOCTYPE html>\n<html><head><title>Sign in</title></head></html>\n"


def zipped(*names: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in names:
            archive.writestr(name, "{}")
    return file.getvalue()


FILES = {  # by name: the bytes, the kind, a part of the way out
    "pointer.pb": (LFS, "a Git LFS pointer", "git lfs pull"),
    "pointer.pbtxt": (LFS, "a Git LFS pointer", "git lfs pull"),
    "pointer.h5": (LFS, "a Git LFS pointer", "git lfs pull"),
    "pointer.mlir": (LFS, "a Git LFS pointer", "git lfs pull"),
    "page.pb": (HTML, "an HTML page", "download the file itself"),
    "page.bef": (b"\n\n<HTML lang=en>", "an HTML page", "download the file itself"),
    "page.txt": (b"<!-- saved -->\n<html>", "an HTML page", "download the file itself"),
    "denied.pb": (b"<?xml version='1.0'?><Error/>", "an XML document", "download the file itself"),
    "model.h5": (b"\x89HDF\r\n\x1a\n" + bytes(90), "an HDF5 file", "model.export('folder')"),
    "model.keras": (zipped("metadata.json", "model.weights.h5"), "a Keras model", "model.export('folder')"),
    "keras.zip": (zipped("config.json", "model.weights.h5"), "a Keras model", "model.export('folder')"),
    "model.tflite": (b"\x1c\0\0\0TFL3" + bytes(90), "a TensorFlow Lite model", "ai-edge-litert"),
    "lite.pb": (b"\x1c\0\0\0TFL3" + bytes(90), "a TensorFlow Lite model", "ai-edge-litert"),
    "model.onnx": (b"\x08\x08\x12\x07pytorch\x1a\x031.9", "an ONNX model", "onnx2tf"),
    "onnx.pb": (b"\x08\x08\x12\x00:\x10", "an ONNX model", "onnx2tf"),
    "model.mlmodel": (b"\x08\x01\x12\x08\n\x06\n\x01x\x1a\x01*", "a Core ML model", "SavedModel or GraphDef"),
    "coreml.bin": (b"\x08\x04\x12\x08\n\x06\n\x01x\x1a\x01*", "a Core ML model", "SavedModel or GraphDef"),
    "model.pkl": (pickle.dumps({"weights": [1.0]}), "a pickle", "runs code"),
    "pickled.bin": (pickle.dumps([1.0], protocol=2), "a pickle", "runs code"),
    "model.pt": (zipped("archive/data.pkl"), "a PyTorch file", "torch.onnx.export"),
    "weights.npz": (zipped("w.npy"), "a NumPy file", "export a SavedModel"),
    "labels.pbtxt": (b"# COCO\nitem {\n  id: 1\n  name: 'cat'\n}\n", "a label map", "the graph that it belongs to"),
    "labels.txt": (b"item {\n  id: 1\n}\n", "a label map", "the graph that it belongs to"),
    "model.json": (b'{"modelTopology": {}}', "a JSON text", "TensorFlow.js"),
    "w.safetensors": (b"\x40\0\0\0\0\0\0\0{\"w\":{}}", "a safetensors file", "no graph"),
    "graph.pb.gz": (b"\x1f\x8b\x08" + bytes(20), "a gzip file", "gunzip"),
    "photo.pb": (b"\x89PNG\r\n\x1a\n" + bytes(20), "a PNG image", None),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_another_kind_is_told_with_the_way_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    data, kind, way_out = FILES[name]
    (tmp_path / name).write_bytes(data)
    with pytest.raises((NotFound, DataLoss), match=f"this is {kind}") as caught:
        heald.load(tmp_path / name)
    assert str(tmp_path / name) in str(caught.value)
    assert caught.value.hint is None if way_out is None else way_out in (caught.value.hint or "")
    for command in ("inspect", "run"):
        assert main([command, str(tmp_path / name)]) == 1
        assert f"this is {kind}" in capsys.readouterr().err


def test_a_model_of_any_loader_is_no_other_kind() -> None:
    models = [*(DATA / "graphs").rglob("*.pb"), *(DATA / "programs").glob("*.*"), *(DATA / "tfg").glob("*.mlir")]
    kinds = {file.name: kind.name for file in models
             if (kind := file_kinds.kind_of_content(file.read_bytes()[: file_kinds.HEAD_BYTES])) is not None}
    assert not kinds


@pytest.mark.parametrize("part", ["saved_model.pb", "variables/variables.index",
                                  "variables/variables.data-00000-of-00001"])
def test_a_pointer_in_the_place_of_a_part_of_a_saved_model_is_told(tmp_path: Path, part: str) -> None:
    model = Path(shutil.copytree(DATA / "saved_models" / "tf1" / "model", tmp_path / "m"))
    (model / part).write_bytes(LFS)
    with pytest.raises(DataLoss, match=f"(?s)(?=.*{part}).*this is a Git LFS pointer") as caught:
        heald.load(model)(np.ones((1, 1), "f4"))
    assert caught.value.hint == "fetch the file itself: git lfs pull"


@pytest.mark.parametrize("load", [heald.graphdef.load, heald.bef.load, heald.HostProgram.load, heald.load])
def test_every_reader_tells_a_pointer(tmp_path: Path, load: Callable[[Path], object]) -> None:
    (tmp_path / "model.bef").write_bytes(LFS)
    with pytest.raises(DataLoss, match="this is a Git LFS pointer") as caught:
        load(tmp_path / "model.bef")
    assert caught.value.hint == "fetch the file itself: git lfs pull"


@pytest.mark.parametrize("suffix", [".mlpackage", ".mlmodelc"])
def test_a_folder_of_another_kind_is_told(tmp_path: Path, suffix: str) -> None:
    folder = tmp_path / f"model{suffix}"
    folder.mkdir()
    with pytest.raises(NotFound, match="this is a Core ML model"):
        heald.load(folder)


def test_the_file_of_a_saved_model_with_a_signature_is_told_to_be_one() -> None:
    file = DATA / "saved_models" / "tf1" / "model" / "saved_model.pb"
    with pytest.raises(InvalidArgument, match="this is a SavedModel") as caught:
        heald.load(file, signature="serving_default")
    assert caught.value.hint == f"load its folder: heald.load('{file.parent}')"


def test_the_table_states_each_suffix_once_and_no_kind_twice() -> None:
    suffixes = [suffix for kind in file_kinds.KINDS for suffix in kind.suffixes]
    assert len(suffixes) == len(set(suffixes))
    assert len({kind.name for kind in file_kinds.KINDS}) == len(file_kinds.KINDS)


def test_noise_of_any_length_is_told_without_a_hang() -> None:
    for piece in (b" ", b"<", b"\n", b"<!--", b"\x80", b"{", b"#\n", b"item"):
        file_kinds.kind_of_content(piece * file_kinds.HEAD_BYTES)
