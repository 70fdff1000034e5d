"""The pass `maps`: a loop that computes each row by itself computes all rows at once, with the results of the loop."""

from __future__ import annotations

import heald
import numpy as np
import pytest
from builders.control_flow import function, loop
from builders.graphs import FLOAT, const, node, placeholder
from harness.device_pairs import run_traced
from harness.shared_runtimes import shared_runtime
from heald.errors import HealdError
from heald.graphs.graph.attr_value import Func
from heald.graphs.graph.graph import Graph, Node
from heald.graphs.graph.graph_base import Versions
from heald.runtime.values import dtypes

INT, BOOL, TEXT = dtypes.int32, dtypes.bool_, dtypes.string
UNMAPPED = {"passes": {"disable": ["maps", "counts"]}}
TYPES = "i:int32 n:int32 out:variant list:variant w"
ITEM = {"element_dtype": FLOAT}
W = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


def read(name="r", handle="list", index="i", dtype=FLOAT, shape="shape:output:0"):
    return Node(name, "TensorListGetItem", [handle, index, shape], attrs={"element_dtype": dtype})


def map_graph(nodes, value, *, count=4, row=(3,), item=None, dtype=FLOAT, of=FLOAT, size=None, w=W, stacked=-1,
              shape=None):
    """A loop over the rows "r" of the placeholder x, which stacks `value` of each turn as "y".

    `count`: the number of rows, None for an unknown one. `item`: the shape that the list has reserved. `size`: the
    number of turns, if it is not that of the rows. `of`: the type of the results.
    """
    shape_of_row = const("shape", [-1 if n is None else n for n in row] if shape is None else shape, np.int32)
    any_shape = const("item", -1 if item is None else item, np.int32)
    if size is None and count is None:
        number = [node("sizes", "Shape", "x", T=dtype, out_type=INT), const("b", [0], np.int32),
                  const("e", [1], np.int32), const("s", [1], np.int32),
                  Node("n", "StridedSlice", ["sizes", "b", "e", "s"],
                       attrs={"T": INT, "Index": INT, "shrink_axis_mask": 1})]
    else:
        number = [const("n", count if size is None else size, np.int32)]
    below = function("below", TYPES, [node("less", "Less", "i", "n", T=INT)], {"go": "less:z:0"}, "go:bool_")
    one = const("one", 1, np.int32)
    body = function("body", TYPES, [
        one, node("next", "AddV2", "i", "one:output:0", T=INT), shape_of_row, read(dtype=dtype), *nodes,
        Node("write", "TensorListSetItem", ["out", "i", value], attrs={"element_dtype": of})],
        {"i": "next:z:0", "n": "n", "out": "write:output_handle:0", "list": "list", "w": "w"},
        "i:int32 n:int32 out:variant list:variant")
    list_attrs = {"element_dtype": of, "shape_type": INT}
    return Graph([
        placeholder("x", (count, *row), dtype), *number, shape_of_row, any_shape, const("zero", 0, np.int32),
        const("w", w),
        Node("list", "TensorListFromTensor", ["x", "shape"], attrs={**list_attrs, "element_dtype": dtype}),
        Node("out", "TensorListReserve", ["item", "n"], attrs=list_attrs),
        loop("m", "below", "body", "zero", "n", "out", "list", "w", arguments=TYPES),
        Node("y", "TensorListStack", ["m:2", "item"], attrs={"element_dtype": of, "num_elements": stacked}),
    ], [below, body], Versions(1000, 12))


def input_of(graph, count=4):
    entry = graph["x"]
    shape = tuple(count if n is None else n for n in entry.attrs["shape"])
    numbers = np.linspace(-2, 2, int(np.prod(shape))).reshape(shape)
    if entry.attrs["dtype"] is TEXT:
        return np.array([f"Text {number:.0f}".encode() for number in numbers.reshape(-1)], object).reshape(shape)
    return (numbers * 3).astype(entry.attrs["dtype"].numpy)


