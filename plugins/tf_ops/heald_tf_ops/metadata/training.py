"""Metadata of ops that train resource variables: one step of an optimizer, on whole variables or on rows of them."""

from __future__ import annotations

from functools import partial

from heald.api import Attrs, InvalidArgument, Shape, ValueInfo, dtypes, shape_text

from .rules import rule
from .shapes import dims_of_rank, elements_in, same_shape
from .variables import variable

DENSE = {  # an op's inputs after the variables
    "GradientDescent": "alpha delta",
    "Momentum": "lr grad momentum",
    "KerasMomentum": "lr grad momentum",
    "Adagrad": "lr grad",
    "AdagradV2": "lr epsilon grad",
    "AdagradDA": "grad lr l1 l2 global_step",
    "Adadelta": "lr rho epsilon grad",
    "Adam": "beta1_power beta2_power lr beta1 beta2 epsilon grad",
    "AdamWithAmsgrad": "beta1_power beta2_power lr beta1 beta2 epsilon grad",
    "AdaMax": "beta1_power lr beta1 beta2 epsilon grad",
    "RMSProp": "lr rho momentum epsilon grad",
    "CenteredRMSProp": "lr rho momentum epsilon grad",
    "Ftrl": "grad lr l1 l2 lr_power",
    "FtrlV2": "grad lr l1 l2 l2_shrinkage lr_power",
    "AddSign": "lr alpha sign_decay beta grad",
    "PowerSign": "lr logbase sign_decay beta grad",
    "ProximalGradientDescent": "alpha l1 l2 delta",
    "ProximalAdagrad": "lr l1 l2 grad",
}
SPARSE = {
    "Momentum": "lr grad indices momentum",
    "KerasMomentum": "lr grad indices momentum",
    "Adagrad": "lr grad indices",
    "AdagradV2": "lr epsilon grad indices",
    "AdagradDA": "grad indices lr l1 l2 global_step",
    "Adadelta": "lr rho epsilon grad indices",
    "RMSProp": "lr rho momentum epsilon grad indices",
    "CenteredRMSProp": "lr rho momentum epsilon grad indices",
    "Ftrl": "grad indices lr l1 l2 lr_power",
    "FtrlV2": "grad indices lr l1 l2 l2_shrinkage lr_power",
    "ProximalGradientDescent": "alpha l1 l2 grad indices",
    "ProximalAdagrad": "lr l1 l2 grad indices",
}
ARRAYS = ("grad", "delta", "indices")
MAY_BE_EMPTY = ("Momentum", "KerasMomentum", "Adadelta", "RMSProp", "CenteredRMSProp")  # rows of var and grad


def variables(attrs: Attrs, inputs: tuple[ValueInfo, ...]) -> Shape:
    """Return the shape that the variables among the inputs must share."""
    shapes = [variable(x, attrs["T"]).shape for x in inputs if x.dtype is dtypes.resource]
    return same_shape(shapes, "var and its slots must have the same shape")


def arrays(names: str, inputs: tuple[ValueInfo, ...]) -> list[ValueInfo]:
    """Return the gradient, and indices if the op takes them. Raises InvalidArgument for a number that is no scalar."""
    named = list(zip(names.split(), inputs[-len(names.split()) :], strict=True))
    for name, x in named:
        if name not in ARRAYS:
            dims_of_rank(x, 0, name)
    return [x for name, x in named if name in ARRAYS]


def dense(names: str, attrs: Attrs, *inputs: ValueInfo) -> tuple[()]:
    (grad,) = arrays(names, inputs)
    same_shape((variables(attrs, inputs), grad.shape), "var and grad must have the same shape")
    return ()


def sparse(names: str, may_be_empty: bool, attrs: Attrs, *inputs: ValueInfo) -> tuple[()]:
    """The gradient has a row for each index."""
    grad, indices = arrays(names, inputs)
    count, target = dims_of_rank(indices, 1, "indices"), variables(attrs, inputs)
    if target == () or grad.shape == ():
        raise InvalidArgument("var and grad must be at least 1 dimensional")
    if grad.shape is None:
        return ()
    same_shape((grad.shape[:1], count), "grad must be the same size as indices in the first dimension")
    if target is not None:
        same_shape((grad.shape[1:], target[1:]), "rows of var and grad must have the same shape")
    if not may_be_empty and elements_in(grad.shape[1:]) == 0:
        raise InvalidArgument(f"Inner dimension should be greater than zero, given {shape_text(grad.shape)}")
    return ()


for op, names in DENSE.items():
    rule(f"ResourceApply{op}")(partial(dense, names))
for op, names in SPARSE.items():
    rule(f"ResourceSparseApply{op}")(partial(sparse, names, op in MAY_BE_EMPTY))
