"""Types and shapes of a graph's tensors from metadata functions alone: no device, no kernel, nothing run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...errors import HealdError
from ...graphs.compiler.resolve import Resolved
from ...graphs.graph.graph import Node, topological_order
from ...runtime.contract.op import infer
from ...runtime.contract.op_registry import OpRegistry
from ...runtime.contract.structural import CONST, LEGACY_SCALARS, MUST_FEED
from ...runtime.values.tensor import TensorMetadata, ValueInfo, constant_info

Nodes = Mapping[str, Resolved | HealdError]
Infos = dict[tuple[str, int], ValueInfo]


def infer_types(order: Iterable[Node], nodes: Nodes, ops: OpRegistry, producer: int) -> Infos:
    """The known facts of each tensor of the nodes that fit their ops, by node and output. `producer` is the graph's."""
    infos: Infos = {}
    for node in topological_order({node.name: node for node in order}):
        entry = nodes[node.name]
        if isinstance(entry, Resolved):
            for index, info in enumerate(_outputs(entry, infos, ops, producer)):
                infos[node.name, index] = info
    return infos


def _outputs(entry: Resolved, infos: Infos, ops: OpRegistry, producer: int) -> Iterable[ValueInfo]:
    unknown = [ValueInfo(TensorMetadata(t.dtype, None)) for t in entry.output_tensors]
    if entry.op.name in MUST_FEED:
        shape = entry.attrs.get("shape")
        if shape == () and producer <= LEGACY_SCALARS:
            return unknown
        return [ValueInfo(TensorMetadata(unknown[0].dtype, shape))]
    try:
        if entry.op.name == CONST:
            return [constant_info(entry.attrs["value"].array())]
        inputs = [infos.get(source) or ValueInfo(TensorMetadata(tensor.dtype, None))
                  for source, tensor in zip(entry.inputs, entry.input_tensors, strict=True)]
        return infer(entry.op, ops.metadata(entry.op), entry.attrs, inputs)
    except HealdError:
        return unknown  # a run would name the fault; only the type is known here