def ops_after_passes(graph, fetches=("y",)):
    with heald.Session(graph) as session:
        *_, (_, rewritten) = session.graphs_by_pass(list(fetches), ("x",))
    return {entry.op for entry in rewritten}


def check(graph, *, is_mapped, fetches=("y",), counts=(4,)):
    """Compare the results with the loop's own, and look for a loop in the graph after passes."""
    ops = ops_after_passes(graph, fetches)
    assert (not ops & {"While", "For"}) is is_mapped, ops
    for count in counts:
        x = input_of(graph, count)
        results = []
        for config in ({}, UNMAPPED):
            with heald.Session(graph, shared_runtime(config)) as session:
                results.append(session.run(list(fetches), {"x": x}))
        for result, expected in zip(*results, strict=True):
            assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
            if result.dtype == object:
                assert result.tolist() == expected.tolist()
            else:
                np.testing.assert_allclose(result, expected, 1e-6, 1e-6)


def reduce(op, axes, **attrs):
    return [const("axes", axes, np.int32), node("v", op, "r", "axes:output:0", Tidx=INT, keep_dims=False, **attrs)]


def strided(begin, end, strides, **masks):
    places = {"b": begin, "e": end, "s": strides}
    return [*(const(name, value, np.int32) for name, value in places.items()),
            node("v", "StridedSlice", "r", *(f"{name}:output:0" for name in places), Index=INT, **masks)]


