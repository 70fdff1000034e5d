"""Recurrent layers run on one thread while other processes need the cores, and on all threads else."""

from __future__ import annotations

from typing import Any

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from harness.onednn_pair import NUMPY_ALONE, numbers
from heald_onednn import threads_by_load
from heald_onednn.library import library
from heald_onednn.single_thread import SingleThread

pytestmark = pytest.mark.skipif(library().threads == 1, reason="there is one core")
TIME, INPUTS, CELLS = 5, 128, 256


class Switch:
    """The switch of spinning, turned by the test."""

    is_throttled = False


@pytest.fixture
def switch(monkeypatch: pytest.MonkeyPatch) -> Switch:
    switch = Switch()
    monkeypatch.setattr(threads_by_load, "spin_switch", lambda: switch)
    monkeypatch.setattr(threads_by_load, "look_when_due", lambda _: None)
    return switch


@pytest.fixture
def single_runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The calls that one thread made: attached ones, and ones over new arrays."""
    calls: list[str] = []
    attach, run = SingleThread.attach, SingleThread.run

    def attach_and_note(self: Any, inputs: Any, outputs: Any) -> Any:
        call = attach(self, inputs, outputs)
        return lambda: (calls.append("attached"), call())[1]

    def run_and_note(self: Any, *arrays: Any) -> None:
        calls.append("run")
        run(self, *arrays)

    monkeypatch.setattr(SingleThread, "attach", attach_and_note)
    monkeypatch.setattr(SingleThread, "run", run_and_note)
    return calls


def layer(gates: int, op: str, *middle: str, **attrs: Any) -> list[Any]:
    return [placeholder("x", (TIME, 1, INPUTS)), const("l", TIME, np.int32), const("h", numbers(1, CELLS)),
            const("c", numbers(1, CELLS)), const("w", numbers(INPUTS, gates * CELLS) * 0.1),
            const("u", numbers(CELLS, gates * CELLS) * 0.1), const("b", numbers(gates * CELLS)),
            const("r", numbers(CELLS)), node("n", op, "l", "x", "h", *middle, **attrs), node("y", "Neg", "n")]


def test_a_layer_runs_on_one_thread_while_the_cores_are_needed(switch: Switch, single_runs: list[str]) -> None:
    model, x = graph(*layer(4, "_LSTMSequence", "c", "w", "u", "b")), numbers(TIME, 1, INPUTS)
    with heald.Session(model, config=NUMPY_ALONE) as session:
        expected = session.run("y", {"x": x})
    with heald.Session(model, config={"plugins": {"block": ["simplify"]}}) as session:
        for is_throttled in (False, True, False, True):
            switch.is_throttled = is_throttled
            before = len(single_runs)
            np.testing.assert_allclose(session.run("y", {"x": x}), expected, rtol=1e-4, atol=1e-5)
            assert (len(single_runs) > before) is is_throttled
            assert library().c.omp_get_max_threads() == library().threads
