"""Passes about regions: TensorFlow's texts after its passes, equal results, and no second change."""

from __future__ import annotations

from functools import cache

import heald
import numpy as np
import pytest
from builders.control_flow import branch, function, loop
from builders.graphs import const, node, placeholder
from builders.random_regions import random_region_text
from harness.recorded_tfg import recorded_files
from heald.graphs.graph.graph import Graph
from heald.graphs.session.requested_passes import run_requested_passes
from heald.runtime.service.runtime import runtime
from heald.runtime.values import dtypes
from heald_mlir.tfg.regions.region_forms import REGION, captured_values
from heald_mlir.tfg.regions.region_passes import functional_to_region, region_to_functional
from hypothesis import given, settings
from hypothesis import strategies as st

FILES = recorded_files("regions")
TFG_PASSES = {"control-flow-sink": "cf-sink", "eliminate-passthrough-arguments": "eliminate-passthrough",
              "common-subexpressions": "cse", "drop-output-shapes": "drop-output-shapes"}
NAMES = sorted(TFG_PASSES)
ALL_NAMES = ["canonicalize", *NAMES]
HEAD = "tfg.graph #tf_type.version<producer = 1395, min_consumer = 0> {\n}\n"


def after(graph, *names, kept_names=()):
    *_, (_, rewritten) = run_requested_passes(graph, names, kept_names, runtime())
    return rewritten


@cache
def recorded_graph(seed):
    return heald.tfg.loads(FILES[f"{seed}.tfg"].decode(), verify=False)


def test_texts_with_regions_are_printed_as_tensorflow_prints_them():
    for seed in range(60):
        assert heald.tfg.dumps(recorded_graph(seed), canonical=True) == FILES[f"{seed}.tfg"].decode()


@pytest.mark.parametrize("name", NAMES)
def test_the_text_after_a_pass_is_that_of_tensorflow(name):
    changed = 0
    for seed in range(60):
        expected = FILES.get(f"{seed}.{TFG_PASSES[name]}.tfg", FILES[f"{seed}.tfg"]).decode()
        rewritten = after(recorded_graph(seed), name)
        assert heald.tfg.dumps(rewritten, canonical=True) == expected, seed
        changed += rewritten is not recorded_graph(seed)
    assert changed >= 10


@pytest.mark.parametrize("name", ALL_NAMES)
@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**31))
def test_results_stay_and_a_second_run_changes_nothing(name, seed):
    before = heald.tfg.loads(random_region_text(seed))
    rewritten = after(before, name, kept_names=[*before.nodes])
    assert after(rewritten, name, kept_names=[*before.nodes]) is rewritten
    assert heald.graphdef.dumps(heald.tfg.loads(heald.tfg.dumps(rewritten))) is not None
    with heald.Session(before) as one, heald.Session(rewritten) as other:
        for x, b, i in ((0.3, True, 0), (-1.7, False, 2)):
            feeds = {"x": np.float32(x), "b": b, "i": np.int32(i)}
            results = [session.run(["y:0", "y:1"], feeds) for session in (one, other)]
            np.testing.assert_array_equal(*results)


def conditional(*nodes, then="y", otherwise="z"):
    """A graph whose node `if` yields `then` or `otherwise`, behind some nodes."""
    passed = function("passed", "y z", [], {"r": "y"}), function("other", "y z", [], {"r": "z"})
    before = Graph([placeholder("x", ()), placeholder("p", (), dtypes.bool_), *nodes,
                    branch("if", "p", "passed", "other", then, otherwise)], passed)
    return functional_to_region(before)


def test_nodes_of_the_graph_sink_but_for_kept_ones_and_placeholders():
    before = conditional(node("y", "Neg", "x"), node("z", "Abs", "x"))
    rewritten = after(before, "control-flow-sink", kept_names=["if"])
    assert [*rewritten.nodes] == ["x", "p", "if"]
    assert [[*body.nodes] for name, body in rewritten.functions.items() if "region" in name] == [
        ["y_tfg_cf_sunk_if"], ["z_tfg_cf_sunk_if"]]
    assert [*after(before, "control-flow-sink", kept_names=["if", "y"]).nodes] == ["x", "p", "y", "if"]
    placeholders = conditional(then="x", otherwise="x")
    assert after(placeholders, "control-flow-sink") is placeholders


def test_nodes_with_effects_and_nodes_that_others_wait_for_do_not_sink():
    shape = const("shape", [1], np.int32)
    random = node("y", "RandomUniform", "shape", T=dtypes.int32, dtype=dtypes.float32)
    before = conditional(shape, random, node("z", "Abs", "x"), node("w", "Neg", "x").replace(controls=["z"]))
    assert after(before, "control-flow-sink") is before


def test_a_node_sinks_together_with_its_partner_of_colocation_or_not_at_all():
    before = conditional(node("y", "Neg", "x", _class=(b"loc:@z",)), node("z", "Abs", "x"))
    assert after(before, "control-flow-sink") is before


