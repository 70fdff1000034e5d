"""The switch of spinning: signs of other work throttle, a while without signs ends it."""

import os
import threading

import pytest
from heald_onednn import spinning
from heald_onednn.spinning import (
    CALM_SECONDS,
    LONGEST_CALM_SECONDS,
    LOOK_SECONDS,
    LOOKS,
    RELAPSE_SECONDS,
    SIGNS,
    SpinSwitch,
    involuntary_switches,
)


class World:
    """A clock, a count of involuntary switches, and the teams that were started."""

    def __init__(self):
        self.time, self.count, self.teams = 0.0, 0, []
        self.started = threading.Semaphore(0)
        self.switch = SpinSwitch(self.start_team, lambda: self.count, lambda: self.time)

    def start_team(self):
        self.teams.append(threading.current_thread())
        self.started.release()

    def be_crowded(self):
        for _ in range(LOOKS):
            self.pass_by(LOOK_SECONDS, SIGNS)

    def pass_by(self, seconds, signs):
        self.time += seconds
        self.count += signs
        self.switch.look()


@pytest.fixture
def world():
    world = World()
    yield world
    world.pass_by(10, 0)
    world.pass_by(10, 0)
    for thread in world.teams:
        thread.join(10)
        assert not thread.is_alive()


def test_signs_of_some_looks_hold_a_team_until_it_is_calm(world):
    world.be_crowded()
    assert world.switch.is_throttled
    assert world.started.acquire(timeout=10)
    world.pass_by(LOOK_SECONDS, SIGNS)
    world.pass_by(CALM_SECONDS / 2, 0)
    assert world.switch.is_throttled
    assert len(world.teams) == 1
    world.pass_by(CALM_SECONDS, 0)
    assert not world.switch.is_throttled
    world.be_crowded()
    assert world.started.acquire(timeout=10)
    assert len(world.teams) == 2


def test_signs_that_are_back_at_once_throttle_for_twice_as_long(world):
    calm = CALM_SECONDS
    for _ in range(8):
        world.be_crowded()
        assert world.switch.is_throttled
        assert world.started.acquire(timeout=10)
        world.pass_by(calm * 0.9, 0)
        assert world.switch.is_throttled
        world.pass_by(calm * 0.2, 0)
        assert not world.switch.is_throttled
        calm = min(2 * calm, LONGEST_CALM_SECONDS)
    world.pass_by(RELAPSE_SECONDS, 0)
    world.be_crowded()
    world.pass_by(CALM_SECONDS * 1.1, 0)
    assert not world.switch.is_throttled


def test_a_process_without_calls_lets_its_team_go(world, monkeypatch):
    monkeypatch.setattr(spinning, "CALM_SECONDS", 0.01)
    world.be_crowded()
    assert world.started.acquire(timeout=10)
    world.time += 60
    (thread,) = world.teams
    thread.join(10)
    assert not thread.is_alive()
    assert not world.switch.is_throttled


def test_few_signs_short_ones_and_signs_over_a_long_time_are_none(world):
    for _ in range(LOOKS):
        world.pass_by(LOOK_SECONDS, SIGNS - 1)
        world.pass_by(60, 100 * SIGNS)  # of a pause, or of other parts of the process
        for _ in range(LOOKS - 1):
            world.pass_by(LOOK_SECONDS, SIGNS)
        world.pass_by(LOOK_SECONDS, 0)
    assert not world.switch.is_throttled


def test_the_next_look_is_due_later(world):
    world.time = 5.0
    world.switch.look()
    assert world.switch.due == 5.0 + LOOK_SECONDS


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_begins_without_a_team(world):
    world.be_crowded()
    assert world.started.acquire(timeout=10)
    child = os.fork()
    if not child:
        os._exit(int(world.switch.is_throttled))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert world.switch.is_throttled


def test_each_caller_looks_for_its_helpers_once_and_a_fork_forgets_them():
    found = []
    switch = SpinSwitch(lambda: None, lambda: 0, find_helpers=lambda: found.append(threading.get_ident()) or ())
    for _ in range(3):
        switch.look()
    thread = threading.Thread(target=switch.look)
    thread.start()
    thread.join()
    assert found == [threading.get_ident(), thread.ident]
    assert set(switch.callers) == set(found)


def test_the_kernel_counts_switches():
    assert involuntary_switches() >= 0
