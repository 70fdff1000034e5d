"""SavedModels of TF-DF give its answers, end to end.

TF-DF saved them: two classes, three classes with sets of words, a regression by a random forest, a ranking. Their
inputs have missing values and unknown words. Three of them are without the functions that no signature calls.
"""

from __future__ import annotations

import shutil

import heald
import numpy as np
import pytest
from builders.string_arrays import array
from harness.recorded_forests import DATA
from heald.errors import NotFound, PermissionDenied

MODELS = ["binary", "classes", "forest", "ranking"]


def read_calls(name):
    """The inputs of the recorded call, and its result."""
    with np.load(DATA / name / "calls.npz") as calls:
        values = {key: array(calls[key].tolist()) if calls[key].dtype.kind == "S" else calls[key] for key in calls}
    (output,) = (key for key in values if key.startswith("out/"))
    return {key.removeprefix("in/"): value for key, value in values.items() if key != output}, values[output]


def predictions_of(model, inputs):
    results = model(**inputs)
    return results if isinstance(results, np.ndarray) else next(iter(results.values()))


@pytest.mark.parametrize("name", MODELS)
def test_a_saved_model_gives_the_answers_of_tensorflow(name):
    inputs, expected = read_calls(name)
    np.testing.assert_array_equal(predictions_of(heald.load(DATA / name / "model"), inputs), expected)


def test_a_saved_model_runs_on_the_command_line(tmp_path, capsys):
    from heald.cli import main

    inputs, expected = read_calls("forest")
    numbers = {name: value for name, value in inputs.items() if value.dtype != object}
    np.savez(tmp_path / "inputs.npz", **numbers)
    words = ", ".join(f'"{word.decode()}"' for word in inputs["c"])
    arguments = [f"--input={name}={tmp_path / 'inputs.npz'}:{name}" for name in numbers]
    assert main(["run", str(DATA / "forest" / "model"), *arguments, f"--input=c=[{words}]",
                 "--output", str(tmp_path / "out.npz")]) == 0, capsys.readouterr().err
    with np.load(tmp_path / "out.npz") as saved:
        (result,) = saved.values()
    np.testing.assert_array_equal(result, expected)


def test_a_copied_model_reads_its_own_assets(tmp_path):
    model = shutil.copytree(DATA / "ranking" / "model", tmp_path / "model")
    inputs, expected = read_calls("ranking")
    np.testing.assert_array_equal(predictions_of(heald.load(model), inputs), expected)
    for file in (model / "assets").glob("*nodes-*"):
        file.unlink()
    with pytest.raises(NotFound, match=r"nodes-00000-of-00001', a file of a decision forest, does not exist"):
        predictions_of(heald.load(model), inputs)


def test_an_asset_that_leads_out_of_the_model_is_not_read(tmp_path):
    model = shutil.copytree(DATA / "ranking" / "model", tmp_path / "model")
    (header,) = (file for file in (model / "assets").glob("*header.pb") if "trees" not in file.name)
    header.rename(tmp_path / "outside")
    header.symlink_to(tmp_path / "outside")
    with pytest.raises((PermissionDenied, heald.errors.InvalidArgument)):
        predictions_of(heald.load(model), read_calls("ranking")[0])


def test_a_saved_copy_of_a_model_gives_the_same_answers(tmp_path):
    inputs, expected = read_calls("binary")
    heald.saved_model.save(heald.load(DATA / "binary" / "model"), tmp_path / "copy")
    np.testing.assert_array_equal(predictions_of(heald.load(tmp_path / "copy"), inputs), expected)
