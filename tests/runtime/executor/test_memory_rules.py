"""Results belong to the user and feeds stay unchanged, for random programs and every memory plan."""

from __future__ import annotations

from itertools import combinations

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from harness.shared_runtimes import shared_runtime
from heald.runtime.executor.host_array import view
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import TensorMetadata
from hypothesis import given, settings
from hypothesis import strategies as st
from plugins_for_tests import kept_plugin, plugin

PLUGINS = {"plugins": {"load": ["plugins_for_tests.kept_plugin", plugin("tests")]}}
PLAIN = PLUGINS | {"debug": {"poison": False}}
POISONED = PLUGINS | {"debug": {"poison": True}}
CONSTANT = np.float32([[1, -2, 3, -4]])
BINARY = {"AddV2": np.add, "Sub": np.subtract, "Maximum": np.maximum, "Test>Add": np.add, "Test>Step": np.add}
LATER = {"Test>Queued": np.add}
UNARY = {"Neg": np.negative, "Relu": lambda x: np.maximum(x, 0), "Kept>Copy": np.copy, "Kept>Keep": np.copy}
VIEWS = ("Identity", "IdentityN", "Reshape")


@st.composite
def programs(draw):
    """Calls (op, inputs) over values 0 and 1, which are fed, and 2, a constant; the values to fetch; rows of a feed."""
    asynchronous = draw(st.sampled_from([(), [*LATER] * 4]))
    ops = st.sampled_from([*BINARY, *UNARY, *VIEWS, *VIEWS, *asynchronous])
    calls = []
    for i in range(draw(st.integers(0, 5) | st.integers(10, 20))):
        earlier_registers = st.integers(max(0, i - 4), i + 2) | st.integers(0, i + 2)
        op = draw(ops)
        count = 1 if op in UNARY or op in ("Identity", "Reshape") else 2
        calls.append((op, tuple(draw(earlier_registers) for _ in range(count))))
    fetches = draw(st.lists(st.integers(0, len(calls) + 2), max_size=4))
    rows = draw(st.sampled_from([1, 2, 400]))  # a feed of 400 rows is too large for a copy in the frame
    return calls, [*fetches, len(calls) + 2], rows


def build(calls):
    nodes = [placeholder("v0", (None, 4)), placeholder("v1", (None, 4)), const("v2", CONSTANT),
             const("shape", [-1, 4], np.int32)]
    for i, (op, inputs) in enumerate(calls):
        names, attrs = [f"v{j}" for j in inputs], {}
        if op == "IdentityN":
            attrs = {"T": [dtypes.float32] * 2}
        if op == "Reshape":
            names, attrs = [*names, "shape"], {"Tshape": dtypes.int32}
        nodes.append(node(f"v{i + 3}", op, *names, **attrs))
    return graph(*nodes)


def broadcasts(calls):
    """True when a kernel of the tests would broadcast, which these kernels do not."""
    fed = [True, True, False]
    for op, inputs in calls:
        arguments = [fed[i] for i in inputs]
        if op.startswith("Test>") and len(set(arguments)) > 1:
            return True
        fed.append(arguments[0] if op in VIEWS else any(arguments))
    return False


PROGRAMS = programs().filter(lambda program: not broadcasts(program[0]))


def expected_values(calls, x, y):
    values = [x, y, CONSTANT]
    for op, inputs in calls:
        arguments = [values[i] for i in inputs]
        function = {**BINARY, **LATER, **UNARY}.get(op, lambda first, *_: first)
        values.append(function(*arguments))
    return values


def feeds(seed, rows):
    return tuple(np.random.default_rng(seed).integers(-3, 4, (2, rows, 4)).astype(np.float32))


@pytest.mark.parametrize("config", [PLAIN, POISONED], ids=["plain", "poisoned"])
@given(PROGRAMS)
@settings(max_examples=100)
def test_no_result_and_no_feed_is_written_by_this_or_a_later_run_and_results_are_right(config, program):
    calls, fetches, rows = program
    kept_plugin.kept.clear()
    step = heald.Session(build(calls), shared_runtime(config)).make_callable([f"v{i}" for i in fetches], ["v0", "v1"])
    runs = []
    for seed in (1, 2, 3, 1):
        x, y = feeds(seed, rows)
        results = step(x, y)
        runs.append(((x, y), results, expected_values(calls, *feeds(seed, rows))))
    for number, (fed, results, want) in enumerate(runs):  # after all runs, so that overwritten arrays show
        assert [x.tolist() for x in fed] == [w.tolist() for w in want[:2]]
        assert [r.tolist() for r in results] == [want[i].tolist() for i in fetches]
        for name, arrays in kept_plugin.kept.items():
            source = calls[int(name[1:]) - 3][1][0]
            assert arrays[number].tolist() == want[source].tolist()


