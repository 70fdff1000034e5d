"""The choice between regions and the functional form, made for all nodes of a graph before it is printed.

A region states no types of its own: the reader derives a node's attributes and its functions' signatures from
the types of the values, and the printer derives the types of the values from the ops. A node whose attributes or
signatures state other types than its values would lose them. Such a node keeps the functional form, which states both.
So does a node with a function that the text must name: one with a second caller, or one with a gradient.

A loop whose regions capture values has them as its last inputs. The text shows them as captured where the body returns
its arguments for them, and no node reads their results. Otherwise it shows them as values of the loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from heald.api import Graph, Input, Node
from heald.graphs.graph import AttrPlaceholder, Func, Function, parse_input

from ..signatures.result_types import Declarations, Result, tensor_type, type_number, type_numbers
from ..signatures.signature import Signature, read_signature
from ..values.element_types import OPAQUE
from ..values.graph_layout import gradients
from ..values.node_section import read_values
from .region_forms import FORMS, REGION, RegionForm, called_functions, captured_values, is_region

_FOR_BOUNDS = 3  # operands of a For in front of its values: the body gets the index


class RegionChoice(NamedTuple):
    """`nodes`: the nodes with regions by the name of their function, None for the graph: their names, and for each the
    number of values that the regions of a loop capture.

    `functions`: the functions that are printed in regions alone.
    """

    nodes: Mapping[str | None, Mapping[str, int]]
    functions: frozenset[str]


def choose_regions(graph: Graph, declarations: Declarations) -> RegionChoice:
    """The marked nodes of a graph whose regions state all of their types."""
    bodies: dict[str | None, Mapping[str, Node]] = {None: graph.nodes}
    bodies |= {function.name: function.nodes for function in graph.functions.values()}
    marked = {name: [node for node in nodes.values() if is_region(node)] for name, nodes in bodies.items()}
    if not any(marked.values()):
        return RegionChoice({}, frozenset())
    finder = _RegionFinder(graph, bodies, declarations)
    region_nodes = {name: finder.region_nodes(name, nodes) for name, nodes in marked.items() if nodes}
    functions = frozenset(
        func.name for nodes in region_nodes.values() for node in nodes for func in called_functions(node))
    names = {body: finder.captured_counts(body, nodes) for body, nodes in region_nodes.items()}
    return RegionChoice(names, functions)


def names_in_reading_order(graph: Graph, choice: RegionChoice) -> list[str]:
    """The functions' names in the order in which the reader of the text makes them: those of regions come last."""
    in_regions: list[str] = []

    def add_functions(body: str | None) -> None:
        nodes = graph.nodes if body is None else graph.functions[body].nodes
        for name in choice.nodes.get(body, ()):
            names = [func.name for func in called_functions(nodes[name])]
            for function in names:
                add_functions(function)
            in_regions.extend(names)

    kept = [name for name in graph.functions if name not in choice.functions]
    for body in (None, *kept):
        add_functions(body)
    return kept + in_regions


class _BodyTypes:
    """The types of the values of a graph, or of a function with this signature, as text derives them."""

    def __init__(self, nodes: Mapping[str, Node], signature: Signature | None, declarations: Declarations) -> None:
        self.nodes = nodes
        self.signature = signature
        self._declarations = declarations
        self._arguments = {} if signature is None else {
            argument.name: tensor_type(argument.type) for argument in signature.inputs}
        self._results: dict[str, tuple[Result, ...]] = {}

    def results(self, name: str) -> tuple[Result, ...]:
        """The declared results of a node."""
        if name not in self._results:
            node = self.nodes[name]
            declaration = self._declarations.get(node.op)
            self._results[name] = () if declaration is None else declaration.results(read_values(node.raw))
        return self._results[name]

    def type_of(self, source: Input) -> str | None:
        """The type of a tensor; None for one that its op does not declare, or whose node does not exist."""
        if source.node not in self.nodes:
            return self._arguments.get(source.node)
        types = [of for result in self.results(source.node) for of in result.types
                 if self.signature is None or result.argument == source.output]
        return types[source.index] if source.index < len(types) else None

    def uses(self) -> Iterator[Input]:
        """The tensors that nodes take and that are returned."""
        for node in self.nodes.values():
            yield from node.inputs
        if self.signature is not None:
            yield from map(parse_input, self.signature.ret.values())

    def states_results(self) -> bool:
        """True when each result of the function is a tensor of the type that the signature states."""
        assert self.signature is not None
        ret = self.signature.ret
        return all(output.name in ret and _is_typed(self.type_of(parse_input(ret[output.name])), output.type)
                   for output in self.signature.outputs)


