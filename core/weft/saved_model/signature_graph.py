"""A signature of a SavedModel as a graph that can be run: what saving, training and other signatures need is gone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..compiler.inline import inline
from ..contract.op import OpRegistry
from ..errors import NotFound, Unimplemented
from ..graph.attr_value import Func
from ..graph.graph import Function, Graph, Input, Node, TensorValue
from ..graph.node import parse_input
from ..graph.rewriting import constant
from ..graph.traversal import ancestors
from ..graph.verifier import did_you_mean
from .asset_tables import with_constants
from .freeze import freeze
from .saved_model import SavedModel
from .signature import Place, Signature

TABLES = frozenset({"AnonymousHashTable", "HashTable", "HashTableV2", "MutableHashTableOfTensorsV2",
                    "MutableHashTableV2"})


def signature_graph(
    saved: SavedModel, name: str, ops: OpRegistry, outputs: Sequence[str] = ()
) -> tuple[Graph, Signature]:
    """The graph of a signature, functions inlined, and the signature in terms of it. Variables that are only read are
    constants; the others have initializers.

    `outputs` may name further tensors of the SavedModel's graph that are to stay. What cannot be run is no error here.
    Raises NotFound for a signature or a tensor that is not there, and for variables without a value, Unimplemented
    for a signature without outputs.
    """
    signature = saved.signature(name)
    if not signature.outputs:
        raise Unimplemented(f"signature '{name}' has no outputs: it is for its effects, and those are not run yet")
    _check_there(signature, name, saved.graph)
    further = [parse_input(output).node for output in outputs]
    needed = ancestors(saved.graph.nodes, (*_nodes(signature.inputs, signature.outputs), *further))
    calls = [node.name for node in saved.graph if node.name in needed and node.op != "NoOp"]
    first = [] if saved.initializer is None else [saved.initializer]
    needed |= ancestors(saved.graph.nodes, first)
    graph = saved.graph.replace(without=saved.graph.nodes.keys() - needed, nodes=_assets(saved, needed))
    graph, given = inline(graph, ops)
    values = saved.variables(needed)
    graph = freeze(graph, values, ops)
    inputs, results = (_located(side, given) for side in (signature.inputs, signature.outputs))
    effects = [node for node in calls if graph[node].op == "NoOp" and graph[node].controls]
    if effects:
        graph, results = _after(graph, effects, results)
    kept = ancestors(graph.nodes, (*_nodes(inputs, results), *further))
    if any(graph[source.node].op in TABLES for name in kept for source in graph[name].inputs):
        graph = with_constants(graph, ancestors(graph.nodes, first), saved.assets(), ops)
        kept |= ancestors(graph.nodes, first)
    else:
        first = []
    restoring = [node for name in values if name in kept and graph[name].op == "VarHandleOp"
                 for node in _restoring(graph[name], values[name])]
    restoring += [node for name, pairs in saved.tables(kept).items() for node in _refilling(graph[name], *pairs)]
    graph = graph.replace(nodes=restoring, without=graph.nodes.keys() - kept)
    initializers = (*(node.name for node in restoring if node.op != "Const"), *first)
    return _without_functions(graph), signature._replace(inputs=inputs, outputs=results, initializers=initializers)


def _restoring(variable: Node, value: Any) -> tuple[Node, Node]:
    """What gives a variable the value that was saved."""
    saved = constant(f"{variable.name}/restored", TensorValue(value), variable.device)
    return saved, Node(f"{saved.name}/assign", "AssignVariableOp", (variable.name, saved.name), device=variable.device,
                       attrs={"dtype": saved.attrs["dtype"]})


def _refilling(table: Node, keys: Any, values: Any) -> tuple[Node, ...]:
    """What gives a table the keys and values that were saved."""
    pair = [constant(f"{table.name}/restored/{side}", TensorValue(array), table.device)
            for side, array in (("keys", keys), ("values", values))]
    types = {name: node.attrs["dtype"] for name, node in zip(("Tin", "Tout"), pair, strict=True)}
    return *pair, Node(f"{table.name}/restored", "LookupTableImportV2", (table.name, *(node.name for node in pair)),
                       device=table.device, attrs=types)


def _check_there(signature: Signature, name: str, graph: Graph) -> None:
    for node in _nodes(signature.inputs, signature.outputs):
        if node not in graph:
            raise NotFound(f"signature '{name}' has a tensor of '{node}', which is not in the graph",
                           hint=did_you_mean(node, graph.nodes))


def _nodes(*sides: Mapping[str, Place]) -> list[str]:
    return [parse_input(place.tensor).node for side in sides for place in side.values()]


def _assets(saved: SavedModel, needed: Iterable[str]) -> Iterator[Node]:
    """The constants that stand for asset files, with the paths that the files have here."""
    import numpy as np

    paths = saved.assets()
    for name in paths.keys() & set(needed):
        path = np.array(paths[name].encode(), object)
        yield constant(name, path)


def _located(places: Mapping[str, Place], given: Mapping[Input, Input]) -> dict[str, Place]:
    return {name: place._replace(tensor=_text(given.get(parse_input(place.tensor), parse_input(place.tensor))))
            for name, place in places.items()}


def _text(tensor: Input) -> str:
    return f"{tensor.node}:{tensor.index}"


def _after(graph: Graph, effects: Sequence[str], outputs: Mapping[str, Place]) -> tuple[Graph, dict[str, Place]]:
    """Outputs that come after what the called functions do besides."""
    nodes, places = [], {}
    for index, (name, place) in enumerate(outputs.items()):
        output = f"outputs/{index}"
        while output in graph:
            output += "_"
        nodes.append(Node(output, "Identity", [parse_input(place.tensor)], controls=effects,
                          attrs={"T": place.meta.dtype}))
        places[name] = place._replace(tensor=f"{output}:0")
    return graph.replace(nodes=nodes), places


def _without_functions(graph: Graph) -> Graph:
    """The graph without the functions that nothing calls any more."""
    called: dict[str, Function] = {}
    waiting = [name for node in graph for name in _called(node)]
    while waiting:
        name = waiting.pop()
        function = graph.functions.get(name)
        if function is not None and name not in called:
            called[name] = function
            waiting += [inner for node in function.nodes.values() for inner in _called(node)]
    return graph.replace(without_functions=graph.functions.keys() - called.keys())


def _called(node: Node) -> Iterator[str]:
    yield node.op
    for value in node.attrs.values():
        yield from (func.name for func in _functions(value))


def _functions(value: Any) -> Iterator[Func]:
    for item in value if isinstance(value, tuple) else (value,):
        if isinstance(item, Func):
            yield item
