"""Small work is done by the thread that asks for it."""

from __future__ import annotations

from typing import Any

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from harness.onednn_pair import conv, numbers
from heald.graphs.graph.graph import Node
from heald_onednn import primitives, threads_by_load
from heald_onednn.library import library

several = pytest.mark.skipif(library().threads == 1, reason="there is one core")


def matmul(name: str, *inputs: str) -> Node:
    return node(name, "MatMul", *inputs, transpose_a=False, transpose_b=False)


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of threads that each call of the library might use, while no other process needs the cores."""
    monkeypatch.setattr(threads_by_load, "spin_switch", lambda: None)
    thread_counts: list[int] = []
    attach, run = primitives.Primitive.attach, primitives.Primitive.run

    def note() -> None:
        thread_counts.append(library().c.omp_get_max_threads())

    def attach_and_note(self: Any, inputs: Any, outputs: Any) -> Any:
        call = attach(self, inputs, outputs)
        return lambda: (note(), call())

    def ran(self: Any, *arrays: Any) -> None:
        note()
        run(self, *arrays)

    monkeypatch.setattr(primitives.Primitive, "attach", attach_and_note)
    monkeypatch.setattr(primitives.Primitive, "run", ran)
    return thread_counts


def back(name: str, *inputs: str) -> Node:
    return conv(name, *inputs, op="Conv2DBackpropInput")


@several
@pytest.mark.parametrize(("nodes", "shape", "is_small"), [
    ([const("w", numbers(3, 3, 8, 16)), conv("y", "x", "w")], (1, 8, 8, 8), True),
    ([const("w", numbers(3, 3, 64, 64)), conv("y", "x", "w")], (1, 8, 8, 64), False),  # 2.4 million multiplications
    ([const("w", numbers(3, 3, 8, 1)), conv("y", "x", "w", op="DepthwiseConv2dNative")], (1, 16, 16, 8), True),
    ([const("w", numbers(3, 3, 8, 1)), conv("y", "x", "w", op="DepthwiseConv2dNative")], (1, 64, 64, 8), False),
    ([const("w", numbers(2, 2, 4, 8)), const("s", [1, 8, 8, 4], np.int32), back("y", "s", "w", "x")],
     (1, 8, 8, 8), True),
    ([const("w", numbers(5, 5, 64, 64)), const("s", [1, 8, 8, 64], np.int32), back("y", "s", "w", "x")],
     (1, 8, 8, 64), False),
    ([const("w", numbers(64, 32)), matmul("y", "x", "w")], (100, 64), True),
    ([const("w", numbers(64, 100)), matmul("y", "x", "w")], (300, 64), False),
    ([node("y", "BatchMatMulV2", "x", "x", adj_x=False, adj_y=False)], (4, 40, 40), True),
    ([node("y", "BatchMatMulV2", "x", "x", adj_x=False, adj_y=False)], (8, 60, 60), False),
    ([node("y", "Softmax", "x")], (100, 100), True),
    ([node("y", "Softmax", "x")], (300, 100), False),
])
def test_small_work_takes_one_thread_and_restores_the_number_of_threads(
    nodes: list[Node], shape: tuple[int, ...], is_small: bool, threads: list[int]
) -> None:
    for graph_of in (nodes, [*nodes, node("z", "Neg", "y")]):  # a result, which is another array in each run, or none
        with heald.Session(graph(placeholder("x", shape), *graph_of)) as session:
            for _ in range(2):
                session.run(graph_of[-1].name, {"x": numbers(*shape)})
    assert set(threads) == {1 if is_small else library().threads}
    assert library().c.omp_get_max_threads() == library().threads


def lstm(op: str, inputs: int, cells: int, time: int, batch: int) -> list[Node]:
    """The op as node `y` over x, with outputs h that is needed alone."""
    state = [const("c", numbers(batch, cells)), const("h", numbers(batch, cells))]
    weights = [const("w", numbers(inputs + cells, 4 * cells)), const("p", numbers(cells)),
               const("b", numbers(4 * cells))]
    length = [] if op == "LSTMBlockCell" else ["length"]
    return [const("length", time, np.int64), *state, *weights,
            node("y", op, *length, "x", "c", "h", "w", "p", "p", "p", "b", cell_clip=-1.0, use_peephole=False)]


@several
@pytest.mark.parametrize(("op", "inputs", "cells", "batch", "is_small"), [
    ("BlockLSTM", 16, 32, 1, True), ("BlockLSTMV2", 16, 32, 4, True), ("BlockLSTM", 128, 128, 8, True),
    ("BlockLSTM", 128, 256, 32, False), ("BlockLSTM", 256, 512, 1, False),
    ("LSTMBlockCell", 64, 64, 4, True), ("LSTMBlockCell", 256, 512, 4, False),
])
def test_a_sequence_of_small_steps_runs_on_one_thread(
    op: str, inputs: int, cells: int, batch: int, is_small: bool, threads: list[int]
) -> None:
    for time in (2, 300):  # the length of the sequence does not matter: the threads meet in each step
        shape = (batch, inputs) if op == "LSTMBlockCell" else (time, batch, inputs)
        with heald.Session(graph(placeholder("x", shape), *lstm(op, inputs, cells, time, batch))) as session:
            session.run("y:6", {"x": numbers(*shape)})
    assert set(threads) == {1 if is_small else library().threads}


@several
@pytest.mark.parametrize(("equation", "shape", "is_small"), [
    ("abc,acd->abd", (4, 40, 40), True), ("abc,acd->abd", (8, 60, 60), False), ("ab,bc->ac", (60, 60), True),
    ("ab,bc->ac", (200, 200), False),
])
def test_a_small_einsum_runs_on_one_thread(
    equation: str, shape: tuple[int, ...], is_small: bool, threads: list[int]
) -> None:
    product = node("y", "Einsum", "x", "x", N=2, equation=equation)
    with heald.Session(graph(placeholder("x", shape), product)) as session:
        session.run("y", {"x": numbers(*shape)})
    assert set(threads) == {1 if is_small else library().threads}


@several
def test_a_failing_call_restores_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def attach(*_: Any) -> Any:
        def call() -> None:
            raise heald.errors.Internal("no")

        return call

    monkeypatch.setattr(primitives.Primitive, "attach", attach)
    monkeypatch.setattr(primitives.Primitive, "run", lambda *_: attach()())
    session = heald.Session(graph(placeholder("x", (1, 10)), node("y", "Softmax", "x")))
    with pytest.raises(heald.errors.Internal):
        session.run("y", {"x": numbers(1, 10)})
    assert library().c.omp_get_max_threads() == library().threads
