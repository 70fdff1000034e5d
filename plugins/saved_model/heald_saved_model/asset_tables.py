"""Tables that a SavedModel's initializer fills from asset files: the files' contents become constants.

A running graph therefore opens no asset. Nodes that read other files stay, and run where `[files]` permits it.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import Any

from heald.api import DType, Graph, Input, Node, TensorValue, constant
from heald.errors import InvalidArgument
from heald.runtime.contract import OpRegistry, check_attributes
from heald.runtime.support import input_file, mapped_file

from . import vocabulary

FILLING_OP = "InitializeTableFromTextFileV2"


def with_constants(graph: Graph, needed: Container[str], paths: Mapping[str, str], ops: OpRegistry) -> Graph:
    """Replace the needed nodes' reads of assets by constants. `paths` has the files by the nodes that stand for them.

    Raises InvalidArgument for a file without the expected lines or fields, NotFound for a missing file.
    """
    return graph.replace(nodes=[new for node in graph if node.op == FILLING_OP and node.name in needed
                                for new in _filling(graph, node, paths, ops)])


def _filling(graph: Graph, node: Node, paths: Mapping[str, str], ops: OpRegistry) -> Iterator[Node]:
    attrs = check_attributes(ops.get(node.op), node.attrs)
    if len(node.inputs) != 2:
        raise InvalidArgument(f"op takes 2 inputs, a table and a file, given {len(node.inputs)}", node=node.name,
                              op=node.op)
    table, file = (_source(graph, source) for source in node.inputs)
    key, value = (table.attrs.get(attribute) for attribute in ("key_dtype", "value_dtype"))
    if file.name not in paths or not isinstance(key, DType) or not isinstance(value, DType):
        return
    pairs = _read(Path(paths[file.name]), node, attrs, key, value)
    keys, values = (constant(f"{node.name}/{side}", TensorValue(array), node.device)
                    for side, array in zip(("keys", "values"), pairs, strict=True))
    yield from (keys, values)
    yield Node(node.name, "InitializeTableV2", (node.inputs[0], keys.name, values.name), controls=node.controls,
               device=node.device, attrs={"Tkey": key, "Tval": value})


def _read(path: Path, node: Node, attrs: Mapping[str, Any], key: DType, value: DType) -> tuple[Any, Any]:
    with input_file.reading(path):
        text = mapped_file.read(path)
    try:
        return vocabulary.read(text, attrs, key, value)
    except InvalidArgument as error:
        raise InvalidArgument(f"asset '{path}': {error.message}", node=node.name, op=node.op) from None


def _source(graph: Graph, tensor: Input) -> Node:
    """Return the node that produces a tensor, through identities and through variables that are assigned once."""
    node, visited = graph[tensor.node], set()
    while node.name not in visited and node.inputs and node.op in ("Identity", "ReadVariableOp"):
        visited.add(node.name)
        before = node.inputs[0]
        if node.op == "ReadVariableOp":
            assigned = [n.inputs[1] for n in graph if n.op == "AssignVariableOp" and len(n.inputs) == 2
                        and n.inputs[0] == before]
            before = assigned[0] if len(assigned) == 1 else before
        node = graph[before.node]
    return node
