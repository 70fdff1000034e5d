"""The plugin of core's graphs: the loader of GraphDefs, the models of graphs, and the compiler's passes as a table.

Every start of heald imports this module, so the module is light. Each pass is a module of `compiler/passes`.
"""

from typing import Any

from heald.api import hookimpl

HEALD_API = (1, 3)
_VALUES = "kept nodes and their values"
PASSES = {  # by name: the function, the effect, the properties that stay; all are idempotent
    "functionalize": ("functionalize:functionalize_control_flow",
                      "control flow of TensorFlow 1 becomes If, Case and While with functions", _VALUES),
    "lower-control-flow": ("lower_control_flow:lower_control_flow",
                           "If, Case, While and calls become control flow of TensorFlow 1", _VALUES),
    "inline": ("inline:inline_calls", "the nodes of functions replace their calls", _VALUES),
    "lift-legacy-calls": ("lift_legacy_calls:lift_legacy_calls",
                          "nodes whose op is a function's name become PartitionedCalls",
                          "names, order, edges and values"),
    "shape-inference": ("shape_inference:infer_shapes", "writes the inferred shapes of outputs as _output_shapes",
                        "everything but these attributes"),
    "graph-to-function": ("graph_to_function:convert_graph_to_function",
                          "the nodes between feeds and fetches become a function, which one node calls", _VALUES),
    "function-to-graph": ("function_to_graph:convert_function_to_graph",
                          "the nodes of the entry function replace its one call", _VALUES),
}


@hookimpl
def heald_passes(registry: Any) -> None:
    for name, (function, about, preserves) in PASSES.items():
        registry.add(name, f"heald.graphs.compiler.passes.{function}", stage="on_request", about=about,
                     preserves=preserves)


@hookimpl
def heald_loaders(registry: Any) -> None:
    registry.add("graphdef", "heald.graphs.graph.graphdef_loader:LOADER")
    registry.graph_models("heald.graphs.session.model:load_graph")
