"""heald diff: where two devices part."""

import json
from pathlib import Path

import numpy as np
import pytest
from builders.graphs import const, node, placeholder
from heald_tools.compare import compare

WRONG = """
import numpy as np
from heald.api import hookimpl
from heald_example_device.kernels import elementwise

HEALD_API = (1, 0)

@hookimpl
def heald_kernels(registry):
    registry.kernels("EXAMPLE", register, priority=5)

def register(kernels):
    @kernels.kernel("Maximum", dtypes={"T": "float32"})
    def maximum(b):
        return elementwise("add", b)
"""


@pytest.fixture
def model(saved):
    return saved(placeholder("x", (None, 3)), const("w", np.eye(3)), node("m", "MatMul", "x", "w", transpose_a=False,
                 transpose_b=False), node("n", "Neg", "m"), node("o", "Maximum", "m", "n"), node("p", "Mul", "o", "o"))


def test_devices_that_agree_are_said_to(command, model):
    done = command("diff", model, "--device", "EXAMPLE:0")
    assert done.status == 0
    assert "4 tensors compared" in done.out
    assert "none further apart than 0.001 of the standard deviation; at most 0" in done.out


def test_the_first_tensor_that_differs_is_named(command, model, tmp_path):
    (tmp_path / "wrong_maximum.py").write_text(WRONG)
    done = command("diff", model, "--device", "EXAMPLE:0", "--input", "x=[[1, 2, 3]]", "--plugin", "wrong_maximum.py")
    assert done.status == 1
    assert [line[:3] for line in done.words if line[-1] == "yes"] == [
        ["o:0", "Maximum", "EXAMPLE:0"], ["p:0", "Mul", "EXAMPLE:0"]]
    assert "2 beyond 0.001: EXAMPLE:0 and CPU:0 part at o:0 (Maximum)" in done.out


def test_json_has_every_tensor(command, model):
    rows = json.loads(command("diff", model, "--device", "EXAMPLE:0", "--json").out)
    assert [(row["tensor"], row["beyond"]) for row in rows] == [(f"{n}:0", False) for n in "mnop"]
    assert rows[0]["type"] == "float32[1,3]"


def test_nodes_that_the_device_left_to_another_are_counted(command, saved):
    model = saved(placeholder("x", (2,)), node("s", "Square", "x"), node("n", "Neg", "s"))
    done = command("diff", model, "--device", "EXAMPLE:0", "--all")
    assert ["s:0", "Square", "CPU:0"] in [line[:3] for line in done.words]
    assert "2 tensors compared, 1 of them not computed on EXAMPLE:0" in done.out


def test_an_input_that_cannot_be_guessed_must_be_given(command, saved):
    done = command("diff", saved(placeholder("x"), node("n", "Neg", "x")), "--device", "EXAMPLE:0")
    assert done.status == 1
    assert "input 'x' is float32<unknown rank>: give it" in done.err


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(("one", "other", "beyond"), [
    ([1.0, 2.0], [1.0, 2.0], False), ([1.0, 2.0], [1.0, 2.0004], False), ([1.0, 2.0], [1.0, 2.001], True),
    ([NAN, 1.0], [NAN, 1.0], False), ([NAN, 1.0], [0.0, 1.0], True), ([0.0, 1.0], [NAN, 1.0], True),
    ([INF, 1.0], [INF, 1.0], False), ([INF, 1.0], [-INF, 1.0], True), ([], [], False), ([1.0], [1.0, 2.0], True),
])
def test_floats_are_compared_by_the_spread_of_the_reference(one, other, beyond):
    assert compare(np.float32(one), np.float32(other), 1e-3)[2] is beyond


def test_values_but_floats_are_equal_or_not():
    assert compare(np.int32([1, 2]), np.int32([1, 2]), 1e-3) == (0.0, 0.0, False)
    assert compare(np.int32([1, 2]), np.int32([1, 4]), 1e-3)[::2] == (2.0, True)
    assert compare(np.array([b"a"], object), np.array([b"a"], object), 1e-3) == (None, 0.0, False)
    assert compare(np.array([b"a"], object), np.array([b"b"], object), 1e-3)[2]


@pytest.mark.parametrize("name", ["v1_while_cond_inside", "v1_cond_nested", "v2_case"])
def test_graphs_with_loops_and_branches_are_compared(command, name):
    model = Path(__file__).parents[1] / "data" / "graphs" / f"{name}.pb"
    done = command("diff", model, "--device", "CPU:0")
    assert (done.status, done.err) == (0, "")
    assert " tensors compared" in done.out
