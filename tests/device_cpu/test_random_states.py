"""Generators whose state is a variable: TensorFlow's recorded draws and states, one after the other."""

import json
from pathlib import Path

import heald
import numpy as np
import pytest
from builders.graphs import const, graph
from heald.errors import FailedPrecondition, InvalidArgument, Unimplemented
from heald.graphs.graph.attr_value import ShapeAttr
from heald.graphs.graph.node import Node
from heald.runtime.values import dtypes

RECORDED = json.loads((Path(__file__).parents[1] / "data/random_states.json").read_text())
FIRST = np.array([-3, 5, -7])
INT64 = {"dtype": dtypes.int64}


def node(name, op, *inputs, **attrs):
    return Node(name, op, inputs, attrs=attrs)


def open_session(*nodes, state=FIRST, algorithm=1):
    """A session of ops on the variable `v`. Its initial value is assigned."""
    state = np.asarray(state)
    dtype = {"dtype": dtypes.of_numpy(state.dtype)}
    session = heald.Session(graph(
        node("v", "VarHandleOp", **dtype, shape=None), const("first", state, state.dtype),
        node("assign", "AssignVariableOp", "v", "first", **dtype), node("read", "ReadVariableOp", "v", **dtype),
        const("alg32", algorithm, np.int32), const("alg64", algorithm, np.int64),
        node("delta", "Placeholder", dtype=dtypes.uint64, shape=ShapeAttr(())),
        node("signed", "Placeholder", dtype=dtypes.int64, shape=ShapeAttr(())),
        node("next", "RngReadAndSkip", "v", "alg32", "delta"), node("skip", "RngSkip", "v", "alg64", "signed"), *nodes),
        device="CPU:0")
    session.run([], targets=["assign"])
    return session


def test_draws_and_skips_are_tensorflows_one_after_the_other():
    nodes = [const("shape", [2, 2], np.int32)]
    for i, (op, name, bounds, *_) in enumerate(RECORDED["draws"]):
        dtype = dtypes.named(name)
        ends = [f"b{i}_{k}" for k in range(len(bounds))]
        nodes += [const(end, bound, dtype.numpy) for end, bound in zip(ends, bounds, strict=True)]
        nodes.append(node(f"draw{i}", op, "v", "alg64", "shape", *ends, dtype=dtype, shape_dtype=dtypes.int32))
    with open_session(*nodes) as session:
        for i, (_, name, _, numbers, state) in enumerate(RECORDED["draws"]):
            drawn = session.run(f"draw{i}")
            assert (drawn.dtype.name, drawn.tolist()) == (name, numbers)
            assert session.run("read").tolist() == state
        for delta, old, state in RECORDED["skips"]:
            if old is None:
                session.run([], {"signed": np.int64(delta)}, targets=["skip"])
            else:
                assert session.run("next", {"delta": np.uint64(delta)}).tolist() == old
            assert session.run("read").tolist() == state


def test_an_empty_draw_leaves_the_state():
    empty = node("empty", "StatefulUniform", "v", "alg64", "shape", dtype=dtypes.float32, shape_dtype=dtypes.int32)
    with open_session(const("shape", [0, 2], np.int32), empty) as session:
        assert session.run("empty").shape == (0, 2)
        assert session.run("read").tolist() == FIRST.tolist()


@pytest.mark.parametrize(("state", "algorithm", "error"), [
    ([1, 2], 1, InvalidArgument), ([1, 2, 3, 4], 1, InvalidArgument), ([[1, 2, 3]], 1, InvalidArgument),
    (5, 1, InvalidArgument), (np.int32([1, 2, 3]), 1, InvalidArgument), (np.float64([1, 2, 3]), 1, InvalidArgument),
    (FIRST, 0, InvalidArgument), (FIRST, 2, Unimplemented), (FIRST, 7, InvalidArgument),
])
def test_states_and_algorithms_that_are_none_are_refused(state, algorithm, error):
    with open_session(state=state, algorithm=algorithm) as session:
        with pytest.raises(error):
            session.run("next", {"delta": np.uint64(1)})
        assert session.run("read").tolist() == np.asarray(state).tolist()


def test_a_state_without_a_value_is_refused():
    nodes = [node("w", "VarHandleOp", **INT64, shape=None, shared_name="w"),
             node("of_w", "RngSkip", "w", "alg64", "signed")]
    with open_session(*nodes) as session, pytest.raises((FailedPrecondition, heald.errors.NotFound)):
        session.run([], {"signed": np.int64(1)}, targets=["of_w"])


def test_threads_never_draw_from_the_same_blocks():
    from concurrent.futures import ThreadPoolExecutor

    with open_session() as session, ThreadPoolExecutor(4) as pool:
        states = list(pool.map(lambda _: tuple(session.run("next", {"delta": np.uint64(1)})), range(50)))
    assert len(set(states)) == 50
