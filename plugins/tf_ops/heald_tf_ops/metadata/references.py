"""Metadata of ops on reference variables, for graphs that are looked at before the pass `references` replaces them.

An op that changes a variable returns its reference. A shape is that of the declaration: like TensorFlow, no rule heeds
an Assign elsewhere that gives the variable another shape.
"""

from __future__ import annotations

from heald.api import Attrs, ValueInfo, dtypes, info

from ..references import UPDATES
from .rules import rule
from .shapes import dims_of_rank, same_shape

REBOUND = ("Assign", "AssignAdd", "AssignSub")


@rule("VariableV2", "TemporaryVariable")
def variable(attrs: Attrs) -> ValueInfo:
    return info(attrs["dtype"], attrs["shape"])


@rule("Variable")
def legacy_variable(attrs: Attrs) -> ValueInfo:
    """The shape [] stood for any shape in the first version of the op."""
    return info(attrs["dtype"], attrs["shape"] or None)


@rule(*REBOUND)
def assign(attrs: Attrs, ref: ValueInfo, value: ValueInfo) -> ValueInfo:
    if not attrs.get("validate_shape", True):
        return info(attrs["T"], value.shape)
    return info(attrs["T"], same_shape((ref.shape, value.shape), "a variable and its new value must agree in shape"))


@rule(*sorted(UPDATES.keys() - set(REBOUND)), "DestroyTemporaryVariable", "RefIdentity", "DebugGradientRefIdentity")
def update_reference(attrs: Attrs, ref: ValueInfo, *_: ValueInfo) -> ValueInfo:
    return info(ref.dtype, ref.shape)


@rule("CountUpTo")
def count_up_to(attrs: Attrs, ref: ValueInfo) -> ValueInfo:
    dims_of_rank(ref, 0, "what counts")
    return info(attrs["T"], ())


@rule("IsVariableInitialized")
def is_initialized(_: Attrs, ref: ValueInfo) -> ValueInfo:
    return info(dtypes.bool_, ())


@rule("RefSelect")
def select(attrs: Attrs, index: ValueInfo, *refs: ValueInfo) -> ValueInfo:
    """The shape of the references where it is known of each, and the same."""
    dims_of_rank(index, 0, "index")
    shapes = {ref.shape for ref in refs}
    shape = next(iter(shapes)) if len(shapes) == 1 else None
    return info(attrs["T"], None if shape is None or None in shape else shape)
