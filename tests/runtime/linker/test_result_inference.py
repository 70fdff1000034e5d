"""A fact about the variable of a loop holds in every iteration."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from heald.runtime.linker.result_inference import RESULT_RULES
from heald.runtime.program.host_program import Call
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import TensorMetadata, ValueInfo


def variable_shapes(code, body, *shapes):
    """The shapes of a loop's variables; `body` returns their next shapes."""
    def link(index, infos):
        variables = infos[1:] if code == "heald.for" else infos
        results = body(*(info.shape for info in variables)) if (code, index) != ("heald.while", 0) else [()]
        return SimpleNamespace(results=[ValueInfo(TensorMetadata(dtypes.float32, shape)) for shape in results],
                               never_returns=False)

    leading = [ValueInfo(TensorMetadata(dtypes.int32, ()))] * (3 if code == "heald.for" else 0)
    infos = [ValueInfo(TensorMetadata(dtypes.float32, shape)) for shape in shapes]
    call = Call(code, (), (), functions=("condition", "body")[code == "heald.for":])
    return [info.shape for info in RESULT_RULES[code](call, link, [*leading, *infos])[1]]


def longer(shape):
    return None if shape is None else (None if shape[0] is None else shape[0] + 1, *shape[1:])


@pytest.mark.parametrize("code", ["heald.while", "heald.for"])
def test_a_variable_of_a_loop_loses_the_dimensions_that_change_and_no_others(code):
    assert variable_shapes(code, lambda a, b: [longer(a), b], (1, 3), (4,)) == [(None, 3), (4,)]
    assert variable_shapes(code, lambda a, b: [b, longer(b)], (2, 3), (1, 3)) == [(None, 3), (None, 3)]


@pytest.mark.parametrize("code", ["heald.while", "heald.for"])
def test_a_variable_that_still_changes_after_some_rounds_loses_its_shape(code):
    def body(first, *others):  # each variable takes the value of the one before it
        return [longer(first), first, *others[:-1]]

    shapes = variable_shapes(code, body, *[(1, 3)] * 6)
    assert shapes == [(None, 3), (None, 3), None, None, None, None]


def test_the_body_is_linked_for_the_shapes_that_the_variables_have_in_the_end():
    shapes = {(1, 3): (2, 3), (None, 3): (2, 4), (None, None): (2,), None: (2,)}
    linked = []

    def link(index, infos):
        linked.append((index, infos[0].shape))
        results = [()] if index == 0 else [shapes[infos[0].shape]]
        return SimpleNamespace(results=[ValueInfo(TensorMetadata(dtypes.float32, shape)) for shape in results],
                               never_returns=False)

    call = Call("heald.while", (), (), functions=("condition", "body"))
    _, (variable,) = RESULT_RULES["heald.while"](call, link, [ValueInfo(TensorMetadata(dtypes.float32, (1, 3)))])
    assert variable.shape is None
    assert linked[-2:] == [(1, None), (0, None)]