def counting_loop(*, body_nodes=(), kept="v"):
    """A graph with a loop over a counter and a value that its body returns unchanged."""
    cond = function("cond", "n v", [const("limit", 3.0), node("less", "Less", "n", "limit:output:0")],
                    {"r": "less:z:0"}, "r:bool_")
    body = function("body", "n v", [const("one", 1.0), node("next", "AddV2", "n", "one:output:0"), *body_nodes],
                    {"m": "next:z:0", "w": "v"})
    nodes = [placeholder("x", ()), const("zero", 0.0), loop("loop", "cond", "body", "zero", "x"),
             node("count", "Neg", "loop"), node(kept, "Neg", "loop:1")]
    return functional_to_region(Graph(nodes, [cond, body]))


def test_consumers_of_a_value_that_a_loop_passes_through_read_the_value():
    rewritten = after(counting_loop(), "eliminate-passthrough-arguments", kept_names=["count", "v"])
    assert [str(source) for source in rewritten["v"].inputs] == ["x"]
    assert captured_values(rewritten["loop"]) == 0
    assert [str(source) for source in rewritten["loop"].inputs] == ["zero"]


def test_a_kept_loop_and_a_loop_with_effects_carry_what_is_read():
    before = counting_loop()
    assert after(before, "eliminate-passthrough-arguments", kept_names=["loop"]) is before
    shape = const("shape", [1], np.int32)
    random = node("random", "RandomUniform", "shape:output:0", T=dtypes.int32, dtype=dtypes.float32)
    with_effects = counting_loop(body_nodes=[shape, random])
    assert after(with_effects, "eliminate-passthrough-arguments") is with_effects


def test_equal_nodes_of_a_branch_become_the_node_in_front_of_it_but_not_those_of_other_branches():
    text = f"""{HEAD}tfg.func @f(%x: tensor<*xf32> {{tfg.name = "x"}}, %p: tensor<*xi1> {{tfg.name = "p"}})
 -> (tensor<*xf32> {{tfg.name = "r"}}) {{
  %a, %ctl = Neg(%x) name("a") {{T = f32}} : (tensor<*xf32>) -> (tensor<*xf32>)
  %y, %ctl_0 = IfRegion %p then {{
    %b, %ctl_1 = Neg(%x) name("b") {{T = f32}} : (tensor<*xf32>) -> (tensor<*xf32>)
    %c, %ctl_2 = Abs(%b) name("c") {{T = f32}} : (tensor<*xf32>) -> (tensor<*xf32>)
    yield(%c) : tensor<*xf32>
  }} else {{
    %d, %ctl_1 = Abs(%a) name("d") {{T = f32}} : (tensor<*xf32>) -> (tensor<*xf32>)
    yield(%d) : tensor<*xf32>
  }} {{_mlir_name = "y"}} : (tensor<*xi1>) -> tensor<*xf32>
  return(%y) : tensor<*xf32>
}}"""
    rewritten = after(heald.tfg.loads(text), "common-subexpressions")
    names = sorted(name for body in rewritten.functions.values() for name in body.nodes)
    assert names == ["a", "c", "d", "y"]


def test_unused_stateless_control_flow_goes_and_its_functions_with_it():
    text = f"""{HEAD}tfg.func @f(%x: tensor<*xf32> {{tfg.name = "x"}}, %p: tensor<*xi1> {{tfg.name = "p"}})
 -> (tensor<*xf32> {{tfg.name = "r"}}) {{
  %y, %ctl_0 = StatelessIfRegion %p then {{
    yield(%x) : tensor<*xf32>
  }} else {{
    yield(%x) : tensor<*xf32>
  }} {{_mlir_name = "y"}} : (tensor<*xi1>) -> tensor<*xf32>
  %z, %ctl_1 = StatelessIfRegion %p then {{
    yield(%y) : tensor<*xf32>
  }} else {{
    yield(%x) : tensor<*xf32>
  }} {{_mlir_name = "z"}} : (tensor<*xi1>) -> tensor<*xf32>
  return(%x) : tensor<*xf32>
}}"""
    rewritten = after(heald.tfg.loads(text), "common-subexpressions")
    assert [*rewritten.functions] == ["f"]
    assert not rewritten.functions["f"].nodes


LOOP = f"""{HEAD}tfg.func @f(%x: tensor<*xf32> {{tfg.name = "x"}}) -> (tensor<*xf32> {{tfg.name = "r"}}) {{
  %w, %ctl = WhileRegion(%x) {{
  ^bb0(%arg0: tensor<*xf32>, %arg1: !tf_type.control):
    %l, %ctl_0 = Less(%arg0, %x) name("l") {{T = f32}} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xi1>)
    condition %l : tensor<*xi1> (%arg0) : tensor<*xf32>
  }} do {{
  ^bb0(%arg0: tensor<*xf32>, %arg1: !tf_type.control):
    %m, %ctl_0 = AddV2(%arg0, %x) name("m") {{T = f32}} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>)
    yield(%m) : tensor<*xf32>
  }} {{_mlir_name = "w", parallel_iterations = 10 : i64}} : (tensor<*xf32>) -> (tensor<*xf32>)
  return(%w) : tensor<*xf32>
}}"""


