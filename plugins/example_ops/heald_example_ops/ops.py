"""The op: its signature, and its metadata function, which has all checks of types and shapes."""

from __future__ import annotations

from functools import reduce

from heald.api import Attrs, InvalidArgument, OpSpec, ValueInfo, info, merge_shapes


def norm(attrs: Attrs, *tensors: ValueInfo) -> ValueInfo:
    """The tensors of the list argument `xs` are inputs of their own. Their shapes are equal, as far as they are
    known."""
    try:
        return info(attrs["T"], reduce(merge_shapes, (x.shape for x in tensors)))
    except ValueError as error:
        raise InvalidArgument(f"all tensors must have one shape: {error}") from None


NORM = OpSpec("Example>Norm", ["xs: N * T"], ["norm: T"],
              ["N: int >= 1", "T: {float, double}", "kind: {'l1', 'l2'} = 'l2'"], metadata=norm)
