"""heald compile, and the commands that take compiled files."""

from __future__ import annotations

import json
from pathlib import Path

import heald
import numpy as np
import pytest
from builders.graphs import graph, node, placeholder

DIGITS = Path(__file__).parents[2] / "examples/digits/frozen.pb"


def shape_of(batch):
    ((name, meta),) = heald.load(DIGITS).inputs.items()
    return f"{name}={','.join(map(str, (batch, *meta.shape[1:])))}"


@pytest.fixture
def compiled(command, tmp_path):
    file = tmp_path / "digits.bef"
    assert command("compile", str(DIGITS), "-o", str(file), "--input", shape_of(2)).status == 0
    return file


def arrays(tmp_path, batch=2):
    ((name, meta),) = heald.load(DIGITS).inputs.items()
    x = np.random.default_rng(1).random((batch, *meta.shape[1:]), np.float32)
    np.save(tmp_path / "x.npy", x)
    return x, f"{name}={tmp_path / 'x.npy'}"


def test_compile_tells_the_functions_and_their_needs(command, tmp_path):
    file = tmp_path / "many.bef"
    done = command("compile", str(DIGITS), "-o", str(file), "--input", shape_of(2),
                   "--input", shape_of(5).replace(",", "x"), "--json")
    report = json.loads(done.out)
    assert [row["shapes"] for row in report["functions"]].count("these") == 2
    assert report["devices"] == ["CPU:0"]
    assert "heald-cpu" in [row["distribution"] for row in report["needs"]]
    assert report["bytes"] == file.stat().st_size
    x, _ = arrays(tmp_path, 5)
    assert heald.load(file)(x).keys() == heald.load(DIGITS).outputs.keys()


def test_compile_takes_the_outputs_that_are_named(command, tmp_path):
    file = tmp_path / "digit.bef"
    done = command("compile", str(DIGITS), "-o", str(file), "--input", shape_of(2), "--fetch", "digit")
    assert done.status == 0
    x, _ = arrays(tmp_path)
    assert np.array_equal(heald.load(file)(x), heald.load(DIGITS, outputs=["digit"])(x))


def test_compile_without_a_name_writes_into_the_working_folder(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "wrote frozen.bef" in command("compile", str(DIGITS), "--input", shape_of(2), "--strip").out
    assert [file.name for file in tmp_path.iterdir()] == ["frozen.bef"]


@pytest.mark.parametrize("text", ["x", "x:a", "x:1,-2", "x:1,2:", "x=f.png", "x:1.5", "x=a", "=1,2", "x=1,,2", "x=1.5"])
def test_a_shape_that_is_none_is_wrong_usage(command, text):
    done = command("compile", str(DIGITS), "--input", text)
    assert done.status == 2
    assert "is no NAME=SHAPE, such as image=1,224,224,3" in done.err


@pytest.mark.parametrize("text", ["x=2,3", "x=2x3", "x=[2, 3]", "x=(2,3)", "x:2,3", "x:2x3"])
@pytest.mark.parametrize("name", ["compile", "explain"])
def test_a_shape_is_written_alike_for_every_command(command, tmp_path, name, text):
    model = tmp_path / "model.pb"
    heald.graphdef.dump(graph(placeholder("x", (None, None)), node("y", "Neg", "x")), model)
    assert command(name, str(model), "--input", text).status == 0
    done = command(name, str(model), "--input", "x=two")
    assert (done.status, "'x=two' is no NAME=SHAPE" in done.err) == (2, True)


def test_open_dimensions_and_folders_that_are_not_there_are_errors(command, tmp_path):
    done = command("compile", str(DIGITS), "-o", str(tmp_path / "a.bef"))
    assert (done.status, "--input NAME:SHAPE" in done.err) == (1, True)
    done = command("compile", str(DIGITS), "-o", str(tmp_path / "no" / "a.bef"), "--input", shape_of(2))
    assert (done.status, done.err[:6]) == (1, "error:")
    assert not list(tmp_path.iterdir())


def test_run_gives_the_outputs_of_the_source(command, tmp_path, compiled):
    x, input_file = arrays(tmp_path)
    output = tmp_path / "y.npz"
    assert command("run", str(compiled), "--input", input_file, "--output", str(output), "--repeat", "2").status == 0
    expected, output_arrays = heald.load(DIGITS)(x), np.load(output)
    assert all(np.array_equal(output_arrays[name], expected[name]) for name in expected)


def test_run_names_missing_and_unknown_inputs(command, tmp_path, compiled):
    assert "the model needs an input" in command("run", str(compiled)).err
    _, input_file = arrays(tmp_path)
    assert "the model has no input 'y'" in command("run", str(compiled), "--input", input_file, "--input", "y=1").err
    assert "needs a graph" in command("run", str(compiled), "--input", input_file, "--fetch", "z").err


def test_bench_times_it_and_sends_views_of_a_graph_away(command, compiled):
    report = json.loads(command("bench", str(compiled), "--batch", "2", "--duration", "0.01", "--json").out)
    assert report["runtimes"][0]["runs"] > 0
    assert "needs a graph" in command("bench", str(compiled), "--batch", "2", "--duration", "0.01", "--nodes").err


def test_inspect_tells_functions_kernels_and_needs(command, compiled):
    report = json.loads(command("inspect", str(compiled), "--json").out)
    assert report["format"] == "BEF, made from GraphDef"
    assert {row["kernel"].partition(".")[2] for row in report["kernels"]} >= {"MatMul", "constant"}
    assert "plugins that it needs" in command("inspect", str(compiled)).out
    assert "is compiled" in command("inspect", str(compiled), "--partitions").err


def test_explain_tells_device_and_kernel_of_each_node(command, compiled):
    rows = json.loads(command("explain", str(compiled), "--json").out)
    assert {row["assigned"] for row in rows} == {"CPU:0"}
    assert "when it was compiled" in command("explain", str(compiled)).out
    assert "is compiled" in command("explain", str(compiled), "--fetch", "x").err


def test_signatures_that_are_left_out_are_named_with_the_reason(command, tmp_path):
    (tmp_path / "model.signed").write_text("signed right")
    plugin = str(Path(__file__).parents[1] / "plugins_for_tests" / "plugin_of_signatures.py")
    done = command("compile", "model.signed", "--plugin", plugin)
    assert done.status == 0
    assert ("left out: signature columns (no shape for c0:[?], c1:[?], c2:[?], c3:[?], c4:[?], and 2 more)\n"
            ) in done.out
    report = json.loads(command("compile", "model.signed", "--plugin", plugin, "--json").out)
    assert [*report["left_out"]] == ["columns"]
