"""benchmarks/applications.py: its verdicts on applications that are made by hand here."""

import json
import subprocess
import sys
from pathlib import Path

import heald
import numpy as np
import pytest
from builders.graphs import graph, node, placeholder

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "applications.py"


@pytest.fixture
def applications(module):
    return module("applications")


@pytest.fixture
def doubling(tmp_path):
    """Makes an application of one node, for which TensorFlow is said to have given `expected`."""
    def make_application(expected, op="AddV2", **form):
        folder = tmp_path / "doubling"
        folder.mkdir(exist_ok=True)
        heald.graphdef.dump(graph(placeholder("x", (2,)), node("y", op, "x", "x")), folder / "graph.pb")
        forms = {"graph": {"path": "graph.pb", "feeds": {"x": "x:0"}, "fetches": {"y": "y:0"}, **form}}
        (folder / "case.json").write_text(json.dumps(
            {"application": "doubling", "tolerance": 1e-4, "forms": forms}))
        np.savez(folder / "arrays.npz", **{"in/x": np.float32([1, 2]), "out/y": np.asarray(expected, np.float32)})
        return folder

    return make_application


@pytest.mark.parametrize(("ours", "theirs", "relative", "off"), [
    ([1.0, 3.5], [1.0, 3.0], False, 0.5), ([1.0, 3.3], [1.0, 3.0], True, 0.1), ([2.0], [1.0, 3.0], False, np.inf),
    ([np.nan, 1.0], [np.nan, 1.0], False, 0.0), ([np.nan, 1.0], [0.0, 1.0], False, np.inf),
    ([np.inf, 1.0], [np.inf, 1.0], True, 0.0), ([0.0], [0.0], True, 0.0), ([], [], False, 0.0),
])
def test_differences_are_relative_or_in_standard_deviations(applications, ours, theirs, relative, off):
    difference = applications.difference(np.array(ours), np.array(theirs), relative=relative)
    assert difference == pytest.approx(off)


@pytest.mark.parametrize(("ours", "theirs", "off"), [
    (np.array([b"a", b"bc"], object), np.array([b"a", b"bc"], object), 0.0),
    (np.array([b"a"], object), np.array([b"b"], object), np.inf),
    (np.int32([1, 2]), np.int32([1, 2]), 0.0), (np.int32([1, 2]), np.int32([1, 3]), np.inf),
    (np.array([True]), np.array([False]), np.inf),
])
def test_integers_booleans_and_strings_must_be_equal(applications, ours, theirs, off):
    assert applications.difference(ours, theirs, relative=False) == off


def test_right_and_wrong_results_are_told_apart(applications, doubling):
    assert applications.rows(doubling([2, 4]), full_errors=False) == [["doubling", "graph", "right (0e+00)"]]
    assert applications.rows(doubling([2, 5]), full_errors=False)[0][2].startswith("WRONG: y by ")


def test_a_training_loop_runs_its_steps(applications, doubling):
    folder = doubling([[2, 4], [2, 4], [2, 4]], steps=3, before=[], targets=["y"])
    assert applications.rows(folder, full_errors=False)[0][2] == "right (0e+00)"


def test_a_compiled_form_runs_in_a_process_of_its_own(applications, doubling):
    (row,) = applications.rows(doubling([2, 4]), full_errors=False, is_compiled=True)
    assert row[2] == "right (0e+00)"


def test_errors_are_rows_and_are_cut_unless_they_are_asked_for(applications, doubling):
    folder = doubling([2, 4], op="NoSuchOp" * 30)
    (cut,), (full,) = (applications.rows(folder, full_errors=full) for full in (False, True))
    assert cut[2].startswith("NotFound: ")
    assert len(cut[2]) == applications.ERROR_WIDTH < len(full[2])


@pytest.mark.parametrize(("expected", "code"), [([2, 4], 0), ([2, 5], 1)])
def test_the_command_fails_unless_all_are_right(doubling, expected, code):
    done = subprocess.run([sys.executable, SCRIPT, doubling(expected).parent], capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.returncode == code, done.stderr
    assert "doubling" in done.stdout
