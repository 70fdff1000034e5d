"""Graphs as text in the TF Graph IR, TensorFlow's dialect of MLIR for GraphDefs. `heald.tfg` is this package.

The public functions are those of `__all__`; they are imported when they are first used.

The text is a view of the nodes that GraphDef files and sessions have: printing reads the bytes of their NodeDefs, and
parsing makes the bytes of a GraphDef, which core reads. There is no tree of operations between text and graph.

From a graph to text: `graph_printer`, `body_printer` and `function_printer` write nodes in lines, `value_names` gives
values their names, `node_texts` and `node_section` have the attributes of a node, `attribute_forms` and `tensor_forms`
a value's text with the bytes that it stands for. `import_checks` and `function_import_checks` refuse graphs as the
importer of TensorFlow does, and `refused_file` tells its words for files.

From text to a graph: `graph_parser`, `module_reader`, `body_parser`, `generic_form` and `attribute_reader` read text
into `parsed_body`, `body_values` resolves inputs, `node_builder` and `attribute_values` make bytes. `verifier` and
`region_checks` check control flow, and `constraints` its attributes.

Both ways: `signature`, `signature_text` and `signature_reader` for functions, `graph_layout` for the fields around
nodes, `result_types` and `element_types` for types, `full_types` for those that TensorFlow adds, `hexadecimal` for the
digits of constants.

Regions: `region_forms` says how they live in a graph, and `region_choice` which nodes are printed with them.
`region_printer`, `region_builder` and `region_passes` do it. `region_tree` has them inside their nodes, for the passes
`control_flow_sink`, `passthrough_arguments`, `common_subexpressions` and `dead_control_flow`.

Doors: `text_file` has the public functions and the loader, `lifted_graph` graphs as functions, `commands` heald tfg.
`elision` leaves out constants, and `expectations` compares errors with comments.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .lifted_graph import function_to_graph as function_to_graph
    from .lifted_graph import graph_to_function as graph_to_function
    from .region_passes import functional_to_region as functional_to_region
    from .region_passes import region_to_functional as region_to_functional
    from .text_file import dump as dump
    from .text_file import dumps as dumps
    from .text_file import load as load
    from .text_file import loads as loads
    from .text_file import loads_all as loads_all

__all__ = ["dump", "dumps", "function_to_graph", "functional_to_region", "graph_to_function", "load", "loads",
           "loads_all", "region_to_functional"]
_WHERE = {"dump": "text_file", "dumps": "text_file", "load": "text_file", "loads": "text_file",
          "loads_all": "text_file",
          "functional_to_region": "region_passes", "region_to_functional": "region_passes",
          "function_to_graph": "lifted_graph", "graph_to_function": "lifted_graph"}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'heald.tfg' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(f".{_WHERE[name]}", __name__), name)
