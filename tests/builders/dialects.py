"""The dialects of core, of heald-mlir, and of the test plugin `tfrt_test`."""

from __future__ import annotations

from heald.runtime.contract.device import load_callable
from heald.runtime.contract.host_kernel import HostKernelRegistry, HostKernels, HostPack
from heald_mlir.dialects.registry import KernelDialects


def kernels_of(**packs):
    """A registry of host kernels: plugin=register function, or its name."""
    registry = HostKernelRegistry()
    for plugin, pack in packs.items():
        registry.add_pack(HostPack(pack, plugin))
    return registry


PACKS = {"heald": "heald.runtime.host_kernels:register", "mlir": "heald_mlir.kernels:register",
         "tfrt_test": "plugins_for_tests.tfrt_test.kernels:register"}
KERNELS = kernels_of(**PACKS)
DIALECTS = KernelDialects(KERNELS)


def kernel_codes():
    """The codes of all kernels in KERNELS."""
    codes = set()
    for plugin, pack in PACKS.items():
        kernels = HostKernels(plugin)
        load_callable(pack)(kernels)
        codes |= kernels.added.keys()
    return sorted(codes)
