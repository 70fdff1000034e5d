"""Resolving: matches nodes with the op table, which gives op, attributes with defaults, inputs and outputs.

A node that does not fit its op is recorded as an error, and raised when a step needs the node. So a graph with unknown
ops still runs where it can.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import HealdError, InvalidArgument, Unimplemented
from ...runtime.contract.attribute_forms import check_attributes
from ...runtime.contract.op import GRAPH_DEF_VERSION, OpDef, SignatureTensor
from ...runtime.contract.op_registry import OpRegistry
from ...runtime.contract.structural import CONST
from ...runtime.support.records import NamedTuple
from ..graph.graph import Graph, Node


class Resolved(NamedTuple):
    """A node that fits its op. `inputs` are (producer, output index) pairs, in order."""

    node: Node
    op: OpDef
    attrs: Mapping[str, Any]
    inputs: tuple[tuple[str, int], ...]
    input_tensors: tuple[SignatureTensor, ...]
    output_tensors: tuple[SignatureTensor, ...]


def resolve(graph: Graph, ops: OpRegistry) -> dict[str, Resolved | HealdError]:
    """Return every node of the graph by name: resolved, or the error for the steps that need it.

    Nodes that share their attributes share the resolved ones.
    """
    entries: dict[str, Resolved | HealdError] = {}
    alike: dict[tuple[str, int, int], Resolved] = {}  # (op, id of attributes, number of inputs) -> such a node
    for name, node in graph.nodes.items():
        try:
            key = node.op, id(node.attrs), len(node.inputs)
            other = alike.get(key)
            if other is None:
                entries[name] = alike[key] = resolve_node(node, graph, ops)
            else:
                entries[name] = other._replace(node=node, inputs=_sources(node))
        except HealdError as error:
            entries[name] = error.at(node=name, op=node.op)
    for name, entry in entries.items():
        if isinstance(entry, Resolved):
            try:
                _check_edges(entry, entries)
                _check_changed_inputs(entry, entries)
                entry.op.check_references()
            except HealdError as error:
                entries[name] = error.at(node=name, op=entry.op.name)
    return entries


def _check_changed_inputs(entry: Resolved, entries: Mapping[str, Resolved | HealdError]) -> None:
    """Raises Unimplemented for an op that changes a variable, and whose first input is a value.

    An op whose name begins with "_" may stand for a variable that a pass has put on resources.
    """
    inputs = entry.op.inputs
    if not (inputs and inputs[0].is_ref and entry.inputs):
        return
    name, index = entry.inputs[0]
    source = entries.get(name)
    outputs = source.op.outputs if isinstance(source, Resolved) else ()
    if not isinstance(source, Resolved) or source.op.name.startswith("_"):
        return
    if outputs and not any(output.is_ref for output in outputs):
        raise Unimplemented(f"op {entry.op.name} changes a variable, and its input is no reference: it is output "
                            f"{index} of '{name}', a {source.op.name}",
                            hint=f"hand it a variable, or fetch '{name}' itself")


def faulty_nodes(graph: Graph, ops: OpRegistry) -> dict[str, HealdError]:
    """Return the error of each node of the graph that does not fit its op, by name."""
    return {name: entry for name, entry in resolve(graph, ops).items() if isinstance(entry, HealdError)}


def check_versions(graph: Graph) -> None:
    """Raises InvalidArgument when the graph excludes consumers of heald's version."""
    min_consumer = graph.versions.min_consumer
    if min_consumer > GRAPH_DEF_VERSION:
        raise InvalidArgument(f"this graph is for consumers of GraphDef version {min_consumer} or newer; "
                              f"heald reads up to {GRAPH_DEF_VERSION}", hint="upgrade heald")
    if GRAPH_DEF_VERSION in graph.versions.bad_consumers:
        raise InvalidArgument(f"this graph refuses consumers of GraphDef version {GRAPH_DEF_VERSION}",
                              hint="write it again with a newer TensorFlow")


def resolve_node(node: Node, graph: Graph, ops: OpRegistry) -> Resolved:
    """Match one node with its op, apart from its edges. Raises NotFound, InvalidArgument, Unimplemented."""
    producer = graph.versions.producer
    op = ops.get(node.op)
    if op.deprecated is not None and producer >= op.deprecated:
        raise Unimplemented(f"op {op.name} is deprecated since GraphDef version {op.deprecated}, and this graph is "
                            f"of version {producer}", hint="write the graph again without it")
    attrs = check_attributes(op, node.attrs)
    if op.name == CONST and attrs["value"].dtype is not attrs["dtype"]:
        raise InvalidArgument(f"attribute 'value' is {attrs['value'].dtype.name}, 'dtype' says {attrs['dtype'].name}")
    count = op.count_inputs(attrs)
    if count != len(node.inputs):
        raise InvalidArgument(f"op {op.name} takes {count} inputs with these attributes, "
                              f"the node has {len(node.inputs)}")
    op.check_outputs(attrs)
    return Resolved(node, op, attrs, _sources(node), tuple(op.expand_inputs(attrs)), tuple(op.expand_outputs(attrs)))


def _sources(node: Node) -> tuple[tuple[str, int], ...]:
    return tuple([(source, index) for source, _, index in node.inputs])


def _check_edges(entry: Resolved, entries: Mapping[str, Resolved | HealdError]) -> None:
    for (producer, index), declared in zip(entry.inputs, entry.input_tensors, strict=True):
        source = entries[producer]
        if not isinstance(source, Resolved):
            continue
        outputs = source.output_tensors
        if index >= len(outputs):
            raise InvalidArgument(f"input '{declared.arg}' is output {index} of '{producer}' ({source.op.name}), "
                                  f"which has {len(outputs)} outputs")
        if outputs[index].dtype is not declared.dtype:
            raise InvalidArgument(f"input '{declared.arg}' must be {declared.dtype.name}, but '{producer}:{index}' "
                                  f"({source.op.name}) is {outputs[index].dtype.name}")
