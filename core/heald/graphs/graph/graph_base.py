"""GraphBase: nodes by name in the order of the file, functions, versions, without the edits of `surgery`.

Traversal, the verifier and surgery work on this class, and Graph takes their functions as methods. So none of them
imports Graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NoReturn, Self, TypeVar

from ...errors import InvalidArgument, NotFound, did_you_mean
from ...runtime.support.records import NamedTuple
from ...runtime.values.wire import Buffer
from .function import Function
from .node import Node, by_name, check_members


class Versions(NamedTuple):
    """The versions of a GraphDef: that of its producer, the least that a consumer needs, and the consumers that must
    refuse it."""

    producer: int = 0
    min_consumer: int = 0
    bad_consumers: tuple[int, ...] = ()


class FileForm(NamedTuple):
    """The parts of a GraphDef file that Graph has no name for. `unedited_file` is the file itself while nothing was
    edited."""

    head: tuple[tuple[int, Buffer], ...] = ()  # number and bytes of the fields before the first node
    tail: tuple[tuple[int, Buffer], ...] = ()  # the same of the fields after it
    unedited_file: Buffer | None = None
    touched: frozenset[str] = frozenset()  # "functions", "versions": no longer as in the fields above


class GraphBase:
    """`nodes` and `functions` by name (read-only, ordered), and `versions`. Immutable: `replace` returns an edited
    graph of the same class."""

    __slots__ = ("form", "functions", "nodes", "versions")

    nodes: Mapping[str, Node]
    functions: Mapping[str, Function]
    versions: Versions
    form: FileForm

    def __init__(
        self, nodes: Iterable[Node] = (), functions: Iterable[Function] = (),
        versions: Versions | None = None,
    ) -> None:
        """Make a graph of nodes and functions.

        Raises InvalidArgument when two nodes or two functions have the same name, and for arguments of other types.
        """
        form = FileForm(touched=frozenset(("functions", "versions")))
        _fill(self, by_name(nodes), functions_by_name(functions), _versions(versions, Versions()), form)

    @classmethod
    def read(
        cls, nodes: dict[str, Node], functions: dict[str, Function], versions: Versions, form: FileForm
    ) -> Self:
        """Make a graph of the parts that a codec has read."""
        graph = cls.__new__(cls)
        _fill(graph, nodes, functions, versions, form)
        return graph

    def replace(
        self, *, nodes: Iterable[Node] | Mapping[str, Node] = (), without: Iterable[str] = (),
        functions: Iterable[Function] | Mapping[str, Function] | None = None,
        without_functions: Iterable[str] = (), versions: Versions | None = None,
    ) -> Self:
        """This graph with changed and new `nodes`, and without the nodes named in `without`. Likewise for functions.

        A changed node keeps its position; new nodes come last. Raises InvalidArgument for a mapping whose keys are not
        the names of its nodes, NotFound for names in `without` that the graph does not have.
        """
        is_text = isinstance(without_functions, str)
        removed_functions = without_functions if is_text else tuple(check_members(without_functions, str))
        touched = set(self.form.touched)
        touched |= {"functions"} if functions is not None or removed_functions else set()
        touched |= {"versions"} if versions is not None else set()
        form = FileForm(self.form.head, self.form.tail, None, frozenset(touched))
        graph = type(self).__new__(type(self))
        library = self.functions  # shared when unchanged: thousands of small graphs may have one large library
        if functions or removed_functions:
            library = _edit_mapping("function", library, functions or (), removed_functions, functions_by_name)
        edited = _edit_mapping("node", self.nodes, nodes, without, by_name)
        _fill(graph, edited, library, _versions(versions, self.versions), form)
        return graph

    def with_nodes(self, nodes: Iterable[Node]) -> Self:
        """Return a graph of these nodes alone, with the functions and versions of this graph.

        Raises InvalidArgument when two nodes have the same name.
        """
        graph = type(self).__new__(type(self))
        _fill(graph, by_name(nodes), self.functions, self.versions, self.form._replace(unedited_file=None))
        return graph

    def __getitem__(self, name: str) -> Node:
        """The node of this name. Raises NotFound, with the nearest names, when there is none."""
        if not isinstance(name, str):
            raise InvalidArgument(f"the name of a node is a str, not {type(name).__name__}")
        node = self.nodes.get(name)
        if node is None:
            raise NotFound(f"no node is called '{name}'", hint=did_you_mean(name, self.nodes))
        return node

    def __contains__(self, name: object) -> bool:
        return name in self.nodes

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes.values())

    def __len__(self) -> int:
        return len(self.nodes)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a Graph is immutable: use graph.replace({name}=...)")

    def __repr__(self) -> str:
        return f"<Graph of {len(self.nodes)} nodes, {len(self.functions)} functions>"


_SETTERS = tuple(getattr(GraphBase, slot).__set__ for slot in ("nodes", "functions", "versions", "form"))
_Named = TypeVar("_Named", Node, Function)


def _fill(
    graph: GraphBase, nodes: Mapping[str, Node], functions: Mapping[str, Function], versions: Versions, form: FileForm
) -> None:
    values = (_read_only(nodes), _read_only(functions), versions, form)
    for setter, value in zip(_SETTERS, values, strict=True):
        setter(graph, value)


def _read_only(items: Mapping[str, _Named]) -> Mapping[str, _Named]:
    return items if isinstance(items, MappingProxyType) else MappingProxyType(items)


def _versions(versions: Versions | None, default: Versions) -> Versions:
    if not isinstance(versions, Versions | None):
        raise InvalidArgument(f"versions= is {type(versions).__name__}", hint="pass Versions(producer=...), or nothing")
    return versions or default


def functions_by_name(functions: Iterable[Function]) -> dict[str, Function]:
    """Functions by name. Raises InvalidArgument when two functions have the same name, or one has none."""
    named_functions: dict[str, Function] = {}
    for function in check_members(functions, Function):
        if function.name in named_functions or not function.name:
            raise InvalidArgument(f"two functions are called '{function.name}'" if function.name
                                  else "a function has no name")
        named_functions[function.name] = function
    return named_functions


def _edit_mapping(
    kind: str, old: Mapping[str, _Named], new: Iterable[_Named] | Mapping[str, _Named], without: Iterable[str],
    index: Callable[[Iterable[_Named]], dict[str, _Named]],
) -> dict[str, _Named]:
    items = dict(old)
    if isinstance(without, str):
        raise InvalidArgument(f"'{without}' is one name, not a list of names", hint=f"pass ['{without}']")
    for name in check_members(without, str):
        if items.pop(name, None) is None:
            raise NotFound(f"no {kind} is called '{name}'", hint=did_you_mean(name, old))
    new_items = index(new.values() if isinstance(new, Mapping) else new)
    if isinstance(new, Mapping):
        for key, item in new.items():
            if key != item.name:
                raise InvalidArgument(f"'{item.name}' is given under the name '{key}'")
    return items | new_items