def test_a_control_result_is_that_of_the_node_that_stays():
    text = f"""{HEAD}tfg.func @f(%x: tensor<*xf32> {{tfg.name = "x"}}) -> (tensor<*xf32> {{tfg.name = "r"}}) {{
  %a, %ctl = Neg(%x) name("a") {{T = f32}} : (tensor<*xf32>) -> (tensor<*xf32>)
  %b, %ctl_0 = Neg(%x) name("b") {{T = f32}} : (tensor<*xf32>) -> (tensor<*xf32>)
  return(%a) [%ctl_0 {{tfg.name = "done"}}] : tensor<*xf32>
}}"""
    function = after(heald.tfg.loads(text), "common-subexpressions").functions["f"]
    assert ([*function.nodes], dict(function.control_ret)) == (["a"], {"done": "a"})


def test_a_captured_value_of_a_loop_is_no_argument_of_it_and_keeps_its_identity():
    graph = heald.tfg.loads(LOOP)
    text = heald.tfg.dumps(graph)
    assert "WhileRegion(%x) {" in text
    assert "Less(%arg0, %x)" in text
    assert "AddV2(%arg0, %x)" in text
    assert heald.graphdef.dumps(heald.tfg.loads(text)) == heald.graphdef.dumps(graph)


@pytest.mark.parametrize("passed", ["%y", "%x"])
def test_a_value_that_only_a_condition_passes_on_is_not_captured(passed):
    y = '  %y, %ctl_y = Neg(%x) name("y") {T = f32} : (tensor<*xf32>) -> (tensor<*xf32>)\n'
    text = LOOP.replace("  %w, ", f"{y}  %w, ").replace(": tensor<*xi1> (%arg0)", f": tensor<*xi1> ({passed})")
    assert f"({passed}) : tensor" in text
    graph = heald.tfg.loads(text)
    loop = graph.functions["f"].nodes["w"]
    assert len(loop.inputs) == len(heald.tfg.loads(LOOP).functions["f"].nodes["w"].inputs)
    assert heald.graphdef.dumps(heald.tfg.loads(heald.tfg.dumps(graph))) == heald.graphdef.dumps(graph)


def test_arguments_of_regions_have_other_names_than_those_of_functions_around_them():
    graph = heald.tfg.loads(LOOP.replace('tfg.name = "x"', 'tfg.name = "arg0"'))
    text = heald.tfg.dumps(graph)
    assert "Less(%arg0_0, %arg0)" in text
    assert heald.graphdef.dumps(heald.tfg.loads(text)) == heald.graphdef.dumps(graph)


def test_functions_of_regions_in_another_order_than_the_reader_makes_them_are_listed():
    read = heald.tfg.loads(LOOP)
    graph = read.replace(functions=[read.functions["f"]], without_functions=["f"])
    text = heald.tfg.dumps(graph)
    assert "_heald.functions" in text
    assert "_heald.functions" not in heald.tfg.dumps(read)
    assert heald.graphdef.dumps(heald.tfg.loads(text)) == heald.graphdef.dumps(graph)


def test_a_loop_whose_mark_is_wrong_shows_all_its_values():
    graph = heald.tfg.loads(LOOP)
    body = graph.functions["f"]
    marked = body.replace(nodes=[body.nodes["w"].replace(attrs={REGION: 2})])
    text = heald.tfg.dumps(graph.replace(functions=[marked]))
    assert "WhileRegion:2" in text
    assert captured_values(body.nodes["w"].replace(attrs={REGION: 7})) == 0


@pytest.mark.parametrize("seed", range(20))
def test_regions_become_the_functions_again_whose_copies_they_are(seed):
    text = random_region_text(seed)
    before = region_to_functional(heald.tfg.loads(text))
    raw = heald.graphdef.dumps(before)
    assert heald.graphdef.dumps(region_to_functional(functional_to_region(before))) == raw


def test_a_region_that_a_pass_has_changed_stays_a_function_of_its_own():
    before = after(conditional(node("y", "Neg", "x"), node("z", "Abs", "x")), "control-flow-sink", kept_names=["if"])
    functional = region_to_functional(before)
    assert {"passed", "other"} < functional.functions.keys()
    assert functional["if"].attrs["then_branch"].name not in ("passed", "other")


def test_functions_lose_the_nodes_that_no_result_and_no_effect_needs():
    f = function("f", "x", [
        node("idle", "Neg", "x"), node("chain", "Neg", "idle:y:0"), node("random", "RandomUniform", "x"),
        node("effect", "Neg", "x"), node("before", "Neg", "x"), node("partner", "Neg", "x"),
        node("n", "Neg", "x", _class=(b"loc:@partner",)).replace(controls=["before"])], {"y": "n:y:0"},
        effects=["effect"])
    before = Graph([placeholder("x", ()), node("idle", "Neg", "x")], [f, function("g", "x", [], {"r": "x"})])
    rewritten = after(before, "canonicalize")
    assert [*rewritten.functions["f"].nodes] == ["effect", "before", "partner", "n"]
    assert rewritten.functions["g"] is before.functions["g"]
    assert rewritten.nodes == before.nodes
