"""The memory budget of a host: files, feeds and kernels ask it before memory is touched; dead arrays give back."""

from __future__ import annotations

import gc
import tracemalloc

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from heald.errors import InvalidArgument, ResourceExhausted
from heald.graphs.graph.graph import Graph, Node
from heald.graphs.graph.graphdef import dumps, loads
from heald.runtime.contract.allocator import PlainAllocator
from heald.runtime.contract.device import load_callable
from heald.runtime.executor.calls.lazy_call import LazyCall
from heald.runtime.host.allocators import BUILT_IN_ALLOCATORS
from heald.runtime.host.host_memory import COUNTED_FROM_BYTES, HostMemory, size_text
from heald.runtime.values import dtypes, wire
from heald.runtime.values.tensor_proto import TensorValue, put_shape
from hypothesis import given
from hypothesis import strategies as st

N = 10**9
LIMIT = "64MiB"
INT = {"dtype": np.int32}


def constant_of_list(name, shape, dtype=dtypes.float32, values=()):
    """A constant of a small file: `values` are listed, the last of them fills the rest."""
    content = b"".join(wire.put_bytes(8, element) for element in values) if dtype is dtypes.string else b""
    if not content and values:
        content = wire.put_bytes(5, np.asarray(values, "<f4").tobytes())
    raw = wire.put_integer(1, dtype.number) + wire.put_bytes(2, put_shape(shape)) + content
    return Node(name, "Const", attrs={"dtype": dtype, "value": TensorValue.read(raw, 0, len(raw))})


def const32(name, value):
    return const(name, value, np.int32)


