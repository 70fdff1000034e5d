"""Compilers: components that take groups of placed nodes, and return one kernel for each group.

A compiler is asked twice. `claim` runs when a step's program is made: it sees the part of a function that one device
runs, and returns groups of node names. `compile` runs in each link, with the shapes and constants of a group, or in the
run where shapes depend on data. It returns a bound kernel, or declines. The nodes of a declined group run by
themselves.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Protocol

from ...errors import PluginError
from ..support.plugin_guard import plugin_guard
from ..support.records import NamedTuple
from ..values.tensor import ValueInfo
from .device import load_object
from .kernel import Attachable, Bind, Declined

_METHODS = ("claim", "compile")


class PlacedPart(NamedTuple):
    """The part of a function that one device runs, as a compiler sees it.

    `function`: The name of the function in the program; the step itself is "main".
    `device`: The name of the device, as "CPU:0".
    `graph`: The function's whole Graph after passes, with constants and the nodes of other devices.
    `nodes`: By name the nodes that may be claimed, each as a Resolved, in an order in which they may run.
    `refused`: By name the nodes that may not be claimed, and why.
    `infer()`: By node name, a ValueInfo for each output, as known before the shapes of the feeds.
    `split(names)`: The nodes of these names as convex groups, as large as one walk finds them. Two groups of one call
        never wait for each other. Names that are not in `nodes` are left out.
    """

    function: str
    device: str
    graph: Any
    nodes: Mapping[str, Any]
    refused: Mapping[str, str]
    infer: Callable[[], Mapping[str, tuple[ValueInfo, ...]]]
    split: Callable[[Iterable[str]], list[tuple[str, ...]]]


class Compiler(Protocol):
    """A backend that takes whole subgraphs of a device's nodes."""

    @abstractmethod
    def claim(self, part: PlacedPart) -> Iterable[Collection[str]]:
        """Return groups of names of `part.nodes`. A group is convex: no path leaves it and returns. `part.split` makes
        such groups of any choice of nodes."""

    @abstractmethod
    def compile(self, group: Bind) -> Callable[..., Any] | Attachable | Declined:
        """Return the kernel of a group for the shapes of one link, or `group.decline(reason)`.

        `group.fused` has the ops, `group.inputs` the facts about the values from outside, constants included, and
        `group.outputs` the metadata of the results. `group.results` are the results by their numbers in `group.fused`.
        The kernel takes the inputs, then the outputs. An input that a node reads in host memory is a NumPy array.
        Objects of `group.prepared` are shared by all shapes.
        """

    # The members below are optional. A class that inherits from Compiler has their defaults.

    stateful: bool = False
    """True to be shown nodes with state, too. The kernel then has their effects."""

    allocates: bool = False
    """True to be asked where shapes of results are open. The kernel returns its results."""


class CompilerEntry(NamedTuple):
    """A registered compiler: the object, or "package.module:object", which is imported at its first use.

    `device_type`: the type of the devices whose nodes it takes.
    `priority`: compilers of a higher one claim first.
    """

    name: str
    compiler: str | Compiler
    device_type: str
    priority: int
    plugin: str

    def __str__(self) -> str:
        return f"compiler '{self.name}' of plugin {self.plugin}"

    def load(self) -> Compiler:
        """Return the compiler. Raises PluginError for an object that cannot be imported, or lacks methods of one."""
        if not isinstance(self.compiler, str):
            return self.compiler
        with plugin_guard(f"the import of {self}"):
            compiler = load_object(self.compiler)
        check_compiler(compiler, self.name)
        return compiler  # type: ignore[no-any-return]

    def permits(self, permission: str) -> bool:
        """Return an optional attribute of the compiler. Raises PluginError for another value than a bool."""
        value = getattr(self.load(), permission, False)
        if not isinstance(value, bool):
            raise PluginError(f"'{permission}' of {self} is {value!r}, expected a bool", plugin=self.plugin)
        return value


def check_compiler(compiler: object, name: str) -> None:
    """Raises PluginError for an object without the methods of a Compiler."""
    if isinstance(compiler, type):
        raise PluginError(f"compiler '{name}' is the class {compiler.__name__}, expected an instance",
                          hint=f"register {compiler.__name__}()")
    missing = [method for method in _METHODS if not callable(getattr(compiler, method, None))]
    if missing:
        raise PluginError(f"compiler '{name}' is a {type(compiler).__name__} without the method "
                          f"{' and '.join(missing)}", hint="a compiler has claim(part) and compile(group)")


def compilers_by_priority(entries: Iterable[CompilerEntry]) -> list[CompilerEntry]:
    """Return the compilers in the order in which they claim: by priority, then by name."""
    return sorted(entries, key=lambda entry: (-entry.priority, entry.name))


def group_digest(group: Bind) -> str:
    """Return a key of a group's ops, edges, types, shapes and constants, the same in every process.

    A compiler with a cache on disk adds its own version to it. Names of nodes and devices have no part in it.
    """
    digest = hashlib.sha256()
    for op in group.fused:
        attrs = sorted((name, _stable_text(value)) for name, value in op.attrs.items() if not name.startswith("_"))
        digest.update(repr((op.op, attrs, op.args, op.results, [str(meta) for meta in op.outputs])).encode())
    digest.update(repr((group.results, [str(info.meta) for info in group.inputs])).encode())
    for index, info in enumerate(group.inputs):
        if info.is_known:
            digest.update(f"{index}:".encode())
            digest.update(_stable_text(info.value).encode())
    return digest.hexdigest()


def _stable_text(value: Any) -> str:
    """Return a text of an attribute or constant that depends on its content alone."""
    if hasattr(value, "array"):
        value = value.array()
    if getattr(value, "dtype", None) is not None and hasattr(value, "tobytes"):
        content = repr(value.tolist()).encode() if value.dtype == object else value.tobytes()
        return f"{value.dtype} {value.shape} {hashlib.sha256(content).hexdigest()}"
    if isinstance(value, tuple | list):
        return f"({', '.join(map(_stable_text, value))})"
    return f"{type(value).__name__} {value!r}"
