"""Metadata of ops on stacks. A popped tensor's shape is unknown before the run."""

from __future__ import annotations

from heald.api import Attrs, ValueInfo, dtypes, info

from .rules import rule
from .shapes import dims_of_rank


@rule("StackV2")
def stack(_: Attrs, max_size: ValueInfo) -> ValueInfo:
    dims_of_rank(max_size, 0, "max_size")
    return info(dtypes.resource, ())


@rule("StackPushV2")
def stack_push(_: Attrs, x: ValueInfo, elem: ValueInfo) -> ValueInfo:
    dims_of_rank(x, 0, "the handle of a stack")
    return info(elem.dtype, elem.shape)


@rule("StackPopV2")
def stack_pop(attrs: Attrs, x: ValueInfo) -> ValueInfo:
    dims_of_rank(x, 0, "the handle of a stack")
    return info(attrs["elem_type"], None)


@rule("StackCloseV2")
def stack_close(_: Attrs, x: ValueInfo) -> tuple[()]:
    dims_of_rank(x, 0, "the handle of a stack")
    return ()
