"""A region whose text would lose types is printed in functional form."""

from __future__ import annotations

import heald
import pytest
from builders.control_flow import branch, function, loop
from builders.graphs import node, placeholder
from heald.graphs.graph.graph import Graph
from heald.runtime.values import dtypes
from heald_mlir.tfg.regions.region_forms import REGION

GRAPH = """tfg.graph #tf_type.version<producer = 1395, min_consumer = 0> {{
  %x, %ctl = Placeholder name("x") {{dtype = f32, shape = #tf_type.shape<>}} : () -> (tensor<*xf32>)
  %Greater, %ctl_0 = Greater(%x, %x) name("g") {{T = f32}} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*x{0}>)
"""
BRANCHES = """%IfRegion, %ctl_1 = IfRegion %Greater then {{
    %Neg, %ctl_2 = Neg(%x) name("n") {{T = f32}} : (tensor<*xf32>) -> (tensor<*x{1}>)
    yield(%Neg) : tensor<*x{1}>
  }} else {{
    %Abs, %ctl_2 = Abs(%x) name("a") {{T = f32}} : (tensor<*xf32>) -> (tensor<*x{1}>)
    yield(%Abs) : tensor<*x{1}>
  }} {{_mlir_name = "if", else_attrs = {{}}, else_region_attrs = #tfg.region_attrs<{{sym_name = "e"}} [] [{{}}]>,
     then_attrs = {{}}, then_region_attrs = #tfg.region_attrs<{{sym_name = "t"}} [] [{{}}]>}}
    : (tensor<*x{0}>) -> tensor<*x{1}>"""
LOOP = """%WhileRegion, %ctl_1 = WhileRegion(%Greater) {{
  ^bb0(%arg0: tensor<*x{0}>, %arg1: !tf_type.control):
    %ctl_2 = NoOp name("n")
    condition %arg0 : tensor<*x{0}> (%arg0) : tensor<*x{0}>
  }} do {{
  ^bb0(%arg0: tensor<*x{0}>, %arg1: !tf_type.control):
    yield(%arg0) : tensor<*x{0}>
  }} {{_mlir_name = "while", body_attrs = {{}},
     body_region_attrs = #tfg.region_attrs<{{sym_name = "b"}} [{{tfg.name = "v"}}] [{{}}]>, cond_attrs = {{}},
     cond_region_attrs = #tfg.region_attrs<{{sym_name = "c"}} [{{tfg.name = "v"}}] [{{}}]>}}
    : (tensor<*x{0}>) -> (tensor<*x{0}>)"""


def read(construct, *types):
    return heald.tfg.loads(f"{GRAPH}{construct}}}}}".format(*types), verify=False)


def round_trip(graph):
    return heald.tfg.loads(heald.tfg.dumps(graph), verify=False)


@pytest.mark.parametrize(("construct", "types"), [
    (BRANCHES, ("f32", "f32")), (BRANCHES, ("i1", "i32")), (LOOP, ("f32",))],
    ids=["condition of an If", "results of an If", "values of a While"])
def test_a_region_with_other_types_than_its_ops_keeps_them_in_functional_form(construct, types):
    graph = read(construct, *types)
    assert "Region" not in heald.tfg.dumps(graph)
    assert heald.graphdef.dumps(round_trip(graph)) == heald.graphdef.dumps(graph)


@pytest.mark.parametrize(("construct", "types"), [(BRANCHES, ("i1", "f32")), (LOOP, ("i1",))], ids=["If", "While"])
def test_a_region_with_the_types_of_its_ops_stays_a_region(construct, types):
    graph = read(construct, *types)
    assert "Region" in heald.tfg.dumps(graph)
    assert heald.graphdef.dumps(round_trip(graph)) == heald.graphdef.dumps(graph)


def test_a_contradiction_in_one_node_leaves_the_regions_of_the_others():
    graph = heald.tfg.functional_to_region(Graph(
        [placeholder("x", ()), node("g", "Greater", "x", "x"), branch("one", "g", "f", "f", "x"),
         branch("two", "g", "f", "f", "x")],
        [function("f", "a", [node("y", "Neg", "a")], {"r": "y:y:0"})]))
    wrong = graph.replace(nodes=[graph["one"].replace(attrs={**graph["one"].attrs, "Tcond": dtypes.float32})])
    assert heald.tfg.dumps(graph).count("= IfRegion ") == 2
    assert heald.tfg.dumps(wrong).count("= IfRegion ") == 1
    assert round_trip(wrong)["one"].attrs["Tcond"] == dtypes.float32


def test_a_function_with_two_callers_is_printed_under_its_name():
    graph = heald.tfg.functional_to_region(Graph(
        [placeholder("x", ()), loop("one", "c", "b", "x")],
        [function("c", "a", [node("y", "Greater", "a", "a")], {"r": "y:z:0"}, "r:bool_"),
         function("b", "a", [node("y", "Neg", "a")], {"r": "y:y:0"})]))
    shared = graph.replace(nodes=[graph["one"].replace(name="two")])
    assert ("WhileRegion" in heald.tfg.dumps(graph), "WhileRegion" in heald.tfg.dumps(shared)) == (True, False)
    assert heald.graphdef.dumps(round_trip(shared)) == heald.graphdef.dumps(shared)
    assert round_trip(shared)["two"].attrs[REGION] is True
