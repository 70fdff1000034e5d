"""Metadata of ops on staging areas and maps. The shapes of their outputs are unknown before the run."""

from __future__ import annotations

from heald.api import Attrs, InvalidArgument, ValueInfo, dtypes, info

from .rules import rule
from .shapes import check_single, dims_of_rank


@rule("Stage")
def stage(attrs: Attrs, *values: ValueInfo) -> tuple[()]:
    if len(values) != len(attrs["dtypes"]):
        raise InvalidArgument(f"a staging area of {len(attrs['dtypes'])} components is given {len(values)}")
    return ()


@rule("Unstage")
def unstage(attrs: Attrs) -> tuple[ValueInfo, ...]:
    return tuple(info(dtype, None) for dtype in attrs["dtypes"])


@rule("StagePeek")
def peek(attrs: Attrs, index: ValueInfo) -> tuple[ValueInfo, ...]:
    dims_of_rank(index, 0, "the index of an element")
    return unstage(attrs)


@rule("StageSize", "MapSize", "MapIncompleteSize", "OrderedMapSize", "OrderedMapIncompleteSize")
def size(_: Attrs) -> ValueInfo:
    return info(dtypes.int32, ())


@rule("StageClear", "MapClear", "OrderedMapClear")
def clear(_: Attrs) -> tuple[()]:
    return ()


@rule("MapStage", "OrderedMapStage")
def map_stage(attrs: Attrs, key: ValueInfo, indices: ValueInfo, *values: ValueInfo) -> tuple[()]:
    check_single(key, "the key of a tuple", most_rank=1)
    if len(values) > len(attrs["dtypes"]):
        raise InvalidArgument(f"a staging map of {len(attrs['dtypes'])} parts is given {len(values)}")
    return ()


@rule("MapUnstage", "MapPeek", "OrderedMapUnstage", "OrderedMapPeek")
def map_unstage(attrs: Attrs, key: ValueInfo, indices: ValueInfo) -> tuple[ValueInfo, ...]:
    check_single(key, "the key of a tuple", most_rank=1)
    return unstage(attrs)


@rule("MapUnstageNoKey", "OrderedMapUnstageNoKey")
def map_unstage_any(attrs: Attrs, indices: ValueInfo) -> tuple[ValueInfo, ...]:
    return info(dtypes.int64, ()), *unstage(attrs)
