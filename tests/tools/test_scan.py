"""heald scan: a row for each model below a folder, from its graph alone."""

import json
import os
import shutil
import sys
import zipfile
from pathlib import Path

import heald
import numpy as np
import pytest
from builders.graphs import const, node, placeholder
from heald.api import Node
from heald.cli.commands import model_files
from heald.errors import DataLoss
from heald.graphs.graph.graph import Graph
from heald.graphs.graph.graphdef import dump
from heald.runtime.service import runtime
from heald.runtime.values import dtypes
from heald_tools import scan_parts

DATA = Path(__file__).parents[1] / "data"
NEGATIVE = (placeholder("x", (None, 2)), node("y", "Neg", "x"))
FOREIGN = {
    "net.tflite": (b"\x1c\0\0\0TFL3", "TensorFlow Lite model"), "net.onnx": (b"\x08\x07\x12\x03abc", "ONNX model"),
    "net.h5": (b"\x89HDF\r\n\x1a\n", "HDF5 file (Keras weights?)"), "net.gguf": (b"GGUF", "GGUF file"),
    "net.safetensors": (b"\x10\0\0\0\0\0\0\0{\"", "safetensors file"), "net.pt": (b"x", "PyTorch file"),
    "net.pkl": (b"\x80\x04\x95", "pickle"), "unnamed": (b"GGUF", "GGUF file"),
}


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "models"
    path.mkdir()
    return path


@pytest.fixture
def scanned(command, folder):
    """The rows of `heald scan --json` by file."""

    def scan(*options):
        done = command("scan", folder, "--json", *options)
        assert done.status == 0, done.err
        return {row["file"]: row for row in json.loads(done.out)}

    return scan


def test_a_row_has_what_the_graph_says(scanned, folder):
    (folder / "deep").mkdir()
    nodes = *NEGATIVE, Node("z", "Exp", ("y",), device="/job:localhost/device:GPU:1", attrs={"T": dtypes.float32})
    dump(Graph(nodes), folder / "deep" / "net.pb")
    (row,) = scanned().values()
    assert row == {
        "file": "deep/net.pb", "kind": "GraphDef", "producer": row["producer"],
        "inputs": [{"name": "x", "op": "Placeholder", "dtype": "float32", "shape": [None, 2]}],
        "outputs": [{"name": "z", "op": "Exp", "dtype": "float32", "shape": [None, 2]}],
        "nodes": 3, "ops": 3, "missing": [], "extras": [], "devices": ["GPU:1"], "file_ops": [], "runs": True,
        "error": None, "hint": None, "warnings": []}


@pytest.mark.parametrize("name", FOREIGN)
def test_files_of_other_formats_are_rows_with_the_way_out(scanned, folder, name):
    content, kind = FOREIGN[name]
    (folder / name).write_bytes(content)
    (row,) = scanned().values()
    assert (row["kind"], row["runs"], row["error"]) == (kind, False, "no format that heald loads")
    assert row["hint"]


def test_files_that_are_no_models_are_counted(command, folder):
    for name, content in {"a.png": b"\x89PNG", "b.txt": b"some text", "c.json": b'{"a": 1}', "d.html": b"<html>",
                          "labels.pbtxt": b"item {\n  id: 1\n}\n", "e.csv": b"1,2\n"}.items():
        (folder / name).write_bytes(content)
    with zipfile.ZipFile(folder / "f.zip", "w") as archive:
        archive.writestr("photo.png", b"\x89PNG")
    assert command("scan", folder) == (0, f"0 models in {folder}: 0 can run here; 7 other files\n", "")


@pytest.mark.parametrize(("name", "content", "error"), [
    ("net.pb", b"\x89PNG", "this is a PNG image, not a GraphDef"),
    ("net.pb", b"", "the file is empty"),
    ("net.pb", b"version https://git-lfs.github.com/spec/v1", "this is a Git LFS pointer, not a model"),
    ("net.tflite", b"<html><body>404</body></html>", "this is an HTML page, not a model"),
    ("net.pb", b"\n\xff\xff\xff\xff\x0f", ""), ("net.pbtxt", b"node {", ""),
    ("ckpt.index", b"", "this is a checkpoint without a graph: 'ckpt.meta' is missing"),
    ("a.zip", b"PK\x03\x04 and no more", "the archive is damaged: "),
])
def test_a_damaged_file_is_a_row_with_its_error(scanned, folder, name, content, error):
    dump(Graph(NEGATIVE), folder / "sound.pb")
    (folder / name).write_bytes(content)
    rows = scanned()
    assert rows["sound.pb"]["runs"]
    assert error in rows[name]["error"]
    assert rows[name]["error"]
    assert not rows[name]["runs"]


