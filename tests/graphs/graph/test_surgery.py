"""Surgery: edits by names of nodes and tensors; all other nodes keep their bytes."""

from pathlib import Path

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from heald.errors import AlreadyExists, InvalidArgument, NotFound
from heald.graphs.graph.attr_value import ShapeAttr
from heald.graphs.graph.graph import Function, Graph, Node, Versions
from heald.graphs.graph.graphdef import dumps, loads
from heald.runtime.values import dtypes
from hypothesis import given
from hypothesis import strategies as st

DIGITS = Path(__file__).parents[3] / "examples" / "digits"
CHAIN = graph(
    placeholder("x", (2,)), const("k/one", [1, 2]), node("k/add", "AddV2", "x", "k/one"),
    Node("y", "Neg", ["k/add"], controls=["k/one"], attrs={"T": dtypes.float32, "_class": (b"loc:@k/add",)}),
    node("z", "Exp", "y"),
)


def names(graph: Graph) -> str:
    return " ".join(graph.nodes)


def inputs(graph: Graph, name: str) -> list[str]:
    return [*map(str, graph[name].inputs), *(f"^{c}" for c in graph[name].controls)]


def run(graph: Graph, fetch: str, **feeds: object) -> np.ndarray:
    with heald.Session(graph) as session:
        return session.run(fetch, feeds)


def test_a_renamed_node_is_renamed_in_inputs_control_edges_and_colocations():
    edited = CHAIN.rename("k/add", "sum").rename("k/one", "one")
    assert names(edited) == "x one sum y z"
    assert inputs(edited, "sum") == ["x", "one"]
    assert inputs(edited, "y") == ["sum", "^one"]
    assert edited["y"].attrs["_class"] == (b"loc:@sum",)
    assert edited["z"] is CHAIN["z"]


def test_two_nodes_exchange_their_names():
    edited = CHAIN.rename({"y": "z", "z": "y"})
    assert names(edited) == "x k/one k/add z y"
    assert inputs(edited, "y") == ["z"]


@pytest.mark.parametrize(("old", "new", "expected"), [
    ("k/", "m/n/", "x m/n/one m/n/add y z"), ("k/", "", "x one add y z"), ("", "p/", "p/x p/k/one p/k/add p/y p/z"),
])
def test_a_scope_is_renamed_as_a_whole(old, new, expected):
    assert names(CHAIN.rename(old, new)) == expected


@given(st.permutations(["x", "k/one", "k/add", "y", "z"]), st.sampled_from(["", "a/", "b.c/"]))
def test_renaming_there_and_back_gives_the_same_bytes(order, scope):
    new = dict(zip(CHAIN.nodes, (scope + name for name in order), strict=True))
    back = {after: before for before, after in new.items()}
    read = loads(dumps(CHAIN))
    assert dumps(read.rename(new).rename(back)) == dumps(CHAIN)


def test_unknown_fields_order_functions_and_versions_survive_an_edit():
    raw = dumps(Graph([*CHAIN], [Function("f")], Versions(21, 12, (13,)))) + b"\xf2\x3f\x02hi"
    changed = loads(raw).rename("z", "a")
    assert dumps(changed) == raw.replace(b"\n\x01z", b"\n\x01a")
    assert dumps(changed.rename("a", "z")) == raw


def test_unused_nodes_are_removed_and_used_ones_are_not():
    assert names(CHAIN.remove("z")) == "x k/one k/add y"
    assert names(CHAIN.remove("z", "y", "k/")) == "x"
    with pytest.raises(InvalidArgument, match="'k/add' cannot be removed: 'y' needs it"):
        CHAIN.remove("k/")


def test_a_bypassed_node_passes_its_input_and_its_control_edges_on():
    edited = CHAIN.bypass("y")
    assert names(edited) == "x k/one k/add z"
    assert inputs(edited, "z") == ["k/add", "^k/one"]
    with pytest.raises(InvalidArgument, match="has one data input, 'k/add' has 2"):
        CHAIN.bypass("k/add")


def test_one_input_is_set():
    assert inputs(CHAIN.set_input("z", 0, "x"), "z") == ["x"]
    with pytest.raises(InvalidArgument, match="input 1 of 'z' does not exist, it has 1"):
        CHAIN.set_input("z", 1, "x")