VECTOR = const("vector", [1, 2, 3])
MAPPED = {  # nodes, the written value, and the other properties of the loop
    "the row itself": ([], "r:item:0", {}),
    "elementwise": ([node("a", "Mul", "r", "r"), node("b", "Tanh", "a:z:0"), VECTOR,
                     node("v", "AddV2", "b:y:0", "vector:output:0")], "v:z:0", {}),
    "a mean": (reduce("Mean", [0]), "v:output:0", {}),
    "a sum of the last axis": (reduce("Sum", [-1]), "v:output:0", {"row": (2, 3)}),
    "a row less its mean": ([*reduce("Mean", [0]), node("d", "Sub", "r", "v:output:0")], "d:z:0", {}),
    "a mean less its row": ([*reduce("Max", 0), node("d", "Sub", "v:output:0", "r")], "d:z:0", {"row": (3,)}),
    "a lower rank": ([*reduce("Sum", [0]), node("d", "Mul", "v:output:0", "r")], "d:z:0", {"row": (2, 3)}),
    "a higher rank that is the same for all rows": ([node("d", "AddV2", "r", "w")], "d:z:0", {"row": (4,)}),
    "scalars": ([node("a", "Exp", "r")], "a:y:0", {"row": ()}),
    "all": ([const("c", 0.5), node("g", "Greater", "r", "c:output:0"), const("axes", [0], np.int32),
             Node("v", "All", ["g:z:0", "axes:output:0"], attrs={"Tidx": INT, "keep_dims": False})], "v:output:0",
            {"of": BOOL}),
    "a choice": ([const("c", 0.5), node("g", "Greater", "r", "c:output:0"), node("v", "SelectV2", "g:z:0", "r",
                                                                              "c:output:0")], "v:output:0", {}),
    "a product": ([node("v", "MatMul", "r", "w", transpose_a=False, transpose_b=False)], "v:product:0",
                  {"row": (2, 3)}),
    "a product with the transposed": ([node("v", "MatMul", "r", "w", transpose_a=False, transpose_b=True)],
                                      "v:product:0", {"row": (2, 3), "w": W.T.copy()}),
    "a vector by a matrix": ([const("axis", 0, np.int32), node("e", "ExpandDims", "r", "axis:output:0", Tdim=INT),
                              node("p", "MatMul", "e:output:0", "w", transpose_a=False, transpose_b=False),
                              node("v", "Squeeze", "p:product:0", squeeze_dims=[0])], "v:output:0", {}),
    "another shape": ([const("to", [3, -1], np.int32), node("v", "Reshape", "r", "to:output:0", Tshape=INT)],
                      "v:output:0", {"row": (2, 3)}),
    "a bias": ([VECTOR, node("v", "BiasAdd", "r", "vector:output:0", data_format="NHWC")], "v:output:0",
               {"row": (2, 3)}),
    "softmax": ([node("v", "Softmax", "r")], "v:softmax:0", {"row": (2, 3)}),
    "a place": ([const("axis", -1, np.int32), node("v", "ArgMax", "r", "axis:output:0", Tidx=INT, output_type=INT)],
                "v:output:0", {"of": INT, "row": (2, 3)}),
    "a cast": ([Node("v", "Cast", ["r"], attrs={"SrcT": FLOAT, "DstT": INT})], "v:y:0", {"of": INT}),
    "integers": ([node("v", "Sub", "r", "r", T=INT)], "v:z:0", {"of": INT, "dtype": INT}),
    "texts": ([Node("l", "StringLower", ["r"], attrs={"encoding": b""}),
               Node("v", "StaticRegexReplace", ["l:output:0"],
                    attrs={"pattern": b"[aeiou]", "rewrite": b"_", "replace_global": True})], "v:output:0",
              {"dtype": TEXT, "of": TEXT, "row": ()}),
    "lengths of texts": ([Node("v", "StringLength", ["r"], attrs={"unit": b"BYTE"})], "v:output:0",
                         {"dtype": TEXT, "of": INT, "row": (2,)}),
    "a text of parts": ([const("dash", b"-", object), Node("v", "StringJoin", ["r", "dash:output:0", "r"],
                                                           attrs={"N": 3, "separator": b""})], "v:output:0",
                        {"dtype": TEXT, "of": TEXT, "row": (2,)}),
    "a text by a pattern": ([const("p", b"t.", object), const("by", b"_", object),
                             Node("v", "RegexReplace", ["r", "p:output:0", "by:output:0"],
                                  attrs={"replace_global": True})], "v:output:0",
                            {"dtype": TEXT, "of": TEXT, "row": ()}),
    "a part of a text": ([const("at", 1, np.int32), const("long", 3, np.int32),
                          Node("v", "Substr", ["r", "at:output:0", "long:output:0"], attrs={
                              "T": INT, "unit": b"BYTE"})],
                         "v:output:0", {"dtype": TEXT, "of": TEXT, "row": (2,)}),
    "a number of a text": ([Node("d", "StaticRegexReplace", ["r"], attrs={
        "pattern": b"Text ", "rewrite": b"", "replace_global": True}),
        Node("v", "StringToNumber", ["d:output:0"], attrs={"out_type": FLOAT})], "v:output:0",
        {"dtype": TEXT, "row": ()}),
    "base64 of a text": ([Node("e", "EncodeBase64", ["r"], attrs={"pad": True}),
                          Node("v", "DecodeBase64", ["e:output:0"])], "v:output:0",
                         {"dtype": TEXT, "of": TEXT, "row": ()}),
    "a slice": (strided([1, -1], [3, 0], [1, -1], begin_mask=2, end_mask=2), "v:output:0", {"row": (4, 3)}),
    "an element": (strided([1], [2], [1], shrink_axis_mask=1), "v:output:0", {"row": (4, 3)}),
    "a new axis behind all": (strided([0, 0], [0, 0], [1, 1], ellipsis_mask=1, new_axis_mask=2), "v:output:0",
                              {"row": (4, 3)}),
    "a stack": ([Node("v", "Pack", ["r", "r"], attrs={"T": FLOAT, "N": 2, "axis": 0})], "v:output:0", {}),
    "a stack along the last axis": ([Node("v", "Pack", ["r", "r"], attrs={"T": FLOAT, "N": 2, "axis": -1})],
                                    "v:output:0", {}),
    "a concatenation": ([const("axis", -1, np.int32), Node("v", "ConcatV2", ["r", "r", "axis:output:0"], attrs={
        "T": FLOAT, "N": 2, "Tidx": INT})], "v:output:0", {"row": (2, 3)}),
    "a running sum": ([const("axis", 0, np.int32), node("v", "Cumsum", "r", "axis:output:0", Tidx=INT)], "v:out:0",
                      {"row": (2, 3)}),
    "reversed": ([const("axis", [0], np.int32), node("v", "ReverseV2", "r", "axis:output:0", Tidx=INT)], "v:output:0",
                 {"row": (2, 3)}),
    "repeated": ([const("times", [2, 1], np.int32), node("v", "Tile", "r", "times:output:0", Tmultiples=INT)],
                 "v:output:0", {"row": (2, 3)}),
    "padded": ([const("by", [[0, 1], [2, 0]], np.int32), node("v", "Pad", "r", "by:output:0", Tpaddings=INT)],
               "v:output:0", {"row": (2, 3)}),
    "transposed": ([const("order", [1, -2], np.int32), node("v", "Transpose", "r", "order:output:0", Tperm=INT)],
                   "v:y:0", {"row": (2, 3)}),
    "a product of rows": ([node("v", "MatMul", "r", "r", transpose_a=False, transpose_b=True)], "v:product:0",
                          {"row": (2, 3)}),
    "a matrix by rows": ([node("v", "MatMul", "w", "r", transpose_a=True, transpose_b=False)], "v:product:0",
                         {"row": (3, 2)}),
    "the shape of a row": ([node("s", "Shape", "r", out_type=INT), Node("f", "Cast", ["s:output:0"], attrs={
        "SrcT": INT, "DstT": FLOAT}), node("v", "Mul", "r", "f:y:0")], "v:z:0", {"row": (2,)}),
}


