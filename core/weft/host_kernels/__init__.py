"""The host kernels that come with weft, under the names that TFRT gave them."""

from __future__ import annotations

from ..contract.host_kernel import HostKernels
from . import arithmetic, chains, control


def register(kernels: HostKernels) -> None:
    arithmetic.register(kernels)
    chains.register(kernels)
    control.register(kernels)
