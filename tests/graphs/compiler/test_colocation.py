"""Nodes that are to be on one device: `_class` with `loc:@other`, and the users of a resource."""

from __future__ import annotations

import warnings

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from harness.device_pairs import on_pairs, session_of
from heald.errors import HealdWarning, InvalidArgument, Unimplemented
from heald.graphs.compiler.colocation import colocation_partners, with_successors_as_partners
from heald.graphs.graph.attr_value import ShapeAttr
from heald.graphs.graph.graph import Node
from heald.graphs.session.requested_passes import run_requested_passes
from heald.runtime.service.runtime import runtime
from heald.runtime.values import dtypes

X = np.float32([1, -2, 4])
TWO = {"plugin": {"example_device": {"devices": 2}}}


def colocated_node(name: str, op: str, *inputs: str, to: str, **attributes):
    return node(name, op, *inputs, _class=[b"loc:@" + to.encode()], **attributes)


def make_session(*nodes, fallback: str = "allow", **config) -> heald.Session:
    return heald.Session(graph(placeholder("x", (3,)), *nodes),
                         TWO | {"placement": {"fallback": fallback} | config.pop("placement", {})}, **config)


def devices(session: heald.Session) -> dict[str, str]:
    return {r["node"]: r["assigned"] for r in session.placement().table() if r["assigned"] != "host"}


def row(session: heald.Session, name: str) -> dict[str, str]:
    return next(r for r in session.placement().table() if r["node"] == name)


@pytest.mark.parametrize("fallback", ["allow", "warn", "error"])
def test_a_node_goes_where_the_one_goes_that_it_names(fallback):
    session = make_session(node("a", "Neg", "x", device="EXAMPLE:1"), colocated_node("b", "Relu", "a", to="a"),
                           fallback=fallback)
    assert devices(session) == {"a": "EXAMPLE:1", "b": "EXAMPLE:1"}
    assert (row(session, "a")["reason"], row(session, "b")["reason"]) == ("requested", "colocated with 'a'")
    assert session.run("b", {"x": X}).tolist() == [0, 2, 0]


def test_a_group_is_all_that_hangs_together_and_asks_as_one():
    """b asks for the type, d for the device; a, which names no partner, follows."""
    session = make_session(node("a", "Neg", "x"), colocated_node("b", "Neg", "a", to="a", device="EXAMPLE"),
                           colocated_node("c", "Neg", "b", to="b"),
                           colocated_node("d", "Neg", "c", to="c", device="/device:EXAMPLE:1"),
                           node("alone", "Neg", "d"), fallback="error")
    assert devices(session) == dict.fromkeys("abcd", "EXAMPLE:1") | {"alone": "CPU:0"}
    assert session.run("d", {"x": X}).tolist() == X.tolist()


@pytest.mark.parametrize("requests", [("EXAMPLE", "EXAMPLE:1"), ("EXAMPLE:1", "EXAMPLE"), ("EXAMPLE:1", "EXAMPLE:1")])
def test_a_request_for_a_type_agrees_with_one_for_a_device_of_it_in_either_order(requests):
    first, second = requests
    session = make_session(node("a", "Neg", "x", device=first), colocated_node("b", "Neg", "a", to="a", device=second),
                           fallback="error")
    assert devices(session) == {"a": "EXAMPLE:1", "b": "EXAMPLE:1"}


def test_nodes_that_name_a_constant_are_together_and_have_its_request():
    session = make_session(const("w", [1, 2, 3], device="EXAMPLE:1"), colocated_node("a", "Identity", "w", to="w"),
                           colocated_node("b", "AddV2", "a", "x", to="w"))
    assert devices(session) == {"a": "EXAMPLE:1", "b": "EXAMPLE:1"}
    assert row(session, "b")["reason"] == "colocated with 'w'"


def test_a_group_goes_to_a_device_that_has_kernels_for_all_of_it():
    session = make_session(node("a", "Neg", "x"), colocated_node("b", "Rsqrt", "a", to="a"),
                           placement={"order": ["EXAMPLE", "CPU"]})
    assert devices(session) == {"a": "CPU:0", "b": "CPU:0"}
    assert row(session, "a")["refused"] == "EXAMPLE: colocated with 'b': no kernel for Rsqrt"
    assert row(session, "b")["refused"] == "EXAMPLE: no kernel for Rsqrt"


