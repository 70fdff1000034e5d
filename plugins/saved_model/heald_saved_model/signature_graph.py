"""Signatures of a SavedModel as one runnable graph, without the nodes that serve saving alone."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from heald.api import (
    Graph,
    Initializer,
    Input,
    Node,
    SignatureDef,
    TensorInfo,
    constant,
    new_name,
    without_idle_controls,
)
from heald.errors import HealdError, NotFound, Unimplemented, did_you_mean
from heald.graphs.compiler import inline, with_successors_as_partners
from heald.graphs.graph import ancestors, parse_input
from heald.runtime.contract import OpRegistry

from .asset_tables import with_constants
from .freeze import idle_reads, only_read
from .init_op import init_op_initializer
from .initializers import with_initializers
from .saved_model import SavedModel
from .state_names import state_names
from .unused_functions import without_unused_functions


class SignatureGraph(NamedTuple):
    """A graph of several signatures, the signatures in terms of that graph, and its initial state."""

    graph: Graph
    signatures: dict[str, SignatureDef]
    initial_state: tuple[Initializer, ...]


def signature_graph(
    saved: SavedModel, names: Sequence[str], ops: OpRegistry, outputs: Sequence[str] = ()
) -> SignatureGraph:
    """Build the graph of these signatures, functions inlined. Variables have initializers, which read the checkpoint
    when they run, or when the pass "freeze" asks for the values.

    `outputs` may name further tensors of the SavedModel's graph to keep. A node without a kernel is no error here.
    Raises NotFound for a variable without a value, DataLoss for an unreadable index of the checkpoint.
    """
    declared = {name: saved.signature(name) for name in names}
    further = [parse_input(output).node for output in outputs]
    parts = {name: ancestors(saved.graph.nodes, _nodes(signature)) for name, signature in declared.items()}
    init_ops = [name for name in (saved.init_op,) if name is not None]
    needed = ancestors(saved.graph.nodes, (*init_ops, *further)).union(*parts.values())
    graph = saved.graph.replace(without=saved.graph.nodes.keys() - needed, nodes=_assets(saved, needed))
    graph, inlined_tensors, _ = inline.inline(graph, ops)
    values = saved.variables(needed)

    def op_of(node: Node) -> Any:
        return _op(node, ops)

    read = only_read(graph, values, op_of)
    graph = without_idle_controls(graph, idle_reads(graph, read, op_of))
    signatures = {}
    for name, signature in declared.items():
        calls = [node for node in saved.graph.nodes if node in parts[name] and saved.graph[node].op != "NoOp"]
        graph, signatures[name] = _express_inlined(graph, signature, inlined_tensors, calls)
    tensor_nodes = [node for signature in signatures.values() for node in _nodes(signature)]
    needed_nodes = ancestors(graph.nodes, (*tensor_nodes, *further))
    state = state_names(graph)
    candidates = [init_op_initializer(graph, name, read, state, op_of) for name in init_ops]
    first = [initializer for initializer in candidates if initializer is not None
             and (initializer.for_all_steps or not initializer.resources.isdisjoint(needed_nodes))]
    assets = saved.assets() if first else {}
    if saved.lacks_assets(assets.values()):
        first = []
    for initializer in first:
        graph = with_constants(graph, ancestors(graph.nodes, [initializer.target]), assets, ops)
        needed_nodes |= ancestors(graph.nodes, [initializer.target])
    remaining = graph.replace(without=graph.nodes.keys() - needed_nodes)
    remaining = with_successors_as_partners(graph, remaining)  # placement refuses partners that are left out
    graph, restoring = with_initializers(remaining, saved, values, state)
    return SignatureGraph(without_unused_functions(graph), signatures, (*restoring, *first))


def check_runnable(saved: SavedModel, name: str) -> None:
    """Raises NotFound for a missing signature or a missing tensor of it, Unimplemented for one without outputs."""
    signature = saved.signature(name)
    if not signature.outputs:
        raise Unimplemented(f"signature '{name}' has no outputs: it is for its effects, and those are not run yet")
    for node in _nodes(signature):
        if node not in saved.graph:
            raise NotFound(f"signature '{name}' has a tensor of '{node}', which is not in the graph",
                           hint=did_you_mean(node, saved.graph.nodes))


def _op(node: Node, ops: OpRegistry) -> Any:
    """Return the OpDef of a node's op, or None for an unknown op."""
    try:
        return ops.get(node.op)
    except HealdError:
        return None


def _nodes(signature: SignatureDef) -> list[str]:
    return [parse_input(info.tensor).node for side in (signature.inputs, signature.outputs) for info in side.values()]


def _assets(saved: SavedModel, needed: Container[str]) -> Iterator[Node]:
    """Yield the constants that stand for asset files, with the files' paths on this machine."""
    import numpy as np

    for name, path in saved.assets().items():
        if name in needed:
            yield constant(name, np.array(path.encode(), object))


def _express_inlined(
    graph: Graph, signature: SignatureDef, inlined_tensors: Mapping[Input, Input], calls: Iterable[str]
) -> tuple[Graph, SignatureDef]:
    """Express a signature in terms of the inlined graph. Its outputs wait for the effects of the called functions.

    `inlined_tensors` maps the outputs of calls to the tensors of the inlined functions. `calls` are the signature's
    nodes before inlining.
    """
    def inlined_info(info: TensorInfo) -> TensorInfo:
        tensor = parse_input(info.tensor)
        return info._replace(tensor=_text(inlined_tensors.get(tensor, tensor)))

    inputs, outputs = ({name: inlined_info(info) for name, info in side.items()}
                       for side in (signature.inputs, signature.outputs))
    effects = [name for name in calls if graph[name].op == "NoOp" and graph[name].controls]
    if effects:
        graph, outputs = _wait_for_effects(graph, effects, outputs)
    return graph, signature._replace(inputs=inputs, outputs=outputs)


def _text(tensor: Input) -> str:
    return f"{tensor.node}:{tensor.index}"


def _wait_for_effects(
    graph: Graph, effects: Sequence[str], outputs: Mapping[str, TensorInfo]
) -> tuple[Graph, dict[str, TensorInfo]]:
    """Make the outputs wait for the effects of the called functions."""
    nodes, infos, used_names = [], {}, set(graph.nodes)
    for index, (name, info) in enumerate(outputs.items()):
        node = Node(new_name(f"outputs/{index}", used_names), "Identity", [parse_input(info.tensor)], controls=effects,
                    attrs={"T": info.meta.dtype})
        nodes.append(node)
        infos[name] = info._replace(tensor=f"{node.name}:0")
    return graph.replace(nodes=nodes), infos
