"""heald run --output: which files appear, and that none is ever half-written."""

import json
from pathlib import Path

import numpy as np
import pytest
from builders.graphs import const, node, placeholder
from heald.runtime.values import dtypes


@pytest.fixture
def scopes(saved):
    """Outputs whose names are no file names."""
    return saved(placeholder("x", ()), node("a/b", "Neg", "x"), node("a_b", "Abs", "x"), node("file", "Neg", "x"))


def test_an_npz_has_every_output_by_name(command, scopes):
    done = command("run", scopes, "--input", "2", "--output", "y.npz")
    assert done.out == "wrote y.npz: a/b float32[], a_b float32[], file float32[]\n"
    with np.load("y.npz") as archive:
        assert {name: float(archive[name]) for name in archive} == {"a/b": -2, "a_b": 2, "file": -2}


@pytest.mark.parametrize("folder", ["made/deep/", "plain", "has.dot/"])
def test_a_folder_gets_a_file_for_each_output(command, scopes, folder):
    assert command("run", scopes, "--input", "2", "--output", folder).status == 0
    values_by_file = {path.name: float(np.load(path)) for path in Path(folder).iterdir()}
    assert values_by_file == {"a_b.npy": -2, "a_b_2.npy": 2, "file.npy": -2}


@pytest.mark.parametrize("target", ["y.npz", "folder/"])
def test_quantised_outputs_are_plain_integers(command, saved, target):
    quint8 = dtypes.named("quint8")
    model = saved(placeholder("x", (2,), quint8), node("y", "Identity", "x", T=quint8))
    assert command("run", model, "--input", "[7, 255]", "--output", target).status == 0
    values = np.load("y.npz")["y"] if target == "y.npz" else np.load("folder/y.npy")
    assert (values.dtype, values.tolist()) == (np.uint8, [7, 255])
    shown = json.loads(command("run", model, "--input", "[7, 255]", "--json").out)
    assert shown["outputs"]["y"]["values"] == [7, 255]


def test_an_existing_folder_may_have_any_name(command, scopes):
    Path("out.npz").mkdir()
    command("run", scopes, "--input", "2", "--output", "out.npz", "--fetch", "file")
    assert [path.name for path in Path("out.npz").iterdir()] == ["file.npy"]


def test_other_suffixes_are_refused_before_anything_runs(command):
    done = command("run", "nothere.pb", "--output", "y.txt")
    assert done.err.startswith("error: --output 'y.txt' is no folder, no .npz file and no .json file")


def test_a_json_file_has_all_values_and_null_for_those_that_json_lacks(command, saved):
    saved(placeholder("x", (None,)), node("y", "AddV2", "x", "x"))
    done = command("run", "model.pb", "--input", str([*range(2000), float("inf"), float("nan")]).replace(
        "inf", "Infinity").replace("nan", "NaN"), "--output", "y.json")
    assert "warning: 3 values are null" in done.err
    # the largest of the statistics is infinite, too
    output = json.loads(Path("y.json").read_text("utf-8"))["y"]
    assert (output["dtype"], output["shape"]) == ("float32", [2002])
    assert output["values"] == [*range(0, 4000, 2), None, None]


def test_json_tells_the_files(command, scopes):
    assert '"file": "y.npz"' in command("run", scopes, "--input", "2", "--output", "y.npz", "--json").out


@pytest.mark.parametrize("target", ["y.npz", "folder/"])
def test_a_write_that_fails_leaves_nothing_and_keeps_what_was_there(command, scopes, target, monkeypatch):
    command("run", scopes, "--input", "2", "--output", target)
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    written = []

    def fail_at_the_second(file, array, **_):
        if written:
            raise OSError(28, "No space left on device")
        written.append(file.write(b"half"))

    monkeypatch.setattr(np.lib.format, "write_array", fail_at_the_second)
    file = {"y.npz": "y.npz", "folder/": "folder/a_b_2.npy"}[target]
    assert command("run", scopes, "--input", "3", "--output", target) == (
        1, "", f"error: {file}: No space left on device\n")
    assert {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()} == before


def test_a_folder_that_is_not_there_is_told(command, scopes):
    done = command("run", scopes, "--input", "2", "--output", "nothere/y.npz")
    assert done.status == 1
    assert done.err == "error: nothere/y.npz: the folder 'nothere' does not exist\n  hint: make it first\n"


def test_strings_are_written_as_bytes_unless_that_would_lose_some(command, saved):
    model = saved(const("s", [b"one", b"three"], object), node("t", "Identity", "s", T=dtypes.string))
    command("run", model, "--output", "t.npz")
    with np.load("t.npz") as archive:
        assert archive["t"].tolist() == [b"one", b"three"]
    lossy = saved(const("s", [b"one\0"], object), node("t", "Identity", "s", T=dtypes.string))
    done = command("run", lossy, "--output", "t.npz")
    assert done.err.startswith("error: output 't' has strings that end in zero bytes")


def test_types_that_files_lack_are_written_as_float32(command, saved):
    model = saved(const("a", [1.5, 2], dtypes.bfloat16.numpy), node("b", "Identity", "a", T=dtypes.bfloat16))
    command("run", model, "--output", "b.npz")
    with np.load("b.npz") as archive:
        assert (archive["b"].dtype, archive["b"].tolist()) == (np.float32, [1.5, 2])