def test_a_node_that_declines_at_bind_takes_its_group_along():
    session = make_session(const("one", 1), node("a", "AddV2", "x", "one", device="EXAMPLE:0"),
                           colocated_node("b", "Neg", "a", to="a"))
    assert devices(session) == {"a": "EXAMPLE:0", "b": "EXAMPLE:0"}
    assert session.run("b", {"x": X}).tolist() == [-2, 1, -5]
    assert devices(session) == {"a": "CPU:0", "b": "CPU:0"}
    assert "colocated with 'a': shapes differ" in row(session, "b")["refused"]


@on_pairs
def test_a_group_is_together_on_any_two_devices_or_its_parts_say_why_not(first, second):
    def session_with_requests(fallback, *requests):
        nodes = [node("in", "Neg", "x", device=requests[0]), colocated_node("a", "Relu", "in", to="in"),
                 colocated_node("b", "Neg", "a", to="in", device=requests[1])]
        return session_of(placeholder("x", (3,)), *nodes, placement={"fallback": fallback})

    together = session_with_requests("error", second, "")
    assert devices(together) == dict.fromkeys(("in", "a", "b"), second)
    assert together.run("b", {"x": X}).tolist() == [0, -2, 0]
    with pytest.raises(InvalidArgument, match=f"'in' asks for {second} and 'b' for {first}, but they are colocated"):
        session_with_requests("error", second, first).run("b", {"x": X})
    soft = session_with_requests("allow", second, first)
    assert devices(soft) == dict.fromkeys(("in", "a", "b"), second)
    assert row(soft, "b")["refused"] == f"{first}: colocated with 'in', which asks for {second}"
    assert soft.run("b", {"x": X}).tolist() == [0, -2, 0]


GELU = colocated_node("g", "Example>Gelu", "r", to="r")  # only EXAMPLE has it; only the CPU has Rsqrt
BOTH = {"order": ("CPU", "EXAMPLE")}  # without a request EXAMPLE serves no node


def test_a_group_that_no_device_serves_is_an_error_that_names_both():
    session = make_session(node("r", "Rsqrt", "x"), GELU, node("n", "Neg", "x"), fallback="error", placement=BOTH)
    for name in "rg":
        with pytest.raises(InvalidArgument, match="no device serves both '.' and '.', which are colocated: ") as caught:
            session.run(name, {"x": X})
        assert "'r'" in caught.value.message
        assert "'g'" in caught.value.message
        assert caught.value.node == "r"
    assert session.run("n", {"x": X}).tolist() == (-X).tolist()


def test_a_group_that_no_device_serves_is_parted_visibly_with_fallback_allow():
    session = make_session(node("r", "Rsqrt", "x"), GELU, placement=BOTH)
    assert devices(session) == {"r": "CPU:0", "g": "EXAMPLE:0"}
    assert row(session, "g")["refused"].startswith("colocation with 'r': no device serves both 'r' and 'g'; CPU:")
    assert np.isfinite(session.run("g", {"x": [4, 4, 4]})).all()
    with pytest.warns(HealdWarning, match="colocated nodes are on several devices: no device serves both 'r' and 'g': "
                      ".*no kernel for Rsqrt.*; nodes r, g$") as caught:
        make_session(node("r", "Rsqrt", "x"), GELU, fallback="warn", placement=BOTH)
    assert len(caught) == 1


def make_conflicting_session(fallback: str) -> heald.Session:
    return make_session(node("a", "Neg", "x", device="EXAMPLE:0"),
                        colocated_node("b", "Neg", "a", to="a", device="EXAMPLE:1"),
                        fallback=fallback)


def test_requests_that_differ_are_an_error_that_names_both():
    session = make_conflicting_session("error")
    for name in "ab":
        with pytest.raises(InvalidArgument, match="'a' asks for EXAMPLE:0 and 'b' for EXAMPLE:1, but they are coloc"):
            session.run(name, {"x": X})


def test_the_first_of_two_requests_counts_visibly_with_fallback_allow():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        session = make_conflicting_session("allow")
    assert devices(session) == {"a": "EXAMPLE:0", "b": "EXAMPLE:0"}
    assert row(session, "b")["refused"] == "EXAMPLE:1: colocated with 'a', which asks for EXAMPLE:0"
    with pytest.warns(HealdWarning, match="nothing that is colocated with 'a' runs on EXAMPLE:1: it asks for EXAMPLE:0;"
                      " nodes b$"):
        make_conflicting_session("warn")


