"""Graph: op graphs in memory, their GraphDef files, and their edits.

Graph, Function and Node are immutable: an edit returns another object, and graphs share the nodes that it did not
change. A binary GraphDef that is read and written back is byte-identical but for edited nodes. Large constants stay
views of their file. The room knows no op: it checks names, edges and cycles, never the attributes or inputs that an op
needs. Readers and orders do not recurse on the depth of their input.

`graph_base`, `graph`: Nodes and functions by name, versions, edits by `replace`; the same with surgery's edits: Graph.
`node`, `function`: One operation and its inputs; a graph with arguments that nodes call by name.
`attr_value`: Attribute values: AttrValue in a file, plain Python values in a graph.
`graphdef`, `graphdef_codec`, `graphdef_text`: GraphDef files; their binary form; their text form.
`graphdef_loader`, `graphdef_suffixes`: The loader that recognises these files; their suffixes.
`verifier`: The checks of a graph that need no knowledge of its ops.
`expansion`: The bound of the nodes that may replace calls of functions.
`traversal`: Topological order, consumers and ancestors.
`surgery`: Edits by names of nodes and tensors, which are methods of Graph.
`comparison`: The nodes, functions and versions in which two graphs differ.
`rewriting`: New names, constants and pruning, for passes that change a graph.
"""

from typing import TYPE_CHECKING

from ...runtime.support.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from . import graphdef as graphdef
    from . import graphdef_text as graphdef_text
    from .attr_value import AttrPlaceholder as AttrPlaceholder
    from .attr_value import attr_bytes as attr_bytes
    from .comparison import Change as Change
    from .comparison import GraphDifference as GraphDifference
    from .comparison import compare as compare
    from .expansion import ExpansionLimit as ExpansionLimit
    from .function import Function as Function
    from .graph import Func as Func
    from .graph import Versions as Versions
    from .node import parse_input as parse_input
    from .traversal import ancestors as ancestors

if not TYPE_CHECKING:  # with it, mypy would take every name for an export
    __getattr__ = lazy_exports(__name__, {
        ".attr_value": ("AttrPlaceholder", "attr_bytes"),
        ".comparison": ("Change", "GraphDifference", "compare"),
        ".expansion": ("ExpansionLimit",),
        ".function": ("Function",),
        ".graph": ("Func", "Versions"),
        ".node": ("parse_input",),
        ".traversal": ("ancestors",),
    })
