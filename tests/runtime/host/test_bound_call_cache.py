"""Caches of links and bound calls are bounded by bytes, by their own accounting."""

from __future__ import annotations

import threading
import weakref
from functools import partial
from itertools import permutations

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from harness.garbage import collect
from harness.threads import in_threads
from heald.graphs.session import session as session_module
from heald.runtime.executor import executable
from heald.runtime.host.bound_call_cache import CALL_BYTES, BoundCalls
from heald.runtime.service.prepared_step import PREPARED_BYTES
from hypothesis import given
from hypothesis import strategies as st
from plugins_for_tests.acting_plugin import CONFIG, acts


class Shapes:
    """A call that is bound once for each shape."""

    def __init__(self, cache):
        self.kept = cache
        self.bound = set()

    def bind(self, key, nbytes):
        self.bound.add(key)
        self.kept.keep(self, key, nbytes)

    def forget(self, key):
        self.bound.discard(key)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 400)), max_size=60))
def test_the_oldest_calls_are_forgotten_until_the_others_fit(steps):
    cache = BoundCalls(1000)
    calls = [Shapes(cache) for _ in range(4)]
    order = []
    for key, (number, nbytes) in enumerate(steps):
        calls[number].bind(key, nbytes)
        order.append((key, nbytes))
        alive = set().union(*(call.bound for call in calls))
        assert cache.nbytes == sum(size for owner, size in order if owner in alive) <= 1000
        assert alive == {owner for owner, _ in order[-len(alive):]}


def test_a_call_that_is_larger_than_the_bound_is_kept_alone():
    cache = BoundCalls(1000)
    call = Shapes(cache)
    for key in range(3):
        call.bind(key, 5000)
        assert call.bound == {key}


def test_a_thread_waits_while_another_forgets_calls():
    cache = BoundCalls(1000)
    later = Shapes(cache)
    threads = []

    class Forgetful(Shapes):
        def forget(self, key):
            super().forget(key)
            threads.append(threading.Thread(target=later.bind, args=("late", 100)))
            threads[-1].start()
            threads[-1].join(0.05)
            assert cache.nbytes == 600
            assert threads[-1].is_alive()

    forgetful = Forgetful(cache)
    forgetful.bind("first", 600)
    forgetful.bind("second", 600)
    (thread,) = threads
    thread.join(10)
    assert (cache.nbytes, forgetful.bound, later.bound) == (700, {"second"}, {"late"})


def test_calls_whose_owner_is_gone_make_room_first():
    cache = BoundCalls(1000)
    dead_owner, call = Shapes(cache), Shapes(cache)
    call.bind("first", 400)
    dead_owner.bind("second", 500)
    del dead_owner
    call.bind("third", 400)
    assert call.bound == {"first", "third"}


@pytest.fixture
def session():
    return heald.Session(graph(placeholder("x", (None,)), const("two", 2), node("a", "Mul", "x", "two"),
                               node("b", "Neg", "a"), node("c", "Exp", "b")))


def test_shapes_without_end_keep_the_bytes_of_bound_calls_where_they_are(session, monkeypatch):
    memory = session.host.memory
    monkeypatch.setattr(memory, "bound_calls", cache := BoundCalls(40 * CALL_BYTES))
    run = session.make_callable("c", ["x"])
    for size in [*range(1, 61), *range(1, 61)]:
        x = np.full(size, 0.5, np.float32)
        np.testing.assert_allclose(run(x), np.exp(-2 * x), rtol=1e-6)
        assert cache.nbytes <= 40 * CALL_BYTES
    assert cache.nbytes > 20 * CALL_BYTES


