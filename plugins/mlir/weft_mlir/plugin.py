"""The plugin registers the loader of `.mlir` files, and the host kernels of ts, tfrt_dht, tfrt_sht, coo, btf.

Every start of weft imports this module, so the module is light.
"""

from typing import Any

from weft.api import hookimpl

WEFT_API = (1, 2)


@hookimpl
def weft_kernels(registry: Any) -> None:
    registry.host_kernels("weft_mlir.kernels:register")


@hookimpl
def weft_loaders(registry: Any) -> None:
    registry.add("mlir", "weft_mlir.text_file:LOADER")
