"""heald trace: a run's kernel calls as a table, as JSON, for Perfetto, and for TensorFlow's tools."""

from __future__ import annotations

import json
import re

from heald.graphs.protobuf import parse_message


def test_the_calls_of_a_run_are_told_in_order(command, digits):
    report = json.loads(command("trace", digits / "frozen.pb", "--input", f"{digits / 'test.npz'}:image", "--json").out)
    calls = report["calls"]
    assert {call["device"] for call in calls} == {"CPU:0"}
    assert calls[0]["start"] == 0.0
    assert [call["start"] for call in calls] == sorted(call["start"] for call in calls)
    assert any(call["outputs"] == ["float32[540,10]"] for call in calls)


def test_the_trace_and_the_message_are_written(command, digits, tmp_path):
    chrome, message = tmp_path / "trace.json", tmp_path / "run.pb"
    stdout = command("trace", digits / "frozen.pb", "--input", f"{digits / 'test.npz'}:image", "-o", str(chrome),
                     "--metadata", str(message)).out
    assert f"written: {chrome}, {message}" in stdout
    rows = [row for row in json.loads(chrome.read_text())["traceEvents"] if row["ph"] == "X"]
    stats = parse_message("RunMetadata", message.read_bytes()).step_stats.dev_stats[0].node_stats
    assert len(rows) == len(stats) > 5


def test_calls_of_two_clocks_have_a_column_and_totals_of_each(command, digits):
    arguments = ("trace", digits / "frozen.pb", "--device", "SIM:0", "--input", f"{digits / 'test.npz'}:image")
    out = command(*arguments).out
    assert out.split()[0] == "clock"
    assert re.search(r"calls in [\d.]+ ms of the host's clock and [\d.]+ ms of SIM:0's clock on ", out)
    calls = json.loads(command(*arguments, "--json").out)["calls"]
    for clock in ("host", "SIM:0"):
        starts = [call["start"] for call in calls if call["clock"] == clock]
        assert clock == "host" or min(starts) == 0
        assert all(start >= 0 for start in starts)