def test_a_text_file_is_a_model_where_it_begins_as_a_graph(scanned, folder):
    dump(Graph(NEGATIVE), folder / "graph.pbtxt")
    shutil.copy(folder / "graph.pbtxt", folder / "graph.txt")
    (folder / "layers.prototxt").write_text('layer { name: "data" }')
    rows = scanned()
    assert [(name, row["kind"]) for name, row in rows.items()] == [
        ("graph.pbtxt", "GraphDef"), ("graph.txt", "GraphDef")]


def test_a_saved_model_and_a_checkpoint_are_one_row_each(scanned, folder):
    shutil.copytree(DATA / "saved_models" / "asset_file" / "model", folder / "net" / "3")
    shutil.copytree(DATA / "checkpoints" / "resource", folder / "training")
    with zipfile.ZipFile(folder / "packed.zip", "w") as archive:
        dump(Graph(NEGATIVE), folder / "inner.pb")
        archive.write(folder / "inner.pb", "inner.pb")
    (folder / "inner.pb").unlink()
    assert {name: row["kind"] for name, row in scanned().items()} == {
        "net/3": "SavedModel", "packed.zip": "GraphDef", "training/model.ckpt-2.meta": "graph with a checkpoint"}


def test_a_compiled_model_names_what_it_takes_and_lacks(command, scanned, folder, saved, monkeypatch):
    assert command("compile", saved(*NEGATIVE), "-o", folder / "net.bef", "--input", "x:2,2").status == 0
    row = scanned("--run")["net.bef"]
    assert [port["name"] for port in (*row["inputs"], *row["outputs"])] == ["x", "y"]
    assert (row["kind"], row["runs"], row["run"]["status"], row["error"]) == ("BEF", True, "ran", None)
    monkeypatch.setenv("HEALD_PLUGINS__BLOCK", "cpu")
    runtime.process_scope.default = None
    row = scanned()["net.bef"]
    assert (row["runs"], row["extras"]) == (False, ["heald-cpu"])
    assert row["error"].startswith("it is compiled with cpu")


@pytest.fixture
def many(folder, monkeypatch):
    """Makes ten files, enough for three processes."""
    monkeypatch.setattr(scan_parts, "MODELS_OF_A_PROCESS", 3)
    monkeypatch.setattr(scan_parts, "usable_cores", lambda: 4)
    for number in range(8):
        dump(Graph((*NEGATIVE, node(f"n{number}", "Exp", "x"))), folder / f"{number}.pb")
    (folder / "8.pb").write_bytes(b"")
    with zipfile.ZipFile(folder / "9.zip", "w") as archive:
        archive.writestr("photo.png", b"")


@pytest.mark.usefixtures("many")
def test_many_models_are_the_work_of_several_processes(scanned, monkeypatch):
    rows = scanned()
    monkeypatch.setattr(scan_parts, "usable_cores", lambda: 1)
    assert scanned() == rows
    assert [*rows] == [f"{number}.pb" for number in range(9)]


@pytest.mark.usefixtures("many")
def test_models_of_a_process_that_fails_are_described_by_the_first(scanned, monkeypatch):
    monkeypatch.setattr(scan_parts.sys, "executable", "false")
    assert [*scanned()] == [f"{number}.pb" for number in range(9)]


def test_weights_are_not_read(scanned, folder):
    shutil.copytree(DATA / "saved_models" / "keras" / "model", folder / "net")
    before = scanned()
    (values,) = (folder / "net" / "variables").glob("*.data-*")
    content = values.read_bytes()
    values.write_bytes(bytes(byte ^ 0xFF for byte in content[:100]) + content[100:])
    with pytest.raises(DataLoss):
        heald.load(folder / "net")
    assert scanned() == before
    values.unlink()
    assert scanned()["net"]["inputs"] == before["net"]["inputs"]
    assert before["net"]["runs"]


def test_missing_ops_are_told_with_the_extra_that_brings_them(command, scanned, folder):
    dump(Graph((placeholder("x", (), dtypes.string), Node("y", "NoSuchOp", ("x",)), Node("z", "NoSuchOp", ("y",)))),
         folder / "net.pb")
    row = scanned()["net.pb"]
    assert [(lack["op"], lack["count"]) for lack in row["missing"]] == [("NoSuchOp", 2)]
    assert (row["extras"], row["runs"]) == ([], False)
    done = command("scan", folder)
    assert "NoSuchOp (2)" in done.out
    assert done.out.endswith(f"\n1 model in {folder}: 0 can run here, 1 lacks ops\n")


