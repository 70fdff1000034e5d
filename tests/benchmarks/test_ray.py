"""Benchmarks on Ray: rows of tables, from times that are given instead of measured."""

import json

import pytest


def test_a_row_has_the_median_times_and_the_ratio_with_its_interval(module, monkeypatch):
    ray_sessions = module("ray_sessions")
    monkeypatch.setattr(ray_sessions, "seconds", lambda work, repeat: work() * repeat)
    times = {"heald": iter([9.0] * 3 + [0.002, 0.003, 0.004, 0.002]), "ray": iter([9.0] * 3 + [0.001] * 4)}
    comparison = ray_sessions.Comparison("1 kB", "3", lambda: next(times["heald"]), lambda: next(times["ray"]), 1)
    assert ray_sessions.measure(comparison, 4) == ["1 kB", "3", "2.50 ms", "1.00 ms", "2.50", "2.00 to 4.00"]


def test_the_graph_of_an_exchange_gives_an_element_there_and_back(module):
    import heald
    from heald.api import Graph

    graph = module("ray_sessions").exchange_graph(5)
    with heald.Session(Graph([node.replace(device="") for node in graph])) as session:
        assert [array.tolist() for array in session.run(["there", "back"])] == [[1.0], [1.0]]


def test_images_per_second_are_compared_with_processes_of_one_and_two_threads(module):
    times = {"one process, one thread": [2.0, 2.0], "one process, two threads": [1.0, 1.0],
             "one actor": [4.0, 4.0], "two actors": [2.0, 2.0]}
    rows = {(name, peer): (rate, ratio) for name, rate, peer, ratio, _ in module("ray_data").rows_of(times, 8)}
    assert rows == {
        ("one process, one thread", "one process, two threads"): ("4.0", "0.50"),
        ("one process, two threads", ""): ("8.0", ""),
        ("one actor", "one process, one thread"): ("2.0", "0.50"),
        ("one actor", "one process, two threads"): ("2.0", "0.25"),
        ("two actors", "one actor"): ("4.0", "2.00"),
        ("two actors", "one process, two threads"): ("4.0", "0.50")}


def test_constants_of_a_file_are_read_and_not_measured_again(module, tmp_path):
    path = tmp_path / "constants.json"
    path.write_text(json.dumps({"message": 1e-4, "byte": 1e-9, "barrier": 2e-4, "work": 5e-5}))
    constants, work = module("ray_simulation").read_or_measure(path, 1)
    assert (constants.message, constants.byte, constants.barrier, work) == (1e-4, 1e-9, 2e-4, 5e-5)


@pytest.mark.parametrize("seconds", [0.1])
def test_work_ends_scaling_where_the_barrier_takes_as_long(module, seconds):
    constants = module("step_simulation").Constants(3e-4, 1e-9, 1e-4)
    best, efficient = module("ray_simulation").best_workers(constants, seconds, 0)
    assert efficient <= best < 4 * (seconds / constants.barrier) ** 0.5
