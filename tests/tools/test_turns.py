"""Runs in turn, under a clock that only pauses and runs move."""

import pytest
from heald.cli.printing import progress
from heald_tools import turns


@pytest.fixture
def clock(monkeypatch):
    """Makes runs of given lengths, and the list of the calls."""
    now = [0.0]
    log = []

    def pause(seconds):
        log.append("pause")
        now[0] += seconds

    monkeypatch.setattr(turns, "sleep", pause)
    monkeypatch.setattr(turns, "perf_counter", lambda: now[0])
    monkeypatch.setattr(progress, "monotonic", lambda: now[0])

    def run(name, seconds):
        def call():
            log.append(name)
            now[0] += seconds

        return call

    return run, log


def test_a_turn_is_a_pause_then_runs_that_are_not_timed_then_those_that_are(clock):
    run, log = clock
    turns_of_runs = turns.time_in_turns([run("a", 0.02), run("b", 0.03)], 0.0, "")
    assert log[:2] == ["a", "b"]  # how long they take
    assert log[2:20] == ["pause", *["a"] * 8, "pause", *["b"] * 8]
    assert [len(side) for side in turns_of_runs] == [5, 5]
    assert turns_of_runs[1][0] == pytest.approx([0.03] * 6)


def test_runs_that_are_short_fill_a_turn_and_wake_their_threads_before(clock):
    run, log = clock
    a, b = turns.time_in_turns([run("a", 0.00024), run("b", 0.02)], 0.0, "")
    assert {len(turn) for turn in a} == {42}
    assert {len(turn) for turn in b} == {6}
    assert log[2 : log.index("b", 2)] == ["pause", *["a"] * (21 + 42), "pause"]


def test_a_lone_runtime_is_timed_run_after_run(clock):
    run, log = clock
    turns_of_runs = turns.time_in_turns([run("a", 0.02)], 0.0, "")
    assert "pause" not in log
    assert sum(map(len, turns_of_runs[0])) == len(log) - 1


def test_turns_go_on_for_so_long_for_each(clock):
    run, _ = clock
    a, b = turns.time_in_turns([run("a", 0.02), run("b", 0.02)], 1.0, "")
    assert len(a) == len(b) == 6  # of 0.38 s both together: pauses and runs that are not timed count


def test_a_turn_of_a_long_run_is_one_run(clock):
    run, log = clock
    a, b = turns.time_in_turns([run("a", 0.02), run("b", 2.0)], 0.0, "")
    assert {len(turn) for turn in (*a, *b)} == {1}
    assert log[2:8] == ["pause", "a", "a", "pause", "b", "b"]


def test_the_ratio_is_the_median_over_turns_and_forgets_a_slow_run_and_a_slow_turn():
    ours = [[1.0, 1.0, 9.0], [50.0, 50.0, 50.0], [1.0, 1.0, 1.0]]
    theirs = [[2.0, 2.0, 2.0], [2.0, 2.0, 2.0], [4.0, 4.0, 0.0]]
    assert turns.ratio(ours, theirs) == 0.5
