"""Models, graphs, sessions and placements in notebooks: tables whose cells are escaped, and that are cut."""

from __future__ import annotations

from operator import methodcaller

import heald
import numpy as np
import pytest
from builders.graphs import node, placeholder
from heald.graphs.graph.graph import Graph, Node
from heald.runtime.program.host_program import Call, ProgramFunction
from heald.runtime.support.notebook_table import MOST_CHARACTERS, MOST_ROWS, notebook_table
from heald.runtime.support.tensor_picture import tensor_png

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


def test_a_trace_lists_its_longest_calls_first(shown):
    metadata = heald.RunMetadata()
    shown["session"].run(["n0", "n1"], {"x": [1, 2]}, options=heald.RunOptions(trace=True), metadata=metadata)
    html = show(metadata.trace)
    assert "Trace of 2 calls" in html
    assert all(text in html for text in (">n0<", ">n1<", "Neg<", ">CPU:0<"))


def program_of(name: str) -> heald.HostProgram:
    call = Call("tfrt.add.i32", (0, 0), (1,), node=name)
    return heald.HostProgram({name: ProgramFunction(name, (name,), ("i32", "i32"), (call,), (1,))})


def test_a_host_program_has_a_table_of_signatures_and_one_of_calls():
    html = show(program_of("main"))
    assert html.count("<table>") == 2
    assert all(text in html for text in ("HostProgram of 1 functions and 1 calls", "main i32", ">tfrt.add.i32<",
                                         ">%0, %0<", ">%1<", ">host<"))


@pytest.mark.parametrize("name", ["<script>x</script>", "'\"&", "\x1b[31m", "</table>"])
def test_names_of_a_program_are_escaped(name):
    html = show(program_of(name))
    assert not [part for part in ("<script", "\x1b") if part in html]
    assert html.count("</table>") == 2


@pytest.mark.parametrize(("shape", "dtype", "size"), [
    ((8, 6), np.float32, (6, 8)), ((8, 6, 3), np.uint8, (6, 8)), ((2, 8, 6, 4), np.int64, (6, 8)),
    ((2, 8, 6, 16), np.float16, (24, 32)), ((3, 8, 6), np.bool_, (6, 8)), ((1100, 5), np.uint8, (5, 367))])
def test_a_tensor_of_pixels_is_a_picture(shape, dtype, size):
    png = tensor_png(np.ones(shape, dtype))
    assert (int.from_bytes(png[16:20]), int.from_bytes(png[20:24])) == size


@pytest.mark.parametrize("array", [np.ones(9), np.ones((3, 9)), np.ones((0, 9)), np.array([[b"x"] * 9] * 9, object),
                                   np.ones((9, 9), np.complex64)])
def test_other_tensors_are_none(array):
    assert tensor_png(array) is None


@pytest.mark.parametrize("array", [np.full((5, 5), np.nan), np.full((5, 5), 1e308),
                                   np.float64([[-1.7e308, 1.7e308] * 2] * 4),
                                   np.float32([[np.inf, 0, 1, -np.inf]] * 4)])
def test_pictures_of_odd_numbers_are_made(array):
    assert tensor_png(array).endswith(b"IEND\xaeB`\x82")
