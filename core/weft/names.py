"""The names that users give: tensors ("x:0", "x"), and the structure that fetches come in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import dtypes
from .errors import InvalidArgument, NotFound, WeftError, closest
from .prune import Tensor
from .resolve import Resolved

Nodes = Mapping[str, Resolved | WeftError]
HELD = frozenset({dtypes.resource, dtypes.variant})  # what kernels hand each other and nobody else can hold


def tensor(name: object, nodes: Nodes, use: str) -> Tensor:
    """The tensor called `name`; a node's name alone is its first output. `use` is "fetch" or "feed".

    Raises NotFound and InvalidArgument, with what there is.
    """
    if not isinstance(name, str):
        raise InvalidArgument(f"{use} {name!r} is a {type(name).__name__}; name a tensor: 'x:0'")
    node, _, port = name.partition(":")
    entry = _entry(node, name, nodes, use)
    if isinstance(entry, WeftError):
        raise entry
    count = len(entry.output_tensors)
    if port and not (port.isascii() and port.isdecimal()):
        raise InvalidArgument(f"{use} '{name}' is no tensor name", node=node, hint=f"write '{node}:0'")
    if count == 0:
        raise InvalidArgument(f"{use} '{name}': {entry.op.name} has no outputs", node=node, op=entry.op.name,
                              hint="name it in targets to run it")
    index = int(port[:9]) if port else 0
    if index >= count:
        valid = ", ".join(f"'{node}:{i}'" for i in range(min(count, 8)))
        raise InvalidArgument(f"{use} '{name}': the node has {count} output{'s' * (count > 1)}: {valid}", node=node,
                              op=entry.op.name)
    kind = entry.output_tensors[index].dtype
    if kind in HELD:
        raise InvalidArgument(f"{use} '{name}' is a {kind.name}, which lives in the session and is no array", node=node,
                              op=entry.op.name, hint=f"{use} what is read from it")
    return node, index


def target(name: object, nodes: Nodes) -> str:
    """The node called `name`, to be run for its effect. Raises NotFound."""
    if not isinstance(name, str):
        raise InvalidArgument(f"target {name!r} is a {type(name).__name__}; name a node: 'init'")
    node = name.partition(":")[0]
    _entry(node, name, nodes, "target")
    return node


def flatten(fetches: Any) -> tuple[tuple[str, ...], Callable[[Sequence[Any]], Any]]:
    """The names in a fetch structure, and what puts the results into it: str -> array, list -> list, dict -> dict."""
    if isinstance(fetches, str):
        return (fetches,), lambda results: results[0]
    if isinstance(fetches, Mapping):
        keys = list(fetches)
        return tuple(fetches.values()), lambda results: dict(zip(keys, results, strict=True))
    if isinstance(fetches, Sequence):
        return tuple(fetches), list
    raise InvalidArgument(f"fetches are a {type(fetches).__name__}; give a name, a list or a dict of names")


def _entry(node: str, name: str, nodes: Nodes, use: str) -> Resolved | WeftError:
    entry = nodes.get(node)
    if entry is None:
        near = closest(node, nodes)
        hint = f"did you mean {' or '.join(near)}?" if near else "weft inspect shows what the graph has"
        raise NotFound(f"{use} '{name}': no node is called '{node}'", node=node, hint=hint)
    return entry
