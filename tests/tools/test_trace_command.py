"""heald trace: a run's kernel calls as a table, as JSON, for Perfetto, and for TensorFlow's tools."""

from __future__ import annotations

import json

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
