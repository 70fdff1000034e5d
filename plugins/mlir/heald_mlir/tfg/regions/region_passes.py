"""The passes between functional control flow and regions, which are a form of text (see `region_forms`).

`functional_to_region` gives each control flow node bodies of its own: copies of its functions, whose nodes have unique
names. It skips nodes in generic functions, and calls of a function within itself. It skips functions with a gradient,
as TensorFlow does: a region cannot state one. The bound of inlined calls bounds the copies, too.
`region_to_functional` is its reverse: a node calls the functions again whose copies its regions are, and the copies go.
A region that differs from that function, or that was read from text, stays a function of its own. Both keep results and
effects, and are idempotent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from heald.api import Graph, Input, Node, PassContext
from heald.graphs.graph import AttrPlaceholder, ExpansionLimit, Func, Function

from ..values.graph_layout import gradients
from .region_forms import DEEPEST_REGIONS, FORMS, REGION, FunctionNames, called_functions, is_region, shown_name


def functional_to_region(graph: Graph, _: PassContext | None = None) -> Graph:
    """The graph with If, Case, While and For as regions. Raises ResourceExhausted for too many nodes."""
    maker = _RegionMaker(graph)
    nodes = maker.make_region_nodes(graph.nodes, ())
    functions = []
    for function in graph.functions.values():
        if REGION in function.attrs or _is_generic(function):
            continue
        changed = maker.make_region_nodes(function.nodes, (function.name,))
        if changed:
            functions.append(function.replace(nodes=[changed.get(name, node) for name, node in function.nodes.items()]))
    if not nodes and not functions:
        return graph
    return graph.replace(nodes=list(nodes.values()), functions=[*functions, *maker.bodies])


def region_to_functional(graph: Graph, _: PassContext | None = None) -> Graph:
    """The graph with all control flow in functional form."""
    restorer = _CallRestorer(graph)
    nodes = [restorer.restore_node(node) for node in graph.nodes.values() if is_region(node)]
    functions = []
    for function in graph.functions.values():
        if function.name not in restorer.copies and any(map(is_region, function.nodes.values())):
            functions.append(restorer.restore_function(function))
    if not nodes and not functions:
        return graph
    functions = [function for function in functions if function.name not in restorer.copies]
    return graph.replace(nodes=nodes, functions=functions, without_functions=restorer.copies)


class _CallRestorer:
    """Turns nodes with regions into calls of the functions whose copies the regions are. `copies`: their names."""

    def __init__(self, graph: Graph) -> None:
        self._functions = graph.functions
        self._restored: dict[str, Function] = {}
        self.copies: set[str] = set()
        for function in self._functions_after_callees():
            self.restore_function(function)

    def _functions_after_callees(self) -> list[Function]:
        """The functions, each behind those that `restore_function` needs for it: chains of calls have any length."""
        order: dict[str, Function] = {}
        visited: set[str] = set()
        waiting = [*self._functions]
        while waiting:
            name = waiting[-1]
            function = self._functions[name]
            callees = [] if name in visited else [
                callee for node in function.nodes.values() if is_region(node) for callee in self._callees(node)]
            visited.add(name)
            waiting += [callee for callee in callees if callee not in visited]
            if waiting[-1] == name:
                order[name] = function
                waiting.pop()
        return [*order.values()]

    def _callees(self, node: Node) -> list[str]:
        """The functions of a node's regions, and those whose copies they may be."""
        functions = [self._functions[call.name] for call in called_functions(node) if call.name in self._functions]
        return [name for function in functions for name in (function.name, shown_name(function))
                if name in self._functions]

    def restore_function(self, function: Function) -> Function:
        """The function with all control flow in functional form."""
        if function.name not in self._restored:
            self._restored[function.name] = function  # for a function that calls itself
            if any(map(is_region, function.nodes.values())):
                self._restored[function.name] = function.replace(
                    nodes=list(map(self.restore_node, function.nodes.values())))
        return self._restored[function.name]

    def restore_node(self, node: Node) -> Node:
        """The node in functional form."""
        if not is_region(node):
            return node
        calls = [call.name for call in called_functions(node)]
        for index, name in enumerate(calls):
            original = self._original(name, node, index)
            if original is not None:
                self.copies.add(name)
                calls[index] = original
        return node.replace(attrs=_with_calls(node, calls), without_attrs=(REGION,))

    def _original(self, name: str, node: Node, index: int) -> str | None:
        """The name of the function whose copy the region is; None for a region that differs from it."""
        copy = self._functions.get(name)
        if copy is None or REGION not in copy.attrs:
            return None
        original = self._functions.get(shown_name(copy))
        if original is None or original is copy or len(copy.nodes) != len(original.nodes):
            return None
        new = _copied_names(original, node, index)
        nodes = self.restore_function(copy).nodes.values()
        originals = self.restore_function(original).nodes.values()
        is_copy = _signature(copy) == _signature(original) and {
            key: _renamed_input(source, new) for key, source in original.ret.items()} == dict(copy.ret) and {
            key: new.get(source, source) for key, source in original.control_ret.items()} == dict(copy.control_ret)
        return original.name if is_copy and all(
            _is_same(inner, _rename_node(first, new)) for inner, first in zip(nodes, originals, strict=True)) else None


