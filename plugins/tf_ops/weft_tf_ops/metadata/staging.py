"""Metadata of ops on staging areas. The shapes of what an area gives are unknown before the run."""

from __future__ import annotations

from weft.api import Attrs, InvalidArgument, ValueInfo, dtypes, info

from .rules import rule
from .shapes import ranked


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
    ranked(index, 0, "the index of an element")
    return unstage(attrs)


@rule("StageSize")
def size(_: Attrs) -> ValueInfo:
    return info(dtypes.int32, ())


@rule("StageClear")
def clear(_: Attrs) -> tuple[()]:
    return ()
