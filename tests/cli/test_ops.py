"""heald ops: kernels, signatures, and the ops that a model lacks."""

import json
from pathlib import Path

import heald
import numpy as np
import pytest
from builders.graphs import node, placeholder
from heald.errors import NotFound, Unimplemented
from heald.graphs.graph.graph import Node
from heald.runtime.support import install
from heald.runtime.values import dtypes


def test_ops_with_kernels_are_listed(command):
    lines = command("ops").words
    assert ["MatMul", "1", "EXAMPLE", "example_device", "yes"] in [line[:5] for line in lines]
    assert [line for line in lines if line[0] == "Fact"] == []
    assert lines[-1][1:] == ["ops,", lines[-1][0], "with", "a", "kernel"]


def test_all_lists_ops_without_a_kernel_too(command):
    rows_by_op = {row["op"]: row for row in json.loads(command("ops", "--all", "--json").out)}
    assert rows_by_op["Fact"] == {"op": "Fact", "tier": None, "metadata": False, "plugin": "tf_ops", "kernels": []}
    assert rows_by_op["Example>Gelu"]["plugin"] == "example_device"
    assert len(rows_by_op) > 1900


def test_types_are_told_in_groups(command):
    (line,) = [line for line in command("ops").words if line[:4] == ["AddV2", "1", "CPU", "cpu"]]
    assert line[5:] == ["T:", "ints,", "uints,", "floats,", "complex"]


def test_an_op_is_told_with_signature_and_kernels(command):
    done = command("ops", "Conv2D")
    assert (done.status, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0] == "Conv2D(input: T, filter: T) -> output: T"
    assert "  padding: string in {SAME, VALID, EXPLICIT}" in lines
    assert "  data_format: string in {NHWC, NCHW} = 'NHWC'" in lines
    assert "  dilations: list(int) = [1, 1, 1, 1]" in lines
    assert [line for line in lines if line.startswith("  kernel: CPU cpu, priority 0")]


@pytest.mark.parametrize(("op", "line"), [
    ("Concat", "Concat(concat_dim: int32, values: N * T) -> output: T"), ("Concat", "  N: int >= 2"),
    ("AssignAdd", "AssignAdd(ref: Ref(T), value: T) -> output_ref: Ref(T)"), ("NoOp", "NoOp() -> nothing"),
    ("Const", "  kernel: needs none, the runtime itself serves it"), ("Fact", "  kernel: none here"),
    ("BatchNormWithGlobalNormalization", "  deprecated since GraphDef version 9"),
    ("Example>Gelu", "  stateful: no; metadata function: yes; an op of plugin example_device"),
])
def test_each_kind_of_signature_is_printed(command, op, line):
    assert line in command("ops", op).out.splitlines()


def test_several_ops_are_described_in_json(command):
    descriptions = json.loads(command("ops", "Relu", "MatMul", "--json").out)
    assert [op["op"] for op in descriptions] == ["Relu", "MatMul"]
    assert {"name": "transpose_a", "type": "bool", "default": "False"} in descriptions[1]["attrs"]


def test_an_op_that_is_not_there_is_told(command):
    assert command("ops", "MatMull").err.startswith("error: no op is called 'MatMull'\n  hint: did you mean MatMul")


def test_ops_that_a_model_lacks_are_told_with_nodes_and_reasons(command, saved):
    names = [f"m{i}" for i in range(5)]
    model = saved(
        placeholder("x", ()), *(node(name, "NoSuchOp", "x") for name in names),
        placeholder("b", (), dtypes.bool_), node("r", "Exp", "b", T=dtypes.bool_), node("fine", "Neg", "x"),
    )
    done = command("ops", "--missing", model)
    assert (done.status, done.err) == (1, "")
    lines = done.words
    assert lines[1][:2] == ["NoSuchOp", "5"]
    assert lines[1][-6:] == ["m0,", "m1,", "m2", "and", "2", "more"]
    assert lines[2][:2] == ["Exp", "1"]
    report = json.loads(command("ops", "--missing", model, "--json").out)
    assert report[0]["nodes"] == names
    assert "T is bool" in report[1]["reason"] or "bool" in report[1]["reason"]


@pytest.mark.parametrize("op", ["NoSuchOp", "MatMull", "RiscAbs"])
def test_the_error_of_a_node_without_a_kernel_names_the_command_that_lists_them_all(command, saved, op):
    model = saved(placeholder("x", (None,)), node("fine", "Neg", "x"), node("y", op, "x"))
    loaded = heald.load(model, outputs=["fine"])
    with pytest.raises((NotFound, Unimplemented)) as caught:
        loaded.session.run("y", {"x": np.zeros(1, np.float32)})
    assert "'heald ops --missing MODEL' lists all that a model lacks" in str(caught.value.hint)
    done = command("ops", "--missing", model)
    assert (done.status, done.words[1][:2]) == (1, [op, "1"])


