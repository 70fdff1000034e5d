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


FUSING_WRONGLY = """
import numpy as np
from heald.api import hookimpl

HEALD_API = (1, 0)
COMPUTE = {"Neg": np.negative, "Abs": np.abs, "Square": np.square}

@hookimpl
def heald_kernels(registry):
    registry.kernels("CPU", register, priority=9)

def register(kernels):
    for op, compute in COMPUTE.items():
        kernels.kernel(op)(lambda b, compute=compute: lambda x, out: np.copyto(out, compute(x)))

    @kernels.fusion("Chain", ops=[*COMPUTE])
    def chain(b):
        def run(x, out):
            for op in b.fused:
                x = COMPUTE[op.op](x)
            out[...] = x + ("Square" in [op.op for op in b.fused])  # the mistake
        return run
"""


@pytest.fixture
def fused_model(saved, tmp_path):
    """Two groups, of which the second one is computed wrongly by the plugin, and a product behind them."""
    (tmp_path / "fusing_wrongly.py").write_text(FUSING_WRONGLY)
    plain = {"transpose_a": False, "transpose_b": False}
    return saved(placeholder("x", (None, 3)), const("w", np.eye(3) * 2), node("a", "Neg", "x"), node("b", "Abs", "a"),
                 node("m", "MatMul", "b", "w", **plain), node("c", "Neg", "m"), node("d", "Square", "c"),
                 node("e", "Neg", "d"), node("p", "MatMul", "e", "w", **plain))


def test_the_first_group_of_fused_nodes_that_differs_is_named_with_its_nodes(command, fused_model):
    arguments = "diff", fused_model, "--device", "CPU:0", "--input", "x=[[1, 2, 3]]", "--plugin", "fusing_wrongly.py"
    done = command(*arguments)
    assert done.status == 1
    assert "7 tensors compared" in done.out
    assert "1 beyond 0.001: CPU:0 and CPU:0 part at e:0 (Neg), the end of fusing_wrongly.Chain of c, d, e: " in done.out
    (row,) = [row for row in json.loads(command(*arguments, "--json").out) if row["beyond"]]
    assert (row["tensor"], row["kernel"], row["fused"]) == ("e:0", "fusing_wrongly.Chain", ["c", "d", "e"])


@pytest.mark.parametrize("options", [(), ("--fetch", "e"), ("--fetch", "b")])
def test_groups_of_fused_nodes_that_agree_are_no_difference(command, fused_model, options, tmp_path):
    file = f"fusing_rightly{''.join(options[1:])}.py"  # a module of a name is loaded once
    (tmp_path / file).write_text(FUSING_WRONGLY.replace('+ ("Square"', '+ 0 * ("Square"'))
    done = command("diff", fused_model, "--device", "CPU:0", "--plugin", file, *options)
    assert (done.status, done.err) == (0, "")
    assert "none further apart" in done.out


def test_a_recording_with_all_tensors_shows_a_group_of_fused_nodes(command, process, fused_model):
    feeds = "--input", "x=[[1, 2, 3]]"
    assert process("diff", fused_model, "--record", "all.npz", "--all", *feeds).status == 0
    done = process("diff", fused_model, "--expect", "all.npz", "--plugin", "fusing_wrongly.py")
    assert done.status == 1
    assert "part at e:0 (Neg), the end of fusing_wrongly.Chain of c, d, e: " in done.out


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
