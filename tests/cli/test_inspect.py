"""heald inspect: the report on a model, also on one with unknown ops."""

import json
from pathlib import Path

import numpy as np
import pytest
from builders.graphs import FLOAT, const, node, placeholder
from heald.graphs.graph.graph import Node
from heald.runtime.values import dtypes


@pytest.fixture
def strange(saved):
    """A graph in which some ops are unknown, and one node does not fit its op."""
    return saved(
        placeholder("x", (None, 4)), placeholder("unused", (1,)), const("c", np.ones((3, 4))),
        node("known", "AddV2", "x", "c"), node("mystery", "NoSuchOp", "known"), node("after", "Neg", "mystery"),
        Node("unfit", "Relu", ["x", "c"], attrs={"T": FLOAT}),
    )


def test_shapes_are_inferred_without_a_device(command, saved):
    model = saved(placeholder("x", (None, 3)), const("w", np.ones((3, 5))), node("y", "MatMul", "x", "w"))
    report = json.loads(command("inspect", model, "--json").out)
    assert report["inputs"] == [{"name": "x", "op": "Placeholder", "dtype": "float32", "shape": [None, 3]}]
    assert report["outputs"] == [{"name": "y", "op": "MatMul", "dtype": "float32", "shape": [None, 5]}]


def test_unknown_facts_are_told_as_such(command, strange):
    report = json.loads(command("inspect", strange, "--json").out)
    output_rows = [(t["name"], t["dtype"], t["shape"]) for t in report["outputs"]]
    assert output_rows == [("after", "float32", None), ("unfit", "?", None)]
    lacking = {row["op"]: row["without_kernel"] for row in report["ops"]}
    assert lacking == {"Placeholder": 0, "AddV2": 0, "Const": 0, "Neg": 0, "NoSuchOp": 1, "Relu": 1}


def test_people_get_sections(command, strange):
    done = command("inspect", strange)
    assert (done.status, done.err) == (0, "")
    lines = done.words
    assert lines[0][1:] == ["GraphDef", "of", "version", "0,", *lines[0][5:7], "7", "nodes"]
    assert ["x", "float32", "[?,4]"] in lines
    assert ["unfit", "?", "?", "Relu"] in lines
    assert ["NoSuchOp", "1", "missing"] in lines
    assert ["Placeholder", "2"] in lines
    assert "6 ops, 2 without a kernel here" in done.out
    assert ["c", "float32[3,4]", "48", "bytes"] in lines


def test_outputs_of_one_node_are_numbered(command, saved):
    model = saved(placeholder("x", (2, 3)), Node("u", "Unpack", ["x"], attrs={"T": FLOAT, "num": 2, "axis": 0}))
    report = json.loads(command("inspect", model, "--json").out)
    assert [(t["name"], t["shape"]) for t in report["outputs"]] == [("u:0", [3]), ("u:1", [3])]


def test_the_largest_constants_come_first(command, saved):
    constants = [const(f"c{n}", np.zeros(n)) for n in range(1, 8)]
    constants_report = json.loads(command("inspect", saved(*constants), "--json").out)["constants"]
    assert (constants_report["count"], constants_report["bytes"]) == (7, 4 * 28)
    assert [row["name"] for row in constants_report["largest"]] == ["c7", "c6", "c5", "c4", "c3"]


def test_legacy_placeholders_have_no_shape(command, saved):
    """Writers of old GraphDefs left the shape out, which reads as a scalar's."""
    report = json.loads(command("inspect", saved(placeholder("x", ()), node("y", "Neg", "x")), "--json").out)
    assert [t["shape"] for t in (*report["inputs"], *report["outputs"])] == [None, None]


def test_an_unknown_rank_and_strings_are_told(command, saved):
    model = saved(placeholder("s", None, dtypes.string), node("t", "Identity", "s", T=dtypes.string))
    assert ["t", "string", "<unknown", "rank>", "Identity"] in command("inspect", model).words


