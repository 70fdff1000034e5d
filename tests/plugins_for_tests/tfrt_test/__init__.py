"""A plugin of the tests alone: the kernels with which TFRT's own tests look at a host runtime.

Dialects: `tfrt_test` (simple, failing and asynchronous kernels), `vt` (values that tell of their life) and
`tfrt_tutorial`; and native functions. Their texts are TFRT's.
"""

from __future__ import annotations

from weft.api import hookimpl

WEFT_API = (1, 0)


@hookimpl
def weft_kernels(registry):
    registry.host_kernels(f"{__name__}.kernels:register")
