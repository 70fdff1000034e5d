"""Names that users give: tensors ("x:0", "x"), nodes, and the structure of fetches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from ...errors import LARGEST_CANDIDATE_COUNT, HealdError, InvalidArgument, NotFound, callers_code, closest
from ...runtime.service.arguments import dict_of_mapping
from ...runtime.values import dtypes

if TYPE_CHECKING:
    from .prune import Tensor
    from .resolve import Resolved

Nodes = Mapping[str, "Resolved | HealdError"]
_PLURAL = {"fetch": "fetches", "feed": "feeds", "target": "targets", "tag": "tags"}
_EXPECTED = {"fetch": "name a tensor: 'x:0'", "feed": "name a tensor: 'x:0'", "target": "name a node: 'init'",
             "tag": "a tag is a text: 'serve'"}
_MOST_SCOPES = 100  # of a name without a node, which is compared without them
_MOST_SUGGESTIONS = 3
HANDLE_TYPES = frozenset({dtypes.resource, dtypes.variant})  # types of handles, which only kernels can use


def tensor_of_name(name: object, nodes: Nodes, use: str) -> Tensor:
    """Return the tensor called `name`; a node's name alone means its first output. `use` is "fetch" or "feed".

    Raises NotFound and InvalidArgument, with the existing names.
    """
    name = _exact_name(name, use)
    node, colon, port = name.partition(":")
    entry = _find_entry(node, name, nodes, use)
    if isinstance(entry, HealdError):
        raise entry
    count = len(entry.output_tensors)
    if colon and not (port.isascii() and port.isdecimal()):
        raise InvalidArgument(f"{use} '{name}' is no tensor name", node=node, hint=f"write '{node}:0'")
    if count == 0:
        raise InvalidArgument(f"{use} '{name}': {entry.op.name} has no outputs", node=node, op=entry.op.name,
                              hint="name it in targets to run it")
    index = _port_index(port)
    if index >= count:
        valid = ", ".join(f"'{node}:{i}'" for i in range(min(count, 8)))
        raise InvalidArgument(f"{use} '{name}': the node has {count} output{'s' * (count > 1)}: {valid}", node=node,
                              op=entry.op.name)
    kind = entry.output_tensors[index].dtype
    if kind in HANDLE_TYPES:
        raise InvalidArgument(f"{use} '{name}' is a {kind.name}, which lives in the session and is no array", node=node,
                              op=entry.op.name, hint=f"{use} what is read from it")
    return node, index


def target_node(name: object, nodes: Nodes) -> str:
    """Return the node called `name`, to be run for its effect. Raises NotFound."""
    name = _exact_name(name, "target")
    node = name.partition(":")[0]
    _find_entry(node, name, nodes, "target")
    return node


def flatten_fetches(fetches: Any) -> tuple[tuple[str, ...], Callable[[Sequence[Any]], Any]]:
    """Return the names in a fetch structure, and a function that gives results the same structure.

    A str becomes an array, a list or another sequence a list, a dict a dict. Raises InvalidArgument for other objects,
    also within the structure: fetches are not nested.
    """
    if isinstance(fetches, str):
        return name_tuple(fetches, "fetch"), lambda results: results[0]
    if isinstance(fetches, Mapping):
        named = dict_of_mapping(fetches, "fetches")
        keys = list(named)
        return name_tuple(list(named.values()), "fetch"), lambda results: dict(zip(keys, results, strict=True))
    if isinstance(fetches, Sequence):
        return name_tuple(fetches, "fetch"), list
    raise InvalidArgument(f"fetches are a {type(fetches).__name__}; give a name, a list or a dict of names")


def name_tuple(names: Any, use: str) -> tuple[str, ...]:
    """Return one name, or an iterable of names, as a tuple of exact str.

    Raises InvalidArgument; `use` as in `tensor_of_name`.
    """
    if type(names) is str:
        return (names,)
    if type(names) is tuple or type(names) is list:
        for name in names:
            if type(name) is not str:
                break
        else:
            return tuple(names)
    if isinstance(names, str):
        return (str.__str__(names),)
    if not isinstance(names, Iterable):
        raise InvalidArgument(f"a {type(names).__name__} is given for the names of {_PLURAL[use]}",
                              hint="give a name, or a list of names")
    with callers_code(f"the names of {_PLURAL[use]} cannot be read"):
        return tuple([_exact_name(name, use) for name in names])


def _port_index(port: str) -> int:
    """Return the index in a port's digits, capped: Python converts only so many digits."""
    digits = port.lstrip("0")
    return int(digits or 0) if len(digits) < 10 else 10**9


def _exact_name(name: object, use: str) -> str:
    if not isinstance(name, str):
        raise InvalidArgument(f"a {use} is a {type(name).__name__}; {_EXPECTED[use]}")
    return str.__str__(name)  # subclasses may hash and compare as they like


def _same_in_another_scope(name: str, nodes: Nodes) -> list[str]:
    """Return nodes that have this name with fewer or more scopes in front: an import adds one, such as "import/"."""
    parts = name.split("/")
    shorter = ["/".join(parts[i:]) for i in range(1, min(len(parts), _MOST_SCOPES))]
    longer = (node for node in islice(nodes, LARGEST_CANDIDATE_COUNT) if name and node.endswith(f"/{name}"))
    return [*(node for node in shorter if node in nodes), *islice(longer, _MOST_SUGGESTIONS)][:_MOST_SUGGESTIONS]


def _find_entry(node: str, name: str, nodes: Nodes, use: str) -> Resolved | HealdError:
    entry = nodes.get(node)
    if entry is None:
        suggestions = _same_in_another_scope(node, nodes) or closest(node, nodes)
        hint = f"did you mean {' or '.join(suggestions)}?" if suggestions else "heald inspect shows what the graph has"
        raise NotFound(f"{use} '{name}': no node is called '{node}'", node=node, hint=hint)
    return entry
