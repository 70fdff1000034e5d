"""The host kernels of heald itself, under the names that TFRT gave them: numbers, chains, control flow.

A host kernel is a function of host values that a program calls by its code, such as "tfrt.add.i32". The function's
annotations are its declaration, and the linker checks each call against them.

- These kernels register through the contract of host kernels, just like the kernels of plugins.
- Host kernels know no device and no tensor memory, and keep no state between calls.
- The executor knows none of them. Control flow calls functions through `Step.call`, and never waits.

Modules: `arithmetic` has constants and arithmetic of single numbers, `chains` chains and printing, `control` calls,
branches and loops, `parallel` has parallel loops. `waiting` runs kernels that wait for values.
`graph_control` has the control flow of op graphs, under names of heald's own, `transfer` Send and Recv.
"""

from __future__ import annotations

from ..contract.host_kernel import HostKernels
from . import arithmetic, chains, control, graph_control, parallel, transfer
from .waiting import Turns as Turns
from .waiting import await_payloads as await_payloads
from .waiting import run_or_promise as run_or_promise


def register(kernels: HostKernels) -> None:
    arithmetic.register(kernels)
    chains.register(kernels)
    control.register(kernels)
    parallel.register(kernels)
    graph_control.register(kernels)
    transfer.register(kernels)