class _RegionFinder:
    """Finds the nodes of a graph that keep all of their types in regions."""

    def __init__(self, graph: Graph, bodies: Mapping[str | None, Mapping[str, Node]], declarations: Declarations,
                 ) -> None:
        self._functions = graph.functions
        self._bodies = bodies
        self._declarations = declarations
        self._types: dict[str | None, _BodyTypes] = {}
        self._references = _references(bodies.values())
        with_gradient = gradients(graph)
        self._references.update((*with_gradient, *with_gradient.values()))

    def region_nodes(self, body: str | None, marked: Sequence[Node]) -> list[Node]:
        """The nodes of a body that are printed with regions, out of its marked nodes."""
        types = self._body_types(body)
        if types.signature is not None and _is_generic(types):
            return []
        names = {node.name for node in marked}
        undeclared = {source.node for source in types.uses() if source.node in names and types.type_of(source) is None}
        return [node for node in marked if node.name not in undeclared and self._states_types(node, types)]

    def captured_counts(self, body: str | None, nodes: Iterable[Node]) -> dict[str, int]:
        """The number of values that the regions of each node of a body capture. They are its last inputs."""
        counts = {node.name: captured_values(node) if self._passes_captured_values(node) else 0 for node in nodes}
        sizes = {node.name: len(node.inputs) - FORMS[node.op].leading for node in nodes}
        for source in self._body_types(body).uses() if any(counts.values()) else ():
            if counts.get(source.node) and source.index >= sizes[source.node] - counts[source.node]:
                counts[source.node] = 0
        return counts

    def _passes_captured_values(self, node: Node) -> bool:
        """True where the loop's body returns its arguments for the values that regions capture."""
        count = captured_values(node)
        function = self._functions[called_functions(node)[-1].name]
        arguments = [argument.name for argument in function.inputs]
        results = [str(function.ret[output.name]) for output in function.outputs]
        return count > 0 and arguments[-count:] == results[-count:] and not {*arguments[-count:]} & {*function.nodes}

    def _body_types(self, body: str | None) -> _BodyTypes:
        if body not in self._types:
            signature = None if body is None else read_signature(self._functions[body].raw)
            self._types[body] = _BodyTypes(self._bodies[body], signature, self._declarations)
        return self._types[body]

    def _states_types(self, node: Node, types: _BodyTypes) -> bool:
        form = FORMS[node.op]
        functions = [self._functions.get(func.name) for func in called_functions(node)]
        if len(node.inputs) < form.leading or not _has_all_functions(form, functions):
            return False
        operands = [types.type_of(source) for source in node.inputs]
        data = operands[form.leading:]
        results = [of for result in types.results(node.name) for of in result.types]
        if not _states_attributes(node, form, operands, results):
            return False
        arguments = [operands[0], *data] if form.leading == _FOR_BOUNDS else data
        return all(self._is_body(function, arguments) for function in functions if function is not None) and (
            form.functions[0] != "cond" or functions[0] is None or len(functions[0].outputs) == 1)

    def _is_body(self, function: Function, arguments: Sequence[str | None]) -> bool:
        """True for a function of a region whose arguments and results have the types that its signature states."""
        if REGION not in function.attrs or self._references[function.name] != 1:
            return False
        types = self._body_types(function.name)
        assert types.signature is not None
        inputs = types.signature.inputs
        return not _is_generic(types) and len(inputs) == len(arguments) and types.states_results() and all(
            _is_typed(of, argument.type) for of, argument in zip(arguments, inputs, strict=True))


def _references(bodies: Iterable[Mapping[str, Node]]) -> Counter[str]:
    """The number of attributes that name each function, and of nodes with its name as their op."""
    references: Counter[str] = Counter()
    for nodes in bodies:
        for node in nodes.values():
            references[node.op] += 1
            for value in node.attrs.values():
                funcs = value if isinstance(value, tuple) else (value,)
                references.update([func.name for func in funcs if isinstance(func, Func)])
    return references


def _is_generic(types: _BodyTypes) -> bool:
    return (types.signature is not None and types.signature.is_generic()) or any(
        isinstance(value, AttrPlaceholder) for node in types.nodes.values() for value in node.attrs.values())


def _has_all_functions(form: RegionForm, functions: Sequence[Function | None]) -> bool:
    """True when every function exists, and each attribute of the form names one, or any number of branches."""
    return None not in functions and (len(functions) == len(form.functions) or (
        form.functions == ("branches",) and len(functions) > 0))


def _states_attributes(node: Node, form: RegionForm, operands: Sequence[str | None], results: Sequence[str]) -> bool:
    """True when the types of operands and results imply the attributes that a region does not show."""
    values = read_values(node.raw)
    for name in form.implied:
        if name not in values:
            return False
        numbers = [type_number(values[name])] if name == "Tcond" else type_numbers(values[name])
        types = operands[:1] if name == "Tcond" else results if name == "Tout" else operands[form.leading:]
        if len(types) != len(numbers) or not all(map(_is_typed, types, numbers)):
            return False
    return True


def _is_typed(of: str | None, number: int) -> bool:
    """True for the text of the type with this number."""
    return of is not None and of != OPAQUE and of == tensor_type(number)
