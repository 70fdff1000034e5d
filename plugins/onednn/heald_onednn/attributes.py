"""Attributes of primitives: the steps (post-ops) that compute each element of a result before it is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .declarations import ffi
from .library import library
from .memory import Layout, Operand

ARGUMENTS, FIRST, SECOND = 32768, 1, 2  # operands of step i are numbered from (i + 1) * ARGUMENTS


class Eltwise(NamedTuple):
    """x becomes function(x)."""

    algorithm: int
    alpha: float = 0.0
    beta: float = 0.0


class Binary(NamedTuple):
    """x becomes function(x, operand), whose layout may broadcast."""

    algorithm: int
    layout: Layout
    operand: Operand


class Sum(NamedTuple):
    """x becomes x + y, where y is the element that the result's memory holds before the call."""


PostOp = Eltwise | Binary | Sum


def number(name: str) -> int:
    """The value of a constant of the C headers."""
    return int(ffi.integer_const(name))


def attributes(post_ops: Sequence[PostOp] = (), scaled: int = 0) -> Any:
    """Make attributes with these steps, in order, and with scratch memory from the caller.

    `scaled`: a bit mask of the source's dimensions along which each call multiplies it by given numbers.
    """
    c, make, check = library().c, library().make, library().check
    steps = make("post_ops", c.dnnl_post_ops_create)
    for step in post_ops:
        if isinstance(step, Eltwise):
            check(c.dnnl_post_ops_append_eltwise(steps, *step), "step")
        elif isinstance(step, Sum):
            check(c.dnnl_post_ops_append_sum(steps, 1.0, 0, c.dnnl_data_type_undef), "step")
        else:
            check(c.dnnl_post_ops_append_binary(steps, step.algorithm, step.layout.descriptor), "step")
    primitive_attributes = make("primitive_attr", c.dnnl_primitive_attr_create)
    check(c.dnnl_primitive_attr_set_post_ops(primitive_attributes, steps), "steps")
    if scaled:
        check(c.dnnl_primitive_attr_set_scales_mask(primitive_attributes, FIRST, scaled), "scales")
    check(c.dnnl_primitive_attr_set_scratchpad_mode(primitive_attributes, c.dnnl_scratchpad_mode_user), "scratch mode")
    return primitive_attributes


def operands(post_ops: Sequence[PostOp]) -> dict[int, tuple[Layout, Operand]]:
    """The layouts and operands that the steps read, by the library's argument numbers."""
    return {(i + 1) * ARGUMENTS | SECOND: (step.layout, step.operand)
            for i, step in enumerate(post_ops) if isinstance(step, Binary)}
