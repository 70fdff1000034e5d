"""A plugin of the tests alone: the kernels with which TFRT's own tests look at a host runtime.

Dialects: `tfrt_test` (simple, failing and asynchronous kernels), `vt` (values that tell of their life) and
`tfrt_tutorial`; native functions; and ops of the CPU. Their texts are TFRT's.
"""

from __future__ import annotations

from heald.api import hookimpl

from . import eager_ops

HEALD_API = (1, 0)


@hookimpl
def heald_ops(registry):
    for op in eager_ops.OPS:
        registry.add(op)


@hookimpl
def heald_kernels(registry):
    registry.host_kernels(f"{__name__}.kernels:register")
    registry.kernels("CPU", eager_ops.register)
