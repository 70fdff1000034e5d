"""Host kernels of the dialects of users' programs, under TFRT's names: shapes, host tensors, eager ops.

- `ts`: shapes, partly known shapes. `tfrt_dht`: dense tensors. `tfrt_sht`: tensors of strings. `coo`: sparse tensors.
  `btf`: tensors in files. `corert`: eager ops, with handlers, attributes and tensor handles.
- A dense tensor is a NumPy array in memory of the host's allocator. Kernels write it in place where TFRT's do.
- Texts that kernels print are TFRT's.

Modules: `host_tensors` has the other types of tensors and their text, and one module each dialect has. `corert` has
several: `eager_ops`, `eager_syntax` (their text), `eager_control`, `op_attributes`, `tensor_handles`.
"""

from __future__ import annotations

from heald.api import HostKernels


def register(kernels: HostKernels) -> None:
    from . import (
        btf,
        dense,
        eager_control,
        eager_ops,
        op_attributes,
        shapes,
        sparse,
        strings,
        tensor_handles,
    )

    for module in (shapes, dense, strings, sparse, btf, eager_ops, eager_control, op_attributes, tensor_handles):
        module.register(kernels)