def test_combinations_without_end_are_forgotten_from_the_oldest_on(session, monkeypatch):
    x = np.ones(3, np.float32)
    session.run("c", {"x": x})
    combinations = [weakref.ref(session.prepare("c", ["x"]))]
    combination_bytes = combinations[0]().memory_use()[0]
    monkeypatch.setattr(session_module, "MOST_PREPARED_BYTES", 4 * combination_bytes)
    for n in range(20):
        names = ["abc"[(n >> i) % 3] for i in range(5)]
        assert len(session.run(names, {"x": x})) == 5
        combinations.append(weakref.ref(session.prepare(names, ["x"])))
        assert sum(combination.memory_use()[0] for combination in alive(combinations)) <= 6 * combination_bytes
    assert 2 <= len(alive(combinations)) <= 6
    assert alive(combinations)[-1] is session.prepare(names, ["x"])


def alive(references):
    collect()
    return [referent for reference in references if (referent := reference()) is not None]


def test_thousands_of_combinations_are_bounded_and_forgotten_ones_are_freed(monkeypatch):
    monkeypatch.setattr(session_module, "MOST_PREPARED_BYTES", 20 * PREPARED_BYTES)
    names = [f"n{i}" for i in range(46)]
    session = heald.Session(graph(placeholder("x"), *(node(name, "Neg", "x") for name in names)))
    pairs = list(permutations(names, 2))
    combinations = [weakref.ref(session.prepare(pair, ["x"])) for pair in pairs]
    assert len(combinations) > 2000
    kept = alive(combinations)
    assert 2 <= len(kept) <= 21
    assert kept == [session.prepare(pair, ["x"]) for pair in pairs[-len(kept):]]


def test_a_callable_keeps_its_combination_and_nothing_else_does(session, monkeypatch):
    run = session.make_callable("c", ["x"])
    combinations = [weakref.ref(session.prepare("c", ["x"]))]
    monkeypatch.setattr(session_module, "MOST_PREPARED_BYTES", 0)
    for fetch in "ab":
        session.run(fetch, {"x": [1.0]})
        combinations.append(weakref.ref(session.prepare(fetch, ["x"])))
    assert alive(combinations) == [combinations[0](), combinations[2]()]
    assert run(np.zeros(2, np.float32)).tolist() == [1, 1]
    del run
    assert alive(combinations) == [combinations[2]()]


def test_combinations_whose_arrays_take_too_much_of_the_limit_are_forgotten():
    nodes = [placeholder("x", (None,)), *(node(f"a{n}", "Exp", "x") for n in range(6)),
             *(node(f"b{n}", "Neg", f"a{n}") for n in range(6))]
    session = heald.Session(graph(*nodes), {"limits": {"memory": 64 << 20}})
    x = np.zeros(1 << 20, np.float32)  # a frame of each combination takes 4 MiB
    combinations = []
    for n in range(6):
        session.run(f"b{n}", {"x": x})
        combinations.append(weakref.ref(session.prepare(f"b{n}", ["x"])))
    assert alive(combinations) == [combination() for combination in combinations[3:]]


@pytest.mark.parametrize(("size", "largest_idle_frames"), [(1000, 8), (3 << 13, 5), (1 << 18, 1)])
def test_a_program_of_much_memory_keeps_fewer_idle_frames(size, largest_idle_frames, monkeypatch):
    monkeypatch.setattr(executable, "LARGEST_IDLE_BYTES", 1 << 20)  # frames of 8 KB, 192 KiB, 2 MiB
    nodes = [placeholder("x", (size,)), node("a", "Exp", "x"), node("n", "Act>Act", "a"), node("b", "Neg", "n")]
    session = heald.Session(graph(*nodes), CONFIG)
    x = np.zeros(size, np.float32)
    session.run("b", {"x": x})
    frame_bytes = session.prepare("b", ["x"]).memory_use()[1]
    assert frame_bytes >= x.nbytes
    all_run = threading.Barrier(10)
    monkeypatch.setitem(acts, "n", partial(all_run.wait, 10))
    in_threads(lambda _: session.run("b", {"x": x}), 10)
    assert session.prepare("b", ["x"]).memory_use()[1] == largest_idle_frames * frame_bytes
