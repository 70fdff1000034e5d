"""Parts of a tensor in host memory are views where their bytes are aligned, and results never change by that."""

from __future__ import annotations

import heald
import numpy as np
import pytest
from builders.graphs import graph, node, placeholder
from heald.errors import PluginError
from heald.graphs.graph.graph import Node
from heald.runtime.executor.calls.part_view_call import PartViewCall
from heald.runtime.linker.part_views import replace_with_part_views
from heald.runtime.values import dtypes
from hypothesis import given, settings
from hypothesis import strategies as st
from plugins_for_tests import plugin

pytestmark = pytest.mark.usefixtures("graphs_as_written")
PLAIN = {"plugins": {"block": ["onednn", "simplify"]}}
F, INT = dtypes.float32, dtypes.int32


def integers(name, values):
    return Node(name, "Const", attrs={"dtype": INT, "value": np.array(values, np.int32)})


def split(name, source, count, axis=0):
    return [integers(f"{name}/axis", axis),
            Node(name, "Split", [f"{name}/axis", source], attrs={"T": F, "num_split": count})]


def slice_of(name, source, begin, size):
    return [integers(f"{name}/begin", begin), integers(f"{name}/size", size),
            Node(name, "Slice", [source, f"{name}/begin", f"{name}/size"], attrs={"T": F, "Index": INT})]


