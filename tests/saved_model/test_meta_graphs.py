"""Graphs of TensorFlow 1 with their checkpoints, by every name that leads to one. TensorFlow gave the answers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import heald
import numpy as np
import pytest
from heald.cli import main
from heald.errors import DataLoss, FailedPrecondition, HealdError, InvalidArgument, NotFound
from heald_saved_model import Checkpoint

DATA = Path(__file__).parents[1] / "data" / "checkpoints"
NAME = "model.ckpt-2"


@pytest.fixture(params=["reference", "resource"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return Path(shutil.copytree(DATA / request.param, tmp_path / "train"))


def answers(folder: Path) -> dict[str, Any]:
    return {key: np.array(value, "f4") for key, value in json.loads((folder / "answers.json").read_text()).items()}


@pytest.mark.parametrize("path", [".", NAME, f"{NAME}.meta", f"{NAME}.index", f"{NAME}.data-00000-of-00001"])
def test_every_name_of_a_checkpoint_leads_to_its_graph_and_values(folder: Path, path: str) -> None:
    known = answers(folder)
    model = heald.load(folder / path, outputs=["y"])
    np.testing.assert_allclose(model(known["x"]), known["y"], rtol=1e-5)


def test_a_run_may_train_and_start_anew(folder: Path) -> None:
    known = answers(folder)
    step = "global_step/read" if folder.joinpath(f"{NAME}.meta").read_bytes().count(b"VariableV2") else \
        "global_step/Read/ReadVariableOp"
    model = heald.load(folder, outputs=["y", step])
    feeds = {"x": known["x"], "t": known["t"]}
    model.session.run([], feeds, targets=["train"])
    np.testing.assert_allclose(model(known["x"])["y"], known["y_after_train"], rtol=1e-5)
    assert model(known["x"])[step] == known["step_after_train"]
    model.session.run([], targets=["init"])
    np.testing.assert_allclose(model(known["x"])["y"], known["y_after_init"], rtol=1e-5)


def test_a_target_runs_before_the_outputs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    known = answers(folder)
    x = json.dumps(known["x"].tolist())
    command = ["run", str(folder / NAME), "--fetch", "y", "--input", f"x={x}", "--json"]
    for target, expected in (("init", "y_after_init"), (None, "y")):
        assert main([*command, *(["--target", target] if target else [])]) == 0, capsys.readouterr().err
        value = json.loads(capsys.readouterr().out)["outputs"]["y"]
        np.testing.assert_allclose(value["value"] if "value" in value else value["values"], known[expected], rtol=1e-5)


def test_a_training_graph_has_the_loss_as_its_output(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "loss" in heald.load(folder).outputs
    assert not {"train", "Merge/MergeSummary", "save/control_dependency"} & heald.load(folder).outputs.keys()
    assert main(["inspect", str(folder / f"{NAME}.meta")]) == 0
    printed = capsys.readouterr().out
    assert "nodes are no outputs" in printed
    assert "it is a gradient" in printed


def test_the_only_checkpoint_of_a_folder_needs_no_list(folder: Path) -> None:
    (folder / "checkpoint").unlink()
    assert heald.load(folder).outputs
    (folder / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-3"\n')
    with pytest.raises(NotFound, match="no loader recognises the folder"):
        heald.load(folder)


@pytest.mark.parametrize("name", ["..", "/", "", "../../etc/passwd", "x\\\\y"])
def test_a_list_of_checkpoints_leads_to_no_other_folder(folder: Path, name: str) -> None:
    (folder / "checkpoint").write_text(f'model_checkpoint_path: "{name}"\n')
    with pytest.raises(NotFound, match="no loader recognises the folder"):
        heald.load(folder)


def test_a_graph_without_its_checkpoint_is_inspected_and_not_loaded(folder: Path) -> None:
    for file in folder.glob("*.index"):
        file.unlink()
    assert main(["inspect", str(folder / f"{NAME}.meta")]) == 0
    with pytest.raises(FailedPrecondition, match=r"checkpoint is missing: 'model.ckpt-2.index'"):
        heald.load(folder / f"{NAME}.meta")


def test_a_checkpoint_without_its_graph_is_told(folder: Path) -> None:
    (folder / f"{NAME}.meta").unlink()
    for path in (folder / NAME, folder / f"{NAME}.index", folder):
        with pytest.raises(NotFound, match=r"a checkpoint without a graph: 'model.ckpt-2.meta' is missing"):
            heald.load(path)


def test_variables_are_found_by_name_where_no_op_restores_them(folder: Path) -> None:
    from heald.graphs.protobuf.descriptor_pool import message_class

    known, file = answers(folder), folder / f"{NAME}.meta"
    message: Any = message_class("MetaGraphDef").FromString(file.read_bytes())
    message.ClearField("saver_def")
    file.write_bytes(message.SerializeToString())
    np.testing.assert_allclose(heald.load(file, outputs=["y"])(known["x"]), known["y"], rtol=1e-5)
    index = (folder / f"{NAME}.index").read_bytes()
    assert "w" in Checkpoint(index, lambda *_: b"", NAME).names


def test_the_text_form_is_the_same_graph(folder: Path) -> None:
    from google.protobuf import text_format
    from heald.graphs.protobuf.descriptor_pool import message_class

    known, file = answers(folder), folder / f"{NAME}.meta"
    message: Any = message_class("MetaGraphDef").FromString(file.read_bytes())
    file.write_text(text_format.MessageToString(message))
    np.testing.assert_allclose(heald.load(file, outputs=["y"])(known["x"]), known["y"], rtol=1e-5)


def test_damage_is_a_typed_error(folder: Path) -> None:
    file = folder / f"{NAME}.meta"
    data = file.read_bytes()
    for at in range(1, len(data), len(data) // 40):
        file.write_bytes(data[:at])
        try:
            heald.load(file)
        except HealdError as error:
            assert error.location is None or "Internal" not in repr(type(error))  # noqa: PT017
    file.write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(DataLoss, match="a Git LFS pointer"):
        heald.load(file)
    file.write_bytes(data)
    with pytest.raises(InvalidArgument, match="no signatures and no tags"):
        heald.load(file, signature="serving_default")
