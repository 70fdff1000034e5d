"""Pass `batch-norm`: batch normalisation with constant statistics is folded into the layer in front of it.

Such a normalisation is a factor and a shift for each channel. Behind a linear layer the factor goes into the weights
and the shift into a BiasAdd. Elsewhere a Mul and an AddV2 replace the op: both together are cheaper.
"""

from __future__ import annotations

import numpy as np
from heald.api import Graph, Node, PassContext, dtypes

from .. import linear_layers
from ..affine import Affine, bias_step, is_of_floats, scaling_nodes
from ..graph_view import GraphView

BATCH_NORM_OPS = ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")


def fold_batch_norm(graph: Graph, context: PassContext) -> Graph:
    if not any(node.op in BATCH_NORM_OPS for node in graph):
        return graph
    view = GraphView(linear_layers.fold_affine(graph, context, _affine_node), context)
    apart = [_scaling_of_normalisation(view, node) for node in view.graph if node.op in BATCH_NORM_OPS]
    return view.with_edits(node for nodes in apart for node in nodes)


def _affine_node(view: GraphView, node: Node) -> Affine | None:
    return bias_step(view, node) or normalisation_step(view, node)


def normalisation_step(view: GraphView, node: Node) -> Affine | None:
    """The factor and shift of a batch normalisation with constants, of which only the first output is consumed."""
    if node.op not in BATCH_NORM_OPS or view.is_kept(node) or not is_of_floats(view, node):
        return None
    entry = view.resolve(node)
    assert entry is not None
    values = [view.array(source) for source in node.inputs[1:]]
    others = any(consumer.inputs[number].index for consumer, number in view.consumers[node.name])
    parameters = [value.astype(np.float64) for value in values if value is not None and value.ndim == 1]
    if entry.attrs["is_training"] or others or len(parameters) < 4 or len({value.shape for value in parameters}) > 1:
        return None
    scale, offset, mean, variance = parameters
    with np.errstate(all="ignore"):
        factor = scale / np.sqrt(variance + entry.attrs["epsilon"])
        shift = offset - mean * factor
    data_format = entry.attrs["data_format"]
    shape = (-1,) if data_format[1] != "C" else (-1, *(1 for _ in data_format[2:]))
    return Affine(node, node.inputs[0], factor.reshape(shape), shift.reshape(shape), tuple(node.inputs[1:]))


def _scaling_of_normalisation(view: GraphView, node: Node) -> list[Node]:
    """The Mul and AddV2 for a normalisation whose input is sure to have its channels. None for float16, which would be
    rounded twice."""
    affine = normalisation_step(view, node)
    entry, shape = view.resolve(node), view.shape(node.inputs[0])
    if affine is None or entry is None or affine.factor is None or entry.attrs["T"] is dtypes.float16 or node.controls:
        return []
    data_format = entry.attrs["data_format"]
    if shape is None or len(shape) != len(data_format) or shape[data_format.index("C")] != affine.factor.size:
        return []
    return scaling_nodes(view, affine.source, (affine.factor, affine.shift), node,
                         view.new_name(f"{node.name}/scaled")) or []
