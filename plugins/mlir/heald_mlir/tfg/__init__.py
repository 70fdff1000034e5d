"""Graphs as text in the TF Graph IR, TensorFlow's dialect of MLIR for GraphDefs. `heald.tfg` is this package.

The public functions are those of `__all__`; they are imported when they are first used.

The text is a view of the nodes that GraphDef files and sessions have: printing reads the bytes of their NodeDefs, and
parsing makes the bytes of a GraphDef, which core reads. There is no tree of operations between text and graph.

Rooms, each of which imports from those above it:

- `values`: types and attributes, as text and as bytes. `graph_layout` has the fields around nodes, `faults` the phases
  in which a text is refused.
- `signatures`: functions, and the results of ops.
- `regions`: the form that regions have in a graph, and the passes `region_passes`, `control_flow_sink`,
  `passthrough_arguments`, `common_subexpressions` and `dead_control_flow`.
- `checks`: graphs that the importer of TensorFlow refuses, in its words.
- `reading`: `graph_parser` makes the bytes of a GraphDef. It reads text into `parsed_body`, resolves inputs by
  `body_values`, checks control flow by `verifier` and `region_checks`, and orders faults by `fault_order`.
- `printing`: `graph_printer` writes nodes in lines, `value_names` gives values their names.

Doors: `text_file` has the public functions and the loader, `lifted_graph` graphs as functions, `commands` heald tfg.
`elision` leaves out constants, and `expectations` compares errors with comments.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .lifted_graph import function_to_graph as function_to_graph
    from .lifted_graph import graph_to_function as graph_to_function
    from .regions.region_passes import functional_to_region as functional_to_region
    from .regions.region_passes import region_to_functional as region_to_functional
    from .text_file import dump as dump
    from .text_file import dumps as dumps
    from .text_file import load as load
    from .text_file import loads as loads
    from .text_file import loads_all as loads_all

__all__ = ["dump", "dumps", "function_to_graph", "functional_to_region", "graph_to_function", "load", "loads",
           "loads_all", "region_to_functional"]
_WHERE = {"dump": "text_file", "dumps": "text_file", "load": "text_file", "loads": "text_file",
          "loads_all": "text_file",
          "functional_to_region": "regions.region_passes", "region_to_functional": "regions.region_passes",
          "function_to_graph": "lifted_graph", "graph_to_function": "lifted_graph"}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'heald.tfg' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(f".{_WHERE[name]}", __name__), name)