@pytest.mark.parametrize("name", MAPPED)
def test_all_rows_are_computed_at_once(name):
    nodes, value, properties = MAPPED[name]
    check(map_graph(nodes, value, **properties), is_mapped=True)


@pytest.mark.parametrize("name", MAPPED)
def test_an_unknown_number_of_rows_gives_the_same(name):
    nodes, value, properties = MAPPED[name]
    graph = map_graph(nodes, value, count=None, **properties)
    check(graph, is_mapped=True, counts=(1, 4))
    with heald.Session(graph) as session, pytest.raises(HealdError, match="element"):
        session.run("y", {"x": input_of(graph, 0)})  # as in the loop, the list of no rows has no shape


def test_no_rows_give_none_where_the_shape_is_known():
    graph = map_graph([node("v", "Neg", "r")], "v:y:0", count=None, item=[3])
    check(graph, is_mapped=True, counts=(0, 2))


NUMBER = [Node("f", "Cast", ["i"], attrs={"SrcT": INT, "DstT": FLOAT}), node("v", "Mul", "r", "f:y:0")]


@pytest.mark.parametrize(("count", "is_mapped"), [(4, True), (None, False)])
def test_the_number_of_a_turn_is_a_row_of_numbers(count, is_mapped):
    check(map_graph(NUMBER, "v:z:0", count=count), is_mapped=is_mapped)


