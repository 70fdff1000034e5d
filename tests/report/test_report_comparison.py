"""heald report --compare: matched nodes, differences of graphs, and the first tensor that differs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import heald
import numpy as np
import pytest
from builders.graphs import const, node, placeholder
from heald.cli import main
from heald.graphs.graph.graph import Graph
from heald_report.comparison import run_titles
from heald_report.node_matching import match_nodes, renamed_graph
from heald_report.value_differences import _difference

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "frozen.pb"


def layers(prefix, bias=2.0):
    """A graph of two layers, whose names begin with the prefix."""
    return Graph([placeholder("x", (2,)), const(f"{prefix}a/w", [3.0, 4.0]),
                  node(f"{prefix}a/mul", "Mul", "x", f"{prefix}a/w"),
                  const(f"{prefix}b/w", [1.0, bias]), node(f"{prefix}b/add", "AddV2", f"{prefix}a/mul", f"{prefix}b/w"),
                  node(f"{prefix}b/act", "Tanh", f"{prefix}b/add"), node("y", "Neg", f"{prefix}b/act")])


def comparison_of(tmp_path, first, second, *arguments):
    heald.graphdef.dump(first, tmp_path / "first.pb")
    heald.graphdef.dump(second, tmp_path / "second.pb")
    page = tmp_path / "page.html"
    assert main(["report", str(tmp_path / "first.pb"), "-o", str(page), "--compare", str(tmp_path / "second.pb"),
                 *arguments]) == 0
    return json.loads(re.search(r'id="data">(.*?)</script>', page.read_text("utf-8"), re.DOTALL)[1])["comparison"]


def test_nodes_match_by_name_then_by_structure():
    first, second = layers("old/"), layers("new/")
    names = match_nodes(first, second, {})
    assert names == {name: name.replace("new/", "old/") for name in second.nodes}
    assert [*renamed_graph(second, names).nodes] == [*first.nodes]


def test_nodes_without_a_matched_neighbour_stay_alone():
    first = Graph([placeholder("a", (2,)), node("b", "Neg", "a")])
    second = Graph([placeholder("c", (2,)), node("d", "Neg", "c")])
    assert match_nodes(first, second, {}) == {}
    assert match_nodes(first, second, {"c": "a"}) == {"c": "a", "d": "b"}
    assert match_nodes(first, second, {"c": "nothing", "nothing": "a"}) == {}


def test_no_two_nodes_match_the_same_node():
    first = Graph([placeholder("x", (2,)), node("a", "Neg", "x")])
    second = Graph([placeholder("x", (2,)), node("b", "Neg", "x"), node("c", "Neg", "x")])
    assert match_nodes(first, second, {}) == {"x": "x", "b": "a"}


@pytest.mark.parametrize("seed", range(12))
def test_a_graph_with_any_other_names_matches_itself(seed):
    random = np.random.default_rng(seed)
    nodes = [placeholder("x", (2,))]
    for number in range(40):
        sources = [nodes[int(random.integers(len(nodes)))].name for _ in range(2)]
        op = str(random.choice(["AddV2", "Mul", "Sub", "Maximum"]))
        nodes.append(node(f"n{number}", op, *sources))
    first = Graph(nodes)
    second = renamed_graph(first, {f"n{number}": f"m{number}" for number in range(40) if random.random() < 0.5})
    names = match_nodes(first, second, {})
    assert len(set(names.values())) == len(names) == 41
    assert all(second[name].op == first[partner].op for name, partner in names.items())


def test_equal_models_have_no_differences(tmp_path):
    compared = comparison_of(tmp_path, layers("a/"), layers("b/"))
    assert (compared["equal"], compared["renamed"], compared["beyond"]) == (7, 5, 0)
    assert compared["fields"] == compared["graph"]["patterns"] == compared["tensors"] == []
    assert compared["compared"] == 4
    assert compared["titles"] == ["first.pb", "second.pb"]


def test_the_first_tensor_that_differs_is_named_with_its_place_and_values(tmp_path):
    compared = comparison_of(tmp_path, layers("a/"), layers("a/", bias=2.5), "--input", "x=[0, 0]")
    first, *others = compared["tensors"]
    assert first[1:8] == ["a/b/add:0", "a/b/add:0", "AddV2", "0.5", "[1]", "2", "2.5"]
    assert [row[1] for row in others] == ["a/b/act:0", "y:0"]
    assert [row[2:4] for row in compared["fields"]] == [["a/b/w", "value"]]


def test_nodes_that_one_side_lacks_are_counted_and_drawn(tmp_path):
    first = layers("a/")
    second = first.replace(without=["a/b/act"], nodes=[node("y", "Neg", "a/b/add")])
    compared = comparison_of(tmp_path, first, second)
    assert [compared["graph"][change] for change in ("added", "removed", "rewritten")] == [0, 1, 1]
    pattern, = compared["graph"]["patterns"]
    changes = {box[0]: box[2] for box in pattern["picture"]["boxes"]}
    assert changes == {"add": "same", "act": "removed", "y": "rewritten"}
    assert [row[1] for row in compared["tensors"]] == ["y:0"]


def test_models_with_other_inputs_are_compared_without_values(tmp_path, capsys):
    second = Graph([placeholder("x", (2,)), placeholder("z", (2,)), node("y", "AddV2", "x", "z")])
    compared = comparison_of(tmp_path, layers("a/"), second)
    assert "one model has 1 inputs, and the other 2" in compared["note"]
    assert "did not run on the inputs" in capsys.readouterr().out


def test_inputs_of_other_names_correspond_by_place(tmp_path):
    def model(name):
        return Graph([placeholder(name, (2,)), node("y", "Neg", name)])

    compared = comparison_of(tmp_path, model("x"), model("image"))
    assert (compared["renamed"], compared["beyond"], compared["note"]) == (1, 0, "")


def test_without_a_run_graphs_alone_are_compared(tmp_path):
    compared = comparison_of(tmp_path, layers("a/"), layers("a/", bias=7.0), "--no-run")
    assert "no run was asked for" in compared["note"]
    assert len(compared["fields"]) == 1


def test_one_model_is_compared_on_two_devices(tmp_path):
    page = tmp_path / "page.html"
    assert main(["report", str(DIGITS), "-o", str(page), "--device", "CPU:0", "--compare-device", "EXAMPLE:0"]) == 0
    compared = json.loads(re.search(r'id="data">(.*?)</script>', page.read_text("utf-8"), re.DOTALL)[1])["comparison"]
    assert compared["titles"] == ["frozen.pb (CPU:0)", "frozen.pb (EXAMPLE:0)"]
    assert compared["compared"] > 100
    assert compared["beyond"] == 0
    assert {row[2] for row in compared["pairs"]} == {"CPU:0"}
    assert "EXAMPLE:0" in {row[4] for row in compared["pairs"]}


@pytest.mark.parametrize(("arguments", "message"), [
    (["-o", "page.html", "--compare", "nothing.pb"], "nothing.pb"),
    (["-o", "page.html", "--compare-device", "NOWHERE:0"], "NOWHERE"),
    (["-o", "graph.svg", "--compare", str(DIGITS)], "a comparison is a page")])
def test_wrong_comparisons_are_typed_errors(arguments, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["report", str(DIGITS), *arguments]) == 1
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("ours", "theirs", "where", "values"), [
    ([[1.0, 2.0]], [[1.0, 9.0]], (0, 1), ("2", "9")), ([1.0, np.nan, 3.0], [1.0, 2.0, 3.0], (1,), ("nan", "2")),
    ([np.inf, 1.0], [np.inf, 5.0], (1,), ("1", "5")), ([1, 2, 3], [1, 5, 4], (1,), ("2", "5")),
    ([True, False], [True, True], (1,), ("False", "True")), ([1j, 2j], [1j, 5j], (1,), ("0+2j", "0+5j")),
    (np.array([b"a", b"b"], object), np.array([b"a", b"c"], object), (1,), ("b'b'", "b'c'"))])
def test_the_place_of_a_difference_is_that_of_its_largest_element(ours, theirs, where, values):
    difference = _difference("n", "n:0", "n:0", np.asarray(ours), np.asarray(theirs))
    assert difference.is_beyond
    assert (difference.where, difference.values) == (where, values)


def test_other_shapes_differ_and_scalars_have_no_index():
    assert _difference("n", "n:0", "n:0", np.zeros(2), np.zeros(3)).values == ("[2]", "[3]")
    assert _difference("n", "n:0", "n:0", np.float32(1), np.float32(2)).where == ()
    assert not _difference("n", "n:0", "n:0", np.zeros(0), np.zeros(0)).is_beyond


@pytest.mark.parametrize(("titles", "devices", "shown"), [
    (("a", "b"), ("X", "X"), ["a", "b"]), (("a", "a"), ("X", None), ["a (X)", "a (default device)"]),
    (("a", "a"), (None, None), ["a (first)", "a (second)"])])
def test_titles_tell_the_sides_apart(titles, devices, shown):
    assert run_titles(titles, devices) == shown
