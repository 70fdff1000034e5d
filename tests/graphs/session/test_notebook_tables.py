"""Models, graphs, sessions and placements in notebooks: tables whose cells are escaped, and that are cut."""

from __future__ import annotations

from operator import methodcaller

import heald
import pytest
from builders.graphs import node, placeholder
from heald.graphs.graph.graph import Graph, Node
from heald.runtime.support.notebook_table import MOST_CHARACTERS, MOST_ROWS, notebook_table

show = methodcaller("_repr_html_")  # as notebooks do


def graph_of(count: int) -> Graph:
    return Graph([placeholder("x", (2,)), *(node(f"n{number}", "Neg", "x") for number in range(count))])


@pytest.fixture
def shown(tmp_path):
    """What a notebook shows of each."""
    heald.graphdef.dump(graph_of(2), tmp_path / "m.pb")
    model = heald.load(tmp_path / "m.pb")
    return {"model": model, "signature": next(iter(model.signatures.values()), model), "graph": model.graph,
            "session": model.session, "placement": model.placement()}


@pytest.mark.parametrize(("kind", "texts"), [
    ("model", ["<td", "input", ">x<", "float32[2]"]), ("signature", ["float32[2]"]), ("graph", [">n1<", ">Neg<"]),
    ("session", ["CPU:0", ">n0<"]), ("placement", ["CPU:0", ".Neg<", "background"])])
def test_each_is_a_table(shown, kind, texts):
    html = show(shown[kind])
    assert html.count("<table>") == 1
    assert all(text in html for text in texts), html


def test_a_long_table_is_cut_and_says_so():
    html = show(graph_of(MOST_ROWS + 10))
    assert html.count("<tr>") == MOST_ROWS + 1
    assert "and 11 more rows" in html


@pytest.mark.parametrize("name", ["<script>x</script>", "'\"&", "\x1b[31m", "\u202e", "a" * 5000, "</table>"])
def test_names_are_escaped(name):
    html = show(Graph([Node(name, name, device=name)]))
    assert not [part for part in ("<script", "\x1b", "\u202e") if part in html]
    assert html.count("</table>") == 1
    assert len(html) < 4 * MOST_CHARACTERS + 1000


def test_a_table_without_rows_and_without_columns_is_one():
    assert notebook_table("nothing", [], ()).count("<table>") == 1
