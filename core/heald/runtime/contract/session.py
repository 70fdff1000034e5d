"""Sessions of plugins: `heald.Session(graph, target=...)` returns what the factory for the target's prefix makes.

The prefix is the part of the target before its first colon: "ray" of "ray:head:6379", "told" of "told://a". The targets
"" and "local" are core's.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from ...errors import PluginError
from ..support.records import NamedTuple
from .claims import ClaimRegistry
from .device import load_callable

LOCAL_TARGETS = ("", "local")  # targets of core's own session
_stays_here: ContextVar[bool] = ContextVar("stays_here", default=False)


@contextmanager
def in_this_process() -> Iterator[None]:
    """Sessions and models that name no target are of this process, whatever target config has.

    Commands that look into a model need its session here, and the factory of a target serves that target itself.
    """
    outside = _stays_here.set(True)
    try:
        yield
    finally:
        _stays_here.reset(outside)


def stays_here() -> bool:
    """True within `in_this_process`."""
    return _stays_here.get()


class SessionInterface(Protocol):
    """The methods of a session, as of `heald.Session`. Several threads may call them at once.

    Graphs are of the type `heald.Graph`. Every method raises errors of `heald.errors`.
    """

    @abstractmethod
    def run(
        self, fetches: Any, feeds: Mapping[str, Any] | None = None, *, targets: Sequence[str] = (),
        options: Any = None, metadata: Any = None,
    ) -> Any:
        """Return the fetched tensors as NumPy arrays, in the structure of `fetches`. `options` are a
        `heald.RunOptions`, `metadata` is a `heald.RunMetadata`."""

    @abstractmethod
    def make_callable(
        self, fetches: Any, feeds: Sequence[str] = (), targets: Sequence[str] = (), *,
        connections: Mapping[str, str] = ...,
    ) -> Callable[..., Any]:
        """Return a function of the arrays to feed, in the order of `feeds`, with a method `release`.

        `connections`: tensors that are replaced within the step, and the tensor in the place of each.
        """

    @abstractmethod
    def extend(self, graph: Any) -> None:
        """Add the nodes and functions of a graph."""

    @abstractmethod
    def reset(self, containers: Sequence[str] = ()) -> None:
        """Drop the state in these containers, by default in the one without a name."""

    @abstractmethod
    def partial_run_setup(self, fetches: Any, feeds: Sequence[str] = (), targets: Sequence[str] = ()) -> str:
        """Start a step that is fed and fetched in several calls. Return its handle."""

    @abstractmethod
    def partial_run(self, handle: str, fetches: Any, feeds: Mapping[str, Any] | None = None) -> Any:
        """Feed and fetch a part of a partial run."""

    @abstractmethod
    def placement(self) -> Mapping[str, Any]:
        """Return the assignment of each node to a device, by name."""

    @abstractmethod
    def partitions(self, fetches: Any, feeds: Sequence[str] = (), targets: Sequence[str] = ()) -> Mapping[str, Any]:
        """Return the graphs of a step's partitions, by the full names of their devices."""

    @abstractmethod
    def client_graph(
        self, fetches: Any, feeds: Sequence[str] = (), targets: Sequence[str] = (), *, convention: str = "call_frame",
    ) -> Any:
        """Return the graph of a step after pruning."""

    @abstractmethod
    def close(self) -> None:
        """End the session. A second call does nothing."""

    @abstractmethod
    def __enter__(self) -> Any: ...

    @abstractmethod
    def __exit__(self, *exc: object) -> None: ...


SESSION_METHODS = ("run", "make_callable", "extend", "reset", "partial_run_setup", "partial_run", "placement",
                   "partitions", "client_graph", "close", "__enter__", "__exit__")


class SessionFactory(NamedTuple):
    """A registered factory: `factory(graph, config, target=, device=)`, or "package.module:function"."""

    name: str  # the prefix
    factory: str | Callable[..., Any]
    plugin: str

    def make(self, graph: Any, config: Any, target: str, device: str | None) -> SessionInterface:
        """Return the factory's session. Raises PluginError for an object without the methods of a session."""
        session = load_callable(self.factory)(graph, config, target=target, device=device)
        missing = [method for method in SESSION_METHODS
                   if not callable(getattr(type(session) if method.startswith("__") else session, method, None))]
        if missing:
            raise PluginError(f"the session factory '{self.name}' of plugin {self.plugin} returned "
                              f"{type(session).__name__}, which has no method {', '.join(missing)}",
                              hint="a session has the methods of heald.api.SessionInterface")
        return session  # type: ignore[no-any-return]


class SessionRegistry(ClaimRegistry[SessionFactory]):
    """The session factories of plugins, by the prefix of their targets."""

    kind, reserved = "session target", LOCAL_TARGETS
