"""Verifier: the checks of a graph that need no knowledge of its ops."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from ...errors import HealdError, InvalidArgument, did_you_mean
from .function import Function
from .graph_base import GraphBase
from .node import Node
from .traversal import topological_order

# TensorFlow's rule; its own runtime makes names with a leading underscore
_NAME = re.compile(r"[A-Za-z0-9._][A-Za-z0-9_./\-]*(?:>[A-Za-z0-9.][A-Za-z0-9_./\-]*)*")


def verify(graph: GraphBase) -> None:
    """Raises InvalidArgument, which names the node, for a graph that is not well formed.

    Checked, in functions too: names, that every input exists, ports, nodes that take themselves, cycles. Not checked:
    facts that depend on the op, such as the number of outputs of a node and the attributes it needs.
    """
    if not _check_nodes(graph.nodes, {}, in_function=False):
        topological_order(graph)
    for function in graph.functions.values():
        try:
            _check_function(function)
            if not _check_nodes(function.nodes, {a.name for a in function.inputs}, in_function=True):
                topological_order(function.nodes)
        except HealdError as error:
            raise type(error)(f"function '{function.name}': {error.message}", node=error.node, op=error.op,
                              hint=error.hint) from None


def _check_nodes(nodes: Mapping[str, Node], arguments: Collection[str], *, in_function: bool) -> bool:
    """Check nodes and their inputs. Returns True when every node comes after its inputs, so that there is no cycle.
    Raises InvalidArgument."""
    defined = set(arguments)
    ordered = True
    for name, node in nodes.items():
        if not _NAME.fullmatch(name):
            raise _bad_name(node)
        if not node.op:
            raise InvalidArgument("the node has no op", node=name)
        for source, output, _ in node.inputs:
            if source not in defined:
                ordered = False
                _check_source(node, source, nodes)
            if output is not None and not in_function:
                raise InvalidArgument(f"input '{source}:{output}' has a port that is not a number", node=name,
                                      op=node.op)
        for source in node.controls:
            if source not in defined:
                ordered = False
                _check_source(node, source, nodes)
        if name in defined:
            raise InvalidArgument("a node and an argument have the same name", node=name, op=node.op)
        defined.add(name)
    return ordered


def _bad_name(node: Node) -> InvalidArgument:
    what = f"'{node.name}' is not a node's name" if node.name else "a node has no name"
    hint = "names are letters, digits and any of _./->, and start with a letter, a digit or a dot"
    return InvalidArgument(what, node=node.name, op=node.op or None, hint=hint)


def _check_source(node: Node, source: str, nodes: Mapping[str, Node]) -> None:
    if source == node.name:
        raise InvalidArgument("the node takes itself as input", node=node.name, op=node.op)
    if source not in nodes:
        raise InvalidArgument(f"input '{source}' does not exist", node=node.name, op=node.op,
                              hint=did_you_mean(source, nodes))


def _check_function(function: Function) -> None:
    arguments = {a.name for a in function.inputs}
    if len(arguments) < len(function.inputs):
        raise InvalidArgument("two arguments have the same name")
    for output in function.outputs:
        if output.name not in function.ret:
            raise InvalidArgument(f"output '{output.name}' has no value")
    for name, source in (*((k, v.node) for k, v in function.ret.items()), *function.control_ret.items()):
        if source not in function.nodes and source not in arguments:
            raise InvalidArgument(f"output '{name}' is '{source}', which is neither a node nor an argument")
