"""Names that users give: tensors ("x:0", "x"), nodes, and the structure of fetches."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
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
_MOST_LEVELS = 100  # of a structure of fetches, which may contain itself
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
    """Return the names in a structure of fetches, and a function that gives results the same structure.

    Names, and structures of names, stand in lists, tuples, named tuples and mappings. OrderedDict and defaultdict keep
    their types; other mappings become a dict, other sequences a list. Raises InvalidArgument for other objects, and for
    structures in more than 100 levels. Source: Session.run of TensorFlow 1.
    """
    kind = type(fetches)
    if kind is str:
        return (fetches,), _first
    if kind is list or kind is tuple:
        for name in fetches:
            if type(name) is not str:
                break
        else:
            return tuple(fetches), kind
    names: list[str] = []
    build = _builder(fetches, names, 0)
    return tuple(names), lambda results: build(iter(results))


def _first(results: Sequence[Any]) -> Any:
    return results[0]


def _builder(fetches: Any, names: list[str], level: int) -> Callable[[Iterator[Any]], Any]:
    """Add the names of the structure to `names`. Return the function that takes its results from an iterator."""
    if isinstance(fetches, str):
        names.append(str.__str__(fetches))
        return next
    if level == _MOST_LEVELS:
        raise InvalidArgument(f"fetches are nested in more than {_MOST_LEVELS} levels")
    if isinstance(fetches, Mapping):
        named = dict_of_mapping(fetches, "fetches")
        return _mapping_builder(fetches, list(named), [_builder(part, names, level + 1) for part in named.values()])
    if isinstance(fetches, Sequence) and not isinstance(fetches, bytes | bytearray):
        with callers_code("the fetches cannot be read"):
            return _sequence_builder(fetches, [_builder(part, names, level + 1) for part in fetches])
    if level:
        raise InvalidArgument(f"a fetch is a {type(fetches).__name__}; {_EXPECTED['fetch']}")
    raise InvalidArgument(f"fetches are a {type(fetches).__name__}; give a name, or a list, tuple or dict of names")


def _mapping_builder(
    fetches: Mapping[Any, Any], keys: list[Any], builders: list[Callable[[Iterator[Any]], Any]]
) -> Callable[[Iterator[Any]], Any]:
    empty: Callable[[], dict[Any, Any]] = dict
    if type(fetches) is OrderedDict:
        empty = OrderedDict
    elif type(fetches) is defaultdict:
        empty = partial(defaultdict, fetches.default_factory)

    def build(results: Iterator[Any]) -> Any:
        built = empty()
        for key, build_part in zip(keys, builders, strict=True):
            built[key] = build_part(results)
        return built

    return build


def _sequence_builder(
    fetches: Sequence[Any], builders: list[Callable[[Iterator[Any]], Any]]
) -> Callable[[Iterator[Any]], Any]:
    make: Callable[[Any], Any] = list
    if isinstance(fetches, tuple):
        make = partial(tuple.__new__, type(fetches)) if hasattr(fetches, "_fields") else tuple
    return lambda results: make([build_part(results) for build_part in builders])


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
