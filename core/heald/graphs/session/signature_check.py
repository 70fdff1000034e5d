"""Signature check: the tensors of a file's signatures, and of its description, are compared with the file's graph."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from ...errors import HealdError, HealdWarning, InvalidArgument
from ...runtime.contract.loader import SignatureDef, TensorInfo
from ...runtime.contract.op_registry import OpRegistry
from ...runtime.service.loading import OpenedFile
from ..compiler.resolve import Resolved, resolve_node
from ..graph.graph import Graph

# By the name of a node: the resolved node, the error of one that cannot be resolved, or None for one that is not there.
NodeOf = Callable[[str], "Resolved | HealdError | None"]
_NONE: Mapping[str, Any] = MappingProxyType({})


def check_chosen_signature(graph: Graph, opened: OpenedFile, ops: OpRegistry) -> SignatureDef | None:
    """Return the chosen signature of a file, compared with the file's graph and with the description.

    Only the nodes that it names are resolved. Raises and warns as `checked_signature` and `check_description`.
    """
    signature = opened.chosen_signature()
    node_of = partial(_resolve_named, graph, ops)
    if signature is not None:
        name = opened.description.signature or next(iter(opened.signatures))
        checked = checked_signature(node_of, name, signature, opened)
        if isinstance(checked, HealdError):
            raise checked
        check_description(node_of, signature, opened)
    return signature


def _resolve_named(graph: Graph, ops: OpRegistry, name: str) -> Resolved | HealdError | None:
    node = graph.nodes.get(name)
    if node is None:
        return None
    try:
        return resolve_node(node, graph, ops)
    except HealdError as error:
        return error


def check_description(node_of: NodeOf, default_signature: SignatureDef | None, opened: OpenedFile) -> None:
    """Warn of described inputs and outputs that the chosen signature lacks, or the graph where there is none, or that
    have another element type there. A run uses these, and older loaders work on.
    """
    sides = (_NONE, _NONE) if default_signature is None else (default_signature.inputs, default_signature.outputs)
    described = opened.description
    for side, described_side, loaded in zip(("input", "output"), (described.inputs, described.outputs), sides,
                                            strict=True):
        for name, meta in described_side.items():
            if default_signature is None:
                why = _misfit(node_of, TensorInfo(name, meta))
            elif name not in loaded:
                why = f"which the signature lacks; it has {', '.join(loaded) or 'none'}"
            else:
                dtype = loaded[name].meta.dtype
                why = None if dtype == meta.dtype else f"which is {dtype.name}, described as {meta.dtype.name}"
            if why is not None:
                warnings.warn(f"{opened.entry}: describe of '{opened.file}' has the {side} '{name}', {why}; report it "
                              "to the plugin's authors", HealdWarning, stacklevel=2)


def checked_signature(
    node_of: NodeOf, name: str, loaded: SignatureDef | HealdError, opened: OpenedFile,
) -> SignatureDef | HealdError:
    """Return the signature, or the error in its place when it names a tensor that the graph does not have, or has with
    another type. Nodes whose op is not known are not looked at."""
    if isinstance(loaded, HealdError):
        return loaded
    for part, info in (*loaded.inputs.items(), *loaded.outputs.items()):
        why = _misfit(node_of, info)
        if why is not None:
            return InvalidArgument(f"{opened.entry}: signature '{name}' of '{opened.file}' has '{part}' as the tensor "
                                   f"'{info.tensor}', {why}", plugin=opened.entry.plugin,
                                   hint="the file is damaged, or its loader reads it wrongly")
    return loaded


def _misfit(node_of: NodeOf, info: TensorInfo) -> str | None:
    """Return why a tensor of a signature does not fit the graph, or None."""
    name, _, index = info.tensor.partition(":")
    entry = node_of(name)
    if entry is None:
        return "whose node is not in the graph"
    if not isinstance(entry, Resolved) or not (index or "0").isdecimal():
        return None
    tensors = entry.output_tensors
    if int(index or 0) >= len(tensors):
        return f"and its node has {len(tensors)} outputs"
    dtype = tensors[int(index or 0)].dtype
    return None if dtype == info.meta.dtype else f"which is {dtype.name}, declared as {info.meta.dtype.name}"
