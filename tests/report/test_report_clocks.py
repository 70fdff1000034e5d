"""The run of a report on several clocks: calls, memory and copies, each on the clock that timed it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace

import heald
import numpy as np
import pytest
from builders.graphs import node, placeholder
from heald.api import dtypes
from heald.cli import main
from heald.graphs.graph.graph import Graph
from heald.runtime.executor.trace import Event
from heald.runtime.program.host_program import COPY, Call
from heald.runtime.values.tensor import TensorMetadata
from heald_report.node_table import NodeTable, TextPool, bodies_of
from heald_report.run_record import run_record

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "frozen.pb"
GRAPH = Graph([placeholder("x", (2,)), node("a", "Neg", "x"), node("b", "Exp", "a"), node("c", "Neg", "b")])


def event(node_name, start, end, args, results, *, device="CPU:0", code="", to="", span=None, count=2, **attrs):
    """A call of `count` floats; `span` has the times of the device's own clock."""
    call = Call(code or (COPY if to else f"k.{node_name}"), args, results, attrs | ({"to": to} if to else {}),
                node=node_name)
    meta = TensorMetadata(dtypes.float32, (count,))
    return Event(call, device, 7, start, end, function="main", outputs=(meta,) * len(results),
                 timed=None if span is None else SimpleNamespace(span=span, origin_ns=0))


def trace_of(*events):
    """A trace whose sources follow from the registers."""
    def calls():
        producers = {}
        for entry in events:
            yield entry, [producers[register] for register in entry.call.args if register in producers]
            producers.update(dict.fromkeys(entry.call.results, entry))

    return SimpleNamespace(events=[*events], calls=calls, threads={7: "main"})


def record_of(*events, feeds=("x",)):
    pool = TextPool()
    record = run_record(trace_of(*events), NodeTable(bodies_of(GRAPH)), pool, feeds=feeds)
    json.dumps(record)
    return record, pool.texts


TWO_CLOCKS = (
    event("a", 1_000, 3_000, (0,), (1,), count=100),
    event("b", 4_000, 5_000, (1,), (2,), device="SIM:0", to="device", span=(9_000_000, 9_010_000), count=100),
    event("b", 6_000, 7_000, (2,), (3,), device="SIM:0", span=(9_010_000, 9_050_000), count=50),
    event("c", 8_000, 9_000, (3,), (4,), device="SIM:0", to="host", span=(9_060_000, 9_080_000), count=50),
    event("c", 20_000, 21_000, (4,), (5,), count=10))


def test_every_call_is_on_the_axis_of_its_clock():
    record, _ = record_of(*TWO_CLOCKS)
    assert record["clocks"] == [("host", 20.0), ("SIM:0", 80.0)]
    assert record["tracks"] == [("main", 0), ("SIM:0, its queue", 1)]
    assert [(row[0], row[1], row[2]) for row in record["calls"]] == [
        (0.0, 2.0, 0), (0.0, 10.0, 1), (10.0, 40.0, 1), (60.0, 20.0, 1), (19.0, 1.0, 0)]
    assert [row[11] for row in record["calls"]] == [None, [3.0, 1.0, 0], [5.0, 1.0, 0], [7.0, 1.0, 0], None]


def test_memory_is_of_one_device_on_its_own_clock():
    record, _ = record_of(*TWO_CLOCKS)
    host, device = record["memory"]
    assert (host["memory"], host["clock"], host["peak"], host["peak_us"]) == ("host memory", 0, 400, 0.0)
    # 100 floats until the enqueueing of their copy ends; 50 from the copy's enqueueing on; 10 to the end.
    assert host["samples"] == [(0.0, 400), (4.0, 0), (7.0, 200), (19.0, 240), (20.0, 0)]
    assert (device["memory"], device["clock"], device["peak"], device["peak_us"]) == ("SIM:0", 1, 600, 10.0)
    assert device["samples"] == [(0.0, 400), (10.0, 600), (50.0, 200), (80.0, 0)]
    assert [(name, nbytes) for name, nbytes, *_ in device["holders"]] == [("copy for b", 400), ("b", 200)]


def test_a_consumer_on_another_clock_keeps_a_result_to_the_end_of_its_clock():
    record, _ = record_of(
        event("a", 0, 10, (0,), (1,), device="SIM:0", span=(0, 10_000)),
        event("b", 20, 30, (1,), (2,), device="SIM:1", to="device", span=(500, 700), **{"from": 1}),
        event("c", 40, 50, (0,), (3,), device="SIM:0", span=(10_000, 90_000)))
    assert [row["memory"] for row in record["memory"]] == ["SIM:0", "SIM:1"]
    first = record["memory"][0]
    assert first["samples"] == [(0.0, 8), (10.0, 16), (90.0, 0)]


def test_work_that_a_device_without_a_clock_did_is_on_the_hosts_clock_and_its_memory_apart():
    record, _ = record_of(event("a", 0, 1_000, (0,), (1,)),
                          event("b", 1_000, 2_000, (1,), (2,), device="SIM:0", to="device"),
                          event("b", 2_000, 3_000, (2,), (3,), device="SIM:0"))
    assert record["clocks"] == [("host", 3.0)]
    assert [(row["memory"], row["clock"]) for row in record["memory"]] == [("host memory", 0), ("SIM:0", 0)]
    assert all(row[11] is None for row in record["calls"])


