"""Graphs as text: the module, its graph op and its functions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from heald.api import Graph

from ..checks.function_import_checks import check_graph
from ..regions.region_choice import choose_regions, names_in_reading_order
from ..signatures.result_types import Declarations
from ..signatures.signature import Signature, read_signature
from ..values.graph_layout import FUNCTIONS, LAYOUT, functions_text, gradients, layout_text
from .body_printer import Context, GraphBody
from .function_printer import function_text
from .region_printer import region_op
from .value_names import ValueNames


def declarations_of(graph: Graph, ops: Any) -> Declarations:
    """The declarations of the ops of a graph, and of its functions. `ops`: the registry of ops."""
    def signature_of(name: str) -> Signature | None:
        function = graph.functions.get(name)
        return None if function is None else read_signature(function.raw)

    return Declarations(ops, signature_of)


def graph_text(graph: Graph, ops: Any, canonical: bool, *, verify: bool = True) -> Iterator[str]:
    """The text of a graph, in fragments. `ops`: the registry of ops. `verify`: False leaves out the importer's checks.

    Raises InvalidArgument for a graph that TensorFlow's importer refuses, in its words. Unknown ops are no fault.
    """
    declarations = declarations_of(graph, ops)
    if verify:
        check_graph(graph, declarations)
    choice = choose_regions(graph, declarations)
    context = Context(declarations, graph.functions, canonical, choice, region_op)
    versions = graph.versions
    bad = f", bad_consumers = [{', '.join(map(str, versions.bad_consumers))}]" if versions.bad_consumers else ""
    yield (f"module {{\n  tfg.graph #tf_type.version<producer = {versions.producer}, "
           f"min_consumer = {versions.min_consumer}{bad}>")
    kept = [] if canonical else [
        f"{name} = {text}" for name, text in ((FUNCTIONS, functions_text(graph, names_in_reading_order(graph, choice))),
                                              (LAYOUT, layout_text(graph))) if text]
    yield f" attributes {{{', '.join(kept)}}} {{\n" if kept else " {\n"
    yield from GraphBody(graph.nodes, context, ValueNames()).lines("    ")
    yield "  }\n"
    gradient_of = gradients(graph)
    for function in graph.functions.values():
        if function.name not in choice.functions:
            yield from function_text(function, context, gradient_of.get(function.name))
    yield "}\n"
