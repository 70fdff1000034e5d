"""heald diff with two models: the differences of their nodes, functions and versions."""

import json

import numpy as np
import pytest
from builders.graphs import const, node, placeholder
from heald.graphs.graph.graph import Function, Graph, Versions
from heald.graphs.graph.graphdef import dump

CHAIN = (placeholder("x", (2,)), const("one", [1, 2]), node("sum", "AddV2", "x", "one"), node("y", "Neg", "sum"))


@pytest.fixture
def models(tmp_path):
    def save(edited, name="after.pb"):
        dump(Graph(CHAIN), tmp_path / "before.pb")
        dump(edited, tmp_path / name)
        return tmp_path / "before.pb", tmp_path / name

    return save


def test_equal_models_have_no_difference_and_status_0(command, models):
    done = command("diff", *models(Graph(CHAIN), "after.pbtxt"))
    assert (done.status, done.out) == (0, "no difference\n")


def test_the_table_names_added_removed_and_changed_nodes(command, models):
    edited = Graph(CHAIN).remove("y").replace(nodes=[node("z", "Exp", "x")]).set_constant("one", [1, 3])
    done = command("diff", *models(edited))
    assert done.status == 1
    assert done.words[1:4] == [
        ["removed", "node", "y", "Neg(sum)"], ["added", "node", "z", "Exp(x)"],
        ["changed", "node", "one", "value", "float32[2]", "[1.0,", "2.0]", "float32[2]", "[1.0,", "3.0]"]]
    assert done.out.endswith("\n1 node removed, 1 node added, 1 node changed\n")


def test_the_text_has_a_line_for_each_difference(command, models):
    edited = Graph([*CHAIN[:2], CHAIN[2].replace(inputs=["one", "x"], device="/cpu:0"), CHAIN[3]],
                   [Function("f")], Versions(21))
    done = command("diff", *models(edited), "--text")
    assert done.out.splitlines()[:3] == ["~ node sum device: nothing -> /cpu:0",
                                         "~ node sum inputs: (x, one) -> (one, x)", "+ function f"]
    assert done.out.splitlines()[3].startswith("~ graph versions: ")


@pytest.mark.parametrize(("before", "after", "texts"), [
    (np.zeros((3, 4), "f4"), np.eye(3, 4, 2, dtype="f4"), ("float32[3,4] [0,2]=0.0", "float32[3,4] [0,2]=1.0")),
    (np.array([b"a"] * 9, object), np.array([b"a"] * 8 + [b"b"], object),
     ("string[9] [8]=b'a'", "string[9] [8]=b'b'")),
    (np.zeros(9, "f4"), np.zeros(8, "f4"), ("float32[9]", "float32[8]")),
])
def test_large_constants_are_shown_at_their_first_difference(command, tmp_path, before, after, texts):
    for name, value in (("a.pb", before), ("b.pb", after)):
        dump(Graph([const("c", value, value.dtype)]), tmp_path / name)
    (row,) = json.loads(command("diff", "a.pb", "b.pb", "--json").out)
    assert row == {"change": "changed", "kind": "node", "name": "c", "field": "value", "before": texts[0],
                   "after": texts[1]}


def test_many_differences_are_shown_on_request(command, models):
    files = models(Graph([*CHAIN, *(node(f"n{i}", "Neg", "x") for i in range(50))]))
    assert "50 nodes added; 10 more with --all" in command("diff", *files).out
    assert len(command("diff", *files, "--all").words) == 52


@pytest.mark.parametrize(("options", "why"), [
    ((), "heald diff needs a second model or a device"), (("--text", "--device", "CPU:0"), "--text is for two models"),
    (("before.pb", "--device", "CPU:0"), "--device is for one model on two devices"),
    (("before.pb", "--tolerance", "1"), "--tolerance is for one model on two devices"),
    (("missing.pb",), "missing.pb"),
])
def test_wrong_combinations_are_errors(command, models, options, why):
    done = command("diff", models(Graph(CHAIN))[0], *options)
    assert done.status == 1
    assert why in done.err
