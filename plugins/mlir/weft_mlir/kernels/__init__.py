"""Host kernels of the dialects that programs of users are written in: shapes and host tensors, under TFRT's names.

- `ts`: shapes, partly known shapes. `tfrt_dht`: dense tensors. `tfrt_sht`: tensors of strings. `coo`: sparse tensors.
  `btf`: tensors in files.
- A dense tensor is a NumPy array in memory of the host's allocator. Kernels write it in place where TFRT's do.
- Texts that kernels print are TFRT's.

Modules: `host_tensors` has the other types of tensors and their text, and one module each dialect has.
"""

from __future__ import annotations

from weft.api import HostKernels


def register(kernels: HostKernels) -> None:
    from . import btf, dense, shapes, sparse, strings

    for module in (shapes, dense, strings, sparse, btf):
        module.register(kernels)