STAYS = {
    "an op that may fail": ([Node("v", "CheckNumerics", ["r"], attrs={"T": FLOAT, "message": b""})], "v:output:0", {}),
    "a division of integers": ([const("c", 2, np.int32), node("v", "FloorDiv", "r", "c:output:0", T=INT)], "v:z:0",
                               {"of": INT, "dtype": INT}),
    "an op without a rule": ([node("v", "L2Loss", "r")], "v:output:0", {}),
    "two ops that may fail": (
        [Node("d", "StaticRegexReplace", ["r"], attrs={"pattern": b"Text ", "rewrite": b"", "replace_global": True}),
         Node("v", "StringToNumber", ["d:output:0"], attrs={"out_type": FLOAT}),
         Node("u", "DecodeBase64", ["r"])], "v:output:0", {"dtype": TEXT, "row": ()}),
    "positions by row": ([const("long", [1, 2], np.int32), const("at", [0, 0], np.int32),
                          Node("v", "Substr", ["r", "at:output:0", "long:output:0"], attrs={
                              "T": INT, "unit": b"BYTE"})], "v:output:0", {"dtype": TEXT, "of": TEXT, "row": (2,)}),
    "a stack with a tensor of all rows": ([VECTOR, Node("v", "Pack", ["r", "vector:output:0"], attrs={
        "T": FLOAT, "N": 2, "axis": 0})], "v:output:0", {}),
    "vectors that are unequal as a whole": (
        [const("c", [1, 2]), Node("v", "Equal", ["r", "c:output:0"],
                                  attrs={"T": FLOAT, "incompatible_shape_error": False})], "v:z:0", {"of": BOOL}),
    "fewer turns than rows": ([], "r:item:0", {"size": 3, "item": [3]}),
    "the same value in each turn": ([], "vector:output:0", {}),
    "rows of unknown shape": ([node("v", "Neg", "r")], "v:y:0", {"row": (None,)}),
    "large rows": ([node("v", "Neg", "r")], "v:y:0", {"row": (1 << 15,)}),
}


@pytest.mark.parametrize("name", STAYS)
def test_another_loop_stays(name):
    nodes, value, properties = STAYS[name]
    if value.startswith("vector"):
        nodes = [VECTOR]
    graph = map_graph(nodes, value, **properties)
    if properties.get("row") == (None,):
        with heald.Session(graph) as session:
            assert session.run("y", {"x": np.ones((4, 2), np.float32)}).tolist() == [[-1, -1]] * 4
        assert ops_after_passes(graph) & {"While", "For"}
    else:
        check(graph, is_mapped=False)


def test_a_row_that_fails_fails_as_in_the_loop():
    graph = map_graph([Node("v", "StringToNumber", ["r"], attrs={"out_type": FLOAT})], "v:output:0", dtype=TEXT, row=())
    errors = []
    for config in ({}, UNMAPPED):
        with heald.Session(graph, shared_runtime(config)) as session, \
                pytest.raises(HealdError, match="convert") as failed:
            session.run("y", {"x": np.array([b"1", b"2", b"three", b"4"], object)})
        errors.append((type(failed.value), failed.value.op))
    assert errors[0] == errors[1]


def changed_body(graph, *nodes, **ret):
    body = graph.functions["body"]
    others = [entry for entry in body.nodes.values() if entry.name not in {new.name for new in nodes}]
    return graph.replace(functions=[body.replace(nodes=[*others, *nodes], ret={**body.ret, **ret})])


def base(**properties):
    return map_graph([node("v", "Neg", "r")], "v:y:0", **properties)


def test_a_list_that_a_turn_reads_keeps_the_loop():
    before = [read("before", "out"), node("more", "AddV2", "v:y:0", "before")]
    write = Node("write", "TensorListSetItem", ["out", "i", "more:z:0"], attrs=ITEM)
    check(changed_body(base(item=[3]), *before, write), is_mapped=False)


@pytest.mark.parametrize("change", [
    Node("write", "TensorListSetItem", ["out", "one:output:0", "v:y:0"], attrs=ITEM),
    read(index="one:output:0"), read(handle="out"),
], ids=["writes to one place", "reads one place", "reads what it writes"])
def test_rows_of_other_places_keep_the_loop(change):
    check(changed_body(base(item=[3]), change), is_mapped=False)


