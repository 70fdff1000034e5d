"""The dialect `coo`: tensors as coordinates of the elements that are not 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from heald.api import I1, Chain, CooTensor, HostKernels, Step, errors

from .dense import allocate_tensor
from .host_tensors import OPERANDS_SYNTAX, HostTensor, check, wanted_kind

NAMES = ("i32", "f32")
RANK = 2


def register(kernels: HostKernels) -> None:
    for name in NAMES:
        kernels.kernel(f"coo.convert_dht_to_coo.{name}.{RANK}", syntax=OPERANDS_SYNTAX)(_to_sparse(name))
        kernels.kernel(f"coo.convert_coo_to_dht.{name}.{RANK}", step=True, syntax=OPERANDS_SYNTAX)(_to_dense(name))
        kernels.kernel(f"coo.tensor_equal.{name}.{RANK}", syntax=OPERANDS_SYNTAX)(equal)


def _to_sparse(name: str) -> Callable[..., Any]:
    def convert(tensor: HostTensor, chain: Chain) -> tuple[HostTensor, Chain]:
        """Return the sparse form. Raises InvalidArgument for a tensor of another type or rank."""
        array = check(tensor, name, RANK)
        indices = np.argwhere(array)
        return CooTensor(array.shape, indices, array[tuple(indices.T)]), None

    return convert


def _to_dense(name: str) -> Callable[..., Any]:
    def convert(step: Step, tensor: HostTensor, chain: Chain) -> tuple[HostTensor, Chain]:
        """Return the dense form. Raises InvalidArgument for another tensor, ResourceExhausted."""
        sparse = _sparse(tensor)
        array = allocate_tensor(step, name, sparse.shape)
        array[...] = 0
        array[tuple(sparse.indices.T)] = sparse.values
        return check(array, name, RANK), None

    return convert


def equal(a: HostTensor, b: HostTensor, chain: Chain) -> tuple[I1, Chain]:
    """Return True for sparse tensors of equal indices and values."""
    first, last = _sparse(a), _sparse(b)
    return bool(np.array_equal(first.indices, last.indices) and np.array_equal(first.values, last.values)), None


def _sparse(tensor: Any) -> CooTensor:
    if not isinstance(tensor, CooTensor):
        raise errors.InvalidArgument(f"the argument is {wanted_kind(tensor)}, expected a sparse tensor")
    return tensor
