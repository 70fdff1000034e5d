"""The plugin registers the loader of `.mlir` files, commands, and the host kernels of ts, tfrt_dht, tfrt_sht, coo, btf.

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


@hookimpl
def weft_commands(registry: Any) -> None:
    registry.add("opt", help="rewrite and check the text of a host program",
                 add_arguments="weft_mlir.commands:add_opt_arguments", run="weft_mlir.commands:opt")
