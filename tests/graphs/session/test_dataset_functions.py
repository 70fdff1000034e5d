"""Datasets and the functions that they call, as sessions run them: limits, effects, wrong functions, shared iterators.

The results of all ops are TensorFlow's, in `data/programs/datasets_*`.
"""

from __future__ import annotations

import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import heald
import numpy as np
import pytest
from builders.control_flow import function, program
from builders.datasets import (
    ADD,
    INT,
    SCALAR,
    ZERO,
    binary,
    dataset,
    int_function,
    kinds,
    mapped,
    number,
    number_range,
    total,
)
from builders.graphs import const, placeholder
from heald.errors import (
    Cancelled,
    DeadlineExceeded,
    HealdError,
    InvalidArgument,
    NotFound,
    OutOfRange,
    ResourceExhausted,
)
from heald.graphs.graph.attr_value import Func, ShapeAttr
from heald.graphs.graph.graph import Node
from heald.graphs.session.ahead_of_time import compile_model
from heald.runtime.service.compiled_model import LoadedCompiledModel
from heald.runtime.values import dtypes

SAME = int_function("same", "a", [], "a")
DOUBLE = int_function("double", "a", [Node("twice", "AddV2", ("a", "a"), attrs={"T": INT})], "twice:z:0")
PLUS = int_function("plus", "a b", [binary("sum", "AddV2")], "sum:z:0")
NEVER = int_function("never", "a", [Node("less", "Less", ("a", "a"), attrs={"T": INT})], "less:z:0", "bool_")
RANGE_OF = int_function("range_of", "a", [
    number("none", 0), number("one", 1), dataset("inner", "Range", "none:output:0", "a", "one:output:0")],
    "inner:handle:0", "variant")
EMPTY = int_function("empty", "a", [
    number("none", 0), number("one", 1), dataset("inner", "Range", "none:output:0", "none:output:0", "one:output:0")],
    "inner:handle:0", "variant")
INSIDE = function("inside", "a:variant", [], {"y": "a"}, results="y:variant")
FUNCTIONS = (ADD, SAME, DOUBLE, PLUS, NEVER, RANGE_OF, EMPTY, INSIDE)
FOR_EVER = [*number_range(3), number("often", -1), dataset("endless", "Repeat", "range", "often"), ZERO]


def session(*nodes, functions=FUNCTIONS, **config):
    return heald.Session(program(nodes, *functions), config or None)


def run(*nodes, fetches="total", feeds=None, functions=FUNCTIONS, **config):
    with session(*nodes, functions=functions, **config) as made:
        return made.run(fetches, feeds or {})


UNBOUNDED = {
    "a reduction": [],
    "a map": [mapped("data", "endless", "double")],
    "a filter without a match": [mapped("data", "endless", "never", op="Filter")],
    "datasets without elements": [mapped("data", "endless", "empty", op="FlatMap")],
    "a long skip": [number("n", 1 << 60), dataset("data", "Skip", "endless", "n")],
    "a shard of many": [number("n", 1 << 60), number("i", 5), dataset("data", "Shard", "endless", "n", "i")],
    "a large batch": [number("n", 1 << 40), dataset("data", "Batch", "endless", "n", output_shapes=(None,))],
    "a large window": [
        number("n", 1 << 40), number("one", 1), const("drop", False, np.bool_),
        dataset("windows", "Window", "endless", "n", "one", "one", "drop", output_types=(dtypes.variant,)),
        mapped("data", "windows", "inside", op="FlatMap")],
    "repetitions of nothing": [
        number("n", 1 << 60), *number_range(0, "none"), dataset("data", "Repeat", "none", "n")],
    "a cache": [Node("file", "Const", attrs={"dtype": dtypes.string, "value": np.array(b"", object)}),
                dataset("data", "Cache", "endless", "file")],
}


@pytest.mark.parametrize("nodes", UNBOUNDED.values(), ids=UNBOUNDED)
def test_a_deadline_ends_an_unbounded_sequence(nodes):
    made = session(*FOR_EVER, *nodes, total("data" if nodes else "endless"))
    with made, pytest.raises(DeadlineExceeded):
        made.run("total", options=heald.RunOptions(timeout=0.1))


