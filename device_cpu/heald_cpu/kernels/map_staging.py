"""Kernels of staging maps, on the maps of `resources`. A map has no handle: the ops of one map have its name and
container."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from heald.api import AsyncValue, Bind, Kernels, Step, errors

from ..element_types import Array
from ..resources.staging_map import LookUp, StagedMap, StageParts

Run = Callable[..., Any]
ANY_KEY = None
KINDS = ("Map", "OrderedMap")  # the prefixes of the ops


def map_of(b: Bind) -> StagedMap:
    """The session's map for this node. Raises InvalidArgument for one of another kind or capacity, Unimplemented for a
    limit of memory."""
    if b.attrs["memory_limit"]:
        raise errors.Unimplemented(f"a staging map has no limit of memory, given memory_limit "
                                   f"{b.attrs['memory_limit']}", hint="limit the number of tuples: capacity")
    ordered = b.op.startswith("Ordered")
    kind = "OrderedStagingMap" if ordered else "StagingMap"
    name, capacity = b.attrs["shared_name"] or b.node, b.attrs["capacity"] or -1
    staged = b.resource("staging map", lambda: StagedMap(kind, name, capacity, ordered=ordered))
    if staged.kind != kind or (capacity >= 0 and staged.capacity != capacity):
        raise errors.InvalidArgument(f"{staged.title} has the capacity {staged.capacity}, used as a {kind} of "
                                     f"{capacity}")
    return staged


def stage(b: Bind) -> Run:
    staging_map, dtypes = map_of(b), list(b.attrs["dtypes"])
    tuples, fake_dtypes = staging_map.tuples, list(b.attrs["fake_dtypes"])
    if tuples.dtypes is None:
        tuples.dtypes = dtypes
    if tuples.dtypes != dtypes:
        raise errors.InvalidArgument(f"{staging_map.title} has the dtypes {[dtype.name for dtype in tuples.dtypes]}, "
                                     f"used with {[dtype.name for dtype in dtypes]}")

    def run(step: Step, key: Array, indices: Array, *values: Array) -> AsyncValue:
        places = _indices(indices, len(values))
        if places[0] < 0 or places[-1] >= len(dtypes):
            raise errors.InvalidArgument(f"the indices {places} of parts of a tuple of {len(dtypes)}")
        if [dtypes[index] for index in places] != fake_dtypes:
            raise errors.InvalidArgument(f"the parts {places} have the dtypes "
                                         f"{[dtypes[index].name for index in places]}, given "
                                         f"{[dtype.name for dtype in fake_dtypes]}")
        parts = dict(zip(places, [v.copy() for v in values], strict=True))
        return staging_map.bring(step, StageParts(key.item(), parts))

    return run


def _indices(indices: Array, count: int) -> list[int]:
    """The indices of parts. Raises InvalidArgument unless they ascend and are `count` in number."""
    places: list[int] = indices.reshape(-1).tolist()
    if len(places) != count or not places or any(a >= b for a, b in pairwise(places)):
        raise errors.InvalidArgument(f"{count} parts of a tuple have as many indices, in ascending order, given "
                                     f"{places}")
    return places


def unstage(b: Bind) -> Run:
    return _look_up(b, takes=True)


def peek(b: Bind) -> Run:
    return _look_up(b, takes=False)


def _look_up(b: Bind, *, takes: bool) -> Run:
    staging_map, dtypes = map_of(b), b.attrs["dtypes"]

    def run(step: Step, key: Array, indices: Array) -> list[AsyncValue]:
        return staging_map.take(step, LookUp(key.item(), _indices(indices, len(dtypes)), dtypes, takes=takes))

    return run


def unstage_any(b: Bind) -> Run:
    staging_map, dtypes = map_of(b), b.attrs["dtypes"]

    def run(step: Step, indices: Array) -> list[AsyncValue]:
        return staging_map.take(step, LookUp(ANY_KEY, _indices(indices, len(dtypes)), dtypes, takes=True))

    return run


def size(b: Bind) -> Run:
    staging_map = map_of(b)
    return lambda out: out.fill(len(staging_map.tuples.complete))


def incomplete_size(b: Bind) -> Run:
    staging_map = map_of(b)
    return lambda out: out.fill(len(staging_map.tuples.incomplete))


def clear(b: Bind) -> Run:
    staging_map = map_of(b)
    return lambda step: staging_map.clear()


def register_kernels(kernels: Kernels) -> None:
    for kind in KINDS:
        for op, bind in {"Stage": stage, "Unstage": unstage, "Peek": peek, "UnstageNoKey": unstage_any,
                         "Clear": clear}.items():
            kernels.kernel(f"{kind}{op}", asynchronous=True, step=True)(bind)
        kernels.kernel(f"{kind}Size")(size)
        kernels.kernel(f"{kind}IncompleteSize")(incomplete_size)
