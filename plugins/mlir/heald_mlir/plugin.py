"""The plugin registers loaders of `.mlir` and `.tfg` files, commands, host kernels of ts, tfrt_dht, tfrt_sht, coo, btf.

Every start of heald imports this module, so the module is light.
"""

from typing import Any

from heald.api import hookimpl

HEALD_API = (1, 2)


@hookimpl
def heald_kernels(registry: Any) -> None:
    registry.host_kernels("heald_mlir.kernels:register")


@hookimpl
def heald_passes(registry: Any) -> None:
    for name, about in (("functional_to_region", "If, Case, While and For have their bodies as regions, in text"),
                        ("region_to_functional", "control flow with regions calls functions again")):
        registry.add(name.replace("_", "-"), f"heald_mlir.tfg.region_passes:{name}", stage="on_request", about=about,
                     preserves="the kept nodes and their values")


@hookimpl
def heald_loaders(registry: Any) -> None:
    registry.add("mlir", "heald_mlir.loaders:MLIR")
    registry.add("tfg", "heald_mlir.loaders:TFG")


@hookimpl
def heald_commands(registry: Any) -> None:
    registry.add("tfg", help="print, parse, verify, export and compare graphs as text in the TF Graph IR",
                 add_arguments="heald_mlir.tfg.commands:add_arguments", run="heald_mlir.tfg.commands:run")
