"""Kernels that train resource variables: one step of an optimizer, on whole variables or on rows of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from heald.api import Bind, Kernels, dtypes, errors

from ..element_types import COMPLEX, FLOATS, Array
from ..resources.variable import Variable, variable
from . import update_rules as rules
from .index_checks import check_inside

Arrays = Sequence[Array]
Formula = Callable[..., Arrays]  # the new arrays of the variables, from the old ones, then what else the op takes
Numbers = Sequence[Any]  # scalars
Run = Callable[..., None]

CACHED_BYTES = 1 << 17  # bytes of the gradient; the results of a formula over as many stay in the cache
NESTEROV, SLOTS, SCALED = ("use_nesterov",), ("update_slots",), ("multiply_linear_by_lr",)
ANY, WIDE, NO_BFLOAT = FLOATS + COMPLEX, ("float32", "float64"), ("float16", "float32", "float64", *COMPLEX)


class Optimizer(NamedTuple):
    """`gradient`: its place among the inputs that are no variables. `flags`: attributes that are the formula's and the
    check's too, by name. `check` raises InvalidArgument where the formula is not defined for the numbers."""

    op: str
    formula: Formula
    gradient: int
    types: tuple[str, ...]
    flags: tuple[str, ...] = ()
    check: Callable[..., None] = lambda *_, **__: None


DENSE_OPTIMIZERS = (
    Optimizer("GradientDescent", rules.gradient_descent, 1, ANY),
    Optimizer("Momentum", rules.momentum, 1, ANY, NESTEROV),
    Optimizer("KerasMomentum", rules.keras_momentum, 1, ANY, NESTEROV),
    Optimizer("Adagrad", rules.adagrad, 1, ANY, SLOTS),
    Optimizer("AdagradV2", rules.adagrad_v2, 2, ANY, SLOTS),
    Optimizer("AdagradDA", rules.adagrad_da, 0, WIDE),
    Optimizer("Adadelta", rules.adadelta, 3, ANY),
    Optimizer("Adam", rules.adam, 6, ANY, NESTEROV),
    Optimizer("AdamWithAmsgrad", rules.amsgrad, 6, FLOATS),
    Optimizer("AdaMax", rules.adamax, 5, ("float16", *WIDE)),
    Optimizer("RMSProp", rules.rms_prop, 4, ANY),
    Optimizer("CenteredRMSProp", rules.centered_rms_prop, 4, ANY),
    Optimizer("Ftrl", rules.ftrl, 0, FLOATS, SCALED),
    Optimizer("FtrlV2", rules.ftrl_v2, 0, FLOATS, SCALED),
    Optimizer("AddSign", rules.add_sign, 4, FLOATS),
    Optimizer("PowerSign", rules.power_sign, 4, FLOATS),
    Optimizer("ProximalGradientDescent", rules.proximal_gradient_descent, 3, WIDE),
    Optimizer("ProximalAdagrad", rules.proximal_adagrad, 3, WIDE, check=rules.check_proximal),
)
SPARSE_OPTIMIZERS = (
    Optimizer("Momentum", rules.sparse_momentum, 1, ANY, NESTEROV),
    Optimizer("KerasMomentum", rules.keras_momentum, 1, ANY, NESTEROV),
    Optimizer("Adagrad", rules.adagrad, 1, ANY, SLOTS),
    Optimizer("AdagradV2", rules.adagrad_v2, 2, ANY, SLOTS),
    Optimizer("AdagradDA", rules.sparse_adagrad_da, 0, WIDE),
    Optimizer("Adadelta", rules.adadelta, 3, ANY),
    Optimizer("RMSProp", rules.sparse_rms_prop, 4, NO_BFLOAT),
    Optimizer("CenteredRMSProp", rules.sparse_centered_rms_prop, 4, NO_BFLOAT),
    Optimizer("Ftrl", partial(rules.ftrl, minimum=rules.beyond_limits), 0, FLOATS, SCALED, rules.check_ftrl),
    Optimizer("FtrlV2", partial(rules.ftrl_v2, minimum=rules.beyond_limits), 0, FLOATS, SCALED, rules.check_ftrl_v2),
    Optimizer("ProximalGradientDescent", rules.proximal_gradient_descent, 3, WIDE),
    Optimizer("ProximalAdagrad", rules.proximal_adagrad, 3, WIDE, check=rules.check_proximal),
)


