"""Metadata of ops on tensors that a session keeps from run to run, under handles that are strings."""

from __future__ import annotations

from heald.api import Attrs, ValueInfo, dtypes, info

from .rules import rule
from .shapes import dims_of_rank


@rule("GetSessionHandle")
def session_handle(_: Attrs, value: ValueInfo) -> ValueInfo:
    return info(dtypes.string, ())


@rule("GetSessionHandleV2")
def session_resource(_: Attrs, value: ValueInfo) -> ValueInfo:
    return info(dtypes.resource, ())


@rule("GetSessionTensor")
def session_tensor(attrs: Attrs, handle: ValueInfo) -> ValueInfo:
    dims_of_rank(handle, 0, "the handle of a tensor")
    return info(attrs["dtype"], None)


@rule("DeleteSessionTensor")
def delete_session_tensor(_: Attrs, handle: ValueInfo) -> tuple[()]:
    dims_of_rank(handle, 0, "the handle of a tensor")
    return ()