def _signature(function: Function) -> tuple[Any, ...]:
    return function.inputs, function.outputs, function.control_outputs, function.stateful


def _is_same(node: Node, other: Node) -> bool:
    return (node.name, node.op, node.inputs, node.controls, node.device) == (
        other.name, other.op, other.inputs, other.controls, other.device) and dict(node.attrs) == dict(other.attrs)


def _copied_names(function: Function, node: Node, index: int) -> dict[str, str]:
    """The names of a function's nodes in the region with this index."""
    return {name: f"{name}_tfg_inlined_{node.name}_{index}" for name in function.nodes}


def _is_generic(function: Function) -> bool:
    return any(isinstance(value, AttrPlaceholder) for node in function.nodes.values() for value in node.attrs.values())


class _RegionMaker:
    """Makes the bodies of regions. `bodies`: their functions."""

    def __init__(self, graph: Graph) -> None:
        self._functions = graph.functions
        self._with_gradient = gradients(graph).keys()
        self._names = FunctionNames(graph.functions)
        self._limit = ExpansionLimit(len(graph.nodes), graph.functions)
        self._nodes, self._text = len(graph.nodes), 0  # in the graph; characters of new names
        self.bodies: list[Function] = []

    def make_region_nodes(self, nodes: Mapping[str, Node], path: tuple[str, ...]) -> dict[str, Node]:
        """The nodes that get regions, by name. `path`: the functions around the nodes."""
        return {name: region_node for name, node in nodes.items()
                if (region_node := self._make_region_node(node, path)) is not node}

    def _make_region_node(self, node: Node, path: tuple[str, ...]) -> Node:
        if node.op not in FORMS or is_region(node) or len(path) > DEEPEST_REGIONS:
            return node
        functions = [self._functions.get(call.name) for call in called_functions(node)]
        if not functions or any(body is None or body.name in path or body.name in self._with_gradient
                                or _is_generic(body) for body in functions):
            return node
        bodies = [self._make_body(function, node, index, path) for index, function in enumerate(functions) if function]
        self.bodies += bodies  # behind those within them, as the reader of a text has them
        return node.replace(attrs={**_with_calls(node, [body.name for body in bodies]), REGION: True})

    def _make_body(self, function: Function, node: Node, index: int, path: tuple[str, ...]) -> Function:
        """The function of a region."""
        self._nodes += 1 + len(function.nodes)
        self._text += (1 + len(function.nodes)) * len(node.name)
        self._limit.check(self._nodes, self._text, node)
        new = _copied_names(function, node, index)
        nodes = [_rename_node(inner, new) for inner in function.nodes.values()]
        nodes = [self._make_region_node(inner, (*path, function.name)) for inner in nodes]
        name = self._names.new(f"{function.name}_tfg_region_{index}")
        return function.replace(
            name=name, nodes=nodes, ret={key: _renamed_input(source, new) for key, source in function.ret.items()},
            control_ret={key: new.get(source, source) for key, source in function.control_ret.items()},
            attrs={REGION: shown_name(function)})


def _rename_node(node: Node, new: Mapping[str, str]) -> Node:
    return node.replace(name=new[node.name], inputs=[_renamed_input(source, new) for source in node.inputs],
                        controls=[new.get(source, source) for source in node.controls])


def _renamed_input(source: Input, new: Mapping[str, str]) -> Input:
    return source._replace(node=new.get(source.node, source.node))


def _with_calls(node: Node, names: Iterable[str]) -> dict[str, Any]:
    """The attributes of a node that name functions, with other names."""
    left = iter(names)
    attrs: dict[str, Any] = {}
    for key in FORMS[node.op].functions:
        value = node.attrs[key]
        attrs[key] = tuple(Func(next(left), call.attrs) for call in value) if isinstance(value, tuple) else Func(
            next(left), value.attrs)
    return attrs