def test_a_copy_has_its_tensor_both_memories_bytes_and_calls():
    record, texts = record_of(*TWO_CLOCKS)
    rows = [[row[0], texts[row[3]], texts[row[4]], *row[5:]] for row in record["copies"]["rows"]]
    assert rows == [["a:0", "host memory", "SIM:0", 400, 10.0, 1, 1], ["b:0", "SIM:0", "host memory", 200, 20.0, 1, 3]]
    names = [*GRAPH.nodes]
    assert [(names[row[1]], names[row[2]]) for row in record["copies"]["rows"]] == [("a", "b"), ("b", "c")]


def test_copies_of_feeds_and_of_copies_have_the_first_tensors_name():
    to_second = event("c", 4, 5, (1,), (2,), device="SIM:1", to="device", span=(0, 3))
    record, texts = record_of(event("b", 0, 1, (0,), (1,), device="SIM:0", to="device", span=(0, 3)), to_second,
                              event("c", 6, 7, (9,), (3,), device="SIM:1", to="device", span=(3, 5)))
    rows = [(row[0], texts[row[3]], texts[row[4]]) for row in record["copies"]["rows"]]
    assert rows == [("x:0", "host memory", "SIM:0"), ("x:0", "SIM:0", "SIM:1"), ("a constant", "host memory", "SIM:1")]


def test_copies_of_a_models_outputs_have_the_tensors_behind_its_aliases(tmp_path):
    page = tmp_path / "digits.html"
    assert main(["report", str(DIGITS), "-o", str(page), "--device", "SIM:0"]) == 0
    run = json.loads(re.search(r'id="data">(.*?)</script>', page.read_text("utf-8"), re.DOTALL)[1])["run"]
    assert sorted(row[0] for row in run["copies"]["rows"]) == [
        "digit:0", "functional_1/logits_1/BiasAdd:0", "functional_1/probabilities_1/Softmax:0", "image:0"]


def test_copies_add_up_by_pair_of_memories():
    copies = [event("b", n, n + 1, (0,), (n + 1,), device="SIM:0", to="device", span=(1000 * n, 1000 * n + 500))
              for n in range(3)]
    record, texts = record_of(*copies, event("c", 50, 51, (3,), (5,), device="SIM:0", to="host", span=(5000, 6000)))
    pairs = [(texts[row[0]], texts[row[1]], *row[2:]) for row in record["copies"]["pairs"]]
    assert pairs == [("host memory", "SIM:0", 1, 3, 24, 1.5), ("SIM:0", "host memory", 1, 1, 8, 1.0)]


@pytest.mark.parametrize("events", [(), (event("a", 5, 5, (0,), (), count=0),)])
def test_a_run_without_results_has_a_record(events):
    record, _ = record_of(*events)
    assert record["memory"] == []
    assert record["copies"]["rows"] == []


def test_the_page_of_a_program_on_cpu_and_sim_has_both_clocks(tmp_path):
    nodes = [placeholder("x", (4,)), node("a", "Neg", "x", device="/device:CPU:0"),
             node("b", "Exp", "a", device="/device:SIM:0"), node("y", "Neg", "b", device="/device:CPU:0")]
    heald.graphdef.dump(Graph(nodes), tmp_path / "two.pb")
    page = tmp_path / "two.html"
    assert main(["report", str(tmp_path / "two.pb"), "-o", str(page)]) == 0
    text = page.read_text("utf-8")
    run = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])["run"]
    assert [name for name, _ in run["clocks"]] == ["host", "SIM:0"]
    assert sorted(row[0] for row in run["copies"]["rows"]) == ["a:0", "b:0"]
    assert [(row["memory"], row["clock"]) for row in run["memory"]] == [("host memory", 0), ("SIM:0", 1)]
    assert 'data-tab="copies"' in text
    for start, us, track, *_ in run["calls"]:
        assert 0 <= start <= start + us <= run["clocks"][run["tracks"][track][1]][1] + 0.02


def test_pairs_of_two_clocks_are_ordered_by_their_longer_time(tmp_path):
    graph = Graph([placeholder("x", (64, 64)), node("a", "MatMul", "x", "x"), node("b", "Neg", "a")])
    heald.graphdef.dump(graph, tmp_path / "m.pb")
    page = tmp_path / "m.html"
    assert main(["report", str(tmp_path / "m.pb"), "-o", str(page), "--device", "CPU:0",
                 "--compare-device", "SIM:0"]) == 0
    compared = json.loads(re.search(r'id="data">(.*?)</script>', page.read_text("utf-8"), re.DOTALL)[1])["comparison"]
    assert compared["clocks"] == ["SIM:0"]
    longest = [max(row[6:8]) for row in compared["pairs"]]
    assert longest == sorted(longest, reverse=True)
    assert np.isfinite(longest).all()
