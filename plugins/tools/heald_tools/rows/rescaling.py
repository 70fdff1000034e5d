"""The range of pixels that a graph expects, as its first ops tell it.

A graph that rescales pixels itself begins with arithmetic of its input and constants: Keras's Rescaling and
Normalization are such. Its input takes pixels from 0 to 255. Ops that keep the values, such as casts and resizing, may
stand before.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from typing import NamedTuple

from heald.api import Graph, Node, dtypes
from heald.errors import HealdWarning, printable

FLOATS = (dtypes.float32, dtypes.float16, dtypes.bfloat16)  # types of inputs that may take pixels of another range
ARITHMETIC = frozenset(("Mul", "Sub", "RealDiv", "Div", "AddV2", "Add", "BiasAdd", "FusedBatchNormV3"))
KEEPING = frozenset((  # ops whose results are values of their first input, or lie between them
    "Identity", "Cast", "Reshape", "ExpandDims", "Squeeze", "Transpose", "StopGradient", "PlaceholderWithDefault",
    "Pad", "PadV2", "MirrorPad", "EnsureShape", "CheckNumerics", "StridedSlice", "ReverseV2", "Reverse",
    "ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic", "ResizeArea", "Split", "SplitV", "Unpack", "ConcatV2",
    "Pack"))
_CONSTANT = frozenset(("Const", "Identity", "Cast", "Reshape", "Sqrt", "Rsqrt", "Maximum", "Add", "AddV2", "Neg"))
_ABOUT_SHAPES = frozenset(("Shape", "ShapeN", "Size", "Rank", "NoOp", "Assert"))


class FirstOps(NamedTuple):
    """`rescaling`: The node that rescales the input, or None. `first`: The op of the first node that computes."""

    rescaling: str | None
    first: str | None


def find_first_ops(graph: Graph, tensor: str) -> FirstOps:
    """Follow an input through ops that keep its values, up to the first ones that compute."""
    nodes = graph.nodes
    consumers: dict[str, list[Node]] = {}
    for node in nodes.values():
        for source in node.inputs:
            consumers.setdefault(source.node, []).append(node)
    waiting, visited, first = [tensor.partition(":")[0]], set[str](), None
    while waiting:
        name = waiting.pop(0)
        for node in consumers.get(name, ()):
            if node.name in visited or node.op in _ABOUT_SHAPES:
                continue
            visited.add(node.name)
            if node.op in KEEPING:
                waiting.append(node.name)
            elif node.op in ARITHMETIC and _has_constant(node, name, nodes):
                return FirstOps(node.name, node.op)
            else:
                first = first or node.op
    return FirstOps(None, first)


def _has_constant(node: Node, fed: str, nodes: Mapping[str, Node]) -> bool:
    others = [source.node for source in node.inputs if source.node != fed]
    return bool(others) and all(_is_constant(name, nodes, set()) for name in others)


def _is_constant(name: str, nodes: Mapping[str, Node], visited: set[str]) -> bool:
    node = nodes.get(name)
    if node is None or name in visited or node.op not in _CONSTANT:
        return False
    visited.add(name)
    return node.op == "Const" or (bool(node.inputs) and all(
        _is_constant(source.node, nodes, visited) or source.node in visited for source in node.inputs))


def tell_range(input_name: str, first_ops: FirstOps, *, has_range: bool) -> None:
    """Warn where the range is set twice; on stderr hint at ranges where neither graph nor options set one."""
    if first_ops.rescaling is not None and has_range:
        warnings.warn(f"the graph itself rescales input '{input_name}' (node '{first_ops.rescaling}', op "
                      f"{first_ops.first}), and so do the options; without them pixels are from 0 to 255", HealdWarning,
                      stacklevel=2)
    if first_ops.rescaling is None and not has_range and first_ops.first is not None:
        sys.stderr.write(printable(
            f"hint: input '{input_name}' gets pixels from 0 to 255, and the graph begins with {first_ops.first}, which "
            "does not rescale them; ranges: --preset tf, torch or caffe, or --rescale 1/255") + "\n")
