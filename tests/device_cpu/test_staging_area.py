"""Staging areas: tuples that wait between steps, first in, first out."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import heald
import numpy as np
import pytest
from builders.graphs import FLOAT, graph, placeholder
from heald.errors import DeadlineExceeded, InvalidArgument, Unimplemented
from heald.graphs.graph.node import Node
from heald.runtime.values import dtypes

INT = dtypes.int32
SOON = heald.RunOptions(timeout=0.02)


def session_of(capacity: int = 0, **other: object) -> heald.Session:
    area = {"dtypes": (INT, FLOAT), "shared_name": b"area", "capacity": capacity} | other
    return heald.Session(graph(
        placeholder("x", None, INT), placeholder("y"), placeholder("i", None, INT),
        Node("stage", "Stage", ("x", "y"), attrs=area), Node("unstage", "Unstage", attrs=area),
        Node("peek", "StagePeek", ("i",), attrs=area), Node("size", "StageSize", attrs=area),
        Node("clear", "StageClear", attrs=area)))


def stage(session: heald.Session, x: int, options: heald.RunOptions | None = None) -> None:
    session.run([], {"x": x, "y": [x, x]}, targets=["stage"], options=options)


def unstage(session: heald.Session, options: heald.RunOptions | None = None) -> list:
    return [value.tolist() for value in session.run(["unstage:0", "unstage:1"], options=options)]


def test_elements_leave_in_the_order_in_which_they_came() -> None:
    with session_of() as session:
        stage(session, 1)
        stage(session, 2)
        assert session.run("size") == 2
        assert session.run("peek:0", {"i": 1}) == 2
        assert [unstage(session), unstage(session)] == [[1, [1, 1]], [2, [2, 2]]]
        assert session.run("size") == 0


def test_an_empty_area_and_a_full_one_make_steps_wait() -> None:
    with session_of(capacity=1) as session, ThreadPoolExecutor(1) as threads:
        for fetch, feeds in (("unstage:0", {}), ("peek:0", {"i": 0})):
            with pytest.raises(DeadlineExceeded):
                session.run(fetch, feeds, options=SOON)
        waiting = threads.submit(unstage, session)
        stage(session, 3)
        assert waiting.result(5) == [3, [3, 3]]
        stage(session, 4)
        with pytest.raises(DeadlineExceeded):
            stage(session, 5, SOON)
        assert (session.run("size"), unstage(session)) == (1, [4, [4, 4]])


def test_a_waiting_peek_holds_up_no_other_step() -> None:
    with session_of() as session, ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(session.run, "peek:0", {"i": 1})
        for x in (1, 2):
            stage(session, x)
            if x == 1:
                assert unstage(session) == [1, [1, 1]]
        stage(session, 3)
        assert waiting.result(5) == 3


def test_a_cleared_area_has_room_for_those_who_wait() -> None:
    with session_of(capacity=1) as session, ThreadPoolExecutor(1) as threads:
        stage(session, 1)
        waiting = threads.submit(stage, session, 2)
        session.run([], targets=["clear"])
        waiting.result(5)
        assert unstage(session) == [2, [2, 2]]


def test_a_peeked_element_is_a_copy() -> None:
    with session_of() as session:
        stage(session, 1)
        session.run("peek:1", {"i": 0})[:] = np.float32(9)
        assert unstage(session) == [1, [1, 1]]


def test_faults_are_typed_errors() -> None:
    with session_of() as session, pytest.raises(InvalidArgument, match="index of an element is -1"):
        session.run("peek:0", {"i": -1})
    with session_of(memory_limit=100) as session, pytest.raises(Unimplemented, match="memory_limit 100"):
        session.run("size")