def training(row: Optimizer, *, sparse: bool) -> Callable[[Bind], Run]:
    """The bind function. Inputs are the variables, then numbers with the gradient among them, behind which a sparse op
    has the indices of the variables' rows that it is for."""

    def bind(b: Bind) -> Run:
        flags = {name: b.attrs[name] for name in row.flags}
        count, dtype = [x.dtype for x in b.inputs].count(dtypes.resource), b.attrs["T"].numpy

        def run(*inputs: Array) -> None:
            *before, grad = inputs[count : count + row.gradient + 1]
            after = list(inputs[count + row.gradient + 1 :])
            change = partial(in_rows, after.pop(0), grad) if sparse else partial(in_pieces, grad)
            numbers = [x[()] for x in before], [x[()] for x in after]
            row.check(*numbers[0], *numbers[1], **flags)
            step = with_numbers(partial(row.formula, **flags), *numbers)
            Variable.change_together([variable(x) for x in inputs[:count]], dtype, partial(change, step))

        return run

    return bind


def with_numbers(formula: Formula, before: Numbers, after: Numbers) -> Formula:
    """The formula as a function of the old arrays and the gradient, which has these numbers around it."""
    return lambda *arrays: formula(*arrays[:-1], *before, arrays[-1], *after)


def in_pieces(grad: Array, step: Formula, *olds: Array) -> Arrays:
    """The new arrays, made piece by piece. Raises InvalidArgument where shapes differ."""
    for x in (*olds, grad):
        check_shapes(olds[0].shape, x.shape)
    news = [np.empty(x.shape, x.dtype) for x in olds]
    flat_inputs, flat_news = [x.reshape(-1) for x in (*olds, grad)], [x.reshape(-1) for x in news]
    length = CACHED_BYTES // grad.itemsize
    for start in range(0, grad.size, length):
        block = slice(start, start + length)
        for into, new in zip(flat_news, step(*(x[block] for x in flat_inputs)), strict=True):
            into[block] = new
    return news


def in_rows(indices: Array, grad: Array, step: Formula, *olds: Array) -> Arrays:
    """The new arrays: rows of the old ones are updated, one after the other. Raises InvalidArgument where shapes differ
    or there are no such rows."""
    count = len(olds[0]) if olds[0].ndim else 0
    for x in olds:
        check_shapes(x.shape, (count, *grad.shape[1:]))
    check_inside(indices, count)
    news = [x.copy() for x in olds]
    for places in turns(indices):
        rows = indices[places]
        for new_variable, new in zip(news, in_pieces(grad[places], step, *(x[rows] for x in news)), strict=True):
            new_variable[rows] = new
    return news


def check_shapes(var: tuple[int, ...], other: tuple[int, ...]) -> None:
    if var != other:
        raise errors.InvalidArgument(f"var, its slots and grad do not have the same shape: {list(var)}, {list(other)}")


def turns(indices: Array) -> list[Array]:
    """The places of `indices`, in groups in which no index is twice, and such that the places of an index come in
    order."""
    order = np.argsort(indices, kind="stable")
    starts = np.flatnonzero(np.diff(indices[order], prepend=-1))
    lengths = np.diff(starts, append=len(order))
    turn = np.arange(len(order)) - np.repeat(starts, lengths)
    return np.split(order[np.argsort(turn, kind="stable")], np.cumsum(np.bincount(turn))[:-1])


def register_kernels(kernels: Kernels) -> None:
    for row in DENSE_OPTIMIZERS:
        kernels.kernel(f"ResourceApply{row.op}", dtypes={"T": row.types})(training(row, sparse=False))
    for row in SPARSE_OPTIMIZERS:
        kernels.kernel(f"ResourceSparseApply{row.op}", dtypes={"T": row.types})(training(row, sparse=True))
