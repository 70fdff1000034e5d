"""Loops on the page: times and bytes count once, the calls inside stand below them, and names are those of nodes."""

from __future__ import annotations

import heald
import numpy as np
import pytest
from builders.graphs import const, node, placeholder
from harness.chromium import Browser, find_chromium
from heald import RunMetadata, RunOptions
from heald.api import Func
from heald.graphs.graph.function import Function
from heald.graphs.graph.graph import Graph, Node
from heald.runtime.contract.op import ArgDef
from heald_report.page import page_bytes, page_data

F32 = heald.api.dtypes.float32


def looped() -> Graph:
    """A loop that adds 1 up to 10."""
    body = Function("step", [ArgDef("i", F32)], [ArgDef("o", F32)],
                    [Node("one", "Const", [], attrs={"dtype": F32, "value": const("one", 1.0).attrs["value"]}),
                     Node("add", "AddV2", ["i", "one:output:0"], attrs={"T": F32})], {"o": "add:z:0"})
    test = Function("test", [ArgDef("i", F32)], [ArgDef("go", heald.api.dtypes.named("bool"))],
                    [Node("ten", "Const", [], attrs={"dtype": F32, "value": const("ten", 10.0).attrs["value"]}),
                     Node("less", "Less", ["i", "ten:output:0"], attrs={"T": F32})], {"go": "less:z:0"})
    nodes = [placeholder("x", ()), Node("loop", "While", ["x"], attrs={"T": [F32], "body": Func("step"),
                                                                      "cond": Func("test")}),
             node("y", "Neg", "loop")]
    return Graph(nodes, [body, test])


def run_loop(tmp_path):
    """The model of the loop, and the trace of a run."""
    metadata = RunMetadata()
    heald.graphdef.dump(looped(), tmp_path / "loop.pb")
    model = heald.load(tmp_path / "loop.pb")
    model.session.run([*model.fetched.values()], {model.fed["x"]: 0.0}, options=RunOptions(trace=True),
                      metadata=metadata)
    return model, metadata.trace


def test_results_inside_a_loop_end_with_it(tmp_path):
    model, trace = run_loop(tmp_path)
    memory, = page_data(model, trace)["run"]["memory"]
    assert [event.call.node for event in trace.events][-1] == "y"
    assert [alive for _, alive in memory["samples"] if alive][-1] == 4 + 4  # the result of the loop, and y


def test_a_view_has_no_bytes_and_its_consumers_are_those_of_the_buffer(tmp_path):
    int32 = heald.api.dtypes.int32
    heald.graphdef.dump(Graph([placeholder("x", (None, 4)), node("n", "Neg", "x"), placeholder("s", (None,), int32),
                               node("r", "Reshape", "n", "s", Tshape=int32), node("y", "Abs", "r")]),
                        tmp_path / "view.pb")
    model, metadata = heald.load(tmp_path / "view.pb"), RunMetadata()
    model.session.run([*model.fetched.values()],
                      {model.fed["x"]: np.ones((3, 4), np.float32), model.fed["s"]: np.array([12], np.int32)},
                      options=RunOptions(trace=True), metadata=metadata)
    calls = {event.call.node: (event, sources) for event, sources in metadata.trace.calls()}
    assert {name: event.views for name, (event, _) in calls.items()} == {"n": (), "r": (0,), "y": ()}
    assert [source.call.node for source in calls["y"][1]] == ["n"]
    memory, = page_data(model, metadata.trace)["run"]["memory"]
    assert (memory["peak"], [row[0] for row in memory["holders"]]) == (2 * 48, ["n", "y"])


@pytest.mark.skipif(find_chromium() is None, reason="no Chromium is installed")
def test_the_time_of_a_loop_counts_once_and_its_calls_stand_below_it(tmp_path):
    model, trace = run_loop(tmp_path)
    page = tmp_path / "loop.html"
    page.write_bytes(page_bytes(model, "loop", trace))
    browser = Browser(find_chromium(), tmp_path / "chromium")
    try:
        browser.open(f"file://{page}#tab=timeline")
        loop = "report.calls.find((call) => call.kernel === 'heald.while')"
        assert browser.value(f"{loop}.of.map((node) => report.nodes.name[node]).join()") == "loop"
        inner = ("report.calls.filter((call) => /Less|AddV2|chain/.test(call.kernel))"
                 ".reduce((sum, call) => sum + call.us, 0)")
        assert browser.value(f"Math.abs({loop}.us - {loop}.own - {inner}) < 1 && {loop}.own < {loop}.us")
        assert browser.value("report.calls.reduce((sum, call) => sum + call.own, 0) <= report.clocks[0].us + 1")
        names = browser.value("report.calls.flatMap((call) => call.of).map((node) => report.nodes.name[node])")
        assert names.count("add") == 10
        tops = browser.value("[...document.querySelectorAll('#timeline .call')].map((bar) => ["
                             "report.calls[bar.dataset.call].kernel, Number(bar.getAttribute('y'))])")
        rows = dict(tops)
        assert rows["cpu.AddV2"] > rows["heald.while"] == rows["cpu.Neg"]
        assert browser.value("report.calls.find((call) => call.kernel === 'cpu.AddV2').name") == "add"
        browser.value("report.showNode(report.nodes.name.indexOf('less'))")
        assert "Calls (11)" in browser.value("document.getElementById('details').innerText")
        browser.value("report.showTab('kernels')")
        assert "Loops and branches count without the calls inside" in browser.value(
            "document.getElementById('kernels').textContent")
        assert browser.logged == []
    finally:
        browser.close()
