"""What the plugin brings. This module is imported whenever weft starts: it is light, and opens no library."""

from dataclasses import dataclass

from weft.api import KernelPackRegistrar, Kernels, hookimpl

WEFT_API = (1, 0)
BEFORE_NUMPY = 1


@dataclass(frozen=True)
class Config:
    """[plugin.onednn]. `threads`: that a primitive may use, counting the one that calls it; 0 for what OMP_NUM_THREADS
    says or, without that, as many as there are cores for this process. What counts is whoever opens the library
    first: it is one for the whole process."""

    threads: int = 0

    def __post_init__(self) -> None:
        if self.threads < 0:
            raise ValueError(f"threads = {self.threads}: a number of threads, or 0")


@hookimpl
def weft_kernels(registry: KernelPackRegistrar, config: Config) -> None:
    def register(kernels: Kernels) -> None:
        from .library import open_library

        open_library(config.threads)
        from . import kernels as families  # after it: without the library there is nothing to import

        families.register(kernels)

    registry.kernels("CPU", register, priority=BEFORE_NUMPY)