@pytest.mark.parametrize("config", [PLAIN, POISONED], ids=["plain", "poisoned"])
@given(PROGRAMS)
@settings(max_examples=60)
def test_writes_of_the_user_into_feeds_and_results_change_nothing_else(config, program):
    calls, fetches, rows = program
    kept_plugin.kept.clear()
    step = heald.Session(build(calls), shared_runtime(config)).make_callable([f"v{i}" for i in fetches], ["v0", "v1"])
    earlier = []
    for seed in (1, 2, 1):
        own_feeds = feeds(seed, rows)
        results = step(*own_feeds)
        want = expected_values(calls, *feeds(seed, rows))
        for a, b in combinations([*own_feeds, *results], 2):
            assert not np.shares_memory(a, b)
        for result, i in zip(results, fetches, strict=True):
            assert result.flags.writeable
            assert result.tolist() == want[i].tolist()
            result[...] = 77
        assert [x.tolist() for x in own_feeds] == [w.tolist() for w in want[:2]]
        for x in own_feeds:
            x[...] = 78
        assert all((r == 77).all() for r in results)
        earlier += results
    assert all((r == 77).all() for r in earlier)
    for name, arrays in kept_plugin.kept.items():
        source = calls[int(name[1:]) - 3][1][0]
        assert [a.tolist() for a in arrays] == [
            expected_values(calls, *feeds(seed, rows))[source].tolist() for seed in (1, 2, 1)]


@pytest.mark.parametrize("fetches", [
    ["x"], ["c"], ["v"], ["w"], ["a", "a"], ["a", "b"], ["folded"], ["x", "v", "c", "w"],
])
def test_a_result_that_is_no_array_of_this_run_alone_is_a_copy(fetches):
    """Feeds, constants, folded values, views of these, and a second fetch of one value."""
    x = np.float32([[1, 2, 3, 4]])
    nodes = [placeholder("x", (1, 4)), const("c", CONSTANT), node("v", "Identity", "x"), node("w", "Identity", "c"),
             node("folded", "Neg", "c"), node("a", "Neg", "x"), node("b", "Identity", "a")]
    step = heald.Session(graph(*nodes), POISONED).make_callable(fetches, ["x"])
    first = step(x)
    copies = [r.copy() for r in first]
    for a, b in combinations([x, *first], 2):
        assert not np.shares_memory(a, b)
    for r in first:
        r[...] = 0
    assert x.tolist() == [[1, 2, 3, 4]]
    assert [r.tolist() for r in step(x)] == [r.tolist() for r in copies]


@pytest.mark.parametrize("index", range(2))
def test_a_read_only_feed_stays_as_it_is_and_its_fetch_can_be_written(index):
    x = np.float32([1, 2, 3])
    x.flags.writeable = False
    nodes = [placeholder("x", (3,)), node("v", "Identity", "x")]
    result = heald.Session(graph(*nodes)).run(["x", "v"], {"x": x})[index]
    result[:] = 0
    assert x.tolist() == [1, 2, 3]


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.int32])
@pytest.mark.parametrize("shape", [(2, 2), (4,)])
def test_a_view_has_its_own_type_and_shape_over_the_elements_of_its_source(dtype, shape):
    source = np.float32([[1, 2], [3, 4]])
    shown = view(source, TensorMetadata(dtype, shape))
    assert (shown.dtype, shown.shape) == (dtype.numpy, shape)
    assert np.shares_memory(shown, source)
    assert shown.tobytes() == source.tobytes()


IN_PLACE = """
import numpy as np
from heald.api import OpSpec, hookimpl
HEALD_API = (1, 0)
@hookimpl
def heald_ops(registry):
    registry.add(OpSpec("InPlace>Plus", inputs=["a: T", "b: T"], outputs=["y: T"], attrs=["T: type"],
                        metadata=lambda attrs, a, b: a))
@hookimpl
def heald_kernels(registry):
    registry.kernels("CPU", lambda kernels: kernels.kernel("InPlace>Plus", inplace={0: 0})(bind))
def bind(b):
    def run(a, b, out):
        np.copyto(out, a)
        out *= 10  # writes over a, and reads b afterwards
        out += b
    return run
"""


@pytest.mark.parametrize("poison", [False, True])
def test_a_value_that_a_call_reads_twice_is_not_written_in_place(tmp_path, poison):
    path = tmp_path / f"in_place_{poison}.py"
    path.write_text(IN_PLACE)
    config = {"plugins": {"load": [str(path)]}, "debug": {"poison": poison}}
    nodes = graph(placeholder("x", (3,)), node("n", "Neg", "x"), node("twice", "InPlace>Plus", "n", "n"),
                  node("z", "Neg", "twice"))
    with heald.Session(nodes, config) as session:
        assert session.run("z", {"x": np.float32([1, 2, 3])}).tolist() == [11, 22, 33]
