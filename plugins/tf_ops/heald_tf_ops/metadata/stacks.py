"""Metadata of ops on stacks. A popped tensor's shape is unknown before the run."""

from __future__ import annotations

from heald.api import Attrs, ValueInfo, dtypes, info

from .rules import rule
from .shapes import ranked


@rule("StackV2")
def stack(_: Attrs, most: ValueInfo) -> ValueInfo:
    ranked(most, 0, "max_size")
    return info(dtypes.resource, ())


@rule("StackPushV2")
def push(_: Attrs, x: ValueInfo, elem: ValueInfo) -> ValueInfo:
    ranked(x, 0, "the handle of a stack")
    return info(elem.dtype, elem.shape)


@rule("StackPopV2")
def pop(attrs: Attrs, x: ValueInfo) -> ValueInfo:
    ranked(x, 0, "the handle of a stack")
    return info(attrs["elem_type"], None)


@rule("StackCloseV2")
def close(_: Attrs, x: ValueInfo) -> tuple[()]:
    ranked(x, 0, "the handle of a stack")
    return ()
