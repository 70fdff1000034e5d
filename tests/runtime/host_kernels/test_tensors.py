"""Functions of host programs may call kernels of devices, too, and host kernels may take and give tensors."""

from __future__ import annotations

import heald
import numpy as np
import pytest
from heald.errors import InvalidArgument
from heald.runtime.program.host_program import Call, ProgramFunction
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import TensorMetadata

PAIR, ANY = TensorMetadata(dtypes.float32, (2,)), TensorMetadata(dtypes.float32, None)
FLOAT = {"T": dtypes.float32}


def mixed_program(meta):
    """(x + x, -(x + x), n + n, x)"""
    return heald.HostProgram({
        "main": ProgramFunction("main", ("x", "n"), (meta, "i32", meta, meta, "i32"), (
            Call("cpu.AddV2", (0, 0), (2,), FLOAT, 0), Call("tfrt.call", (2,), (3,), functions=("negated",)),
            Call("tfrt.add.i32", (1, 1), (4,))), (2, 3, 4, 0)),
        "negated": ProgramFunction("negated", ("x",), (meta, meta), (Call("cpu.Neg", (0,), (1,), FLOAT, 0),), (1,)),
    }, requires=("CPU:0",))


@pytest.mark.parametrize("meta", [PAIR, ANY], ids=["of a known shape", "of any shape"])
def test_tensors_and_other_values_go_through_one_program(run, meta):
    program = mixed_program(meta)
    for x in (np.float32([1, 2]), np.float32([3, -4])):
        total, negated, n, same = [r.get() for r in run(program, "main", x, 4)]
        assert (total.tolist(), negated.tolist(), n) == ((x + x).tolist(), (-x - x).tolist(), 8)
        same[:] = 0
        assert x.any()


def test_a_later_run_does_not_write_the_results_of_one_before(run):
    program = mixed_program(PAIR)
    first = [r.get() for r in run(program, "main", np.float32([1, 2]), 1)]
    run(program, "main", np.float32([5, 5]), 1)
    assert [first[0].tolist(), first[1].tolist()] == [[2, 4], [-2, -4]]


def test_tensors_are_checked_and_cast_as_feeds_are(run):
    program = mixed_program(PAIR)
    assert run(program, "main", [1, 2], 1)[0].get().dtype == np.float32
    with pytest.raises(InvalidArgument, match=r"shape \[3\]"):
        run(program, "main", [1, 2, 3], 1)


@pytest.mark.parametrize("shape", [(2,), (3,)])
@pytest.mark.parametrize("later", [False, True])
def test_a_host_kernel_gives_the_tensor_that_the_program_says(run, later, shape):
    code = "test.ones_later" if later else "test.ones"
    program = heald.HostProgram({"main": ProgramFunction("main", (), (PAIR, PAIR), (
        Call(code, (), (0,), {"shape": shape}), Call("cpu.AddV2", (0, 0), (1,), FLOAT, 0)), (1,))},
        requires=("CPU:0",))
    (result,) = run(program)
    if shape == (2,):
        assert result.get().tolist() == [2, 2]
    else:
        assert isinstance(result.error, InvalidArgument)
        assert "the program states float32[2]" in result.error.message


@pytest.mark.parametrize("effect", [False, True])
def test_blocks_of_functions_that_only_compute_run_on_the_queues_threads(run, effect):
    body = (Call("cpu.Neg", (2,), (3,), FLOAT, 0), Call("cpu.AddV2", (3, 3), (4,), FLOAT, 0))
    program = heald.HostProgram({
        "body": ProgramFunction("body", ("a", "b", "x"), ("i32", "i32", PAIR, PAIR, PAIR, "!tfrt.chain"),
                                (*body, Call("tfrt.merge.chains", (4,), (5,))) if effect else body,
                                (5,) if effect else ()),
        "main": ProgramFunction("main", ("x",), (PAIR, "i32", "i32", "i32", "!tfrt.chain"), (
            *(Call("tfrt.constant.i32", (), (r,), {"value": value}) for r, value in ((1, 0), (2, 500), (3, 3))),
            Call("tfrt.parallel_for.i32", (1, 2, 3, 0), (4,), functions=("body",))), (4,))}, requires=("CPU:0",))
    for _ in range(5):
        assert [r.get() for r in run(program, "main", np.float32([1, 2]))] == [None]
