"""The oneDNN plugin: kernels for the CPU device, and the pass `bfloat16`.

heald imports this module at every start, so the module is light and opens no library.
"""

from dataclasses import dataclass, field
from typing import Any

from heald.api import KernelPackRegistrar, Kernels, PassRegistrar, hookimpl

HEALD_API = (1, 0)
BEFORE_NUMPY = 1
MOST_THREADS = 4096
PRECISIONS = ("f32", "bf16", "auto")
# Passes that leave fewer nodes, and match float32 only.
BEFORE = ("constants", "identities", "pads", "batch-norm", "scales", "duplicates", "reshapes", "pools", "strides",
          "cells", "sequences")


@dataclass(frozen=True)
class Config:
    """[plugin.onednn].

    `threads`: the threads of a primitive, the calling one included. 0 means OMP_NUM_THREADS or, without that, the cores
    of this process. The library is opened once in a process: the first `threads` counts.

    `precision`: the element type of products and the nodes between them, in graphs of float32. "bf16" is bfloat16, or
    float32 with a warning on a CPU without fast instructions for bfloat16. "auto" is the same without a warning. "f32"
    is float32.

    `winograd`: permit Winograd's algorithm for convolutions, which multiplies less and rounds a little more.
    """

    threads: int = 0
    precision: str = field(default="f32", metadata={"found": True})
    winograd: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.threads <= MOST_THREADS:
            raise ValueError(f"threads = {self.threads}: a number of threads up to {MOST_THREADS}, or 0")
        if self.precision not in PRECISIONS:
            raise ValueError(f"precision = {self.precision!r}: one of {', '.join(PRECISIONS)}")


@hookimpl
def heald_kernels(registry: KernelPackRegistrar, config: Config) -> None:
    def register_kernels(kernels: Kernels) -> None:
        from .library import open_library

        open_library(config.threads)
        from . import kernels as families  # afterwards: the module needs the library
        from .precision import element_types

        families.register_kernels(kernels, element_types(config.precision), config.winograd)

    registry.kernels("CPU", register_kernels, priority=BEFORE_NUMPY)


@hookimpl
def heald_passes(registry: PassRegistrar, config: Config) -> None:
    if config.precision == "f32":
        return

    def bf16_pass(graph: Any, context: Any) -> Any:
        from .bf16_pass import convert_if_fast

        return convert_if_fast(graph, context, config.threads)

    registry.add("bfloat16", bf16_pass, after=BEFORE, about="computes layers in bfloat16 where that is faster",
                 preserves="kept nodes, and their values as far as bfloat16 has them")