def test_a_request_that_cannot_be_met_is_the_groups():
    nodes = [node("a", "Neg", "x", device="EXAMPLE:0"), colocated_node("b", "Rsqrt", "a", to="a")]
    with pytest.raises(InvalidArgument, match=r"colocated with 'a', which asks for EXAMPLE:0, which cannot serve it: "
                       r"colocated with 'b': no kernel for Rsqrt"):
        raise make_session(*nodes, fallback="error").placement()["b"].error
    with pytest.warns(HealdWarning, match="Neg, Rsqrt do not run on EXAMPLE:0: .*; nodes a, b$") as caught:
        assert devices(make_session(*nodes, fallback="warn")) == {"a": "CPU:0", "b": "CPU:0"}
    assert len(caught) == 1


def test_a_node_without_any_kernel_is_no_others_error_unless_both_must_be_together():
    nodes = [node("a", "Neg", "x"), colocated_node("u", "Unbatch", "x", "i", "i", to="a", timeout_micros=1),
             const("i", 1, np.int64)]
    session = make_session(*nodes)
    assert session.run("a", {"x": X}).tolist() == (-X).tolist()
    with pytest.raises(Unimplemented, match="no kernel for op Unbatch"):
        session.run("u", {"x": X})
    with pytest.raises(InvalidArgument, match="no device serves both 'u' and 'a'"):
        make_session(*nodes, fallback="error").run("a", {"x": X})


def test_a_partner_that_is_not_in_the_graph_is_an_error_of_the_step_that_needs_the_node():
    session = make_session(node("a", "Neg", "x"), colocated_node("b", "Neg", "a", to="gone"))
    assert session.run("a", {"x": X}).tolist() == (-X).tolist()
    with pytest.raises(InvalidArgument, match="the node is to be colocated with 'gone', which is not in the graph; "
                       "remove 'loc:@gone'|node 'b'"):
        session.run("b", {"x": X})


@pytest.mark.parametrize("entries", [[b"other"], [], [b"loc:@b"], b"loc:@gone", 7])
def test_a_node_is_not_colocated_by_other_entries_or_with_itself(entries):
    session = make_session(node("a", "Neg", "x", device="EXAMPLE:0"), node("b", "Neg", "x", _class=entries))
    assert devices(session) == {"a": "EXAMPLE:0", "b": "CPU:0"}


def test_a_node_that_a_step_does_not_need_still_decides_for_its_partners(tmp_path):
    """As in TensorFlow, which places the whole graph; also where a pass sees only what the step needs."""
    path = tmp_path / "passing.py"
    path.write_text("from heald.api import hookimpl\nHEALD_API = (1, 0)\n@hookimpl\ndef heald_passes(registry):\n"
                    "    registry.add('nothing', lambda graph, _: graph, stage='graph')\n")
    nodes = [node("a", "Neg", "x", device="EXAMPLE:1"), colocated_node("b", "Neg", "x", to="a")]
    for config in (TWO, TWO | {"plugins": {"load": [str(path)]}}):
        session = heald.Session(graph(placeholder("x", (3,)), *nodes), config)
        assert session.prepare("b", ["x"]).program.requires == ("EXAMPLE:1",)


@pytest.mark.parametrize("ask", ["", "EXAMPLE:1"])
@pytest.mark.parametrize("rewritten", [[], [node("m", "Merge", "b", N=1)],
                                       [node("s", "Switch", "b", "p"), node("m", "Merge", "s", "s:1", N=2)]])
def test_a_partner_that_a_step_does_not_need_is_no_error_where_its_graph_is_rewritten(rewritten, ask):
    """Steps with control flow have a graph of their own, of the needed nodes; `a` is the partner of two of them."""
    last = rewritten[-1].name if rewritten else "b"
    session = make_session(node("a", "Neg", "x", device=ask), colocated_node("b", "Neg", "c", to="a"),
                           colocated_node("c", "Neg", "x", to="a"), const("p", True, bool), *rewritten)
    assert session.run(last, {"x": X}).tolist() == X.tolist()
    placed = {row["assigned"] for row in session.placement().table() if row["node"] in ("b", "c")}
    assert placed == {ask or "CPU:0"}


def test_groups_of_many_take_no_time_and_no_stack():
    count = 20_000
    nodes = [colocated_node(f"n{i}", "Neg", f"n{i - 1}" if i else "x", to=f"n{min(i + 1, count - 1)}")
             for i in range(count)]
    session = make_session(*nodes, node("last", "Neg", "x", device="EXAMPLE:1", _class=[b"loc:@n7"]))
    assert set(devices(session).values()) == {"EXAMPLE:1"}


def variable(*users: Node) -> heald.Graph:
    attrs = {"dtype": dtypes.float32, "shape": ShapeAttr((3,)), "shared_name": b"v", "container": b""}
    return graph(placeholder("x", (3,)), Node("v", "VarHandleOp", attrs=attrs), *users)


