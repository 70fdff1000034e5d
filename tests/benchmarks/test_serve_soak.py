"""The soak of a server: its line through samples, its judgement, and a short run."""

from __future__ import annotations

import json
import sys

import pytest

from benchmarks.serve_soak import LEAST_BYTES, Sample, faults_of, growth_of, main, slope_of

GOOD = {"statuses": {200: 5, 503: 5, 429: 1}, "memory": 1e8, "growth": 0.0, "threads": 0, "files": 0,
        "warm_up_seconds": 200.0}


def test_the_slope_is_per_minute_and_the_growth_from_end_to_end():
    samples = [Sample(float(second), 1000 + 5 * second, 7, 9) for second in range(100)]
    assert slope_of(samples) == pytest.approx(300)
    assert growth_of(samples) == pytest.approx(450)
    assert growth_of(samples, "threads") == 0
    assert slope_of(samples[:1]) == 0


@pytest.mark.parametrize(("change", "text"), [
    ({"statuses": {200: 1, 500: 3}}, "status 500: 3"), ({"statuses": {0: 2}}, "status 0: 2"),
    ({"growth": 6e6}, "memory grew by 6.0 MB"), ({"threads": 1.0}, "threads grew by 1"),
    ({"files": 2}, "files grew by 2")])
def test_a_fault_is_named(change, text):
    (fault,) = faults_of(GOOD | change)
    assert text in fault


@pytest.mark.parametrize("change", [
    {}, {"growth": LEAST_BYTES}, {"growth": 4e6}, {"growth": -1e9}, {"growth": 6e6, "warm_up_seconds": 59}])
def test_a_flat_server_has_no_fault(change):
    assert faults_of(GOOD | change) == []


def test_a_short_soak_of_workers_reports(tmp_path, monkeypatch, capfd):
    file = tmp_path / "report.json"
    monkeypatch.setattr(sys, "argv", ["serve_soak.py", "--minutes=0.02", "--workers=2", f"--json={file}"])
    assert main() == 0
    report = json.loads(file.read_text())
    assert report["statuses"]["200"] > 0
    assert "its slope" in capfd.readouterr().out
