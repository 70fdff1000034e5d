"""Kernels that print sets of attributes, and a handle that is an error."""

from __future__ import annotations

from typing import Annotated

from heald.api import Chain, HostType, OpAttrs, Step, errors
from heald_eager.attrs_text import attrs_text
from heald_mlir.kernels.op_attributes import OpAttributesType
from heald_mlir.kernels.tensor_handles import Handle

Frozen = Annotated[OpAttrs, HostType("!corert.opattrs_ref", lambda payload: isinstance(payload, OpAttrs))]


def register(kernels):
    for function in (op_attrs_print, op_attrs_ref_print):
        kernels.kernel(f"tfrt_test.corert.{function.__name__}", step=True)(function)
    kernels.kernel("tfrt_test.corert.op_attrs_freeze")(op_attrs_freeze)
    kernels.kernel("tfrt_test.error_tensorhandle")(error_tensorhandle)


def op_attrs_print(step: Step, attrs: OpAttributesType, chain: Chain) -> Chain:
    _print(step, attrs.values)


def op_attrs_freeze(attrs: OpAttributesType, chain: Chain) -> tuple[Frozen, Chain]:
    return OpAttrs(attrs.values), None


def op_attrs_ref_print(step: Step, attrs: Frozen, chain: Chain) -> Chain:
    _print(step, attrs)


def error_tensorhandle() -> Handle:
    raise errors.Internal("invalid tensorhandle")


def _print(step, attrs):
    for line in attrs_text(attrs).split("\n"):
        step.host.print_line(line)
