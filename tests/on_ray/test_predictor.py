"""The parts of a predictor that need no cluster: files, versions, batches."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from heald.errors import DataLoss, FailedPrecondition, InvalidArgument, NotFound, PermissionDenied
from heald_ray.model_files import model_path, read_model_files
from heald_ray.predictor import Predictor
from heald_ray.versions import check_versions, installed_versions

DIGITS = Path(__file__).parents[2] / "examples" / "digits"


@pytest.fixture
def node(tmp_path, monkeypatch):
    """The temporary folder of a node."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def path_on_node(model):
    files, contents = read_model_files(model)
    return model_path(files, lambda: contents)


def files_below(folder):
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize("name", ["frozen.pb", "saved_model"])
def test_a_models_files_arrive_as_they_were(node, name):
    model = path_on_node(DIGITS / name)
    assert model.name == name
    if (DIGITS / name).is_dir():
        assert files_below(model) == files_below(DIGITS / name)
    else:
        assert model.read_bytes() == (DIGITS / name).read_bytes()


def test_files_that_are_on_the_node_are_used_again_and_no_contents_are_asked_for(node):
    files, contents = read_model_files(DIGITS / "frozen.pb")
    reads = []

    def read_contents():
        reads.append(files.digest)
        return contents

    assert model_path(files, read_contents) == model_path(files, read_contents)
    assert reads == [files.digest]


def test_changed_files_of_a_node_are_data_loss(node):
    files, contents = read_model_files(DIGITS / "frozen.pb")
    model = model_path(files, lambda: contents)
    model.write_bytes(b"x" * model.stat().st_size)
    with pytest.raises(DataLoss, match="are not those of the model"):
        model_path(files, lambda: contents)


def test_a_folder_that_others_may_write_to_is_refused(node):
    files, contents = read_model_files(DIGITS / "frozen.pb")
    model_path(files, lambda: contents).parents[1].chmod(0o777)
    with pytest.raises(PermissionDenied, match="others may write to it"):
        model_path(files, lambda: contents)


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/../../x"])
def test_a_name_that_leads_out_of_the_folder_is_refused(node, name):
    files, contents = read_model_files(DIGITS / "frozen.pb")
    with pytest.raises(InvalidArgument, match="leads out"):
        model_path(files._replace(name=name), lambda: contents)


def test_a_path_without_a_file_is_not_found(tmp_path):
    with pytest.raises(NotFound, match="no file and no folder"):
        read_model_files(tmp_path / "absent")
    with pytest.raises(NotFound, match="has no file"):
        read_model_files(tmp_path)


def test_other_versions_are_named_with_both_sides():
    versions = installed_versions()
    check_versions(versions)
    with pytest.raises(FailedPrecondition, match=r"heald-core is .* here and 9\.9 at the caller"):
        check_versions({**versions, "heald-core": "9.9"})
    with pytest.raises(FailedPrecondition, match="acme is not installed here and 1 at the caller"):
        check_versions({**versions, "acme": "1"})


@pytest.fixture
def images():
    return np.load(DIGITS / "test.npz")["image"][:8]


def predictor(**options):
    pytest.importorskip("ray", reason="Ray is not installed")
    options = {"versions": installed_versions(), "inputs": {}, "keep": [], "device": "CPU:0", "outputs": None,
               "signature": None, **options}
    return Predictor(model=str(DIGITS / "frozen.pb"), **options)


def test_a_batch_becomes_outputs_beside_kept_columns(images):
    batch = {"image": images, "file": np.array(list("abcdefgh")), "rest": images}
    results = predictor(keep=["file"], outputs=["Identity_1"])(batch)
    assert list(results) == ["file", "Identity_1"]
    assert results["Identity_1"].shape == (8, 10)


def test_columns_feed_inputs_by_the_callers_names(images):
    assert set(predictor(inputs={"image": "x"})({"x": images})) == {"Identity", "Identity_1", "Identity_2"}


def test_a_missing_column_and_an_unknown_input_are_invalid(images):
    with pytest.raises(InvalidArgument, match="the batch has no column 'image'; columns: x"):
        predictor()({"x": images})
    with pytest.raises(InvalidArgument, match="the batch has no column 'file'"):
        predictor(keep=["file"])({"image": images})
    with pytest.raises(InvalidArgument, match="the model has no input 'nope'"):
        predictor(inputs={"nope": "x"})


def test_an_empty_batch_runs_nothing(images):
    assert predictor()({"image": images[:0]}) == {}
