"""benchmarks/startup.py: each form of heald has its row, parts add up, and a form with another result is refused."""

import sys

import numpy as np
import pytest
from heald.api import Graph, Node, constant, dtypes
from heald.graphs.graph.graphdef import dump

F32 = dtypes.float32


@pytest.fixture
def startup(module):
    return module("startup")


@pytest.fixture
def model(tmp_path):
    """A product of a matrix, with its input."""
    x = Node("x", "Placeholder", attrs={"dtype": F32, "shape": None})
    w = constant("w", np.arange(12, dtype=np.float32).reshape(4, 3))
    product = Node("y", "MatMul", ["x", "w"], attrs={"T": F32, "transpose_a": False, "transpose_b": False})
    path = tmp_path / "product.pb"
    dump(Graph([x, w, product]), path)
    np.savez(path.with_suffix(".npz"), x0=np.ones((1, 4), np.float32))
    return path


@pytest.fixture
def bench(startup, model, tmp_path):
    folder = tmp_path / "forms"
    folder.mkdir()
    return startup.Bench(model, sys.executable, folder)


def test_both_forms_of_heald_are_measured_and_onnx_is_left_out_without_its_file(startup, bench, capsys):
    forms = bench.run_forms([startup.HEALD_BEF, startup.HEALD_PB, startup.FORMS[2]])
    assert forms == [startup.HEALD_BEF, startup.HEALD_PB]
    assert "there is no product.onnx" in capsys.readouterr().out
    parts = bench.once(startup.HEALD_BEF)
    assert 0 < parts["loaded"] < parts["whole"]
    assert parts["peak"] > 1e6
    assert any(path.endswith("/heald/__init__.py") for path in parts["files"])


def test_a_form_with_another_result_is_refused(startup, bench):
    wrong = startup.HEALD_PB._replace(name="wrong", run=startup.HEALD_PB.run + "y = y + 1\n")
    with pytest.raises(SystemExit, match="wrong has another result than heald, .bef"):
        bench.run_forms([startup.HEALD_BEF, wrong])


def test_a_form_that_fails_later_has_its_error_as_its_row(startup, bench):
    forms = bench.run_forms([startup.HEALD_BEF])
    later = forms[0]._replace(name="later", run="raise MemoryError('no room')\n")
    _, (network, name, text) = startup.rows(bench, [*forms, later], 1, cold=False)
    assert (network, name, text) == ("product", "later", "MemoryError: no room")


def test_the_parts_add_up_to_less_than_the_whole(startup, bench):
    bench.run_forms([startup.HEALD_BEF])
    form = startup.HEALD_BEF._replace(run=startup.PARTS)
    figures = bench.once(form)
    assert {"interpreter", "import heald", "mapping", "link", "first run"} <= figures["parts"].keys()
    assert sum(figures["parts"].values()) < figures["whole"]
