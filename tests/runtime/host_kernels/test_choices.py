"""Choices of branches and outputs by an index: out of range the last one counts, and without any it is an error."""

from __future__ import annotations

import heald
import numpy as np
import pytest
from heald.errors import InvalidArgument
from heald.runtime.contract.structural import branch
from heald.runtime.program import Call, ProgramFunction
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import TensorMetadata

SCALAR = TensorMetadata(dtypes.int32, ())


@pytest.mark.parametrize(("index", "selected"), [(0, "a"), (1, "b"), (2, "b"), (-1, "b")])
def test_an_index_out_of_range_chooses_the_last_branch(index, selected):
    assert branch(["a", "b"], np.int32(index)) == selected


@pytest.mark.parametrize("call", [Call("heald.switch_n", (0, 0), (1,), {"outputs": 0}), Call("heald.case", (0,), (1,))])
def test_a_choice_without_branches_is_an_error(call):
    main = ProgramFunction("main", ("x",), (SCALAR, "!tfrt.chain"), (call,), (1,))
    try:
        [result] = heald.HostProgram({"main": main}).run("main", np.int32(0))
    except InvalidArgument:
        return
    assert isinstance(result.error, InvalidArgument)