def test_a_row_that_depends_on_the_rows_before_keeps_the_loop():
    graph = changed_body(map_graph([], "r:item:0", w=np.ones(3, np.float32)), node("sum", "AddV2", "r", "w"),
                         w="sum:z:0")
    check(graph, is_mapped=False, fetches=("y", "m:4"))
    check(graph.replace(nodes=[node("z", "Neg", "m:4")]), is_mapped=False, fetches=("y", "z"))


def test_consumers_of_the_list_and_of_the_other_variables_read_their_values():
    graph = base().replace(nodes=[
        Node("length", "TensorListLength", ["m:2"]), Node("last", "TensorListGetItem", ["m:2", "zero", "item"],
                                                          attrs=ITEM),
        node("end", "AddV2", "m", "m:1", T=INT), node("u", "Neg", "m:4")])
    check(graph, is_mapped=True, fetches=("y", "length", "last", "end", "u"))


def test_a_fetched_loop_stays():
    check(base(), is_mapped=False, fetches=("y", "m:1"))


def test_a_loop_that_other_nodes_wait_for_stays():
    graph = base().replace(nodes=[node("z", "Neg", "w").replace(controls=["m"])])
    check(graph, is_mapped=False, fetches=("y", "z"))


@pytest.mark.parametrize("handle", ["list", "out"])
def test_a_list_that_is_fetched_or_of_another_size_keeps_the_loop(handle):
    if handle == "out":
        graph = base(item=[3]).replace(nodes=[const("more", 6, np.int32)])
        graph = graph.replace(nodes=[graph["out"].replace(inputs=["item", "more"])])
        check(graph, is_mapped=False)
    else:
        graph = base().replace(nodes=[Node("length", "TensorListLength", ["list"])])
        check(graph, is_mapped=True, fetches=("y", "length"))


def test_the_shape_of_a_reserved_list_is_asked_for_as_before():
    graph = base(item=[2])
    with heald.Session(graph) as session, pytest.raises(HealdError):
        session.run("y", {"x": input_of(graph)})
    assert "For" in ops_after_passes(graph)


def test_two_lists_are_read_and_written():
    types = f"{TYPES} more:variant"
    one = map_graph([read("q", "more"), node("v", "Mul", "r", "q")], "v:z:0")
    below, body = one.functions["below"], one.functions["body"]
    more = function("p", types, [], {"z": "w"}).inputs[-1]
    body = body.replace(inputs=[*body.inputs, more], outputs=[*body.outputs, more], ret={**body.ret, "more": "more"})
    below = below.replace(inputs=[*below.inputs, more])
    listed = one["list"].replace(inputs=["double", "shape"])
    graph = one.replace(functions=[below, body], nodes=[
        node("double", "AddV2", "x", "x"), Node("second", "TensorListFromTensor", listed.inputs, attrs=listed.attrs),
        loop("m", "below", "body", "zero", "n", "out", "list", "w", "second", arguments=types)])
    check(graph, is_mapped=True)


def test_nodes_keep_the_names_that_they_have_in_the_body():
    with heald.Session(base()) as session:
        *_, (_, rewritten) = session.graphs_by_pass(["y"], ("x",))
    assert rewritten["m/body/v"].op == "Neg"


def test_functions_with_attributes_keep_the_loop():
    graph = base()
    named = graph["m"].replace(attrs={"body": Func("body", {"U": FLOAT})})
    assert ops_after_passes(graph.replace(nodes=[named])) & {"While"}


def test_a_map_is_batched_for_a_device_that_lacks_kernels_for_its_nodes():
    """EXAMPLE has no Tanh: the batched node runs on the CPU, and no loop is left."""
    graph = map_graph([node("t", "Tanh", "r")], "t:y:0")
    x = input_of(graph)
    with heald.Session(graph, {"placement": {"fallback": "allow"}}, device="EXAMPLE:0") as session:
        y, trace = run_traced(session, "y", {"x": x})
    assert {event.call.code for event in trace.events}.isdisjoint({"heald.while", "heald.for"})
    np.testing.assert_allclose(y, np.tanh(x), 1e-6)