def test_passes_tell_what_they_do_to_what_the_outputs_need(command, saved):
    model = saved(placeholder("x", (None, 3)), const("w", np.ones((3, 4))), node("read", "Identity", "w"),
                  node("m", "MatMul", "x", "read"), const("c", [1, 2, 3, 4]), const("one", 1),
                  node("by", "AddV2", "c", "one"), node("s", "Mul", "m", "by"), node("y", "Relu", "s"),
                  node("aside", "NoOp"))
    report = json.loads(command("inspect", model, "--passes", "--json").out)["passes"]
    pass_rows = [(row["pass"], row["nodes"], row["less"], row["more"]) for row in report]
    assert pass_rows == [
        ("constants", 6, {"Identity": 1, "AddV2": 1, "Const": 1}, {}), ("identities", 6, {}, {}),
        ("activations", 6, {}, {}), ("batch-norm", 6, {}, {}), ("cells", 6, {}, {}), ("loops", 6, {}, {}),
        ("pads", 6, {}, {}), ("slices", 6, {}, {}), ("maps", 6, {}, {}), ("scales", 4, {"Mul": 1, "Const": 1}, {}),
        ("sequences", 4, {}, {}),
        ("duplicates", 4, {}, {}), ("pools", 4, {}, {}), ("reshapes", 4, {}, {}), ("strides", 4, {}, {}),
        ("invariants", 4, {}, {}), ("counts", 4, {}, {}),
    ]
    assert all(row["ms"] >= 0 for row in report)
    words = command("inspect", model, "--passes").words
    assert ["passes,", "in", "order"] in words
    assert next(line for line in words if line[:1] == ["scales"])[2:] == [
        "1", "of", "1", "graph", "4", "1", "Const,", "1", "Mul"]


@pytest.fixture
def biased_model(saved):
    """A product whose factors and shifts become a BiasAdd, which its device has no kernel for."""
    placement = {"device": "EXAMPLE:0"}
    return saved(placeholder("x", (2, 3)), const("w", np.ones((3, 4))), node("m", "MatMul", "x", "w", **placement),
                 const("c", np.ones((2, 4))[:1] * 2), node("s", "Mul", "m", "c", **placement),
                 const("d", [[1, 2, 3, 4]]), node("y", "AddV2", "s", "d", **placement))


def test_a_pass_whose_nodes_are_not_run_is_told_with_the_reason(command, biased_model, saved):
    why = "pass 'scales': BiasAdd 'y': EXAMPLE:0: no kernel for BiasAdd"
    report = json.loads(command("inspect", biased_model, "--passes", "--json").out)
    assert report["passes_left_out"] == why
    assert f"the graph is run without some of that: {why}\n" in command("inspect", biased_model, "--passes").out
    assert f"run without what graph passes would make: {why}\n" in command("explain", biased_model).out


def test_passes_whose_nodes_are_run_are_told_without_a_reason(command, saved, monkeypatch):
    model = saved(placeholder("x", (2,)), node("i", "Identity", "x"), node("y", "Neg", "i"))
    assert json.loads(command("inspect", model, "--passes", "--json").out)["passes_left_out"] == ""
    assert "run without" not in command("inspect", model, "--passes").out + command("explain", model).out


def test_passes_are_told_of_a_graph_that_cannot_be_run(command, saved):
    model = saved(Node("fact", "Fact"), node("y", "Identity", "fact", T=dtypes.string))
    report = json.loads(command("inspect", model, "--passes", "--json").out)
    assert (bool(report["passes"]), report["passes_left_out"]) == (True, "")


def test_passes_that_are_disabled_do_nothing(command, saved, monkeypatch):
    model = saved(placeholder("x", (2,)), node("i", "Identity", "x"), node("y", "Neg", "i"))
    others = ("constants,identities,activations,batch-norm,cells,counts,duplicates,invariants,loops,maps,pads,pools,"
              "sequences,slices,strides")
    monkeypatch.setenv("HEALD_PASSES__DISABLE", others)
    pass_rows = json.loads(command("inspect", model, "--passes", "--json").out)["passes"]
    assert [(row["pass"], row["nodes"], row["less"]) for row in pass_rows] == [("scales", 3, {}), ("reshapes", 3, {})]


def test_a_lack_of_passes_is_told(command, saved, monkeypatch):
    model = saved(placeholder("x", (2,)), node("y", "Neg", "x"))
    monkeypatch.setenv("HEALD_PLUGINS__BLOCK", "simplify")
    assert "no passes: no plugin brings one, or config disables them" in command("inspect", model, "--passes").out


