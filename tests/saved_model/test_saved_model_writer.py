"""SavedModels that heald writes: a loaded one with its current values, and a session's graph with signatures."""

from __future__ import annotations

from pathlib import Path

import heald
import numpy as np
import pytest
from heald.api import Graph, Input, Node, ShapeAttr, constant, dtypes
from heald.errors import AlreadyExists, FailedPrecondition, InvalidArgument, NotFound, Unknown
from heald_saved_model.saved_model import read
from heald_saved_model.saved_model_writer import variable_values

DATA = Path(__file__).parents[1] / "data"
MODELS = sorted(folder.parent.name for folder in (DATA / "saved_models").glob("*/model"))
SIGNATURES = {"serving_default": ({"x": "x:0"}, {"y": "y:0"})}


def session(kind: str) -> heald.Session:
    """y = x * v, with the targets "one" and "two" that assign v."""
    f = dtypes.float32
    op, assign, key = {"reference": ("VariableV2", "Assign", "T"),
                       "resource": ("VarHandleOp", "AssignVariableOp", "dtype")}[kind]
    nodes = [Node("x", "Placeholder", attrs={"dtype": f, "shape": ShapeAttr((None, 2))}),
             Node("v", op, attrs={"dtype": f, "shape": ShapeAttr((2,))})]
    for name, value in (("one", [1, 1]), ("two", [2, 3])):
        nodes += [constant(f"{name}/value", np.float32(value)),
                  Node(name, assign, [Input("v"), Input(f"{name}/value")], attrs={key: f})]
    value = Node("value", "Identity" if kind == "reference" else "ReadVariableOp", [Input("v")],
                 attrs={"T" if kind == "reference" else "dtype": f})
    return heald.Session(Graph([*nodes, value, Node("y", "Mul", [Input("x"), Input("value")], attrs={"T": f})]))


@pytest.mark.parametrize("name", MODELS)
def test_a_loaded_model_is_written_as_it_is(tmp_path, name):
    folder = DATA / "saved_models" / name / "model"
    heald.saved_model.save(heald.load(folder), tmp_path / "again")
    ours, theirs = (read(folder_, mmap=False) for folder_ in (tmp_path / "again", folder))
    assert ours.raw == theirs.raw
    assert ours.has_checkpoint == theirs.has_checkpoint
    if theirs.has_checkpoint:
        assert ours.checkpoint.names == theirs.checkpoint.names
        for key in theirs.checkpoint.names:
            np.testing.assert_array_equal(ours.checkpoint.read(key), theirs.checkpoint.read(key))
    for file in (folder / "assets").glob("*"):
        assert (tmp_path / "again" / "assets" / file.name).read_bytes() == file.read_bytes()
    assert [folder_.name for folder_ in tmp_path.iterdir()] == ["again"]


@pytest.mark.parametrize("kind", ["reference", "resource"])
def test_the_current_values_of_a_session_are_written(tmp_path, kind):
    with session(kind) as live:
        live.run([], targets=["one"])
        live.run([], targets=["two"])
        heald.saved_model.save(live, tmp_path / "m", signatures=SIGNATURES)
    model = heald.load(tmp_path / "m")
    assert str(model) == "(x: float32[?,2]) -> (y: float32[?,2])"
    assert model(np.float32([[1, 10]])).tolist() == [[2, 30]]
    heald.saved_model.save(model, tmp_path / "n")
    assert heald.load(tmp_path / "n")(np.float32([[1, 1]])).tolist() == [[2, 3]]


@pytest.mark.parametrize("kind", ["reference", "resource"])
def test_a_restore_step_of_the_written_graph_assigns_the_values(tmp_path, kind):
    """TensorFlow's loader feeds the path of the variables and runs this node."""
    with session(kind) as live:
        live.run([], targets=["two"])
        heald.saved_model.save(live, tmp_path / "m", signatures=SIGNATURES)
    config = {"files": {"read": [str(tmp_path)]}}
    with heald.Session(read(tmp_path / "m").graph, config) as restored:
        prefix = str(tmp_path / "m" / "variables" / "variables").encode()
        restored.run([], {"save/Const:0": prefix}, targets=["save/restore_all"])
        assert variable_values(restored)["v"].tolist() == [2, 3]


def test_a_changed_variable_of_a_loaded_model_is_written(tmp_path):
    with session("reference") as live:
        live.run([], targets=["one"])
        heald.saved_model.save(live, tmp_path / "m", signatures=SIGNATURES)
    model = heald.load(tmp_path / "m", outputs=["y", "two"], inputs=["x"])
    heald.saved_model.save(model, tmp_path / "unchanged")
    assert heald.load(tmp_path / "unchanged")(np.float32([[1, 1]])).tolist() == [[1, 1]]
    model.session.run([], targets=["two"])
    heald.saved_model.save(model, tmp_path / "n")
    assert heald.load(tmp_path / "n")(np.float32([[1, 1]])).tolist() == [[2, 3]]


def test_a_frozen_graph_becomes_a_saved_model_without_variables(tmp_path):
    x = Node("x", "Placeholder", attrs={"dtype": dtypes.float32, "shape": ShapeAttr((2,))})
    heald.graphdef.dump(Graph([x, Node("y", "Neg", [Input("x")], attrs={"T": dtypes.float32})]), tmp_path / "g.pb")
    heald.saved_model.save(heald.load(tmp_path / "g.pb"), tmp_path / "m")
    assert heald.load(tmp_path / "m")(np.float32([1, 2])).tolist() == [-1, -2]
    assert [path.name for path in (tmp_path / "m").iterdir()] == ["saved_model.pb"]


def test_an_existing_folder_is_replaced_only_on_request(tmp_path):
    with session("resource") as live:
        live.run([], targets=["one"])
        heald.saved_model.save(live, tmp_path / "m", signatures=SIGNATURES)
        (tmp_path / "m" / "mine").write_bytes(b"")
        live.run([], targets=["two"])
        with pytest.raises(AlreadyExists, match="overwrite=True"):
            heald.saved_model.save(live, tmp_path / "m", signatures=SIGNATURES)
        assert (tmp_path / "m" / "mine").exists()
        heald.saved_model.save(live, tmp_path / "m", signatures=SIGNATURES, overwrite=True)
    assert heald.load(tmp_path / "m")(np.float32([[1, 1]])).tolist() == [[2, 3]]
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == [
        "saved_model.pb", "variables.data-00000-of-00001", "variables.index"]


def test_mistakes_are_typed_errors_and_leave_nothing(tmp_path):
    with session("resource") as live:
        for wrong in (None, {}, {"a": ["x:0"]}, {"a": ({"x": "x:0"}, "y:0")}):
            with pytest.raises((InvalidArgument, FailedPrecondition)):
                heald.saved_model.save(live, tmp_path / "m", signatures=wrong)
        with pytest.raises(FailedPrecondition, match="without a value"):
            heald.saved_model.save(live, tmp_path / "m", signatures=SIGNATURES)
        live.run([], targets=["one"])
        with pytest.raises(NotFound, match="nope"):
            heald.saved_model.save(live, tmp_path / "m", signatures={"a": ({}, {"y": "nope:0"})})
        with pytest.raises((NotFound, Unknown)):
            heald.saved_model.save(live, tmp_path / "no" / "m", signatures=SIGNATURES)
    with pytest.raises(InvalidArgument, match="Model or a Session"):
        heald.saved_model.save("model", tmp_path / "m")
    (tmp_path / "file").write_bytes(b"")
    with session("resource") as live, pytest.raises(InvalidArgument, match="is a file"):
        heald.saved_model.save(live, tmp_path / "file", signatures=SIGNATURES, overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
