"""Resource variables. TensorFlow 2.21 gave the same results and kinds of errors for the same calls."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node
from heald.errors import FailedPrecondition, InvalidArgument, NotFound, OutOfRange
from heald.graphs.graph.attr_value import ShapeAttr
from heald.graphs.graph.node import Node
from heald.runtime.support.fork_safety import inherited
from heald.runtime.values import dtypes
from heald_cpu.resources.variable import Variable

pytestmark = pytest.mark.usefixtures("graphs_as_written")
NAN = np.nan
UNTYPED = ("DestroyResourceOp", "DisableCopyOnRead", "VarIsInitializedOp", "VariableShape")


def handle(name: str = "v", dtype: Any = dtypes.float32, shape: Any = None, shared: str = "") -> Node:
    shape = None if shape is None else ShapeAttr(shape)
    return Node(name, "VarHandleOp", attrs={"dtype": dtype, "shape": shape, "shared_name": shared})


def on(op: str, name: str, *inputs: str, dtype: Any = dtypes.float32, **attrs: Any) -> Node:
    """A node of an op that takes the variable `v` first."""
    kind = "T" if "Nd" in op and "Scatter" in op else "dtype"
    types = {} if op in UNTYPED else {kind: dtype}
    return Node(name, op, ("v", *inputs), attrs=types | attrs)


def value_after(value: Any, op: str, *inputs: Any, **attrs: Any) -> Any:
    """The value of a variable after an assignment and an op that changes it."""
    first = np.asarray(value)
    first = first.astype(np.float32) if first.dtype == np.float64 else first
    others = [np.asarray(x, first.dtype if x is inputs[-1] else np.int32) for x in inputs]
    dtype = dtypes.of_numpy(first.dtype)
    names = [f"x{n}" for n in range(len(others))]
    types = {"Tindices": dtypes.int32} if len(others) > 1 else {}
    session = heald.Session(graph(
        handle(dtype=dtype), const("first", first, first.dtype),
        *(const(name, x, x.dtype) for name, x in zip(names, others, strict=True)),
        on("AssignVariableOp", "assign", "first", dtype=dtype), on(op, "change", *names, dtype=dtype, **types, **attrs),
        on("ReadVariableOp", "read", dtype=dtype)))
    session.run([], targets=["assign"])
    session.run([], targets=["change"])
    return session.run("read")


MATRIX = [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize(("op", "value", "inputs", "want"), [
    ("AssignAddVariableOp", [1, 2], [[3, 4]], [4, 6]),
    ("AssignSubVariableOp", [1, 2], [[3, 5]], [-2, -3]),
    ("ResourceScatterUpdate", MATRIX, [[0, 0], [[1, 2, 3], [2, 7, 1]]], [[2, 7, 1], [3, 4, 5]]),
    ("ResourceScatterAdd", MATRIX, [[0, 0], [[1, 2, 3], [2, 7, 1]]], [[3, 10, 6], [3, 4, 5]]),
    ("ResourceScatterSub", MATRIX, [[1, 0], 4], [[-4, -3, -2], [-1, 0, 1]]),
    ("ResourceScatterMul", MATRIX, [1, [2, 2, 2]], [[0, 1, 2], [6, 8, 10]]),
    ("ResourceScatterDiv", [7, 8, -7], [[0, 2, 1, 1], [-2, 2, 3, 2]], [-3, 1, -3]),
    ("ResourceScatterMax", [NAN, 1, NAN, 2], [[0, 1, 2], [3, NAN, NAN]], [NAN, 1, NAN, 2]),
    ("ResourceScatterMin", [5, 6], [[0, 0, 1], [3, 4, 9]], [3, 6]),
    ("ResourceScatterNdUpdate", MATRIX, [[[0, 1], [1, 2]], [8, 9]], [[0, 8, 2], [3, 4, 9]]),
    ("ResourceScatterNdAdd", MATRIX, [[[0, 1], [0, 1]], [1, 2]], [[0, 4, 2], [3, 4, 5]]),
    ("ResourceScatterNdMax", [NAN, 1, 4], [[[0], [2]], [3, 9]], [NAN, 1, 9]),
])
def test_an_op_changes_what_a_variable_holds(op: str, value: Any, inputs: list[Any], want: Any) -> None:
    np.testing.assert_array_equal(value_after(value, op, *inputs), want)


@pytest.mark.parametrize(("op", "value", "inputs"), [
    ("AssignAddVariableOp", [1, 2], [[3]]),
    ("AssignAddVariableOp", [1, 2], [3]),
    ("ResourceScatterAdd", [1, 2], [[0, 7], [1, 2]]),
    ("ResourceScatterAdd", [1, 2], [[0, 1], [1, 2, 3]]),
    ("ResourceScatterUpdate", MATRIX, [[0, 1], [[1], [1]]]),
    ("ResourceScatterDiv", [7, 8], [[0], [0]]),
    ("ResourceScatterNdAdd", MATRIX, [[[0, 1], [0, 4]], [1, 2]]),
    ("ResourceScatterNdAdd", MATRIX, [[[0, 1, 1], [0, 0, 0]], [1, 2]]),
])
def test_a_value_that_does_not_fit_a_variable_of_unknown_shape_is_an_error(
    op: str, value: Any, inputs: list[Any]
) -> None:
    with pytest.raises(InvalidArgument):
        value_after(value, op, *inputs)


def test_a_value_that_was_read_stays_as_it_was_and_is_the_callers_own() -> None:
    session = heald.Session(graph(
        handle(shape=(2,)), const("one", [1, 1]), on("AssignVariableOp", "init", "one"),
        on("AssignAddVariableOp", "add", "one"), on("ReadVariableOp", "read")))
    session.run([], targets=["init"])
    first = session.run("read")
    first[0] = 7
    session.run([], targets=["add"])
    assert (first.tolist(), session.run("read").tolist()) == ([7, 1], [2, 2])


def test_a_feed_that_was_assigned_may_be_written_by_its_owner() -> None:
    session = heald.Session(graph(
        handle(), Node("x", "Placeholder", attrs={"dtype": dtypes.float32}),
        on("AssignVariableOp", "assign", "x"), on("ReadVariableOp", "read")))
    array = np.ones(3, np.float32)
    session.run([], {"x": array}, targets=["assign"])
    array[:] = 5
    assert session.run("read").tolist() == [1, 1, 1]


def test_nodes_with_one_shared_name_are_one_variable_and_sessions_have_their_own() -> None:
    model = graph(handle(shared="w"), handle("u", shared="w"), handle("other"), const("x", [1]),
                  on("AssignVariableOp", "assign", "x"),
                  *(Node(f"read_{name}", "ReadVariableOp", (name,), attrs={"dtype": dtypes.float32})
                    for name in ("u", "other")))
    session = heald.Session(model)
    session.run([], targets=["assign"])
    assert session.run("read_u").tolist() == [1]
    with pytest.raises(FailedPrecondition, match="'other' is uninitialized"):
        session.run("read_other")
    with pytest.raises(FailedPrecondition, match="'w' is uninitialized"):
        heald.Session(model).run("read_u")


def test_only_reading_is_a_failed_precondition_without_a_value() -> None:
    session = heald.Session(graph(
        handle(), const("x", [1.0]), on("AssignAddVariableOp", "add", "x"), on("VariableShape", "shape"),
        on("VarIsInitializedOp", "there"), on("DisableCopyOnRead", "left"),
        on("DestroyResourceOp", "gone", ignore_lookup_error=False),
        on("DestroyResourceOp", "maybe_gone"), on("AssignVariableOp", "assign", "x")))
    assert not session.run("there")
    for fetches, target in (([], "add"), (["shape"], ""), ([], "gone")):
        with pytest.raises(NotFound, match="'v'"):
            session.run(fetches, targets=[target] if target else [])
    session.run([], targets=["maybe_gone", "left"])
    session.run([], targets=["assign"])
    assert (session.run("there"), session.run("shape").tolist()) == (True, [1])
    session.run([], targets=["gone"])
    assert not session.run("there")


def test_rows_of_a_variable_are_gathered() -> None:
    session = heald.Session(graph(
        handle(), const("x", MATRIX), const("rows", [[0, 1], [0, 1]], np.int32), const("at", [[1, 2]], np.int32),
        const("far", 2, np.int32), on("AssignVariableOp", "assign", "x"),
        on("ResourceGather", "rows_of", "rows", Tindices=dtypes.int32),
        on("ResourceGather", "batched", "rows", Tindices=dtypes.int32, batch_dims=1),
        on("ResourceGather", "beyond", "far", Tindices=dtypes.int32),
        on("ResourceGatherNd", "element", "at", Tindices=dtypes.int32)))
    session.run([], targets=["assign"])
    got = session.run(["rows_of", "batched", "element"])
    assert [x.tolist() for x in got] == [[MATRIX, MATRIX], [[0, 1], [3, 4]], [5]]
    with pytest.raises(InvalidArgument, match=r"indices = 2 is not in \[0, 2\)"):
        session.run("beyond")


def test_a_handle_gives_its_types_before_the_run() -> None:
    model = graph(handle(shape=(2, 3)), const("row", [1, 2, 3]), const("whole", [1, 2], np.int32),
                  on("AssignVariableOp", "assign", "row"), on("ReadVariableOp", "as_int", dtype=dtypes.int32),
                  on("ReadVariableOp", "read"))
    session = heald.Session(model)
    for fetches, targets in (([], ["assign"]), (["as_int"], [])):
        with pytest.raises(InvalidArgument):
            session.prepare(fetches, targets=targets)
    program = session.prepare("read").program
    assert str(program.functions["main"].result_metas[0]) == "float32[2,3]"


@pytest.mark.parametrize("name", ["v", "v:0"])
def test_a_handle_is_neither_fetched_nor_fed(name: str) -> None:
    session = heald.Session(graph(handle(), on("ReadVariableOp", "read")))
    with pytest.raises(InvalidArgument, match="resource, which lives in the session"):
        session.run(name)
    with pytest.raises(InvalidArgument, match="resource, which lives in the session"):
        session.run("read", {name: np.zeros(())})


def test_a_forked_child_may_change_what_its_parent_was_changing() -> None:
    variable = Variable("v")
    variable.assign(np.zeros(2))

    def change(old: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        assert variable in inherited
        variable.forked()
        variable.assign(old + 1)
        return variable.value() + 1

    variable.change(change)
    assert variable.value().tolist() == [2, 2]


def test_threads_that_add_to_a_variable_lose_nothing() -> None:
    session = heald.Session(graph(
        handle(), const("x", [0, 0]), const("one", [1, 1]), on("AssignVariableOp", "init", "x"),
        on("AssignAddVariableOp", "add", "one"), on("ReadVariableOp", "read")))
    session.run([], targets=["init"])
    add = session.make_callable([], targets=["add"])
    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(lambda: [add() for _ in range(50)]) for _ in range(8)]:
            done.result()
    assert session.run("read").tolist() == [400, 400]


def test_lists_of_strings_are_variables_too() -> None:
    words = np.array([b"a", b"b"], object)
    session = heald.Session(graph(
        handle(dtype=dtypes.string), Node("x", "Placeholder", attrs={"dtype": dtypes.string}),
        on("AssignVariableOp", "assign", "x", dtype=dtypes.string), on("ReadVariableOp", "read", dtype=dtypes.string)))
    session.run([], {"x": words}, targets=["assign"])
    assert session.run("read").tolist() == [b"a", b"b"]


def test_a_handle_passes_through_other_nodes() -> None:
    session = heald.Session(graph(
        handle("w"), node("v", "Identity", "w", T=dtypes.resource), on("ReadVariableOp", "read")))
    with pytest.raises(FailedPrecondition, match="'w' is uninitialized"):
        session.run("read")


@pytest.mark.parametrize("dtype", [dtypes.int32, dtypes.int64])
def test_a_variable_counts_up_to_a_limit(dtype: Any) -> None:
    session = heald.Session(graph(
        handle(dtype=dtype), const("x", 3, dtype.numpy), on("AssignVariableOp", "assign", "x", dtype=dtype),
        on("ReadVariableOp", "read", dtype=dtype),
        Node("next", "ResourceCountUpTo", ("v",), attrs={"limit": 5, "T": dtype})))
    with pytest.raises(NotFound, match="'v'"):
        session.run("next")
    session.run([], targets=["assign"])
    assert [session.run("next") for _ in range(2)] == [3, 4]
    with pytest.raises(OutOfRange, match="Reached limit of 5"):
        session.run("next")
    assert session.run("read") == 5


@pytest.mark.parametrize("shape", [None, (2,)])
def test_only_scalars_count(shape: Any) -> None:
    session = heald.Session(graph(
        handle(dtype=dtypes.int32, shape=shape), const("x", [1, 2], np.int32),
        on("AssignVariableOp", "assign", "x", dtype=dtypes.int32),
        Node("next", "ResourceCountUpTo", ("v",), attrs={"limit": 5, "T": dtypes.int32})))
    session.run([], targets=["assign"])
    with pytest.raises(InvalidArgument):
        session.run("next")


@pytest.mark.parametrize("batch", [2**31, -(2**31) - 1, 2**63 - 1])
def test_batch_dims_of_any_size_are_compared_with_the_rank(batch):
    nodes = handle(shape=[2, 3]), const("rows", [0, 1], np.int32), on(
        "ResourceGather", "rows_of", "rows", Tindices=dtypes.int32, batch_dims=batch)
    with heald.Session(graph(*nodes)) as session, pytest.raises(InvalidArgument, match="batch_dims"):
        session.run("rows_of")
