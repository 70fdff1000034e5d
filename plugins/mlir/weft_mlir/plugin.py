"""The plugin registers the host kernels of the dialects ts, tfrt_dht, tfrt_sht, coo and btf.

Every start of weft imports this module, so the module is light.
"""

from typing import Any

from weft.api import hookimpl

WEFT_API = (1, 1)


@hookimpl
def weft_kernels(registry: Any) -> None:
    registry.host_kernels("weft_mlir.kernels:register")
