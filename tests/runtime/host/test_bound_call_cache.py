"""Caches of links and bound calls are bounded by bytes, by their own accounting."""

from __future__ import annotations

import weakref
from collections import deque
from itertools import permutations

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from harness.garbage import collect
from heald.graphs.session import session as session_module
from heald.runtime.host.bound_call_cache import CALL_BYTES, BoundCalls
from heald.runtime.service.prepared_step import PREPARED_BYTES
from hypothesis import given
from hypothesis import strategies as st


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


def test_calls_are_noted_and_forgotten_under_the_lock():
    cache = BoundCalls(1000)
    owned_lock = []

    class Noted(deque):
        def append(self, row):
            owned_lock.append(cache._lock._is_owned())
            super().append(row)

    class Owner:
        def forget(self, _):
            owned_lock.append(cache._lock._is_owned())

    cache._kept, owner = Noted(), Owner()
    for key in range(3):
        cache.keep(owner, key, 600)
    assert owned_lock.count(True) == len(owned_lock) > 2
    assert not cache._lock._is_owned()


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
    (combination_bytes,) = (prepared.memory_use()[0] for prepared in session._prepared.values())
    monkeypatch.setattr(session_module, "MOST_PREPARED_BYTES", 4 * combination_bytes)
    for n in range(20):
        names = ["abc"[(n >> i) % 3] for i in range(5)]
        assert len(session.run(names, {"x": x})) == 5
        assert sum(prepared.memory_use()[0] for prepared in session._prepared.values()) <= 6 * combination_bytes
    assert 2 <= len(session._prepared) <= 6
    assert (tuple(names), ("x",), ()) in session._prepared


def test_thousands_of_combinations_are_bounded_and_forgotten_ones_are_freed(monkeypatch):
    monkeypatch.setattr(session_module, "MOST_PREPARED_BYTES", 20 * PREPARED_BYTES)
    names = [f"n{i}" for i in range(46)]
    session = heald.Session(graph(placeholder("x"), *(node(name, "Neg", "x") for name in names)))
    combinations = [weakref.ref(session.prepare(pair, ["x"])) for pair in permutations(names, 2)]
    assert len(combinations) > 2000
    assert len(session._prepared) <= 21
    collect()
    alive = [combination() for combination in combinations if combination() is not None]
    assert alive == [*session._prepared.values()]
    assert len(session._steps) == len(alive)


def test_a_callable_keeps_its_combination_and_nothing_else_does(session, monkeypatch):
    run = session.make_callable("c", ["x"])
    combination = weakref.ref(next(iter(session._prepared.values())))
    monkeypatch.setattr(session_module, "MOST_PREPARED_BYTES", 0)
    for fetch in "ab":
        session.run(fetch, {"x": [1.0]})
    assert [key[0] for key in session._prepared] == [("b",)]
    collect()
    assert run(np.zeros(2, np.float32)).tolist() == [1, 1]
    del run
    collect()
    assert combination() is None


def test_combinations_whose_arrays_take_too_much_of_the_limit_are_forgotten():
    nodes = [placeholder("x", (None,)), *(node(f"a{n}", "Exp", "x") for n in range(6)),
             *(node(f"b{n}", "Neg", f"a{n}") for n in range(6))]
    session = heald.Session(graph(*nodes), {"limits": {"memory": 64 << 20}})
    x = np.zeros(1 << 20, np.float32)  # a frame of each combination takes 4 MiB
    for n in range(6):
        session.run(f"b{n}", {"x": x})
    assert [key[0] for key in session._prepared] == [("b3",), ("b4",), ("b5",)]


def test_a_program_of_much_memory_keeps_fewer_idle_frames():
    session = heald.Session(graph(placeholder("x", (None,)), node("a", "Exp", "x"), node("b", "Neg", "a")))
    for size, largest_idle_frames in ((1000, 8), (3 << 20, 5), (1 << 25, 1)):  # frames of 4 KB, 12 MiB, 128 MiB
        executable = session.prepare("b", ["x"]).executable(((size,),))
        assert executable._most_idle == largest_idle_frames
