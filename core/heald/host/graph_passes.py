"""The graph passes that the compiler brings: a table. Each is a module of `heald.compiler.passes`."""

from __future__ import annotations

from ..contract.graph_pass import ON_REQUEST, GraphPass
from ..contract.host_kernel import OWN

_VALUES = "kept nodes and their values"
_ROWS = {  # by name: the function, the effect, the properties that stay; all are idempotent
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
GIVEN = {name: GraphPass(name, f"heald.compiler.passes.{function}", ON_REQUEST, (), (), OWN, *texts)
         for name, (function, *texts) in _ROWS.items()}
