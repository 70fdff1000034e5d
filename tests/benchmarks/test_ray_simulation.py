"""Simulated steps: small clusters equal closed forms, and costs grow with the work of a step."""

from itertools import islice, pairwise
from math import inf, isclose, isinf
from statistics import mean

import pytest

MESSAGE, BYTE, BARRIER = 3e-4, 1e-9, 1e-4


@pytest.fixture
def simulation(module):
    return module("step_simulation")


@pytest.fixture
def constants(simulation):
    return simulation.Constants(MESSAGE, BYTE, BARRIER)


PATTERNS = ["no messages", "neighbours", "chain", "gather"]


def step_of(simulation, constants, pattern, parts, tensor_bytes=0.0):
    return simulation.simulate_step(constants, simulation.PATTERNS[pattern](len(parts)), parts, tensor_bytes)


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("seconds", [0.0, 1e-3, 2.0])
def test_one_worker_equals_its_closed_form(simulation, constants, pattern, seconds):
    assert isclose(step_of(simulation, constants, pattern, [seconds], 1e6), BARRIER + 2 * MESSAGE + seconds)


@pytest.mark.parametrize("workers", [1, 2, 7])
def test_answers_of_few_workers_overlap(simulation, constants, workers):
    expected = (workers + 1) * BARRIER / 2 + 2 * MESSAGE + 0.01
    assert isclose(step_of(simulation, constants, "no messages", [0.01] * workers), expected)


@pytest.mark.parametrize("workers", [100, 1000])
def test_the_barrier_of_many_workers_is_their_number_times_one(simulation, constants, workers):
    assert isclose(step_of(simulation, constants, "no messages", [0.0] * workers), workers * BARRIER)


@pytest.mark.parametrize("workers", [2, 5, 40])
def test_a_chain_adds_its_messages(simulation, constants, workers):
    hop = BARRIER + 1e6 * BYTE + MESSAGE
    expected = BARRIER + 2 * MESSAGE + workers * 0.1 + (workers - 1) * hop
    assert isclose(step_of(simulation, constants, "chain", [0.1] * workers, 1e6), expected)


def test_worker_0_takes_the_tensors_of_a_gather_one_after_the_other(simulation, constants):
    times = [step_of(simulation, constants, "gather", [0.0] * workers, 1e9) for workers in (11, 12)]
    assert isclose(times[1] - times[0], 1e9 * BYTE / 2 + BARRIER / 2, rel_tol=1e-2)


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("workers", [1, 2, 3, 17, 200])
def test_more_bytes_cost_no_less(simulation, constants, pattern, workers):
    for seed in range(3):
        parts = simulation.straggle(1e-3, workers, 0.5, simulation.Random(seed))
        times = [step_of(simulation, constants, pattern, parts, size) for size in (0, 1e3, 1e5, 1e6, 1e8)]
        assert all(less <= more for less, more in pairwise(times)), (seed, times)


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("name", ["message", "byte", "barrier"])
def test_a_larger_constant_costs_no_less(simulation, constants, pattern, name):
    parts = simulation.straggle(1e-3, 20, 0.2, simulation.Random(1))
    times = [step_of(simulation, constants._replace(**{name: getattr(constants, name) * factor}), pattern, parts, 1e5)
             for factor in (0, 1, 2, 10)]
    assert all(less <= more for less, more in pairwise(times))


@pytest.mark.parametrize("pattern", PATTERNS)
def test_more_workers_with_the_same_parts_cost_no_less(simulation, constants, pattern):
    times = [step_of(simulation, constants, pattern, [1e-3] * workers, 1e4) for workers in range(1, 40)]
    assert all(less <= more or isclose(less, more) for less, more in pairwise(times))


def test_the_same_seed_gives_the_same_steps(simulation, constants):
    def first(seed):
        return [*islice(simulation.simulate_steps(constants, "gather", 9, 1e-3, spread=0.3, seed=seed), 5)]

    assert first(4) == first(4)
    assert first(4) != first(5)


@pytest.mark.parametrize("workers", [1, 8, 64])
def test_the_slowest_part_follows_the_harmonic_numbers(simulation, workers):
    free = simulation.Constants(0.0, 0.0, 0.0)
    steps = islice(simulation.simulate_steps(free, "no messages", workers, 1.0, spread=0.5), 2000)
    assert mean(steps) == pytest.approx(1 + 0.5 * sum(1 / k for k in range(1, workers + 1)), rel=0.03)


def endless(seconds):
    return iter(lambda: seconds, None)


def failures(simulation, life=1e12, restart=10.0, save=5.0, interval=10):
    return simulation.Failures(life, restart, save, interval)


def test_a_run_without_failures_has_its_steps_and_saves(simulation):
    assert simulation.simulate_run(endless(2.0), 25, 4, failures(simulation)) == 25 * 2 + 2 * 5


def test_a_run_with_failures_is_longer_and_has_the_same_time_for_the_same_seed(simulation):
    times = [simulation.simulate_run(endless(1.0), 2000, 10, failures(simulation, life), seed=3)
             for life in (1e12, 5000.0, 5000.0, 500.0)]
    assert times[0] < times[1] == times[2] < times[3]


def test_a_run_whose_workers_fail_too_often_has_no_end(simulation):
    assert isinf(simulation.simulate_run(endless(1.0), 100, 1000, failures(simulation, life=100.0)))
    assert simulation.simulate_run(endless(1.0), 100, 1, failures(simulation, life=100.0)) < inf
