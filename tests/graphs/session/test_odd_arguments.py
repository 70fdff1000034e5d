"""Arguments that make no sense are typed errors, at once, and never a fault of heald."""

from __future__ import annotations

import mmap
import os

import heald
import numpy as np
import pytest
from builders.graphs import graph, node, placeholder
from heald import graphdef
from heald.errors import HealdError, InvalidArgument, NotFound, ResourceExhausted
from heald.graphs.graph.graph import Node
from heald.runtime.service.feeds import convert_feed
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import TensorMetadata
from hypothesis import given
from hypothesis import strategies as st

X = np.ones(2, np.float32)
FEEDS = {"x": X}


def raising(base, *methods):
    """An object whose methods raise an exception of its own."""
    def fail(self, *_, **__):
        raise KeyError("mine")

    return type("Raising", (base,), dict.fromkeys(methods, fail))


def deep(make):
    """A container in a container, 100,000 times."""
    nested = make(["x"])
    for _ in range(100_000):
        nested = make([nested])
    return nested


ITSELF = []
ITSELF.append(ITSELF)
ODD = {
    "None": None, "int": 3, "huge int": 10**5000, "float": 1.5, "NaN": float("nan"), "bytes": b"x", "object": object(),
    "class": int, "function": len, "bool": True, "array": np.ones(3), "itself": ITSELF, "list of int": [1],
    "deep list": deep(list), "deep tuple": deep(tuple), "deep dict": deep(lambda x: {"k": x[0]}),
    "nested": [["x"], {"y": 3}], "range": range(10**15), "no node": "nothing", "empty": "", "zero byte": "a\0b",
    "half a pair": "\ud800", "long": "a" * 1_000_000, "iter raises": raising(list, "__iter__", "__len__")(["y"]),
    "items raise": raising(dict, "items", "keys", "__iter__", "__len__")(y="y"),
    "all raise": raising(object, "__iter__", "__len__", "__getitem__", "__hash__", "__eq__", "__repr__", "__str__",
                         "__bool__", "__fspath__", "__array__", "__index__", "__float__")(),
}
odd = pytest.mark.parametrize("value", ODD.values(), ids=ODD.keys())


@pytest.fixture(scope="module")
def session():
    return heald.Session(graph(placeholder("x", (2,)), node("y", "Neg", "x"), Node("n", "NoOp")))


def check_typed_error(function):
    """Passes when the function raises an error of the caller's, of a bounded length."""
    with pytest.raises((InvalidArgument, NotFound, ResourceExhausted)) as caught:
        function()
    assert len(str(caught.value)) <= 4096


@odd
def test_odd_fetches_are_typed_errors(session, value):
    check_typed_error(lambda: session.run(value, FEEDS))
    check_typed_error(lambda: session.run(["y", value], FEEDS))
    check_typed_error(lambda: session.run({"k": value}, FEEDS))
    check_typed_error(lambda: session.make_callable(value, ["x"]))
    check_typed_error(lambda: session.prepare(value, ["x"]))
    check_typed_error(lambda: session.graphs_by_pass(value, ["x"]))


@odd
def test_odd_feeds_and_targets_are_typed_errors(session, value):
    check_typed_error(lambda: session.make_callable("y", value))
    check_typed_error(lambda: session.make_callable("y", ["x", value]))
    check_typed_error(lambda: session.run("y", FEEDS, targets=value if value is not None else 3))
    check_typed_error(lambda: session.run("y", FEEDS, targets=["n", value]))
    if value is not None:
        check_typed_error(lambda: session.run("y", value))


@odd
def test_odd_values_of_feeds_are_typed_errors(session, value):
    model = heald.Model(session, *({name: heald.api.TensorInfo(name, TensorMetadata(dtypes.float32, (2,)))}
                                   for name in ("x", "y")))
    for call in (lambda: session.run("y", {"x": value}), lambda: session.make_callable("y", ["x"])(value),
                 lambda: model(x=value), lambda: model({"x": value}), lambda: model(X, value)):
        check_typed_error(call)


