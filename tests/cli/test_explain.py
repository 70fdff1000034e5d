"""heald explain: the placement, in groups or node by node."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from builders.graphs import const, node, placeholder

TELLING = """
from heald.api import hookimpl

HEALD_API = (1, 0)

@hookimpl
def heald_kernels(registry):
    registry.kernels("CPU", lambda kernels: kernels.kernel("Neg", priority=9)(Negated))

class Negated:
    def __init__(self, b):
        self._rank = len(b.inputs[0].meta.dims)

    @property
    def how(self):
        return {1: "by rows"}[self._rank]

    def run(self, x, out):
        out[...] = -x

    def attach(self, inputs, outputs):
        return lambda: self.run(*inputs, *outputs)
"""


@pytest.fixture
def chain(saved):
    """Forty additions of equal shapes, then one that broadcasts."""
    names = [f"n{i}" for i in range(40)]
    adds = [node(name, "AddV2", before, before) for before, name in zip(["x", *names], names, strict=False)]
    return saved(placeholder("x", (None, 2)), *adds, const("row", [1, 2]), node("last", "AddV2", "n39", "row"),
                 node("side", "Neg", "x"))


def rows(done):
    assert done.status == 0
    return {row["node"]: row for row in json.loads(done.out)}


def test_many_nodes_are_grouped_and_few_are_not(command, chain):
    lines = command("explain", chain).words
    assert lines[0] == ["44", "nodes,", "which", "run", "as", "42", "kernel", "calls:"]
    assert lines[1] == ["42", "CPU:0,", "kernels", "of", "cpu"]
    assert ["41", "AddV2", "CPU:0", "cpu", "first", "in", "order", "with", "a", "kernel"] in lines
    lines = command("explain", chain, "--fetch", "n1").words
    assert ["n1", "AddV2", "CPU:0", "cpu", "first", "in", "order", "with", "a", "kernel"] in lines
    assert [line for line in lines if line[0] == "n2"] == []


def test_all_shows_every_node(command, chain):
    lines = command("explain", chain, "--all").words
    assert sum(line[1] == "AddV2" for line in lines) == 41


def test_json_has_every_row_in_full(command, chain):
    table = rows(command("explain", chain, "--json"))
    assert len(table) == 44
    assert table["side"] == {"node": "side", "op": "Neg", "requested": "", "assigned": "CPU:0", "kernel": "cpu.Neg",
                             "fused": "", "reason": "first in order with a kernel", "choice": "the only kernel",
                             "lost": "", "refused": "", "how": "",
                             "passes": "", "group": "", "fusion_refusals": []}


def test_the_graph_that_runs_is_counted_with_what_passes_did(command, saved, monkeypatch):
    monkeypatch.setenv("HEALD_PLUGINS__BLOCK", "onednn")
    model = saved(placeholder("x", (2,)), const("one", [1, 1]), node("two", "AddV2", "one", "one"),
                  node("same", "Identity", "x"), node("y", "Mul", "same", "two"), node("z", "Identity", "y"))
    done = command("explain", model)
    assert done.out.splitlines()[0] == "6 nodes, which run as 2 kernel calls:"
    assert "pass constants removed 1 node, changed 1 node\n" in done.out
    assert "pass identities removed 1 node, changed 1 node\n" in done.out
    table = rows(command("explain", model, "--json"))
    assert {name: row["passes"] for name, row in table.items() if row["passes"]} == {
        "one": "removed by constants", "two": "Const by constants", "same": "removed by identities"}


def test_fusions_are_counted_once_the_step_is_linked(command, saved):
    model = saved(placeholder("x", (None,)), node("n", "Neg", "x"), node("y", "Relu", "n"), node("z", "Neg", "y"))
    assert "fusion" not in command("explain", model, "--device", "EXAMPLE:0").out
    done = command("explain", model, "--device", "EXAMPLE:0", "--input", "x=3")
    assert done.out.splitlines()[0] == "4 nodes, which run as 1 kernel call:"
    assert "fusion example_device.Sequence does 3 nodes in 1 call\n" in done.out


def test_refusals_of_fusions_name_the_pattern_the_node_and_the_reason(command, saved):
    nodes = [node("n", "Neg", "x"), node("y", "Relu", "n"), node("z", "Neg", "y"), node("w", "Abs", "y")]
    arguments = "explain", saved(placeholder("x", (3,)), *nodes), "--device", "EXAMPLE:0"
    (row,) = [row for row in rows(command(*arguments, "--json")).values() if row["fusion_refusals"]]
    (refusal,) = row["fusion_refusals"]
    reason = "its value is also read by 'w'"
    assert row["node"] == "y"
    assert refusal == {"pattern": "example_device.Sequence", "stopped_at": "y", "reason": reason, "nodes": ["y", "z"]}
    assert f"fusion example_device.Sequence stopped at 'y': {reason} (nodes y, z)\n" in command(*arguments).out


def test_many_refusals_of_a_fusion_are_counted_and_all_shows_them(command, saved):
    nodes = [part for i in range(6) for part in (
        node(f"a{i}", "Neg", "x"), node(f"b{i}", "Relu", f"a{i}"), node(f"c{i}", "Neg", f"a{i}"))]
    arguments = "explain", saved(placeholder("x", (3,)), *nodes), "--device", "EXAMPLE:0"
    few, all_rows = (command(*arguments, *options).out for options in ((), ("--all",)))
    assert few.count("stopped at") == 3
    assert "fusion example_device.Sequence stopped " in few
    assert "times more; --all shows every one\n" in few
    assert all_rows.count("stopped at") >= 6


def test_open_shapes_are_named_with_what_to_write(command, chain):
    done = command("explain", chain)
    assert "not linked, since shapes are open: x float32[?,2]; give them: --input x:1,2\n" in done.out


def test_shapes_show_the_kernels_that_decline(command, chain):
    arguments = ("explain", chain, "--device", "EXAMPLE:0", "--json")
    assert rows(command(*arguments))["last"]["assigned"] == "EXAMPLE:0"
    table = rows(command(*arguments, "--input", "x=5,2"))
    assert table["n1"]["assigned"] == "EXAMPLE:0"
    assert table["last"]["assigned"] == "CPU:0"
    assert "shapes differ" in table["last"]["refused"]


@pytest.mark.parametrize("shape", ["x=5,2", "x=[5, 2]", "x=(5,2)"])
def test_shapes_may_be_written_in_brackets(command, chain, shape):
    assert "not linked" not in command("explain", chain, "--input", shape).out


@pytest.mark.parametrize(("shape_texts", "message"), [
    ("x=5,3", "input 'x' is float32[?,2], it cannot have shape [5,3]"), ("z=1", "feed 'z': no node is called 'z'"),
])
def test_shapes_that_cannot_be_are_told(command, chain, shape_texts, message):
    done = command("explain", chain, "--input", shape_texts)
    assert (done.status, done.out) == (1, "")
    assert done.err.startswith(f"error: {message}")


@pytest.mark.parametrize("text", ["x=5,two", "5;2"])
def test_a_shape_that_is_none_is_wrong_usage(command, chain, text):
    done = command("explain", chain, "--input", text)
    assert (done.status, f"'{text}' is no NAME=SHAPE" in done.err) == (2, True)


def test_nodes_that_nothing_can_run_are_told(command, saved):
    done = command("explain", saved(placeholder("x", ()), node("y", "NoSuchOp", "x"), node("z", "Neg", "x")))
    assert done.status == 0
    lines = done.words
    assert ["1", "nowhere"] in lines
    assert ["y", "NoSuchOp", "-", "no", "op", "is", "called", "'NoSuchOp'"] in lines
    assert "not linked, because of node 'y': no op is called 'NoSuchOp'\n" in done.out


def test_a_name_that_is_not_there_is_told(command, chain):
    assert command("explain", chain, "--fetch", "lost").err.startswith("error: no node is called 'lost'")


def test_the_answer_to_a_request_stands_once_in_a_row(command, saved):
    model = saved(placeholder("x", ()), node("y", "Neg", "x", device="/device:NOSUCH:0"))
    lines = command("explain", model).words
    assert sum("device type NOSUCH" in " ".join(line) for line in lines) == 1


def test_a_graph_over_two_devices_is_told_where_and_why_with_what_was_refused(command, saved, monkeypatch):
    model = saved(placeholder("x", (3,)), node("a", "Neg", "x", device="/device:GPU:0"),
                  node("b", "Rsqrt", "a", device="EXAMPLE:0"), node("c", "Neg", "b", _class=[b"loc:@a"]),
                  node("d", "Relu", "c", device="EXAMPLE:7"), node("e", "Relu", "d"))
    monkeypatch.setenv("HEALD_PLACEMENT__REMAP", '{"GPU:*" = "SIM:0"}')
    monkeypatch.setenv("HEALD_PLACEMENT__FALLBACK", "allow")
    table = rows(command("explain", model, "--json"))
    unmet = "first in order with a kernel; the request could not be met: "
    assert {name: tuple(row[c] for c in ("assigned", "reason", "refused")) for name, row in table.items()} == {
        "x": ("host", "needs no kernel", ""),
        "a": ("SIM:0", "requested, and remapped", ""),
        "b": ("CPU:0", unmet + "no kernel for Rsqrt", "EXAMPLE:0: no kernel for Rsqrt"),
        "c": ("SIM:0", "colocated with 'a'", ""),
        "d": ("EXAMPLE:0", unmet + (missing := "no such device; devices: CPU:0, EXAMPLE:0, SIM:0"),
              f"EXAMPLE:7: {missing}"),
        "e": ("CPU:0", "first in order with a kernel", ""),
    }
    done = command("explain", model)
    assert ["2", "SIM:0,", "kernels", "of", "sim"] in done.words
    assert sum("no such device" in line for line in done.out.splitlines()) == 1


def test_refusals_of_placement_are_in_the_table_also_with_shapes(command, saved, monkeypatch):
    monkeypatch.setenv("HEALD_PLACEMENT__FALLBACK", "error")
    model = saved(placeholder("x", (None,)), node("a", "Rsqrt", "x", device="EXAMPLE:0"), node("b", "Neg", "a"))
    done = command("explain", model, "--input", "x=3")
    assert done.status == 0
    assert "not linked, because of node 'a': the node asks for EXAMPLE:0, which cannot serve it" in done.out
    assert ["a", "Rsqrt", "EXAMPLE:0", "-", "the", "node", "asks"] in [line[:7] for line in done.words]


@pytest.fixture(scope="module")
def telling(tmp_path_factory):
    """The path of a plugin whose kernels for Neg describe their algorithm, of one axis."""
    path = tmp_path_factory.mktemp("plugin") / "telling.py"
    path.write_text(TELLING)
    return path


def test_the_algorithm_that_a_kernel_tells_is_shown(command, saved, telling):
    model = saved(placeholder("x", (3,)), node("a", "Neg", "x"), node("b", "Relu", "a"))
    explained = rows(command("explain", model, "--plugin", telling, "--json"))
    assert {name: row["how"] for name, row in explained.items()} == {"x": "", "a": "by rows", "b": ""}
    assert "by rows" in command("explain", model, "--plugin", telling).out
    report = json.loads(command("bench", model, "--plugin", telling, "--nodes", "--json", "--duration", "0.01").out)
    assert {row["node"]: row["how"] for row in report["nodes"]} == {"a": "by rows", "b": ""}
    assert "by rows" in command("bench", model, "--plugin", telling, "--nodes", "--duration", "0.01").out


def test_a_kernel_that_fails_to_tell_is_named_and_runs(command, saved, telling, tmp_path):
    model = saved(placeholder("x", (3, 2)), node("a", "Neg", "x"))
    done = command("explain", model, "--plugin", telling)
    assert done.status == 1
    assert "'how' of the kernel telling.Neg" in done.err
    np.save(tmp_path / "x.npy", np.ones((3, 2), np.float32))
    assert command("run", model, "--plugin", telling, "--input", f"x={tmp_path / 'x.npy'}").status == 0


CHOICES = """
from heald.api import hookimpl