BOMBS = {
    "a constant without elements": [constant_of_list("out", (N,))],
    "a constant of one element": [constant_of_list("out", (N,), values=[1.5])],
    "a constant of two elements": [constant_of_list("out", (N,), values=[1.5, 2.5])],
    "a constant of two strings": [
        constant_of_list("w", (N,), dtypes.string, [b"a", b"b"]),
        Node("out", "StringLength", ("w",), attrs={"unit": b"BYTE"})],
    "a kernel that computes a table when it is bound": [
        constant_of_list("w", (N // 10,), dtypes.int32), node("out", "InvertPermutation", "w", T=dtypes.int32)],
    "another name of a constant": [constant_of_list("w", (N,)), node("out", "Identity", "w")],
    "a constant that a kernel reads": [constant_of_list("w", (N,)), node("out", "Neg", "w")],
    "the sum of a constant": [
        constant_of_list("w", (N,)), const32("axis", [0]),
        node("out", "Sum", "w", "axis", Tidx=dtypes.int32, keep_dims=False)],
    "Fill": [const32("dims", [N]), const("x", 1.0), node("out", "Fill", "dims", "x", index_type=dtypes.int32)],
    "Tile": [const("x", [1.0]), const32("m", [N]), node("out", "Tile", "x", "m", Tmultiples=dtypes.int32)],
    "BroadcastTo": [const("x", [1.0]), const32("s", [N]), node("out", "BroadcastTo", "x", "s", Tidx=dtypes.int32)],
    "Range": [const32("a", 0), const32("b", N), const32("c", 1),
              Node("out", "Range", ("a", "b", "c"), attrs={"Tidx": dtypes.int32})],
    "as many bytes as can be counted": [
        const("dims", [2**30, 2**30], np.int64), const("x", 1.0),
        node("out", "Fill", "dims", "x", index_type=dtypes.int64)],
    "an intermediate value": [
        const32("dims", [N]), const("x", 1.0), node("full", "Fill", "dims", "x", index_type=dtypes.int32),
        node("neg", "Neg", "full"), const32("axis", [0]),
        node("out", "Max", "neg", "axis", Tidx=dtypes.int32, keep_dims=False)],
}


def session(*nodes, limit=LIMIT):
    return heald.Session(graph(*nodes), {"limits": {"memory": limit}})


def memory_of(a_session):
    return a_session.host.memory


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_file_that_asks_for_much_memory_is_refused_before_memory_is_touched(name):
    data = dumps(Graph(BOMBS[name]))
    assert len(data) < 300
    tracemalloc.start()
    try:
        small = heald.Session(loads(data), {"limits": {"memory": LIMIT}})
        with pytest.raises(ResourceExhausted, match=r"needs .*(MB|GB|EB): 0 bytes of the limit of 67.1 MB are in use"):
            small.run("out")
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()
    assert memory_of(small).stats().in_use == 0


def test_a_kernel_of_huge_tensors_is_bound_in_the_run_not_in_the_link():
    nodes = constant_of_list("w", (N // 10,), dtypes.int32), node("out", "InvertPermutation", "w", T=dtypes.int32)
    huge, = session(*nodes, limit="8GiB").prepare("out").executable().layout.calls
    assert isinstance(huge, LazyCall)
    few = const32("few", [0, 1]), node("out", "Fill", "few", "one", index_type=dtypes.int32), const("one", 1.0)
    assert not any(isinstance(call, LazyCall) for call in session(*few).prepare("out").executable().layout.calls)


def test_no_images_of_many_rows_take_memory_for_the_places_of_these():
    images, size = placeholder("images", (0, 1, 1, 1)), const32("size", [N, 1])
    resized = Node("out", "ResizeBicubic", ("images", "size"), attrs={"T": dtypes.float32})
    with pytest.raises(ResourceExhausted, match="the places of rows and columns needs 64.0 GB"):
        session(images, size, resized).run("out", {"images": np.zeros((0, 1, 1, 1), np.float32)})


@pytest.mark.parametrize("op", ["Fill", "Sum"])
def test_a_long_vector_that_tells_shapes_is_no_list_of_a_billion_numbers(op):
    more = {"Fill": {"index_type": dtypes.int32}, "Sum": {"Tidx": dtypes.int32, "keep_dims": False}}[op]
    shape = constant_of_list("long", (N,), dtypes.int32)
    inputs = ("long", "x") if op == "Fill" else ("x", "long")
    with pytest.raises(InvalidArgument, match="1000000000 elements.* at most 254"):
        session(shape, const("x", 1.0), node("out", op, *inputs, **more)).run("out")


def test_the_shape_of_a_huge_constant_is_told_without_its_elements():
    assert session(constant_of_list("w", (N,)), node("s", "Shape", "w", out_type=dtypes.int32)).run("s").tolist() == [N]


def test_a_constant_that_is_only_fetched_is_made_once():
    small = session(constant_of_list("w", (4 << 20,), values=[1.5]), limit="20MB")  # 16.8 MB
    first = small.run("w")
    assert memory_of(small).stats().in_use == first.nbytes == 16 << 20
    assert first[0] == first[-1] == 1.5
    first[0] = 2  # the caller's own
    with pytest.raises(ResourceExhausted, match=r"16.8 MB of the limit of 20.0 MB are in use"):
        small.run("w")
    del first
    assert small.run("w")[0] == 1.5


def test_a_constant_that_kernels_read_is_laid_out_once_for_all_shapes_of_the_feeds():
    small = session(constant_of_list("w", (1 << 20,), values=[1.5]), placeholder("x", (None, 1)),
                    const32("axis", [0, 1]),
                    node("y", "AddV2", "x", "w"), node("out", "Max", "y", "axis", Tidx=dtypes.int32, keep_dims=False))
    for rows in (1, 2):
        assert small.run("out", {"x": np.ones((rows, 1), np.float32)}) == 2.5
        frames = sum(4 * rows << 20 for rows in range(1, rows + 1))
        assert memory_of(small).stats().in_use == (4 << 20) + frames


def test_results_count_until_the_last_array_over_them_is_gone():
    small = session(placeholder("x", (None,)), node("out", "Neg", "x"))
    result = small.run("out", {"x": np.ones(COUNTED_FROM_BYTES, np.float32)})
    assert memory_of(small).stats().in_use == result.nbytes
    part = result[1:].reshape(-1, 1).view(np.int32)
    del result
    gc.collect()
    assert memory_of(small).stats().in_use == COUNTED_FROM_BYTES * 4
    del part
    assert memory_of(small).stats().in_use == 0


def test_idle_frames_are_dropped_when_memory_runs_short():
    small = session(placeholder("x", (None,)), node("a", "Exp", "x"), node("out", "Neg", "a"), limit="30MB")
    for size in (5 << 18, 6 << 18, 7 << 18, 8 << 18):  # a frame and a result, of 5 to 8 MiB each
        small.run("out", {"x": np.zeros(size, np.float32)})
    assert memory_of(small).stats().peak <= 30e6
    assert memory_of(small).stats().in_use < 20e6


@pytest.mark.parametrize("fed", [np.broadcast_to(np.float32(1), (N,)), np.broadcast_to(np.int8(1), (N,)),
                                 [[0.0] * 10_000] * 100_000], ids=["strides", "cast", "list"])
def test_feeds_ask_before_they_are_converted(fed):
    small = session(placeholder("x"), node("out", "Neg", "x"))
    with pytest.raises(ResourceExhausted, match="feed 'x', converted to float32, needs 4.0 GB"):
        small.run("out", {"x": fed})
    assert memory_of(small).stats().in_use == 0


def test_arrays_that_need_no_conversion_are_the_callers_own_and_do_not_count():
    small = session(placeholder("x", (None,)), const32("axis", [0]),
                    node("out", "Max", "x", "axis", Tidx=dtypes.int32, keep_dims=False))
    fed = np.ones(20 << 20, np.float32)
    fed.flags.writeable = False
    assert small.run("out", {"x": fed}) == 1
    assert memory_of(small).stats().peak == 0


def test_the_memory_of_a_device_is_not_the_hosts():
    nodes = [placeholder("x", (1000, 1)), const("row", np.ones((1, 1000))), const("column", np.ones((1000, 1))),
             node("large", "MatMul", "x", "row", device="EXAMPLE:0"),
             node("out", "MatMul", "large", "column", device="EXAMPLE:0")]
    with session(*nodes, limit="2MiB") as small:  # large: 4 MB
        assert small.run("out", {"x": np.ones((1000, 1), np.float32)}).tolist() == [[1000.0]] * 1000


def test_the_limit_is_a_setting_like_others():
    for text, limit in ((1000, 1000), ("64KiB", 65536), ("1.5 GB", 1_500_000_000)):
        assert memory_of(session(const("x", 1), limit=text)).limit == limit
    with pytest.raises(InvalidArgument, match=r"'plenty' is not a limit of memory; \[limits\] memory"):
        session(const("x", 1), limit="plenty")


@pytest.mark.parametrize("allocator", BUILT_IN_ALLOCATORS)
@given(st.lists(st.tuples(st.integers(0, 3 * COUNTED_FROM_BYTES), st.integers(0, 5)), max_size=12))
def test_large_arrays_are_counted_while_they_live(allocator, steps):
    memory = HostMemory(load_callable(BUILT_IN_ALLOCATORS[allocator])(), 8 * COUNTED_FROM_BYTES)
    alive = []
    for nbytes, dropped in steps:
        in_use = sum(a.nbytes for a in alive if a.nbytes >= COUNTED_FROM_BYTES)
        if nbytes >= COUNTED_FROM_BYTES and in_use + nbytes > 8 * COUNTED_FROM_BYTES:
            with pytest.raises(ResourceExhausted):
                memory.maker((nbytes,), np.uint8, "a test")()
        else:
            alive.append(memory.maker((nbytes,), np.uint8, "a test")())
        del alive[:dropped]
        assert memory.stats().in_use == sum(a.nbytes for a in alive if a.nbytes >= COUNTED_FROM_BYTES)


def test_an_array_that_is_held_twice_counts_once():
    memory = HostMemory(PlainAllocator(), 2 * COUNTED_FROM_BYTES)
    array = np.zeros(COUNTED_FROM_BYTES, np.uint8)
    for view in (array, array[:10], array[5:].view(np.int8)):
        memory.hold(view, "a test")
    assert memory.stats().in_use == COUNTED_FROM_BYTES
    del array, view
    assert memory.stats().in_use == 0


def test_the_bytes_of_an_array_that_could_not_be_made_are_given_back():
    memory = HostMemory(PlainAllocator(), 2 * COUNTED_FROM_BYTES)
    with pytest.raises(ZeroDivisionError):
        memory.lend(COUNTED_FROM_BYTES, "a test", lambda: 1 // 0)
    with pytest.raises(ResourceExhausted, match="the system has no memory for a test"):
        memory.lend(COUNTED_FROM_BYTES, "a test", lambda: np.empty(2**62))
    assert memory.stats().in_use == 0


@pytest.mark.parametrize(("nbytes", "text"), [
    (0, "0 bytes"), (999, "999 bytes"), (1000, "1.0 kB"), (4_000_000_000, "4.0 GB"), (10**24, "1000000.0 EB")])
def test_sizes_are_written_for_people(nbytes, text):
    assert size_text(nbytes) == text
