"""The plugin registers loaders of `.mlir` and `.tfg` files, commands, host kernels of ts, tfrt_dht, tfrt_sht, coo, btf.

Every start of heald imports this module, so the module is light.
"""

from typing import Any

from heald.api import hookimpl

HEALD_API = (1, 2)
_PASSES = (  # name, function, effect; all are idempotent
    ("functional-to-region", "regions.region_passes:functional_to_region",
     "If, Case, While and For have their bodies as regions, in text"),
    ("region-to-functional", "regions.region_passes:region_to_functional",
     "control flow with regions calls functions again"),
    ("control-flow-sink", "regions.control_flow_sink:sink_control_flow",
     "nodes that one branch alone uses become nodes of its region"),
    ("eliminate-passthrough-arguments", "regions.passthrough_arguments:eliminate_passthrough_arguments",
     "loops with regions carry no value that their body returns unchanged"),
    ("common-subexpressions", "regions.common_subexpressions:merge_common_subexpressions",
     "equal nodes become one, in functions and across regions"),
    ("canonicalize", "regions.dead_control_flow:canonicalize",
     "removes nodes of functions that no result or effect needs"),
)


@hookimpl
def heald_kernels(registry: Any) -> None:
    registry.host_kernels("heald_mlir.kernels:register")


@hookimpl
def heald_passes(registry: Any) -> None:
    for name, function, about in _PASSES:
        registry.add(name, f"heald_mlir.tfg.{function}", stage="on_request", about=about,
                     preserves="the kept nodes and their values")


@hookimpl
def heald_loaders(registry: Any) -> None:
    registry.add("mlir", "heald_mlir.loaders:MLIR")
    registry.add("tfg", "heald_mlir.loaders:TFG")


@hookimpl
def heald_commands(registry: Any) -> None:
    registry.add("tfg", help="print, parse, verify, export and compare graphs as text in the TF Graph IR",
                 add_arguments="heald_mlir.tfg.commands:add_arguments", run="heald_mlir.tfg.commands:run")