@odd
def test_odd_values_of_strings_are_typed_errors(value):
    if type(value) in (str, bytes) and value != "\ud800":
        value = [value, 3]
    check_typed_error(lambda: convert_feed(value, TensorMetadata(dtypes.string, (2,)), "s"))


@odd
def test_odd_graphs_and_paths_are_typed_errors(value, tmp_path):
    check_typed_error(lambda: heald.Session(value))
    check_typed_error(lambda: graphdef.dumps(value))
    check_typed_error(lambda: graphdef.dump(value, tmp_path / "x.pb"))
    check_typed_error(lambda: graphdef.load(value))
    check_typed_error(lambda: heald.load(value))
    if not isinstance(value, str):
        check_typed_error(lambda: graphdef.dump(graph(), value))


@odd
def test_odd_devices_configs_plugins_and_hosts_are_typed_errors(value):
    tested_graph = graph(Node("n", "NoOp"))
    if not isinstance(value, str):
        check_typed_error(lambda: heald.register(value))
    if value is not None:
        check_typed_error(lambda: heald.Session(tested_graph, value))
    if value is not None and not isinstance(value, str):
        check_typed_error(lambda: heald.Session(tested_graph, device=value))
        check_typed_error(lambda: heald.HostContext(work_queue=value))
        check_typed_error(lambda: heald.HostContext(allocator=value))


@pytest.mark.parametrize(("name", "message"), [
    ("x:", "'x:' is no tensor name"), (":0", "no node is called ''"), ("x:-1", "'x:-1' is no tensor name"),
    ("x:99999999999999999999", "has 1 output: 'x:0'"), ("x:0000000000001", "has 1 output: 'x:0'"),
    ("x:" + "9" * 5000, "has 1 output: 'x:0'"), ("x:\u0663", "is no tensor name"), ("^x", r"no node is called '\^x'"),
    ("n", "NoOp has no outputs"), ("n:0", "NoOp has no outputs"), ("x:0:0", "is no tensor name"),
])
def test_a_name_that_is_no_tensor_is_told(session, name, message):
    for call in (lambda: session.run(name, FEEDS), lambda: session.run("y", {name: X})):
        with pytest.raises((InvalidArgument, NotFound), match=message):
            call()


def test_a_name_may_be_a_kind_of_text_that_hashes_as_it_likes(session):
    name = raising(str, "__hash__", "__eq__", "__str__")("y")
    for fetches in (name, [name]):
        assert np.array_equal(np.ravel(session.run(fetches, FEEDS)), -X)


def test_one_name_stands_for_a_list_of_one(session, tmp_path):
    graphdef.dump(session.graph, tmp_path / "m.pb")
    model = heald.load(tmp_path / "m.pb", inputs="x", outputs="y")
    assert (list(model.inputs), list(model.outputs)) == (["x"], ["y"])


@pytest.mark.parametrize("data", [
    np.ones(3), np.array([None]), [1, 2], 10**12, None, object(), memoryview(b"12345678").cast("d"), "text",
], ids=lambda data: type(data).__name__)
def test_a_graph_is_read_from_bytes_only(data):
    with pytest.raises(InvalidArgument, match="bytes"):
        graphdef.loads(data)


@pytest.mark.parametrize("data", ["\ud800", b"\xff\xfe", "\0", "node { name: '\ud800' op: 'NoOp' }"])
def test_text_that_is_no_text_is_invalid(data):
    check_typed_error(lambda: graphdef.loads(data, text=True))