def test_all_consumers_of_a_tensor_are_rewired():
    more = CHAIN.replace(nodes=[node("w", "Abs", "y")])
    edited = more.rewire("y", "w")
    assert inputs(edited, "z") == ["w"]
    assert inputs(edited, "w") == ["y"], "the new tensor's own node goes on reading the old tensor"
    assert inputs(CHAIN.rewire("^k/one", "^x"), "y") == ["k/add", "^x"]


def test_named_consumers_alone_are_rewired():
    more = CHAIN.replace(nodes=[node("w", "Abs", "y")])
    assert inputs(more.rewire("y", "x", consumers="w"), "z") == ["y"]
    with pytest.raises(InvalidArgument, match="'z' does not consume 'x'"):
        more.rewire("x", "y", consumers="z")


@pytest.mark.parametrize(("edit", "error", "text"), [
    (lambda g: g.rename("k/ad", "a"), NotFound, "no node is called 'k/ad'"),
    (lambda g: g.rename("m/", "n/"), NotFound, "no node is in the scope 'm/'"),
    (lambda g: g.rename("x", "y"), AlreadyExists, "'y' and 'x' would both be called 'y'"),
    (lambda g: g.rename("x", "a b"), InvalidArgument, "'a b' is not a node's name"),
    (lambda g: g.rename("x"), InvalidArgument, "renamed to None, expected a name"),
    (lambda g: g.set_input("k/add", 0, "z"), InvalidArgument, "a cycle"),
    (lambda g: g.rewire("y", "^x"), InvalidArgument, "one is a tensor, the other a control edge"),
    (lambda g: g.rewire("yy", "x"), NotFound, "no node is called 'yy'"),
    (lambda g: g.set_constant("z", 1), InvalidArgument, "only constants and placeholders get a value, 'z' is Exp"),
    (lambda g: g.set_constant("k/one", "text"), InvalidArgument, "does not fit float32"),
    (lambda g: g.set_constant("k/one", 1.5, dtypes.int32), InvalidArgument, "does not fit int32"),
    (lambda g: g.set_dtype("z", dtypes.float16), InvalidArgument, "have a type of their own, 'z' is Exp"),
    (lambda g: g.expose_input("y"), InvalidArgument, "the type of 'y' is not known"),
    (lambda g: g.expose_output("y", "z", dtype=dtypes.float32), AlreadyExists, "a node is already called 'z'"),
    (lambda g: g.drop_outputs("y"), InvalidArgument, "'y' cannot be removed: 'z' needs it"),
    (lambda g: g.extract("x", "k/one"), InvalidArgument, "no output needs the input 'x'"),
    (lambda g: g.merge(g), AlreadyExists, "both graphs have a node 'x'"),
    (lambda g: g.merge(g, "b/", inputs={"y": "z"}), InvalidArgument, "an input is bound to a placeholder, 'y' is Neg"),
])
def test_an_edit_that_cannot_be_done_says_why(edit, error, text):
    with pytest.raises(error, match=text):
        edit(CHAIN)


def test_a_misspelt_name_gets_a_hint():
    with pytest.raises(NotFound) as caught:
        CHAIN.remove("k/ad")
    assert "k/add" in (caught.value.hint or "")


def test_a_constant_gets_another_value_and_type():
    edited = CHAIN.set_constant("k/one", [3, 4])
    assert edited["k/one"].attrs["value"].array().tolist() == [3, 4]
    assert edited["k/one"].attrs["dtype"] is dtypes.float32
    integer = edited.set_dtype("k/one", dtypes.int64)
    assert integer["k/one"].attrs["dtype"] is integer["k/one"].attrs["value"].dtype is dtypes.int64
    assert run(CHAIN.set_constant("k/one", [3, 4]), "k/add", x=[1, 1]).tolist() == [4, 5]


def test_a_placeholder_with_a_value_is_a_constant():
    assert run(CHAIN.set_constant("x", [5, 6]), "k/add").tolist() == [6, 8]


def test_a_tensor_becomes_an_input():
    own_placeholder = CHAIN.expose_input("y", dtype=dtypes.float32, shape=[2])
    assert (own_placeholder["y"].op, own_placeholder["y"].inputs, own_placeholder["y"].controls) == ("Placeholder", (),
                                                                                                     ())
    named = CHAIN.expose_input("y", "fed", dtype=dtypes.float32)
    assert inputs(named, "z") == ["fed"]
    assert named["y"] is CHAIN["y"]