@pytest.mark.parametrize(("op", "extra"), [("SimpleMLNoSuchOp", "heald[forests]"), ("TFText>NoSuchOp", "heald[text]")])
def test_ops_of_a_pack_name_its_extra(scanned, folder, op, extra):
    dump(Graph((placeholder("x", (), dtypes.string), Node("y", op, ("x",)))), folder / "net.pb")
    assert scanned()["net.pb"]["extras"] == [extra]


def test_a_library_that_is_not_installed_is_an_extra(scanned, folder, monkeypatch):
    from heald.runtime.support import install

    matching = Node("y", "StaticRegexFullMatch", ("x",), attrs={"pattern": "a"})
    dump(Graph((placeholder("x", (), dtypes.string), matching)), folder / "net.pb")
    monkeypatch.setattr(install, "is_importable", lambda _: False)
    assert scanned()["net.pb"]["extras"] == ["google-re2"]


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights on Windows")
def test_no_link_leads_out_of_the_folder(command, scanned, folder, tmp_path):
    dump(Graph(NEGATIVE), tmp_path / "outside.pb")
    (folder / "link.pb").symlink_to(tmp_path / "outside.pb")
    (folder / "up").symlink_to(tmp_path)
    (folder / "net").mkdir()
    (folder / "net" / "saved_model.pb").symlink_to(DATA / "saved_models" / "keras" / "model" / "saved_model.pb")
    (row,) = scanned().values()
    assert (row["file"], row["error"]) == (
        "net", "'saved_model.pb' is a link that leads out of the folder, and it is not followed")
    assert "; 3 links not followed" in command("scan", folder).out


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_no_model_and_does_not_block(command, folder):
    os.mkfifo(folder / "net.pb")
    assert command("scan", folder).out == f"0 models in {folder}: 0 can run here; 1 other file\n"


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="this user reads every folder")
def test_a_folder_that_cannot_be_read_is_an_error_of_the_scan(command, folder):
    (folder / "closed").mkdir(mode=0)
    done = command("scan", folder)
    assert done.status == 1
    assert "closed" in done.err


def test_a_file_that_cannot_be_read_is_an_error_of_the_scan(command, folder, monkeypatch):
    dump(Graph(NEGATIVE), folder / "net.pb")
    (folder / "other.pb").write_bytes(b"x")
    read = model_files.mapped_file.head

    def refuse(path, count):
        if path.name == "other.pb":
            raise PermissionError(13, "Permission denied", str(path))
        return read(path, count)

    monkeypatch.setattr(model_files.mapped_file, "head", refuse)
    done = command("scan", folder)
    assert done.status == 1
    assert done.out.endswith(f"1 model in {folder}: 1 can run here\n")
    assert "other.pb" in done.err


@pytest.mark.parametrize(("name", "message"), [
    ("missing", "no such folder"), ("model.pb", "this is a file, not a folder"),
])
def test_a_path_that_is_no_folder_is_an_error(command, saved, tmp_path, name, message):
    saved(*NEGATIVE)
    done = command("scan", tmp_path / name)
    assert done.status == 1
    assert message in done.err


def test_the_page_escapes_names_and_needs_no_other_file(command, folder):
    dump(Graph((placeholder("x", ()), Node("y", "<script>alert(1)</script>", ("x",)))), folder / "a&<b>.pb")
    done = command("scan", folder, "--html", "report.html")
    assert done.out.endswith("; wrote report.html\n")
    page = Path("report.html").read_text("utf-8")
    assert "a&amp;&lt;b&gt;.pb" in page
    assert "&lt;script&gt;" in page
    assert not any(text in page for text in ("<script", "http:", "https:", "src=", "url("))
    assert "prefers-color-scheme: dark" in page


def test_a_page_never_replaces_a_file_of_another_kind(command, folder, saved):
    model = saved(*NEGATIVE)
    done = command("scan", folder, "--html", model)
    assert f"--html '{model}' is no .html file" in done.err
    assert "hint: --html report.html" in done.err