def test_nodes_that_no_output_needs_do_not_count(command, saved):
    model = saved(placeholder("x", ()), node("y", "Neg", "x"))
    done = command("ops", "--missing", model)
    assert done == (0, f"nothing is missing: every op that the outputs of {model} need has a kernel\n", "")
    assert command("ops", "--missing", model, "--json").out == "[]\n"


CALLING = """
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "y" op: "StatefulPartitionedCall" input: "x" attr { key: "f" value { func { name: "outer" } } }
  attr { key: "Tin" value { list { type: DT_FLOAT } } } attr { key: "Tout" value { list { type: DT_FLOAT } } } }
library { function { signature { name: "outer" input_arg { name: "a" type: DT_FLOAT }
    output_arg { name: "r" type: DT_FLOAT } is_stateful: true }
  node_def { name: "lost" op: "NoSuchOp" input: "a" }
  node_def { name: "unread" op: "NoSuchOp" input: "a" }
  node_def { name: "again" op: "StatefulPartitionedCall" input: "lost:y:0"
    attr { key: "f" value { func { name: "CALLEE" } } }
    attr { key: "Tin" value { list { type: DT_FLOAT } } } attr { key: "Tout" value { list { type: DT_FLOAT } } } }
  ret { key: "r" value: "again:output:0" } } }
"""


@pytest.mark.parametrize(("callee", "second"), [
    ("outer", None), ("missing", ["StatefulPartitionedCall", "the graph has no function 'missing'", ["y/again"]])])
def test_ops_that_functions_lack_are_told_once_also_in_recursion(command, tmp_path, callee, second):
    (tmp_path / "calls.pbtxt").write_text(CALLING.replace("CALLEE", callee))
    report = json.loads(command("ops", "--missing", tmp_path / "calls.pbtxt", "--json").out)
    assert ("NoSuchOp", ["y/lost"]) in [(row["op"], row["nodes"]) for row in report]
    assert second is None or second in [[row["op"], row["reason"], row["nodes"]] for row in report]


def test_the_digits_network_lacks_nothing(command, digits):
    assert command("ops", "--missing", digits / "frozen.pb").out.startswith("nothing is missing")


@pytest.mark.parametrize(("op", "attrs", "reason"), [
    ("StaticRegexFullMatch", {"pattern": "a"}, "CPU cpu: it needs RE2: pip install google-re2"),
    ("DecodeImage", {}, "CPU cpu: it needs Pillow: pip install pillow"),
])
def test_a_kernel_whose_library_is_not_installed_is_missing(command, saved, monkeypatch, op, attrs, reason):
    model = saved(placeholder("x", (), dtypes.string), Node("y", op, ("x",), attrs=attrs))
    assert command("ops", "--missing", model).status == 0
    monkeypatch.setattr(install, "is_importable", lambda _: False)
    done = command("ops", "--missing", model, "--json")
    (row,) = json.loads(done.out)
    assert (done.status, row["op"], row["nodes"], row["reason"].partition("; ")[0]) == (1, op, ["y"], reason)
    with pytest.raises(Unimplemented, match=f"no kernel for op {op} .*{reason.partition(': ')[2]}"):
        heald.load(model)(b"a")


def test_tiers_list_what_is_missing_as_well(command):
    lines = command("ops", "--tier", "1", "--device", "cpu").words
    assert ["MatMul", "1", "CPU", "cpu", "yes"] in [line[:5] for line in lines]
    assert ["Switch", "1", "yes", "needs", "none"] in lines
    assert ["Const", "1", "yes", "needs", "none"] in lines or ["Const", "1", "no", "needs", "none"] in lines
    assert lines[-1][:2] == ["123", "ops,"]
    assert command("ops", "--device", "GPUU").err.startswith("error: no plugin brings the device type GPUU")


def test_the_page_of_ops_says_what_the_table_says(command):
    page = (Path(__file__).parents[2] / "docs" / "ops.md").read_text("utf-8")
    table = command("ops", "--tier", "1", "2", "3", "4", "--device", "CPU", "--markdown").out
    assert page.partition("\n\n| op")[2] == table.removeprefix("| op"), "make tables"


def test_the_reason_of_an_unknown_op_does_not_name_the_command_that_gives_it(command, saved):
    model = saved(placeholder("x", (), dtypes.string), Node("y", "Elsewhere>Fold", ("x",)))
    (row,) = json.loads(command("ops", "--missing", model, "--json").out)
    assert row["reason"] == "no op is called 'Elsewhere>Fold'; a plugin may bring it: heald plugins"
