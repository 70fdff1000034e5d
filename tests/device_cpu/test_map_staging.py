"""Staging maps: tuples that wait under keys, in parts or whole. TensorFlow's results, but where a docstring says so."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import heald
import numpy as np
import pytest
from builders.graphs import FLOAT, graph, placeholder
from heald.errors import DeadlineExceeded, InvalidArgument, Unimplemented
from heald.graphs.graph.node import Node
from heald.runtime.values import dtypes

INT, LONG = dtypes.int32, dtypes.int64
KINDS = FLOAT, INT, dtypes.string
SOON = heald.RunOptions(timeout=0.02)
ALL = (0, 1, 2)
VALUES: tuple[Any, ...] = (1.5, 2, b"x")
PARTS = [(0,), (1,), (0, 1), (0, 2), (1, 2), ALL]

on_both = pytest.mark.parametrize("ordered", [False, True])


class Map:
    """A session with a node for each op and each choice of parts."""

    def __init__(self, *, ordered: bool = False, **attrs: Any) -> None:
        prefix = "OrderedMap" if ordered else "Map"
        area = {"dtypes": KINDS, "shared_name": b"map"} | attrs
        nodes = [placeholder("key", None, LONG), placeholder("at", None, INT),
                 *(placeholder(f"v{i}", None, kind) for i, kind in enumerate(KINDS)),
                 *(Node(op, f"{prefix}{op}", attrs=area) for op in ("Size", "IncompleteSize", "Clear"))]
        for parts in PARTS:
            kinds, label = tuple(KINDS[i] for i in parts), "".join(map(str, parts))
            nodes.append(Node(f"Stage{label}", f"{prefix}Stage", ("key", "at", *(f"v{i}" for i in parts)),
                              attrs=area | {"fake_dtypes": kinds}))
            nodes += [Node(f"{op}{label}", f"{prefix}{op}", ("key", "at"), attrs=area | {"dtypes": kinds})
                      for op in ("Unstage", "Peek")]
            nodes.append(Node(f"Any{label}", f"{prefix}UnstageNoKey", ("at",), attrs=area | {"dtypes": kinds}))
        self.session = heald.Session(graph(*nodes))

    def stage(self, key: Any, parts: tuple[int, ...] = ALL, *values: Any, at: Any = None, soon: bool = False) -> None:
        values = values or tuple(VALUES[i] for i in parts)
        feeds = {"key": np.int64(key), "at": np.int32(parts if at is None else at),
                 **{f"v{i}": value for i, value in zip(parts, values, strict=True)}}
        self.session.run([], feeds, targets=["Stage" + "".join(map(str, parts))], options=SOON if soon else None)

    def get(self, key: int, parts: tuple[int, ...] = ALL, op: str = "Unstage", at: Any = None,
            soon: bool = False) -> list[Any]:
        label = f"{op}{''.join(map(str, parts))}"
        feeds = {"key": np.int64(key), "at": np.int32(parts if at is None else at)}
        if op == "Any":
            del feeds["key"]
        outputs = self.session.run([f"{label}:{i}" for i in range(len(parts) + (op == "Any"))], feeds,
                                   options=SOON if soon else None)
        return [value.tolist() for value in outputs]

    @property
    def sizes(self) -> tuple[int, int]:
        size, incomplete = self.session.run(["Size", "IncompleteSize"])
        return int(size), int(incomplete)


@on_both
def test_a_whole_tuple_is_looked_at_and_taken_by_its_key(ordered):
    staging_map = Map(ordered=ordered)
    staging_map.stage(5)
    staging_map.stage([3], ALL, [3.5], 2, b"y")
    assert staging_map.sizes == (2, 0)
    assert staging_map.get(5, op="Peek") == [1.5, 2, b"x"]
    assert staging_map.get(5) == [1.5, 2, b"x"]
    assert staging_map.sizes == (1, 0)
    assert staging_map.get(0, op="Any") == [3, [3.5], 2, b"y"]
    assert staging_map.sizes == (0, 0)


@on_both
def test_the_first_of_two_tuples_under_one_key_stays(ordered):
    staging_map = Map(ordered=ordered)
    staging_map.stage(5)
    staging_map.stage(5, ALL, 2.5, 2, b"y")
    assert staging_map.sizes == (1, 0)
    assert staging_map.get(5) == [1.5, 2, b"x"]


@on_both
def test_a_tuple_comes_in_parts_and_is_there_with_the_last(ordered):
    staging_map = Map(ordered=ordered)
    staging_map.stage(7, (0,), 9.0)
    assert staging_map.sizes == (0, 1)
    with pytest.raises(InvalidArgument, match=r"has the parts \[0\] already"):
        staging_map.stage(7, (0,), 9.0)
    with pytest.raises(DeadlineExceeded):
        staging_map.get(7, (0,), soon=True)
    staging_map.stage(7, (1, 2), 4, b"z")
    assert staging_map.sizes == (1, 0)
    assert staging_map.get(7) == [9.0, 4, b"z"]


@on_both
def test_a_tuple_goes_in_parts_and_is_gone_with_the_last(ordered):
    staging_map = Map(ordered=ordered)
    staging_map.stage(5)
    assert staging_map.get(5, (1,)) == [2]
    assert staging_map.sizes == (1, 0)
    for parts, op in (((1,), "Unstage"), ((1,), "Peek"), (ALL, "Unstage")):
        with pytest.raises(InvalidArgument, match=r"has the parts \[0, 2\], asked for"):
            staging_map.get(5, parts, op)
    staging_map.stage(5, (1,), 6)  # the part of another tuple, which is incomplete
    assert staging_map.sizes == (1, 1)
    assert staging_map.get(0, (0, 2), "Any") == [5, 1.5, b"x"]
    assert staging_map.sizes == (0, 1)


@pytest.mark.parametrize(("ordered", "keys"), [(False, [9, 0, -3, 5]), (True, [-3, 0, 5, 9])])
def test_any_key_is_the_newest_or_the_smallest(ordered, keys):
    """TensorFlow promises no order without `Ordered`; it is this one for these keys."""
    staging_map = Map(ordered=ordered)
    for key in (5, -3, 9, 0):
        staging_map.stage(key)
    keys_taken = [staging_map.get(0, op="Any")[0] for _ in range(4)]
    assert keys_taken == keys if ordered else sorted(keys_taken) == sorted(keys)


def test_a_full_map_makes_whole_tuples_wait_but_no_parts():
    staging_map = Map(capacity=2)
    staging_map.stage(1)
    staging_map.stage(2, (0,))
    staging_map.stage(3, (0,))
    staging_map.stage(2, (1, 2))
    staging_map.stage(3, (1, 2))
    assert staging_map.sizes == (3, 0)
    with pytest.raises(DeadlineExceeded):
        staging_map.stage(4, soon=True)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(staging_map.stage, 4)
        staging_map.get(1)
        assert not waiting.done()
        staging_map.get(2)
        waiting.result(5)
    assert staging_map.sizes == (2, 0)


def test_consumers_wait_for_their_own_keys_only():
    staging_map = Map()
    with ThreadPoolExecutor(3) as threads:
        waiting = {key: threads.submit(staging_map.get, key) for key in (1, 2, 3)}
        for key in (3, 1, 2):
            staging_map.stage(key, ALL, key / 2, key, b"")
            assert waiting[key].result(5) == [key / 2, key, b""]
    assert staging_map.sizes == (0, 0)


def test_clearing_drops_all_tuples_and_parts():
    staging_map = Map()
    staging_map.stage(1)
    staging_map.stage(2, (0,))
    staging_map.session.run([], targets=["Clear"])
    assert staging_map.sizes == (0, 0)
    staging_map.stage(2, (0,))
    assert staging_map.sizes == (0, 1)


def test_a_tuple_that_is_staged_or_looked_at_belongs_to_the_user():
    staging_map = Map()
    array = np.float32([1, 2])
    staging_map.stage(1, ALL, array, 2, b"")
    array[:] = 9
    look = {"key": np.int64(1), "at": np.int32([0])}
    staging_map.session.run("Peek0", look)[:] = 8
    assert staging_map.get(1)[0] == [1, 2]


@pytest.mark.parametrize("at", [[2, 1, 0], [0, 0, 1], [0, 1], [], [0, 1, 3], [-1, 0, 1]])
def test_indices_that_name_no_parts_are_refused(at):
    """TensorFlow writes beyond the tuple for the last two."""
    staging_map = Map()
    with pytest.raises(InvalidArgument, match=r"indices|dtypes"):
        staging_map.stage(1, ALL, at=at)
    staging_map.stage(5)
    with pytest.raises(InvalidArgument, match=r"indices|has the parts"):
        staging_map.get(5, ALL, at=at)
    assert staging_map.get(5) == [1.5, 2, b"x"]


def test_parts_of_other_dtypes_keys_that_are_many_and_a_limit_of_memory_are_refused():
    staging_map = Map()
    staging_map.stage(1)
    with pytest.raises(InvalidArgument, match="dtypes"):
        staging_map.stage(2, (0, 1), at=[1, 2])
    with pytest.raises(InvalidArgument, match="dtypes"):
        staging_map.get(1, (0, 1), at=[0, 2])
    with pytest.raises(InvalidArgument, match="key of a tuple"):
        staging_map.stage([7, 8])
    with pytest.raises(Unimplemented, match="memory_limit 9"):
        Map(memory_limit=9).stage(1)