HEALD_API = (1, 0)

@hookimpl
def heald_kernels(registry):
    registry.kernels("CPU", register, priority={priority})

def register(kernels):
    @kernels.kernel("Neg")
    def bind(b):
        return lambda x, out: None
"""


@pytest.mark.parametrize(("priority", "pack", "expected"), [
    (0, None, ("cpu.Neg", "first in order at priority 0", "other: equal priority, and its name comes later")),
    (-1, None, ("cpu.Neg", "highest priority: 0", "other: priority -1 is below 0")),
    (3, None, ("other.Neg", "highest priority: 3", "cpu: priority 0 is below 3")),
    (0, "other", ("other.Neg", "[kernels] Neg = 'other'", "cpu: [kernels] Neg names other")),
    (3, "cpu", ("cpu.Neg", "[kernels] Neg = 'cpu'", "other: [kernels] Neg names cpu")),
])
@pytest.mark.filterwarnings("ignore:plugins cpu and other")
def test_the_rule_by_which_a_kernel_was_chosen_is_told_with_those_that_lost(
    command, saved, tmp_path, monkeypatch, priority, pack, expected
):
    plugin = tmp_path / "other.py"
    plugin.write_text(CHOICES.replace("{priority}", str(priority)))
    monkeypatch.delitem(sys.modules, "other", raising=False)
    monkeypatch.setenv("HEALD_PLUGINS__BLOCK", "onednn")
    (tmp_path / "choice.toml").write_text("" if pack is None else f"[kernels]\nNeg = '{pack}'\n")
    model = saved(placeholder("x", (2,)), node("y", "Neg", "x"))
    options = ["--plugin", str(plugin), "--config", str(tmp_path / "choice.toml")]
    row = rows(command("explain", model, "--json", *options))["y"]
    assert (row["kernel"], row["choice"], row["lost"]) == expected
    out = command("explain", model, *options).out
    assert expected[1].split()[0] in out


COMPILER = str(Path(__file__).parents[2] / "examples" / "blocked_compiler.py")


@pytest.fixture
def compilable(saved):
    return saved(placeholder("x", (None, 2)), node("a", "Neg", "x"), node("b", "Abs", "a"), node("t", "Tanh", "b"),
                 const("row", [1, 2]), node("c", "Mul", "t", "row"), node("d", "Neg", "c"))


def test_groups_of_compilers_are_told_with_their_reasons(command, compilable, monkeypatch):
    monkeypatch.setenv("HEALD_PLUGINS__LOAD", COMPILER)
    out = command("explain", compilable, "--input", "x=3,2").out
    assert "compiler blocked does 2 nodes in 1 call, group0" in out
    assert "compiler blocked leaves group1 (2 nodes) to the kernels: its tensors differ in shape" in out
    table = rows(command("explain", compilable, "--input", "x=3,2", "--json"))
    assert [table[name]["group"] for name in "abtcd"] == [
        "blocked.group0", "blocked.group0", "", *["blocked.group1 declined: its tensors differ in shape"] * 2]
    assert table["a"]["how"] == "2 nodes over blocks of 65536 elements"


def test_claims_are_told_before_shapes_are_known(command, compilable, monkeypatch):
    monkeypatch.setenv("HEALD_PLUGINS__LOAD", COMPILER)
    out = command("explain", compilable).out
    assert "compiler blocked claims 2 nodes as group0" in out
    assert rows(command("explain", compilable, "--json"))["d"]["group"] == "blocked.group1"


def test_a_compiled_file_tells_of_an_absent_compiler(command, process, compilable, monkeypatch, tmp_path):
    monkeypatch.setenv("HEALD_PLUGINS__LOAD", COMPILER)
    file = str(tmp_path / "model.bef")
    assert command("compile", compilable, "--input", "x=3,2", "-o", file).status == 0
    assert "compiler blocked does 2 nodes in 1 call, group0" in command("explain", file).out
    monkeypatch.delenv("HEALD_PLUGINS__LOAD")
    refusal = "no such compiler is in use"
    assert f"compiler blocked leaves group0 (2 nodes) to the kernels: {refusal}" in process("explain", file).out
    assert rows(process("explain", file, "--json"))["a"]["group"] == f"blocked.group0 declined: {refusal}"