def test_any_buffer_of_bytes_is_read_in_its_logical_order():
    raw = graphdef.dumps(graph(Node("n", "NoOp")))
    spread = np.zeros((len(raw), 2), np.uint8)
    spread[:, 0] = np.frombuffer(raw, np.uint8)
    mapped = mmap.mmap(-1, len(raw))
    mapped[:] = raw
    for data in (bytearray(raw), memoryview(raw[::-1])[::-1], spread[:, 0], type("Mine", (bytes,), {})(raw), mapped,
                 memoryview(raw).cast("c")):
        assert list(graphdef.loads(data).nodes) == ["n"]
    assert list(graphdef.loads(bytearray(b"node { name: 'n' op: 'NoOp' }"), text=True).nodes) == ["n"]


def test_a_pipe_is_neither_read_nor_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for call in (lambda: graphdef.load(tmp_path / "pipe"), lambda: graphdef.dump(graph(), tmp_path / "pipe")):
        with pytest.raises(InvalidArgument, match="not a regular file"):
            call()
    assert (tmp_path / "pipe").is_fifo()


PROTOCOL = ("__array__", "__len__", "__iter__", "__getitem__", "__float__", "__index__", "__int__", "__complex__",
            "__bool__", "__str__", "__repr__", "__eq__", "__hash__", "__getattr__", "__buffer__", "__array_interface__",
            "__array_finalize__")


@given(st.sets(st.sampled_from(PROTOCOL)), st.sampled_from([object, list, tuple, str, bytes, int, float]),
       st.sampled_from([dtypes.float32, dtypes.int64, dtypes.string, dtypes.bool_]),
       st.sampled_from([KeyError, RecursionError, OSError, StopIteration, AttributeError, HealdError, MemoryError]))
def test_an_object_that_raises_is_a_feed_or_a_typed_error(methods, base, dtype, kind):
    def fail(self, *_, **__):
        raise kind("mine")

    feed = type("Odd", (base,), dict.fromkeys(methods, fail))()
    for value in (feed, [feed, feed]):
        try:
            assert convert_feed(value, TensorMetadata(dtype, None), "x").dtype == dtype.numpy
        except HealdError as error:
            assert kind is HealdError or isinstance(error, InvalidArgument | MemoryError)  # noqa: PT017


def test_the_error_of_the_callers_own_object_is_the_cause():
    feed = raising(object, "__array__")()
    with pytest.raises(InvalidArgument, match="feed 'x' is no tensor of float32: KeyError: 'mine'") as caught:
        convert_feed(feed, TensorMetadata(dtypes.float32, None), "x")
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_interrupts_pass_through_feeds(kind):
    class Interrupting:
        def __array__(self, dtype=None, copy=None):
            raise kind

    with pytest.raises(kind):
        convert_feed(Interrupting(), TensorMetadata(dtypes.float32, None), "x")


def test_masked_elements_are_not_fed_in_silence():
    meta = TensorMetadata(dtypes.float32, (2,))
    with pytest.raises(InvalidArgument, match=r"feed 'x' is a masked array.*filled"):
        convert_feed(np.ma.masked_array(X, [False, True]), meta, "x")
    assert np.array_equal(convert_feed(np.ma.masked_array(X), meta, "x"), X)


@pytest.mark.parametrize("array", [
    np.arange(6, dtype=np.float32)[::-2], np.broadcast_to(np.float32(1), (3, 2)),
    np.zeros((0, 3), np.float32), np.zeros((1,) * 64, np.float32), np.float32(X).astype(">f4"),
    np.frombuffer(b"\0" * 9, np.uint8)[1:].view(np.float32), X.view(raising(np.ndarray, "__eq__", "__len__")),
], ids=["backwards", "broadcast", "empty", "64 dimensions", "big endian", "not aligned", "subclass"])
def test_arrays_of_any_layout_are_fed(array):
    converted = convert_feed(array, TensorMetadata(dtypes.float32, None), "x")
    assert type(converted) is np.ndarray
    assert converted.flags.c_contiguous
    assert converted.flags.aligned
    assert converted.tolist() == np.asarray(array).tolist()