def user(name: str, op: str, *inputs: str, after: str = "", device: str = "") -> Node:
    return Node(name, op, ["v", *inputs], controls=[after] if after else [], device=device,
                attrs={"dtype": dtypes.float32} if op != "VarIsInitializedOp" else {})


def test_a_variable_and_its_users_are_on_one_device():
    session = heald.Session(variable(user("set", "AssignVariableOp", "x"),
                                     user("there", "VarIsInitializedOp", after="set", device="SIM:0")))
    assert {name: device for name, device in devices(session).items() if name != "x"} == dict.fromkeys(
        ("v", "set", "there"), "SIM:0")
    assert row(session, "set")["reason"] == "colocated with 'there'"


def test_a_variable_goes_where_all_its_users_have_kernels():
    session = heald.Session(variable(user("set", "AssignVariableOp", "x"), user("get", "ReadVariableOp", after="set")),
                            {"placement": {"order": ["SIM", "CPU"]}})
    assert devices(session)["v"] == devices(session)["set"] == devices(session)["get"] == "CPU:0"
    assert row(session, "v")["refused"] == "SIM: colocated with 'get': no kernel for ReadVariableOp"
    assert session.run("get", {"x": X}).tolist() == X.tolist()


def test_a_user_without_any_kernel_is_an_error_of_its_step_alone():
    """Not a warning either: no step needs it."""
    odd = Node("odd", "ResourceAccumulatorApplyGradient", ["v", "step", "x"], attrs={"dtype": dtypes.float32})
    nodes = [user("set", "AssignVariableOp", "x"), user("get", "ReadVariableOp", after="set"), odd]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        session = heald.Session(variable(*nodes, const("step", 1, np.int64)))
        assert session.run("get", {"x": X}).tolist() == X.tolist()


def removing(*names):
    """A pass that removes nodes with one input: their consumers read this input."""
    def remove(graph, _context):
        for name in names:
            source = graph[name].inputs[0]
            graph = graph.replace(without=[name], nodes=[
                other.replace(inputs=[source if read.node == name else read for read in other.inputs])
                for other in graph if any(read.node == name for read in other.inputs)])
        return graph
    return remove


def fused(graph, _context):
    """A pass that computes the nodes `a` and `b` by one node, `b`."""
    return graph.replace(without=["a"], nodes=[graph["b"].replace(op="Identity", inputs=graph["a"].inputs)])


@pytest.mark.parametrize(("nodes", "function", "partners", "device"), [
    ([node("a", "Identity", "x"), node("b", "Neg", "a"), colocated_node("z", "Neg", "b", to="a")], removing("a"),
     ("x",), ""),
    ([node("a", "Identity", "x", device="EXAMPLE:1"), node("b", "Neg", "a"), colocated_node("z", "Neg", "b", to="a")],
     removing("a"), ("x",), "EXAMPLE:1"),
    ([node("k", "Neg", "x"), colocated_node("a", "Identity", "x", to="k"), node("b", "Neg", "a"),
      colocated_node("z", "Neg", "b", to="a")], removing("a"), ("x", "k"), ""),
    ([node("a", "Identity", "x"), node("b", "Identity", "a"), node("c", "Neg", "b"),
      colocated_node("z", "Neg", "c", to="b")], removing("b", "a"), ("x",), ""),
    ([node("a", "Neg", "x"), node("b", "Neg", "a"), colocated_node("z", "Neg", "b", to="a")], fused, ("b",), ""),
    ([node("a", "Neg", "x"), colocated_node("b", "Neg", "x", to="a"), colocated_node("z", "Neg", "b", to="a")],
     lambda graph, _: graph.replace(without=["a"]), ("b",), ""),
])
def test_a_node_that_took_the_place_of_a_partner_is_the_partner(nodes, function, partners, device):
    before = graph(placeholder("x", (3,)), *nodes)
    after = with_successors_as_partners(before, function(before, None))
    assert set(colocation_partners(after["z"])) == set(partners)
    assert after["z"].device == device
    assert heald.Session(after, {"placement": {"fallback": "allow"}}).run("z", {"x": X}).shape == (3,)


def test_a_written_graph_names_the_node_that_took_the_place_of_a_partner():
    nodes = [placeholder("x", (3,)), node("a", "Identity", "x"), node("b", "Neg", "a"),
             colocated_node("z", "Neg", "b", to="a")]
    *_, (_, after) = run_requested_passes(graph(*nodes), ["identities"], ["z"], runtime())
    assert colocation_partners(after["z"]) == ["x"]
