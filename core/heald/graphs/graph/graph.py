"""Graph: a graph in memory with its edits. An edit returns a new graph, which shares the nodes that did not change."""

from __future__ import annotations

from typing import Any

from ...runtime.values.attribute_values import Func, ShapeAttr
from ...runtime.values.tensor_proto import TensorValue
from . import surgery
from .attr_value import AttrPlaceholder
from .function import Function
from .graph_base import GraphBase, Versions
from .node import Input, Node
from .traversal import consumers, topological_order
from .verifier import verify

__all__ = [
    "AttrPlaceholder", "Func", "Function", "Graph", "Input", "Node", "ShapeAttr", "TensorValue", "Versions",
    "consumers", "topological_order", "verify",
]


class Graph(GraphBase):
    """`nodes` and `functions` by name (read-only, ordered), and `versions`. Immutable: `replace` and the methods for
    surgery return edited graphs."""

    __slots__ = ()

    rename = surgery.rename
    remove = surgery.remove
    bypass = surgery.bypass
    set_input = surgery.set_input
    rewire = surgery.rewire
    set_constant = surgery.set_constant
    set_dtype = surgery.set_dtype
    expose_input = surgery.expose_input
    expose_output = surgery.expose_output
    keep_outputs = surgery.keep_outputs
    drop_inputs = surgery.drop_inputs
    drop_outputs = surgery.drop_outputs
    extract = surgery.extract
    merge = surgery.merge
    replace_subgraph = surgery.replace_subgraph

    def _repr_html_(self) -> str:
        from ...runtime.support.notebook_table import notebook_table

        rows = [{"node": node.name, "op": node.op, "inputs": ", ".join(map(str, node.inputs)), "device": node.device}
                for node in self.nodes.values()]
        return notebook_table(f"Graph of {len(rows)} nodes and {len(self.functions)} functions", rows,
                              ("node", "op", "inputs", "device"), "op")

    def __reduce__(self) -> tuple[Any, ...]:
        from .graphdef_codec import binary_parts

        assigned = {node.name: node.assigned_device for node in self if node.assigned_device is not None}
        return _restore, (b"".join(binary_parts(self)), assigned)


def _restore(raw: bytes, assigned: dict[str, str]) -> Graph:
    from .graphdef_codec import read_binary

    graph = read_binary(memoryview(raw), Graph)
    return graph.replace(nodes=[graph[n].replace(assigned_device=d) for n, d in assigned.items()])