def test_an_output_is_exposed_and_a_head_is_cut():
    edited = CHAIN.expose_output("k/add", "features", dtype=dtypes.float32).keep_outputs("features")
    assert names(edited) == "x k/one k/add features"
    assert run(edited, "features", x=[1, 1]).tolist() == [2, 3]


def test_a_dropped_output_takes_the_nodes_with_it_that_only_it_needs():
    more = CHAIN.replace(nodes=[node("w", "Abs", "k/add")])
    assert names(more.drop_outputs("z")) == "x k/one k/add w"
    assert names(more.drop_outputs("w")) == "x k/one k/add y z"


def test_extract_and_merge_give_the_same_results():
    full_model = heald.graphdef.load(DIGITS / "frozen.pb")
    image = np.load(DIGITS / "test.npz")["image"][:4]
    expected = run(full_model, "probabilities", image=image)
    cut = next(n for n in reversed([*full_model]) if n.op == "Relu6").name
    body = full_model.extract("image", cut)
    head = full_model.extract(cut, "probabilities", dtypes={cut: dtypes.float32})
    assert len(body) < len(full_model) > len(head)
    joined = body.merge(head, "head/", inputs={cut: cut})
    assert np.array_equal(run(joined, "head/probabilities", image=image), expected)


def test_a_merged_graph_brings_its_functions_once():
    one, other = Graph([node("a", "f")], [Function("f")]), Graph([node("a", "g")], [Function("f"), Function("g")])
    assert [*one.merge(other, "b/").functions] == ["f", "g"]
    different = Graph([], [Function("f", stateful=True)])
    with pytest.raises(AlreadyExists, match="a function 'f', with different bodies"):
        one.merge(different)


def test_a_subgraph_is_replaced_in_its_place():
    by = graph(placeholder("a"), node("twice", "AddV2", "a", "a"), node("y", "Sqrt", "twice"))
    edited = CHAIN.replace_subgraph(["k/", "y"], by, inputs={"a": "x"})
    assert names(edited) == "x twice y z"
    assert run(edited, "z", x=[2, 8]) == pytest.approx(np.exp([2, 4]))


def test_replaced_outputs_may_have_other_names():
    by = graph(placeholder("a"), node("b", "Abs", "a"))
    edited = CHAIN.replace_subgraph("y", by, inputs={"a": "k/add"}, outputs={"y": "b"}, prefix="new/")
    assert inputs(edited, "z") == ["new/b"]
    with pytest.raises(InvalidArgument, match="input 'y' does not exist"):
        CHAIN.replace_subgraph("y", by, inputs={"a": "k/add"})


def test_inputs_without_consumers_or_with_a_default_are_dropped():
    attrs = {"dtype": dtypes.float32, "shape": ShapeAttr((2,))}
    before = graph(placeholder("x", (2,)), placeholder("idle", (2,)), const("one", [1, 1]),
                   Node("d", "PlaceholderWithDefault", ["one"], attrs=attrs),
                   node("y", "AddV2", "x", "d"))
    edited = before.drop_inputs("idle", "d")
    assert [*edited.nodes] == ["x", "one", "y"]
    assert [str(i) for i in edited["y"].inputs] == ["x", "one"]
    with pytest.raises(InvalidArgument, match="the input 'x' cannot be dropped: 'y' needs it"):
        before.drop_inputs("x")
    with pytest.raises(InvalidArgument, match="an input is a placeholder, 'y' is AddV2"):
        before.drop_inputs("y")


def test_the_graph_of_a_saved_model_is_frozen_and_can_be_edited():
    model = heald.load(DIGITS / "saved_model")
    edited = model.graph.keep_outputs(next(iter(model.fetched.values())))
    assert not {n.op for n in edited if "Var" in n.op}
    assert not edited.functions
    image = np.zeros((1, 8, 8, 1), np.float32)
    (name,) = model.fed.values()
    np.testing.assert_allclose(run(edited, next(iter(model.fetched.values())), **{name.removesuffix(":0"): image}),
                               next(iter(model(image).values())) if isinstance(model(image), dict) else model(image),
                               rtol=1e-5)
