"""What the plugin brings. This module is imported whenever weft starts: it is light, and opens no library."""

from dataclasses import dataclass, field
from typing import Any

from weft.api import KernelPackRegistrar, Kernels, PassRegistrar, hookimpl

WEFT_API = (1, 0)
BEFORE_NUMPY = 1
MOST_THREADS = 4096
PRECISIONS = ("f32", "bf16", "auto")
# Passes that leave fewer nodes, and know float32.
BEFORE = ("constants", "identities", "pads", "batch-norm", "scales", "duplicates", "reshapes", "pools", "strides",
          "cells", "sequences")


@dataclass(frozen=True)
class Config:
    """[plugin.onednn]. `threads`: that a primitive may use, counting the one that calls it; 0 for what OMP_NUM_THREADS
    says or, without that, as many as there are cores for this process. What counts is whoever opens the library
    first: it is one for the whole process.

    `precision`: of products and of what is between them, in graphs of float32. "bf16" is bfloat16, or float32 with a
    warning on a CPU without fast instructions for it; "auto" is the same without a warning; "f32" is float32.

    `winograd`: whether convolutions may be done with fewer multiplications, which rounds a little more."""

    threads: int = 0
    precision: str = field(default="f32", metadata={"found": True})
    winograd: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.threads <= MOST_THREADS:
            raise ValueError(f"threads = {self.threads}: a number of threads up to {MOST_THREADS}, or 0")
        if self.precision not in PRECISIONS:
            raise ValueError(f"precision = {self.precision!r}: one of {', '.join(PRECISIONS)}")


@hookimpl
def weft_kernels(registry: KernelPackRegistrar, config: Config) -> None:
    def register(kernels: Kernels) -> None:
        from .library import open_library

        open_library(config.threads)
        from . import kernels as families  # after it: without the library there is nothing to import
        from .precision import element_types

        families.register(kernels, element_types(config.precision), config.winograd)

    registry.kernels("CPU", register, priority=BEFORE_NUMPY)


@hookimpl
def weft_passes(registry: PassRegistrar, config: Config) -> None:
    if config.precision == "f32":
        return

    def narrowed(graph: Any, context: Any) -> Any:
        from .narrowing import narrowed_if_fast

        return narrowed_if_fast(graph, context, config.threads)

    registry.add("bfloat16", narrowed, after=BEFORE)
