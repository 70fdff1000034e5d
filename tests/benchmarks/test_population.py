"""benchmarks/population.py: small models of the population run here, and the verdicts on models made by hand."""

import json
from pathlib import Path

import heald
import ml_dtypes
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "tests" / "data" / "population"
MODELS = ROOT / "benchmarks" / "population" / "models.json"
HALF = np.dtype(ml_dtypes.bfloat16)


@pytest.fixture
def process(module, monkeypatch):
    """The module that runs one model, without the seconds of its timing."""
    loaded = module("population_process")
    monkeypatch.setattr(loaded, "TIMED_SECONDS", 0.0)
    return loaded


@pytest.fixture
def tripling(tmp_path, module):
    """Makes a model of one node, for which TensorFlow is said to have answered `expected`."""
    def make_model(expected, op="Mul", dtype=np.float32, **case):
        heald.graphdef.dump(graph(placeholder("x", (2,)), const("three", 3), node("y", op, "x", "three")),
                            tmp_path / "frozen.pb")
        description = {"path": "frozen.pb", "feeds": {"x": "x:0"}, "fetches": {"y": "y:0"}, "tolerance": "float32"}
        (tmp_path / "case.json").write_text(json.dumps(description | case))
        arrays = module("population_arrays")
        arrays.write_calls(tmp_path / "inputs.npz", [{"x": np.float32([1, 2])}])
        arrays.write_calls(tmp_path / "answers.npz", [{"y": np.asarray(expected, dtype)}])
        return tmp_path

    return make_model


@pytest.mark.parametrize("name", sorted(path.name for path in SAMPLE.iterdir()))
def test_a_model_of_the_sample_gives_the_answers_of_tensorflow(process, name):
    verdict = process.check_model(SAMPLE / name)
    assert (verdict["state"], verdict["reason"]) == ("works", "")


@pytest.mark.parametrize(("expected", "state", "reason"), [
    ([3, 6], "works", ""), ([3.0003, 6], "works", ""), ([3.001, 6], "wrong", "call 0, y: 1 of 2 differ, by 2.5e-04"),
    ([3, np.nan], "wrong", "by inf"), ([3, 6, 9], "wrong", "shape [2] for [3]"),
])
def test_the_verdict_names_the_call_and_the_output_that_differs(process, tripling, expected, state, reason):
    verdict = process.check_model(tripling(expected))
    assert verdict["state"] == state
    assert reason in verdict["reason"]


def test_an_output_of_another_type_is_wrong(process, tripling):
    assert process.check_model(tripling([3, 6], dtype=np.float64))["reason"] == "call 0, y: type float32 for float64"


def test_an_error_of_heald_is_the_reason(process, tripling):
    verdict = process.check_model(tripling([3, 6], op="NoSuchOp"))
    assert (verdict["state"], "NoSuchOp" in verdict["reason"]) == ("error", True)


def test_a_model_that_needs_its_initialisers_runs_them_first(process, tripling):
    folder = tripling([3, 6], before=["three"], targets=["y"])
    assert process.check_model(folder)["state"] == "works"


@pytest.mark.parametrize(("ours", "theirs", "tolerance", "is_right"), [
    (np.array([1.0], HALF), np.array([1.01], HALF), "float32", True),  # half types have a tolerance of their own
    (np.float32([1.0]), np.float32([1.01]), "half", True), (np.float32([1.0]), np.float32([1.01]), "float32", False),
    (np.float32([np.inf, np.nan]), np.float32([np.inf, np.nan]), "float32", True),
    (np.int32([1, 2]), np.int32([1, 3]), "half", False), (np.array([True]), np.array([True]), "float32", True),
    (np.array([b"a"], object), np.array([b"a"], object), "float32", True),
    (np.array([b"a"], object), np.array([b"b"], object), "half", False),
    (np.complex64([1 + 1j]), np.complex64([1 + 1.1j]), "float32", False),
])
def test_half_types_are_compared_loosely_and_integers_and_strings_exactly(process, ours, theirs, tolerance, is_right):
    assert (process.compare(ours, theirs, tolerance)[1] == "") is is_right


@pytest.mark.parametrize("array", [
    np.array([[b"a\0", b""], [b"\xff.", b"ab"]], object), np.array(b"one", object), np.zeros((0, 2), object),
    np.array([1.5, -2], HALF), np.float32([[1]]), np.array(True), np.complex64([1j]),
])
def test_arrays_of_every_type_are_written_and_read(module, tmp_path, array):
    arrays = module("population_arrays")
    arrays.write_calls(tmp_path / "calls.npz", [{"first": array}, {"second/part": array}])
    first, second = arrays.read_calls(tmp_path / "calls.npz")
    for read in (first["first"], second["second/part"]):
        assert (read.dtype, read.shape) == (array.dtype, array.shape)
        assert read.tolist() == array.tolist()


def test_names_are_unique_and_every_maker_exists():
    rows = [row for family in json.loads(MODELS.read_text()).values() for row in family]
    assert len({row["name"] for row in rows}) == len(rows) >= 352
    makers = {tuple(row["maker"].split(":")) for row in rows}
    sources = {module: (MODELS.parent / f"{module}.py").read_text() for module, _ in makers}
    assert [maker for maker in makers if f"\ndef {maker[1]}(" not in sources[maker[0]]] == []


def test_the_tables_count_works_and_failures_by_family(module):
    population, page = module("population"), module("population_page")
    rows = [{"name": "a", "family": "f", "state": "works", "difference": 1e-7, "seconds": 1.0, "tensorflow": 2.0,
             "inspect": "", "bench": "error: no | input"},
            {"name": "b", "family": "f", "state": "error", "reason": "Unimplemented: x", "tensorflow": 2.0,
             "inspect": "", "bench": ""}]
    report = {"date": "2026-01-31", "cores": 2, "rows": rows}
    text = page.page(report, population.summary)
    assert "| f        |        2 |      1 |       0 |                1e-07 |" in text
    assert "| b       | error   | Unimplemented: x |" in text
    assert "| a       | bench     | error: no / input |" in text
    assert "Unimplemented: x" in page.text(report, population.summary)