def test_the_digits_network(command, digits):
    report = json.loads(command("inspect", digits / "frozen.pb", "--json").out)
    assert [t["shape"] for t in report["inputs"]] == [[None, 8, 8, 1]]
    assert [t["shape"] for t in report["outputs"]] == [[None], [None, 10], [None, 10]]
    assert (report["nodes"], sum(row["nodes"] for row in report["ops"])) == (200, 200)
    assert report["versions"]["producer"] > 21


@pytest.fixture
def crossing(saved, monkeypatch):
    """A graph over two CPUs with three transfers, one of them a control edge."""
    monkeypatch.setenv("HEALD_PLUGIN__CPU__COUNT", "2")
    return saved(
        placeholder("x", (2,)), node("a", "Neg", "x", device="/cpu:0"), node("b", "Relu", "a", device="/cpu:1"),
        node("c", "Neg", "x", "^b", device="/cpu:0"), node("f", "AddV2", "b", "c", device="/cpu:0"))


def test_the_client_graph_tells_what_hangs_on_source_and_sink(command, crossing, own_runtime):
    report = json.loads(command("inspect", crossing, "--client", "--json").out)["client"]
    assert [row["node"] for row in report["nodes"]] == ["_arg_x_0_0", "a", "b", "c", "f", "_retval_f_0_0"]
    assert [*report["nodes"][3].values()][:3] == ["c", "Neg", ["_arg_x_0_0", "^b"]]
    assert (report["source"], report["sink"]) == (["_arg_x_0_0"], ["_retval_f_0_0"])
    words = command("inspect", crossing, "--client", "--convention", "rendezvous").words
    assert ["SOURCE:", "_recv_x_0"] in words
    assert ["SINK:", "_send_f_0"] in words


def test_partitions_are_told_with_their_transfers(command, crossing, own_runtime):
    report = json.loads(command("inspect", crossing, "--partitions", "--json").out)["partitions"]
    assert [part["device"][-5:] for part in report["parts"]] == ["CPU:0", "CPU:1"]
    assert sorted((row["tensor"], row["consumer"], row["from"][-1], row["to"][-1]) for row in report["transfers"]) == [
        ("a", "b", "0", "1"), ("b", "c", "1", "0"), ("b", "f", "1", "0")]
    words = command("inspect", crossing, "--partitions").words
    assert ["3", "transfers"] in words


def test_a_step_is_chosen_by_what_is_fed_and_fetched(command, crossing, own_runtime):
    done = command("inspect", crossing, "--client", "--json", "--fetch", "b", "--feed", "a:0")
    assert [row["node"] for row in json.loads(done.out)["client"]["nodes"]] == ["_arg_a_0_0", "b", "_retval_b_0_0"]


def test_options_of_views_that_are_not_asked_for_are_refused(command, crossing):
    for options, why in ((("--fetch", "b"), "add --client"), (("--feed", "a"), "add --client"),
                         (("--partitions", "--convention", "rendezvous"), "--convention is for --client")):
        done = command("inspect", crossing, *options)
        assert done.status == 1
        assert why in done.err


SIGNED = str(Path(__file__).parents[1] / "plugins_for_tests" / "plugin_of_signatures.py")
FAULTS = {
    "missing input": "has 'x' as the tensor 'gone:0', whose node is not in the graph",
    "missing output": "has 'y' as the tensor 'gone:0', whose node is not in the graph",
    "missing port": "has 'y' as the tensor 'y:3', and its node has 1 outputs",
    "other type": "has 'x' as the tensor 'x:0', which is float32, declared as int32",
}


@pytest.mark.parametrize("name", ["inspect", "explain", "run"])
@pytest.mark.parametrize("kind", FAULTS)
def test_a_signature_that_does_not_fit_is_an_error_with_loader_and_file(command, tmp_path, name, kind):
    (tmp_path / "model.signed").write_text(f"signed {kind}")
    done = command(name, "model.signed", "--plugin", SIGNED)
    assert done.status == 1
    assert done.err.startswith("error: loader 'signed' of plugin plugin_of_signatures: signature 'chosen' of "
                               f"'model.signed' {FAULTS[kind]}\n")


def test_a_description_that_does_not_fit_is_a_warning(command, tmp_path):
    (tmp_path / "model.signed").write_text("signed other description")
    done = command("inspect", "model.signed", "--plugin", SIGNED)
    assert done.status == 0
    assert "describe of 'model.signed' has the input 'z', which the signature lacks; it has x" in done.err