def strided(name, source, begin, end, strides, **masks):
    values = {"begin": begin, "end": end, "strides": strides}
    flags = dict.fromkeys(("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0) | masks
    return [*(integers(f"{name}/{key}", value) for key, value in values.items()),
            Node(name, "StridedSlice", [source, *(f"{name}/{key}" for key in values)],
                 attrs={"T": F, "Index": INT} | flags)]


def unpack(name, source, count, axis=0):
    return [Node(name, "Unpack", [source], attrs={"T": F, "num": count, "axis": axis})]


def views(session, fetches, shape, feeds=("x",)):
    layout = session.prepare(fetches, [*feeds]).executable((shape,)).layout
    return sum(isinstance(bound, PartViewCall) for bound in layout.calls)


def numbers(*shape):
    return np.random.default_rng(0).standard_normal(shape, np.float32)


@pytest.mark.parametrize(("make", "shape", "want", "count"), [
    (lambda: split("p", "y", 2), (4, 16), lambda y: np.split(y, 2), 1),
    (lambda: split("p", "y", 2, 1), (1, 32), lambda y: np.split(y, 2, 1), 1),
    (lambda: split("p", "y", 2, -1), (1, 1, 64), lambda y: np.split(y, 2, 2), 1),
    (lambda: split("p", "y", 2, 1), (4, 32), lambda y: np.split(y, 2, 1), 0),  # gaps between the rows
    (lambda: split("p", "y", 2), (4, 3), lambda y: np.split(y, 2), 0),  # the second begins at 24 bytes
    (lambda: unpack("p", "y", 2), (2, 4, 4), lambda y: [y[0], y[1]], 1),
    (lambda: unpack("p", "y", 2, 1), (1, 2, 16), lambda y: [y[:, 0], y[:, 1]], 1),
    (lambda: unpack("p", "y", 2, 1), (3, 2, 16), lambda y: [y[:, 0], y[:, 1]], 0),
    (lambda: slice_of("p", "y", [1, 0], [2, 16]), (4, 16), lambda y: [y[1:3]], 1),
    (lambda: slice_of("p", "y", [2, 16], [1, 7]), (4, 32), lambda y: [y[2:3, 16:23]], 1),
    (lambda: slice_of("p", "y", [1, 0], [2, 15]), (4, 16), lambda y: [y[1:3, :15]], 0),
    (lambda: slice_of("p", "y", [0, 0], [0, 16]), (4, 16), lambda y: [y[:0]], 1),
    (lambda: strided("p", "y", [1], [3], [1]), (4, 16), lambda y: [y[1:3]], 1),
    (lambda: strided("p", "y", [-2], [0], [1], shrink_axis_mask=1), (4, 16), lambda y: [y[-2]], 1),
    (lambda: strided("p", "y", [2, 0, 16], [3, 0, 32], [1, 1, 1], new_axis_mask=2, shrink_axis_mask=1), (4, 32),
     lambda y: [y[2][None, 16:32]], 1),
    (lambda: strided("p", "y", [0, 1], [0, 2], [1, 1], ellipsis_mask=1), (1, 4, 16), lambda y: [y[..., 1:2]], 0),
    (lambda: strided("p", "y", [0, 0], [0, 16], [1, 1], ellipsis_mask=1, begin_mask=2), (4, 16), lambda y: [y], 1),
    (lambda: strided("p", "y", [2], [1], [-1]), (4, 16), lambda y: [y[2:1:-1]], 1),
    (lambda: strided("p", "y", [3], [1], [-1]), (4, 16), lambda y: [y[3:1:-1]], 0),
    (lambda: strided("p", "y", [0], [4], [2]), (4, 16), lambda y: [y[::2]], 0),
    (lambda: strided("p", "y", [0, 0], [4, 8], [1, 1]), (4, 16), lambda y: [y[:, :8]], 0),
    (lambda: strided("p", "y", [3], [3], [1]), (4, 16), lambda y: [y[3:3]], 1),
])
@pytest.mark.parametrize("debug", [{}, {"poison": True}])
def test_parts_that_are_aligned_and_without_gaps_are_views(make, shape, want, count, debug):
    parts = make()
    outputs = len(want(np.zeros(shape)))
    readers = [node(f"r{i}", "Square", f"p:{i}" if i else "p") for i in range(outputs)]
    net = graph(placeholder("x", shape), node("y", "Neg", "x"), *parts, *readers)
    fetches = [reader.name for reader in readers]
    with heald.Session(net, PLAIN | {"debug": debug}) as session:
        for run in range(3):
            x = numbers(*shape) + run
            for got, part in zip(session.run(fetches, {"x": x}), want(-x), strict=True):
                np.testing.assert_array_equal(got, np.square(part))
        assert views(session, fetches, shape) == count


def test_a_feed_is_shown_and_never_written():
    net = graph(placeholder("x", (2, 16)), *unpack("p", "x", 2), node("a", "Neg", "p"), node("b", "Neg", "a"),
                node("y", "AddV2", "b", "p:1"))
    x = numbers(2, 16)
    before = x.copy()
    x.flags.writeable = False
    with heald.Session(net, PLAIN) as session:
        for _ in range(2):
            np.testing.assert_array_equal(session.run("y", {"x": x}), x[0] + x[1])
        assert views(session, ["y"], (2, 16)) == 1
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("fetches", [["p", "p:1"], ["p:1", "y"], ["p", "r"], ["same", "r"]])
def test_a_part_that_the_user_gets_is_the_users(fetches):
    net = graph(placeholder("x", (2, 16)), node("y", "Neg", "x"), *unpack("p", "y", 2), node("r", "Square", "p:1"),
                node("same", "Identity", "p"))
    x = numbers(2, 16)
    want = {"p": -x[0], "p:1": -x[1], "y": -x, "r": x[1] ** 2, "same": -x[0]}
    with heald.Session(net, PLAIN) as session:
        step = session.make_callable(fetches, ["x"])
        first = step(x)
        for array, name in zip(first, fetches, strict=True):
            np.testing.assert_array_equal(array, want[name])
            array[...] = 99
        for array, name in zip(step(x), fetches, strict=True):
            np.testing.assert_array_equal(array, want[name])


def test_a_part_that_a_variable_retains_is_a_copy():
    variable = Node("v", "VarHandleOp", attrs={"dtype": F, "shape": (16,), "container": "", "shared_name": "v"})
    net = graph(placeholder("x", (2, 16)), node("y", "Neg", "x"), *unpack("p", "y", 2), variable,
                Node("set", "AssignVariableOp", ["v", "p:1"], attrs={"dtype": F}),
                Node("add", "AssignAddVariableOp", ["v", "p:1", "^set"], attrs={"dtype": F}),
                Node("read", "ReadVariableOp", ["v", "^add"], attrs={"dtype": F}), node("z", "Square", "y"))
    x = numbers(2, 16)
    with heald.Session(net, PLAIN) as session:
        for _ in range(3):
            read, z = session.run(["read", "z"], {"x": x})
            np.testing.assert_array_equal(read, -2 * x[1])
            np.testing.assert_array_equal(z, x * x)


@st.composite
def programs(draw):
    """Nodes over a (4, 4, 16) tensor: parts, sums of them, and in-place kernels; the names to fetch, by shape."""
    nodes, values = [placeholder("x", (4, 4, 16)), node("y", "Neg", "x")], [("y", (4, 4, 16))]
    for number in range(draw(st.integers(3, 12))):
        source, shape = draw(st.sampled_from(values))
        name = f"n{number}"
        kind = draw(st.sampled_from(["unpack", "split", "slice", "neg", "add", "reshape"]))
        if kind == "unpack" and len(shape) > 1:
            nodes += unpack(name, source, shape[0])
            values += [(f"{name}:{i}" if i else name, shape[1:]) for i in range(shape[0])]
        elif kind == "split" and shape[0] % 2 == 0:
            nodes += split(name, source, 2)
            values += [(name, (shape[0] // 2, *shape[1:])), (f"{name}:1", (shape[0] // 2, *shape[1:]))]
        elif kind == "slice" and shape[0] > 1:
            begin = draw(st.integers(0, shape[0] - 1))
            size = (shape[0] - begin, *shape[1:])
            nodes += slice_of(name, source, [begin, *(0,) * (len(shape) - 1)], size)
            values.append((name, size))
        elif kind == "reshape":
            flat = (int(np.prod(shape)),)
            nodes += [integers(f"{name}/shape", flat),
                      Node(name, "Reshape", [source, f"{name}/shape"], attrs={"T": F, "Tshape": INT})]
            values.append((name, flat))
        elif kind == "add":
            other = draw(st.sampled_from([value for value, theirs in values if theirs == shape]))
            nodes.append(node(name, "AddV2", source, other))
            values.append((name, shape))
        else:
            nodes.append(node(name, "Neg", source))
            values.append((name, shape))
    return nodes, draw(st.lists(st.sampled_from([value for value, _ in values]), min_size=1, max_size=3))


def evaluate(nodes, x):
    """The values of a program by name, by NumPy."""
    values = {"x": x}
    known = {one.name: one.attrs["value"].array() for one in nodes if one.op == "Const"}
    for one in nodes:
        inputs = [values.get(source, known.get(source)) for source in map(str, one.inputs)]
        if one.op in ("Const", "Placeholder"):
            continue
        if one.op in ("Unpack", "Split"):
            parts = list(inputs[0]) if one.op == "Unpack" else np.split(inputs[1], 2)
            values |= {f"{one.name}:{i}" if i else one.name: part for i, part in enumerate(parts)}
        elif one.op == "Slice":
            values[one.name] = inputs[0][inputs[1][0] :]
        elif one.op == "Reshape":
            values[one.name] = inputs[0].reshape(inputs[1])
        else:
            values[one.name] = -inputs[0] if one.op == "Neg" else inputs[0] + inputs[1]
    return values


@given(programs(), st.booleans())
@settings(max_examples=40, deadline=None)
def test_random_programs_of_parts_give_what_copies_give(program, poison):
    nodes, fetches = program
    debug = {"debug": {"poison": True}} if poison else {}
    x = numbers(4, 4, 16)
    with heald.Session(graph(*nodes), PLAIN | debug) as session:
        got = [session.run(fetches, {"x": x + run}) for run in (0, 1, 0)]
    values = evaluate(nodes, x)
    for run in (0, 2):
        for array, name in zip(got[run], fetches, strict=True):
            np.testing.assert_array_equal(array, values[name])


@pytest.mark.parametrize("shows", [
    {}, {1: (0, 0)}, {0: (1, 0)}, {0: (0, 1)}, {0: (0, -1)}, {0: (0, 0.0)}, {0: 0}, 5, {0: (True, 0)},
])
def test_a_wrong_offer_is_a_fault_of_its_plugin(shows, tmp_path):
    path = tmp_path / f"wrong_{abs(hash(repr(shows)))}.py"
    path.write_text(f"""
import numpy as np
from heald.api import hookimpl
HEALD_API = (1, 4)

@hookimpl
def heald_kernels(registry):
    registry.kernels("CPU", register, priority=50)

def register(kernels):
    @kernels.kernel("Neg")
    def neg(b):
        def run(x, out):
            np.negative(x, out)
        run.shows = {shows!r}
        return run
""")
    net = graph(placeholder("x", (4,)), node("y", "Neg", "x"), node("z", "Square", "y"))
    config = {"plugins": {"load": [str(path)], "block": ["onednn", "simplify"]}}
    with heald.Session(net, config) as session, pytest.raises(PluginError, match="'shows' of"):
        session.run("z", {"x": numbers(4)})


def test_calls_without_an_offer_stay_as_they_are():
    assert replace_with_part_views([], [], (), {}) == []
    assert plugin("scratch")