def test_run_tries_each_model_with_limits(scanned, folder):
    dump(Graph(NEGATIVE), folder / "fine.pb")
    dump(Graph((placeholder("s", (), dtypes.string), Node("y", "ReadFile", ("s",)))), folder / "reads.pb")
    dump(Graph((placeholder("x", ()), const("axis", 1, np.int32), node("y", "Sum", "x", "axis", Tidx=dtypes.int32))),
         folder / "wrong.pb")
    rows = scanned("--run")
    assert (rows["fine.pb"]["run"]["status"], rows["fine.pb"]["runs"]) == ("ran", True)
    assert rows["reads.pb"]["run"] == {
        "status": "refused", "reason": "not tried: its ops open files: ReadFile", "seconds": None}
    assert rows["wrong.pb"]["run"]["status"] == "failed"
    assert not rows["wrong.pb"]["runs"]


QUEUE = (Node("q", "FIFOQueueV2", attrs={"component_types": [dtypes.float32]}),
         Node("y", "QueueDequeueV2", ("q",), attrs={"component_types": [dtypes.float32]}))
LARGE = (const("shape", [1 << 14, 1 << 14], np.int32), const("one", 1.0),
         node("big", "Fill", "shape", "one", index_type=dtypes.int32), node("y", "Neg", "big"))


@pytest.mark.parametrize(("nodes", "options", "reason"), [
    (QUEUE, ("--timeout", "3"), "ended after 3 s: --timeout gives it more"),
    (LARGE, ("--memory", "64"), "limit of"),
])
def test_a_model_beyond_a_limit_is_ended(scanned, folder, nodes, options, reason):
    dump(Graph(nodes), folder / "net.pb")
    run = scanned("--run", *options)["net.pb"]["run"]
    assert run["status"] == "failed"
    assert reason in run["reason"]


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "soon"])
def test_a_limit_of_time_is_a_number_above_zero(command, folder, seconds):
    assert command("scan", folder, "--run", f"--timeout={seconds}").status == 2


def test_ops_missing_of_a_folder_is_the_column_of_the_scan(command, folder):
    dump(Graph(NEGATIVE), folder / "fine.pb")
    (folder / "broken.pb").write_bytes(b"")
    assert command("ops", "--missing", folder).status == 0
    dump(Graph((placeholder("x", ()), Node("y", "NoSuchOp", ("x",)))), folder / "net.pb")
    done = command("ops", "--missing", folder)
    assert done.status == 1
    assert ["net.pb", "NoSuchOp", "1"] in [line[:3] for line in done.words]
    assert ["broken.pb", "the", "file", "is", "empty"] in done.words
    assert done.out.endswith("\n1 of 3 models lacks ops\n")
    rows = json.loads(command("ops", "--missing", folder, "--json").out)
    assert [(row["file"], [lack["op"] for lack in row["missing"]]) for row in rows] == [
        ("broken.pb", []), ("fine.pb", []), ("net.pb", ["NoSuchOp"])]


def test_made_up_inputs_are_for_one_run_of_the_outputs(command, saved):
    model = saved(placeholder("x", (None, 2)), placeholder("s", (None,), dtypes.string), node("y", "Neg", "x"),
                  Node("z", "StringLength", ("s",), attrs={"unit": b"BYTE"}))
    assert command("run", model, "--made-up").words[-1] == ["[16]"]
    assert command("run", model, "--made-up", "--input", "s=abc").words[-1] == ["[3]"]
    assert "--made-up is for one run of the model's outputs, and --target is given" in command(
        "run", model, "--made-up", "--target", "y").err


CLAIMING = """
from heald.api import Description, Graph, Node, hookimpl

HEALD_API = (1, 4)

class Source:
    signatures = {}

    def describe(self):
        return Description("claimed")

    def graph(self):
        x = Node("x", "Placeholder", attrs={"dtype": "float32"})
        return Graph([x, Node("y", "Neg", ["x"], attrs={"T": "float32"})])

    def initial_state(self):
        return ()

class Loader:
    def recognise(self, path, head):
        return head.startswith(b'{"claimed')

    def open(self, path, options):
        return Source()

@hookimpl
def heald_loaders(registry):
    registry.add("claimed", Loader())
"""


@pytest.mark.parametrize("name", ["a.json", "b.h5", "c.onnx", "f.tflite", "g"])
def test_a_file_that_a_plugins_loader_claims_is_its_model(command, scanned, folder, name):
    plugin = folder / f"claiming_{name[0]}.py"
    plugin.write_text(CLAIMING)
    (folder / name).write_text('{"claimed": 3}')
    done = command("scan", folder, "--json", "--plugin", plugin)
    assert done.err == ""
    assert {row["file"]: (row["kind"], row["error"]) for row in json.loads(done.out)} == {name: ("claimed", None)}