@pytest.fixture
def interruptible():
    """Ctrl-C raises KeyboardInterrupt, which the background jobs of a shell ignore."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_a_token_of_another_thread_and_a_signal_end_an_unbounded_reduction():
    token = heald.CancelToken()
    with session(*FOR_EVER, mapped("data", "endless", "double"), total("data")) as made:
        timer = threading.Timer(0.1, token.cancel)
        timer.start()
        with pytest.raises(Cancelled):
            made.run("total", options=heald.RunOptions(cancel=token))
        timer.join()
        timer = threading.Timer(0.1, signal.raise_signal, (signal.SIGINT,))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            made.run("total")
        timer.join()


@pytest.mark.parametrize("nodes", [UNBOUNDED[kind] for kind in ("a large batch", "a large window", "a cache")])
def test_elements_that_are_kept_count_in_the_budget_of_memory(nodes):
    with pytest.raises(ResourceExhausted, match="limit of"):
        run(*FOR_EVER, *nodes, total("data"), limits={"memory": "3MiB"})


def chain_of(count, op):
    nodes = [*number_range(3), number("one", 1), ZERO, total(f"d{count}")]
    for i in range(count):
        source = f"d{i}" if i else "range"
        nodes.append(dataset("d", op, source, "one") if op != "Map" else mapped("d", source, "double"))
        nodes[-1] = nodes[-1].replace(name=f"d{i + 1}")
    return nodes


@pytest.mark.parametrize(("op", "result"), [("Skip", 0), ("Repeat", 3), ("Map", 0)])  # 3 * 2**100 overflows to 0
def test_a_long_chain_of_datasets_is_run_or_refused(op, result):
    assert run(*chain_of(100, op)) == result
    with pytest.raises(ResourceExhausted, match="150 nested transformations"):
        run(*chain_of(2000, op))


def test_functions_take_captured_values_known_and_fed():
    nodes = [*number_range(4), number("ten", 10), placeholder("x", (), INT), mapped("a", "range", "plus", "ten"),
             mapped("b", "a", "plus", "x"), ZERO, total("b")]
    assert run(*nodes, feeds={"x": 100}) == 6 + 40 + 400


def test_a_dataset_is_computed_on_each_use_anew_and_from_the_feeds_of_its_run():
    nodes = [placeholder("x", (None,), INT), Node("data", "TensorSliceDataset", ("x",), attrs={
        "Toutput_types": (INT,), "output_shapes": (SCALAR,)}), mapped("a", "data", "double"), ZERO, total("a"),
        total("a", name="again")]
    with session(*nodes) as made:
        for feed in ([1, 2, 3], [], [5]):
            assert made.run(["total", "again"], {"x": np.array(feed, np.int64)}) == [2 * sum(feed)] * 2


def test_an_iterator_keeps_the_feeds_that_it_was_started_with():
    nodes = [
        placeholder("x", (None,), INT), placeholder("y", (), INT),
        Node("data", "TensorSliceDataset", ("x",), attrs={"Toutput_types": (INT,), "output_shapes": (SCALAR,)}),
        mapped("a", "data", "plus", "y"),
        Node("rows", "IteratorV2", attrs=kinds() | {"shared_name": b"", "container": b""}),
        Node("start", "MakeIterator", ("a", "rows")), Node("next", "IteratorGetNext", ("rows",), attrs=kinds()),
    ]
    with session(*nodes) as made:
        x, y = np.array([1, 2, 3]), np.array(10)
        made.run([], {"x": x, "y": y}, targets=["start"])
        x[:], y[()] = 77, 77
        assert [made.run("next").item() for _ in range(3)] == [11, 12, 13]
        with pytest.raises(OutOfRange, match="End of sequence"):
            made.run("next")


def test_runs_at_once_take_the_elements_of_one_iterator_once_each():
    nodes = [*number_range(200), mapped("data", "range", "double"),
             Node("rows", "IteratorV2", attrs=kinds() | {"shared_name": b"", "container": b""}),
             Node("start", "MakeIterator", ("data", "rows")), Node("next", "IteratorGetNext", ("rows",), attrs=kinds())]
    with session(*nodes) as made, ThreadPoolExecutor(4) as threads:
        made.run([], targets=["start"])
        elements = [int(value) for value in threads.map(lambda _: made.run("next"), range(200))]
        assert sorted(elements) == [2 * i for i in range(200)]


def test_containers_and_shared_names_decide_which_iterators_are_one():
    named = kinds() | {"shared_name": b"rows", "container": b"box"}
    nodes = [*number_range(5), Node("one", "IteratorV2", attrs=named), Node("other", "IteratorV2", attrs=named),
             Node("start", "MakeIterator", ("range", "one")),
             Node("next", "IteratorGetNext", ("other",), attrs=kinds())]
    with session(*nodes) as made:
        made.run([], targets=["start"])
        assert made.run("next") == 0
        made.reset(["box"])
        with pytest.raises(HealdError, match="has not been initialized"):
            made.run("next")


def test_effects_of_a_function_happen_once_for_each_element():
    """A variable counts the calls: reductions call once for each element, whatever comes behind them."""
    count = function("count", "a:int64 v:resource", [
        Node("new", "AssignAddVariableOp", ("v", "a"), attrs={"dtype": INT})], {"y": "a"}, results="y:int64",
        effects=["new"])
    variable = Node("v", "VarHandleOp", attrs={"dtype": INT, "shape": SCALAR, "shared_name": b"v"})
    nodes = [variable, ZERO, Node("init", "AssignVariableOp", ("v", "zero"), attrs={"dtype": INT}), *number_range(5),
             mapped("data", "range", "count", "v", types=(dtypes.resource,)), total("data"),
             Node("read", "ReadVariableOp", ("v",), attrs={"dtype": INT}, controls=("total",))]
    with session(*nodes, functions=(ADD, count)) as made:
        made.run([], targets=["init"])
        assert made.run(["total", "read"]) == [10, 10]
        assert made.run(["read"]) == [20]


WRONG = {
    "no such function": (mapped("data", "range", "nowhere"), NotFound),
    "too many captured values": (mapped("data", "range", "same", "zero", "zero"), InvalidArgument),
    "a function of more arguments than an element has": (mapped("data", "range", "plus"), InvalidArgument),
    "a result of another type": (mapped("data", "range", "never"), InvalidArgument),
    "a predicate of another type": (mapped("data", "range", "same", op="Filter"), InvalidArgument),
    "a function that returns no dataset": (mapped("data", "range", "same", op="FlatMap"), InvalidArgument),
    "a source that is no dataset": (mapped("data", "none", "same"), InvalidArgument),
    "elements of two components": (
        Node("zip", "ZipDataset", ("range", "range"), attrs={"N": 2} | kinds((INT, INT), (SCALAR, SCALAR))),
        InvalidArgument),
    "shapes that are too few": (mapped("data", "range", "same", output_shapes=()), InvalidArgument),
}


@pytest.mark.parametrize(("node", "error"), WRONG.values(), ids=WRONG)
def test_a_function_that_does_not_fit_its_dataset_is_refused(node, error):
    none = Node("none", "OptionalNone")
    more = [mapped("data", "zip", "same")] if node.op == "ZipDataset" else []
    with pytest.raises(error):
        run(*number_range(3), ZERO, none, node, *more, total("data"))


def test_a_reduction_to_another_shape_than_stated_is_refused():
    with pytest.raises(InvalidArgument, match=r"Incompatible shapes at component 0: expected \[2\] but got \[\]"):
        run(*number_range(3), ZERO, total("range", output_shapes=(ShapeAttr((2,)),)))


def test_a_dataset_of_its_own_function_without_end_is_refused():
    again = int_function("again", "a", [
        number("none", 0), number("one", 1), dataset("inner", "Range", "none:output:0", "one:output:0",
                                                     "one:output:0"),
        mapped("more", "inner:handle:0", "again", op="FlatMap")], "more:handle:0", "variant")
    with pytest.raises(ResourceExhausted):
        run(*number_range(3), ZERO, mapped("data", "range", "again", op="FlatMap"), total("data"),
            functions=(ADD, again))


def test_a_one_shot_iterator_calls_its_function_once_in_a_session():
    factory = function("rows", "", [number("none", 0), number("one", 1), number("two", 2), dataset(
        "inner", "Range", "none:output:0", "two:output:0", "one:output:0")], {"y": "inner:handle:0"},
        results="y:variant")
    nodes = [Node(name, "OneShotIterator", attrs=kinds() | {"dataset_factory": Func("rows", {})})
             for name in ("a", "b")]
    nodes += [Node(f"next_{node.name}", "IteratorGetNext", (node.name,), attrs=kinds()) for node in nodes]
    with session(*nodes, functions=(factory,)) as made:
        assert made.run(["next_a", "next_b"]) == [0, 0]
        assert made.run(["next_a"]) == [1]
        with pytest.raises(OutOfRange):
            made.run("next_a")
        assert made.run("next_b") == 1


def test_a_string_handle_leads_to_the_iterators_of_its_session_alone():
    nodes = [*number_range(5), Node("rows", "IteratorV2", attrs=kinds() | {"shared_name": b"", "container": b""}),
             Node("start", "MakeIterator", ("range", "rows")), Node("handle", "IteratorToStringHandle", ("rows",)),
             placeholder("text", (), dtypes.string),
             Node("found", "IteratorFromStringHandleV2", ("text",), attrs=kinds()),
             Node("wrong", "IteratorFromStringHandle", ("text",), attrs=kinds((dtypes.int32,))),
             Node("next", "IteratorGetNext", ("found",), attrs=kinds()),
             Node("next_wrong", "IteratorGetNext", ("wrong",), attrs=kinds((dtypes.int32,)))]
    with session(*nodes) as made, session(*nodes) as other:
        made.run([], targets=["start"])
        feeds = {"text": made.run("handle")}
        assert [made.run("next", feeds).item() for _ in range(2)] == [0, 1]
        with pytest.raises(InvalidArgument, match="Data type mismatch at component 0"):
            made.run("next_wrong", feeds)
        with pytest.raises(NotFound):
            other.run("next", feeds)
        with pytest.raises(NotFound):
            made.run("next", {"text": b"nothing"})


def test_a_compiled_model_runs_datasets(tmp_path):
    nodes = [placeholder("x", (), INT), *number_range(4), mapped("data", "range", "plus", "x"), ZERO, total("data")]
    heald.graphdef.dump(program(nodes, *FUNCTIONS), tmp_path / "frozen.pb")
    model = heald.load(tmp_path / "frozen.pb")
    compiled = LoadedCompiledModel(compile_model(tmp_path / "frozen.pb", inputs={"x": [()]}))
    assert [runnable(np.int64(5)) for runnable in (model, compiled)] == [26, 26]


def test_functions_are_linked_for_the_stated_shapes_and_elements_of_others_are_refused():
    """A device that needs static shapes runs the function where the dataset states them, and the CPU otherwise."""
    twice = function("twice", "a", [Node("sum", "AddV2", ("a", "a"), attrs={"T": dtypes.float32},
                                         device="/device:EXAMPLE:0")], {"y": "sum:z:0"})
    stack = function("stack", "s a", [Node("sum", "AddV2", ("s", "a"), attrs={"T": dtypes.float32})], {"y": "sum:z:0"})
    floats = {"output_types": (dtypes.float32,)}
    for shape, error in ((ShapeAttr((2,)), None), (ShapeAttr((None,)), None), (None, None), (ShapeAttr((3,)), "shape")):
        attrs = floats | {"output_shapes": (shape,)}
        nodes = [placeholder("x", None), const("zeros", [0, 0]),
                 Node("rows", "TensorSliceDataset", ("x",), attrs={
                     "Toutput_types": (dtypes.float32,), "output_shapes": (shape,)}),
                 mapped("data", "rows", "twice", **attrs),
                 total("data", "stack", state="zeros", **attrs, Tstate=(dtypes.float32,))]
        with session(*nodes, functions=(twice, stack), placement={"fallback": "allow"}) as made:
            if error is None:
                assert made.run("total", {"x": [[1, 2], [3, 4]]}).tolist() == [8, 12]
            else:
                with pytest.raises(InvalidArgument, match=error):
                    made.run("total", {"x": [[1, 2], [3, 4]]})


def test_a_pull_that_its_run_left_waiting_does_not_hold_up_the_next_one():
    take = function("take", "a:int64 q:resource", [
        Node("first", "QueueDequeueV2", ("q",), attrs={"component_types": (INT,)})], {"y": "first:components:0"},
        results="y:int64")
    nodes = [*number_range(9), placeholder("x", (), INT),
             Node("q", "FIFOQueueV2", attrs={"component_types": (INT,), "shapes": (SCALAR,)}),
             Node("put", "QueueEnqueueV2", ("q", "x"), attrs={"Tcomponents": (INT,)}),
             mapped("data", "range", "take", "q", types=(dtypes.resource,)),
             Node("rows", "IteratorV2", attrs=kinds() | {"shared_name": b"", "container": b""}),
             Node("start", "MakeIterator", ("data", "rows")), Node("next", "IteratorGetNext", ("rows",), attrs=kinds())]
    with session(*nodes, functions=(take,)) as made, ThreadPoolExecutor(3) as threads:
        made.run([], targets=["start"])
        with pytest.raises(DeadlineExceeded):
            made.run("next", options=heald.RunOptions(timeout=0.05))
        waiting = [threads.submit(made.run, "next") for _ in range(3)]
        for value in (5, 6, 7):
            made.run([], {"x": value}, targets=["put"])
        assert sorted(int(run.result(30)) for run in waiting) == [5, 6, 7]
