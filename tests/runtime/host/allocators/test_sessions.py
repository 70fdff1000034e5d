"""Allocators of sessions: chosen by config, failing at every request, with results that outlive a run."""

from __future__ import annotations

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from heald.errors import InvalidArgument, ResourceExhausted

X = np.arange(2000, dtype=np.float32).reshape(2, 1000)
NODES = (placeholder("x", (None, 1000)), const("two", 2), node("a", "Mul", "x", "two"), node("b", "Neg", "a"),
         node("c", "Exp", "b"), node("d", "AddV2", "a", "c"))
PLUGIN = """
from dataclasses import dataclass
from heald.runtime.host.allocators.counting import CountingAllocator
from heald.runtime.host.allocators.failing import FailingAllocator
from heald.api import hookimpl

HEALD_API = (1, 0)

@dataclass(frozen=True)
class Config:
    nth: int

@hookimpl
def heald_allocators(registry, config):
    registry.add("at", lambda: FailingAllocator(config.nth, CountingAllocator()))
"""


def expected_result(x):
    return x * 2 + np.exp(-(x * 2))


def allocator_of(session):
    return session.host.allocator


def test_a_step_whose_kth_request_finds_no_memory_fails_and_the_next_one_works(tmp_path):
    path = tmp_path / "at.py"
    path.write_text(PLUGIN)
    messages = []
    frame = 16_000  # bytes of the idle frame
    for nth in range(1, 5):  # of the four requests of three runs; the trial of the allocator makes four before
        session = heald.Session(graph(*NODES), {"plugins": {"load": [str(path)]}, "allocator": {"name": "at"},
                                                "plugin": {"at": {"nth": nth + 4}}})
        step = session.make_callable("d", ["x"])
        for _ in range(3):
            try:
                result = step(X)
            except ResourceExhausted as error:
                # while the error lives, its traceback holds what the step had
                messages.append((nth, str(error), error.node, error.device))
            else:
                np.testing.assert_allclose(result, expected_result(X), rtol=1e-6)
                del result
            assert allocator_of(session).stats().in_use in (0, frame)
        np.testing.assert_allclose(step(X), expected_result(X), rtol=1e-6)
        assert allocator_of(session).stats().in_use == frame
    assert [nth for nth, *_ in messages] == list(range(1, len(messages) + 1))
    assert all(f"bytes: request {nth + 4} is made to fail" in text for nth, text, *_ in messages)
    assert {(node, device[:3]) for _, _, node, device in messages} == {("a", "CPU"), ("d", "CPU")}


@pytest.mark.parametrize("name", ["plain", "pooled", "counting", "poisoning"])
@pytest.mark.parametrize("limit", [None, "100MB"])
def test_results_under_any_given_allocator_are_right_and_stay(name, limit):
    session = heald.Session(graph(*NODES), {"allocator": {"name": name, "limit": limit}})
    results = [session.run(["a", "d"], {"x": X + i}) for i in range(5)]
    for i, (a, d) in enumerate(results):
        assert np.array_equal(a, (X + i) * 2)
        np.testing.assert_allclose(d, expected_result(X + i), rtol=1e-6)
    assert allocator_of(session).stats().limit == (None if limit is None else 100_000_000)


def test_a_step_that_needs_more_than_the_limit_is_refused_and_a_smaller_one_works():
    session = heald.Session(graph(*NODES), {"allocator": {"limit": "20 KB"}})
    with pytest.raises(ResourceExhausted, match="the limit is 20000 bytes"):
        session.run("d", {"x": np.repeat(X, 100, 0)})
    assert allocator_of(session).stats().in_use == 0
    np.testing.assert_allclose(session.run("d", {"x": X[:1]}), expected_result(X[:1]), rtol=1e-6)


def test_a_limit_that_cannot_be_read_is_an_error_of_the_session():
    with pytest.raises(InvalidArgument, match="'plenty' is not a limit of memory"):
        heald.Session(graph(*NODES), {"allocator": {"limit": "plenty"}})


def test_the_environment_sets_the_limit(monkeypatch):
    for text, limit in (("1000", 1000), ("64KiB", 65536), ("none", None)):
        monkeypatch.setenv("HEALD_ALLOCATOR__LIMIT", text)
        assert allocator_of(heald.Session(graph(*NODES), {"plugins": {"block": []}})).stats().limit == limit
