"""Session: a graph, placed once, from which steps run."""

# The theory of a session
#
#   state                    key                       made                        ends
#   `_placed`                none                      with the session            `extend` replaces it
#   `_prepared`              fetches, feeds, targets   before the key's first run  dropped, the oldest first
#   `_initializers_of_step`  the same                  with the prepared step      when its initializers have run
#   `_served`                node                      by each link                when a kernel declines
#
# Invariants
# - `_lock` is held while a step is prepared, while initializers run, and in `extend` and `reset`. A thread that waits
#   for it stops with its step's error (`Step.holding`), so a deadline covers the preparation, too.
# - A run of a prepared step takes no lock: it reads one entry of `_prepared`, which holds complete steps only.
# - All signatures of a file share one session, so they share variables and tables.
# - An initializer runs once, before the first step that needs one of its resources. A failed one stays for the next
#   run. A pass before placement may read its values instead and remove its target; the initializer then never runs.
# - A kernel that declines is a refusal: the graph is placed anew for this link and later ones. Older executables stay
#   valid.
# - Callables keep their prepared step when `_prepared` drops it. `_steps` refers to all of them weakly, for `reset`.
# - `close` sets `_closed` before it cancels. A run that begins later raises FailedPrecondition.
#
# Rule: a new entry for users is decorated with `boundary`. State that a run changes belongs to its Step or to the
# session's Resources.

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn, TypeVar

from ...errors import Cancelled, FailedPrecondition, HealdError, InvalidArgument, boundary, typed_error
from ...runtime.config.placement import PlacementConfig
from ...runtime.contract.graph_pass import FUSION, GRAPH
from ...runtime.contract.loader import Initializer
from ...runtime.contract.placement import Assignment, Placement
from ...runtime.contract.rendezvous import Rendezvous
from ...runtime.executor.executable import Executable
from ...runtime.executor.step import RunOptions, Step, lasting_step
from ...runtime.host.cancellation import CancelToken
from ...runtime.host.host import Host
from ...runtime.host.resources import Resources
from ...runtime.service.arguments import dict_of_mapping
from ...runtime.service.named_feeds import NamedFeeds
from ...runtime.service.prepared_step import PreparedStep
from ...runtime.service.run_step import make_run_step
from ...runtime.service.runtime import Runtime, runtime
from ...runtime.support.fork_safety import inherited
from ...runtime.support.gc_pause import gc_paused
from ...runtime.values.tensor import TensorMetadata
from ..compiler.infer_node import fed_metadata
from ..compiler.names import flatten_fetches, name_tuple, target_node, tensor_of_name
from ..compiler.prune import Tensor, prune
from ..compiler.resolve import Resolved, check_versions
from ..graph.graph import Graph, verify
from ..graph.traversal import ancestors
from .asynchronous_step import AsynchronousStep
from .connections import connect, resolve_connections
from .constant_folding import ConstantFolder
from .effects import has_effects
from .extension import extend_graph
from .fed_references import check_fed_references
from .function_compiler import Environment, StepSignature
from .graph_export import GraphExport
from .graph_placement import Nodes, PlacedGraph, Placers, with_rows
from .partial_run import PartialRun, PartialRuns, PartialStep
from .pre_placement import enabled_passes, run_pre_placement_passes
from .run_metadata import RunMetadata
from .step_compiler import StepCompiler
from .targets import check_arguments, is_local, session_at, target_of_config

MOST_PREPARED_BYTES = 32 << 20  # bytes of prepared steps that are kept, without their arrays
NO_CONNECTIONS: Mapping[str, str] = MappingProxyType({})
ARRAY_SHARE = 8  # the arrays of prepared steps may take this fraction, 1/8, of the memory limit


S = TypeVar("S", bound=Step)


class Session:
    """Runs steps of a graph. Several threads may share one session.

    `config`: a dict, a path or a Config, for this session alone.
    `target`: where the session runs: "" for the target in `[cluster]` of config, by default this process; "local" for
        this process; the prefix of any other target, such as "ray" of "ray:head:6379", names the plugin's factory whose
        session is returned.
    `device`: for nodes that ask for no device, such as "CPU:0".
    `initial_state`: initializers; each runs once, before the first step that needs its resources or, for all steps,
        before the first step.
    `readable_folders`: folders that ops of the graph may read beside those of `[files]`: a model's own files.
    `rendezvous`: makes the rendezvous of one run, through which its Send and Recv nodes reach other processes.

    Raises InvalidArgument for a graph that no step could run. A fault of a single node is raised by the steps that need
    the node. Raises NotFound for a target that no plugin serves, PluginError when a plugin's factory fails; NotFound or
    Unavailable for a `device` that cannot be used.
    """

    @boundary
    def __new__(cls, *args: Any, target: Any = "", **options: Any) -> Any:
        """Return an empty session, or for a target of a plugin the session that the plugin's factory makes."""
        empty = object.__new__(cls)
        if cls is not Session or target == "local" or len(args) > 2:
            return empty  # `__init__` refuses a third argument
        config = args[1] if len(args) > 1 else options.get("config")
        if is_local(target) and not isinstance(config, Runtime):
            empty._runtime = runtime(config)
            target = target_of_config(empty._runtime.config)
        return empty if is_local(target) else session_at(target, *args, **options)

    @boundary
    def __init__(
        self, graph: Graph, config: Any = None, *, target: str = "", device: str | None = None,
        initial_state: Sequence[Initializer] = (), rendezvous: Callable[[], Rendezvous] | None = None,
        readable_folders: Sequence[Path] = (),
    ) -> None:
        if hasattr(self, "_step"):
            return  # the target's factory has made this session; Python calls `__init__` after `__new__`
        if not is_local(target):
            raise InvalidArgument(f"{type(self).__name__} is a subclass of Session, whose target is ''",
                                  hint=f"heald.Session(graph, target={target!r})")
        check_arguments(graph, device)
        device = None if device is None else str.__str__(device)
        self._lock = threading.RLock()
        self._prepared: dict[Any, PreparedStep] = {}
        self._steps: weakref.WeakKeyDictionary[PreparedStep, Any] = weakref.WeakKeyDictionary()  # also of callables
        self._closed = False
        self._rendezvous = rendezvous
        self._partial_runs = PartialRuns()
        # `_pending_state`: initializers that have not run
        self._initial_state = self._pending_state = tuple(initial_state)
        # by prepared step, the initializers that precede its first run
        self._initializers_of_step: dict[Any, tuple[Initializer, ...]] = {}
        verify(graph)  # only graphs from files have been verified
        check_versions(graph)
        self._runtime: Runtime = getattr(self, "_runtime", None) or runtime(config)
        host, settings = self._runtime.host, self._runtime.config
        self.given_graph = graph  # before passes: the graph to save
        files = host.files.with_readable(readable_folders) if readable_folders else None
        self._step = lasting_step(host, Resources(files))
        self._closing = CancelToken()
        *_, (_, graph) = run_pre_placement_passes(graph, self._pending_state, self._runtime)
        self._pending_state = tuple(initializer for initializer in self._pending_state if initializer.target in graph)
        placers = Placers(host, self._placement_settings(settings.placement), device)
        self._placed = PlacedGraph(graph, placers, host)
        self._served: dict[str, Assignment] = {}  # rows that links have changed, by node
        self._served_after = 0  # the number of declined kernels that these rows go by
        self._environment = Environment(host, placers, enabled_passes(self._runtime, GRAPH),
                                        FUSION not in settings.passes.disable, ConstantFolder(host))
        inherited.add(self)

    def _placement_settings(self, settings: PlacementConfig) -> PlacementConfig:
        """Return the settings of the session's placement: those of config."""
        return settings

    @property
    def host(self) -> Host:
        """The host that runs the session's steps: devices, work queue, memory limit and allocator."""
        return self._runtime.host

    @property
    def graph(self) -> Graph:
        """The graph after the passes of the stage "pre_placement"."""
        return self._placed.graph

    @property
    def nodes(self) -> Nodes:
        """The resolved nodes of the graph; for a node that cannot be resolved the error."""
        return self._placed.nodes

    @boundary
    def run(
        self, fetches: Any, feeds: Mapping[str, Any] | None = None, *, targets: Sequence[str] = (),
        options: RunOptions | None = None, metadata: RunMetadata | None = None,
    ) -> Any:
        """Return the fetched tensors in the structure of the fetches: an array for a name, a list for a list.

        Tuples, named tuples, dicts and structures of them come back in their form, too.

        `feeds`: tensor names to array-likes.
        `targets`: nodes to run for their effects.
        `options`: limits of the run, and the records that it makes.
        `metadata`: receives the records.

        Arrays belong to the caller. Raises InvalidArgument and NotFound for names and feeds that do not fit, and the
        error of the first kernel that fails. Raises DeadlineExceeded and Cancelled as `options` say, and the errors of
        `partitions` when they ask for these graphs.
        """
        names, rebuild = flatten_fetches(fetches)
        feeds = {} if feeds is None else dict_of_mapping(feeds, "feeds")
        names_fed, acting = name_tuple(tuple(feeds), "feed"), name_tuple(targets, "target")
        if options is None:
            return rebuild(self._prepare_and_initialize(names, names_fed, acting, self._step)(tuple(feeds.values())))
        with self.limited_step(options) as step:
            prepared = self._prepare_and_initialize(names, names_fed, acting, step)
            if metadata is not None:
                graphs = self.partitions(fetches, names_fed, acting) if options.partition_graphs else {}
                metadata.trace, metadata.partition_graphs = step.trace, graphs
            return rebuild(prepared(tuple(feeds.values()), step))

    @boundary
    def make_callable(
        self, fetches: Any, feeds: Sequence[str] | Mapping[str, str] = (), targets: Sequence[str] = (), *,
        connections: Mapping[str, str] = NO_CONNECTIONS,
    ) -> Callable[..., Any]:
        """Return a function of the arrays to feed, in the order of `feeds`: the fastest way to run a step.

        The function takes `options=RunOptions(...)`, too. A mapping has the tensors by names of the caller's, which
        errors use. Names of one tensor take equal values. The function's method `release()` ends it: later calls raise
        InvalidArgument, running ones go on.

        `connections`: tensors that are replaced within the step, and the tensor in the place of each, such as
            {"image:0": "decoded:0"}.
        """
        return self.callable_within(self._step, fetches, feeds, targets, connections)

    def limited_step(
        self, options: RunOptions, rendezvous: Callable[[], Rendezvous] | None = None
    ) -> AbstractContextManager[Step]:
        """Give a step for one run, its preparation included. `rendezvous`: as the session's, for this step alone.

        Raises InvalidArgument for options of the wrong type.
        """
        return closing(self._new_step(options, rendezvous))

    def callable_within(
        self, within: Step, fetches: Any, feeds: Sequence[str] | Mapping[str, str] = (), targets: Sequence[str] = (),
        connections: Mapping[str, str] = NO_CONNECTIONS,
    ) -> Callable[..., Any]:
        """As `make_callable`; the step is prepared in `within`, whose error ends that. A Step serves as options."""
        names, rebuild = flatten_fetches(fetches)
        named = None
        if isinstance(feeds, Mapping):
            tensors_by_name = dict_of_mapping(feeds, "feeds")
            named = NamedFeeds(dict(zip(name_tuple(tuple(tensors_by_name), "feed"),
                                        name_tuple(tuple(tensors_by_name.values()), "feed"), strict=True)))
        names_fed = name_tuple(feeds if named is None else named.tensors, "feed")
        plain_key = names, names_fed, name_tuple(targets, "target")
        key: tuple[tuple[Any, ...], ...] = plain_key
        if connections:
            key = *plain_key, tuple(dict_of_mapping(connections, "connections").items())
            prepared: Any = self._prepare_connected(key, within)
        else:
            prepared = self._prepare_and_initialize(*plain_key, within)
        metas = prepared.metas
        shown = names_fed if named is None else named.names
        count = len(shown)
        shares = named if named is not None and not named.are_distinct else None
        single = isinstance(fetches, str)

        def step(*arrays: Any, options: RunOptions | Step | None = None) -> Any:
            if len(arrays) != count:
                expected = ", ".join(shown) or "none"
                raise InvalidArgument(f"this callable takes {count} arrays ({expected}), {len(arrays)} given")
            if self._closed:
                raise _closed_error()
            limited = None  # no `with`: a callable that refers to itself would outlive its last user
            if options is not None and not isinstance(options, Step):
                options = limited = self._new_step(options)
            try:
                if self._initializers_of_step and key in self._initializers_of_step:  # the session was reset
                    self._initialize(key, options or self._step)
                values = arrays if shares is None else shares.distinct(arrays, metas)
                try:
                    results = prepared(values, options)
                except InvalidArgument:
                    if named is not None:
                        named.check(values, metas, self.host.memory)
                    raise
                except HealdError:
                    raise
                except Exception as error:  # the boundary, without the cost of the decorator's call
                    raise typed_error(error) from error
            finally:
                if limited is not None:
                    limited.close()
            return results[0] if single else rebuild(results)

        def release() -> None:
            nonlocal prepared
            prepared = _raise_released

        step.release = release  # type: ignore[attr-defined]
        return step

    @boundary
    def asynchronous(
        self, fetches: Any, feeds: Sequence[str] = (), targets: Sequence[str] = ()
    ) -> AsynchronousStep:
        """Return the step for these names, for callers that do not wait for its runs. Raises as `make_callable`."""
        key = flatten_fetches(fetches)[0], name_tuple(feeds, "feed"), name_tuple(targets, "target")
        signature = self._step_signature(*key)

        def prepare() -> PreparedStep:
            if self._closed:
                raise _closed_error()
            return self._prepare_and_initialize(*key, self._step)

        return AsynchronousStep(self, prepare, partial(self._step_of, PartialStep, RunOptions()),
                                [*signature.fed.values()],
                                has_effects=has_effects(self.graph, prune(self.nodes, *signature), self.host))

    @boundary
    def extend(self, graph: Graph) -> None:
        """Add the nodes and functions of a graph, which may use the session's. Nothing is added after an error.

        `graphdef.load(path, partial=True)` reads such a graph from a file.

        The session's nodes keep their devices and their state. Steps and callables that exist go on meanwhile, and stay
        valid.

        Raises InvalidArgument for names that the session has and for a graph that does not fit, FailedPrecondition for
        a closed session and for a new node that would make a constant of a frozen variable wrong.
        """
        if not isinstance(graph, Graph):
            raise InvalidArgument(f"extend takes a Graph, not {type(graph).__name__}",
                                  hint="session.extend(heald.graphdef.load(path, partial=True))")
        with self._step.holding(self._lock):
            if self._closed:
                raise _closed_error()
            extended_graph = extend_graph(self.given_graph, graph)
            *_, (_, prepared_graph) = run_pre_placement_passes(extended_graph, self._initial_state, self._runtime)
            placed = self._placed.extend(prepared_graph)
            self.given_graph, self._placed = extended_graph, placed

    @boundary
    def reset(self, containers: Sequence[str] = ()) -> None:
        """Drop the state in these containers, by default in the one without a name: variables, tables, queues.

        Running steps end with Cancelled. Later runs find variables uninitialized; the initial state of a loaded model
        is read again. Steps and callables stay valid. Random sequences go on.
        """
        names = frozenset(name_tuple(containers, "container")) or {""}
        with self._step.holding(self._lock):
            if self._closed:
                raise _closed_error()
            self._closing.cancel()
            self._closing = CancelToken()
            self._step.cancel(Cancelled("the session was reset while this ran"))
            self._step.restart()
            self._step.resources = self._step.resources.without(names)
            self._pending_state = tuple(initializer for initializer in self._initial_state
                                        if initializer.target in self.graph)
            for prepared, (key, placed) in list(self._steps.items()):
                placed = placed or self._placed
                if waiting := self._pending_initializers(self._step_signature(*key, placed=placed), placed):
                    self._initializers_of_step[key] = waiting
                prepared.drop_links()

    @boundary
    def partial_run_setup(self, fetches: Any, feeds: Sequence[str] = (), targets: Sequence[str] = ()) -> str:
        """Start a step whose feeds and fetches come in several calls of `partial_run`. Return its handle.

        Raises InvalidArgument and NotFound for names that do not fit, and Unimplemented when a device needs the feeds'
        static shapes and the placeholders declare none.
        """
        names, names_fed, acting = flatten_fetches(fetches)[0], name_tuple(feeds, "feed"), name_tuple(targets, "target")
        if not names and not acting:
            raise InvalidArgument("a partial run needs at least one fetch or target", hint="partial_run_setup(['y:0'])")
        prepared = self._prepare_and_initialize(names, names_fed, acting, self._step)
        executable = prepared.for_partial_runs(self._step)
        signature, step = self._step_signature(names, names_fed, acting), self._step_of(PartialStep, RunOptions())
        return self._partial_runs.add(PartialRun(signature, self.nodes, executable, step))

    @boundary
    def partial_run(self, handle: str, fetches: Any, feeds: Mapping[str, Any] | None = None) -> Any:
        """Feed and fetch a part of a partial run. Fetches are returned as by `run`.

        Each feed and each fetch of the setup is given once; the partial run ends with the last one, or with an error of
        a kernel. Raises InvalidArgument, and changes nothing, for an unknown or ended handle, for names that the setup
        lacks or that were given already, and for a fetch that needs feeds which were not given.
        """
        if self._closed:
            raise _closed_error()
        names, rebuild = flatten_fetches(fetches)
        feed_values = {} if feeds is None else dict_of_mapping(feeds, "feeds")
        name_tuple(tuple(feed_values), "feed")
        return rebuild(self._partial_runs.run(handle, names, feed_values, self.host.memory,
                                              lambda name, role: tensor_of_name(name, self.nodes, role)))

    def initializers(self, fetches: Sequence[str], feeds: Sequence[str]) -> tuple[Initializer, ...]:
        """Return the initializers that run before the first step for these names, and have not run."""
        return self._pending_initializers(self._step_signature(tuple(fetches), tuple(feeds), ()))

    def placement(self) -> Placement:
        """Return the device of each node, the reason, and the refused candidates.

        Nodes of functions, loops and branches are among them once a step that needs them was prepared.
        """
        return with_rows(self._placed.placement, self._served)

    def _repr_html_(self) -> str:
        return self.placement()._repr_html_()

    @boundary
    def prepare(self, fetches: Any, feeds: Sequence[str] = (), targets: Sequence[str] = ()) -> PreparedStep:
        """Return the step for these names without running it, for inspection."""
        return self._prepare(flatten_fetches(fetches)[0], name_tuple(feeds, "feed"), name_tuple(targets, "target"),
                             self._step)

    @boundary
    def graphs_by_pass(
        self, fetches: Any, feeds: Sequence[str] = (), targets: Sequence[str] = ()
    ) -> Iterator[tuple[str, Graph]]:
        """Yield the graph that a step needs under "", and then the graph after each pass under the pass's name."""
        signature = self._step_signature(flatten_fetches(fetches)[0], name_tuple(feeds, "feed"),
                                         name_tuple(targets, "target"))
        return StepCompiler(self._placed, signature, self._environment).graphs_by_pass(self._step.check)

    @boundary
    def client_graph(
        self, fetches: Any, feeds: Sequence[str] = (), targets: Sequence[str] = (), *, convention: str = "call_frame",
    ) -> Graph:
        """Return the graph that a step runs after pruning, with default attributes and devices.

        `convention`: "call_frame" has _Arg and _Retval nodes for feeds and fetches, with their indices, as in
        TensorFlow's subgraph rewriting; "rendezvous" has _Recv and _Send nodes.

        Raises InvalidArgument for another convention, NotFound and InvalidArgument for names, and the errors of nodes
        that the step needs.
        """
        return self._graph_export(fetches, feeds, targets).client_graph(convention)

    @boundary
    def partitions(
        self, fetches: Any, feeds: Sequence[str] = (), targets: Sequence[str] = ()
    ) -> dict[str, Graph]:
        """Return the client graph's partitions by device, such as "/job:localhost/replica:0/task:0/device:CPU:0".

        Edges between devices are pairs of _Send and _Recv nodes, as TensorFlow's partitioner writes them. Raises
        Unimplemented for a loop on several devices, and the errors of `client_graph`.
        """
        return self._graph_export(fetches, feeds, targets).partitions()

    @boundary
    def beside(self, graph: Graph) -> Session:
        """Return a session of another graph with the state of this one.

        Nodes of the two sessions share a resource as nodes of one graph do: by container and shared name, or by their
        own name. Raises as `Session`.
        """
        other = Session(graph, self._runtime)
        other._step = lasting_step(self.host, self._step.resources)
        return other

    def close(self) -> None:
        """End the session: runs are cancelled, and later runs raise FailedPrecondition. Closing twice is no error."""
        self._closed = True
        self._closing.cancel()
        self._step.cancel(Cancelled("the session was closed while this ran"))
        self._partial_runs.close()
        self._prepared.clear()
        self.host.device_memory.free_dropped()

    def forked(self) -> None:
        self._lock = threading.RLock()  # an unfinished step is not in the dict

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _new_step(self, options: RunOptions, rendezvous: Callable[[], Rendezvous] | None = None) -> Step:
        """Return a step for one run. Raises InvalidArgument for options of the wrong type."""
        return self._step_of(Step, options, rendezvous)

    def _step_of(self, kind: type[S], options: RunOptions, rendezvous: Callable[[], Rendezvous] | None = None) -> S:
        return make_run_step(kind, self.host, options, (self._closing,), resources=self._step.resources,
                             ends_at_error=True, rendezvous=rendezvous or self._rendezvous)

    def _prepare_and_initialize(
        self, fetches: tuple[str, ...], feeds: tuple[str, ...], targets: tuple[str, ...], step: Step
    ) -> PreparedStep:
        """Return the prepared step for these names. The initializers of its state have run."""
        prepared = self._prepare(fetches, feeds, targets, step)
        if self._initializers_of_step:
            self._initialize((fetches, feeds, targets), step)
        return prepared

    def _prepare(
        self, fetches: tuple[str, ...], feeds: tuple[str, ...], targets: tuple[str, ...], step: Step
    ) -> PreparedStep:
        """Return the prepared step for these names, prepared now if there is none.

        Raises the error of `step` when it ends meanwhile.
        """
        key = (fetches, feeds, targets)
        existing = self._prepared.get(key)
        if existing is not None:
            return existing
        if self._closed:
            raise _closed_error()
        with step.holding(self._lock):
            if key not in self._prepared:
                prepared = self._make_prepared_step(*key, step=step)
                self._make_room()
                self._prepared[key] = prepared
                if waiting := self._pending_initializers(self._step_signature(*key)):
                    self._initializers_of_step[key] = waiting
            return self._prepared[key]

    def _prepare_connected(self, key: tuple[tuple[Any, ...], ...], step: Step) -> PreparedStep:
        """Return a prepared step of the graph with the connections of the key. The initializers of its state have run.

        The callable alone holds it. Raises the error of `step` when it ends meanwhile.
        """
        if self._closed:
            raise _closed_error()
        with step.holding(self._lock):
            placed = self._placed.changed(connect(self.graph, resolve_connections(dict(key[3]), self.nodes)))
            prepared = self._make_prepared_step(*key, step=step, placed=placed)
            if waiting := self._pending_initializers(self._step_signature(*key, placed=placed), placed):
                self._initializers_of_step[key] = waiting
        self._initialize(key, step)
        return prepared

    def _make_room(self) -> None:
        """Drop the oldest prepared steps while all of them together take too many bytes."""
        limit = self.host.memory.limit
        limits = MOST_PREPARED_BYTES, inf if limit is None else limit // ARRAY_SHARE
        sizes = {key: prepared.memory_use() for key, prepared in self._prepared.items()}
        calls, arrays = (sum(size[i] for size in sizes.values()) for i in (0, 1))
        for key, (its_calls, its_arrays) in sizes.items():
            if calls <= limits[0] and arrays <= limits[1]:
                return
            self._prepared.pop(key, None)
            calls, arrays = calls - its_calls, arrays - its_arrays

    def _initialize(self, key: tuple[tuple[str, ...], ...], step: Step) -> None:
        """Run the initializers that a prepared step waits for; a failed initializer stays for the next run.

        Raises the error of `step` when it ends meanwhile.
        """
        with step.holding(self._lock):
            for initializer in self._initializers_of_step.get(key, ()):
                if initializer not in self._pending_state:
                    continue  # it ran for another prepared step
                step.check()
                values = initializer.values()
                self._make_prepared_step((), tuple(values), (initializer.target,), step=step)(
                    tuple(values.values()))
                self._pending_state = tuple(other for other in self._pending_state if other is not initializer)
            self._initializers_of_step.pop(key, None)

    def _pending_initializers(
        self, signature: StepSignature, placed: PlacedGraph | None = None
    ) -> tuple[Initializer, ...]:
        """Return the initializers that have not run and that a step needs.

        An initializer for all steps is needed, with all initializers before it. The others are needed for the resources
        of the step, and for the resources of needed initializers.
        """
        if not self._pending_state:
            return ()
        first = max((i + 1 for i, initializer in enumerate(self._pending_state) if initializer.for_all_steps),
                    default=0)
        targets = {initializer.target for initializer in self._pending_state[:first]}
        nodes = self.nodes if placed is None else placed.nodes
        needed = {entry.node.name for entry in prune(nodes, *signature)} | ancestors(self.graph.nodes, targets)
        while more := {initializer.target for initializer in self._pending_state
                       if not initializer.resources.isdisjoint(needed)} - targets:
            targets |= more
            needed = ancestors(self.graph.nodes, more)
        return tuple(initializer for initializer in self._pending_state if initializer.target in targets)

    @gc_paused()
    def _make_prepared_step(
        self, fetches: tuple[str, ...], feeds: tuple[str, ...], targets: tuple[str, ...],
        connections: tuple[tuple[str, str], ...] = (), *, step: Step, placed: PlacedGraph | None = None,
    ) -> PreparedStep:
        """`placed`: the graph with the connections."""
        key = (fetches, feeds, targets, connections) if connections else (fetches, feeds, targets)
        signature = self._step_signature(*key, placed=placed)
        compiler = StepCompiler(placed or self._placed, signature, self._environment)
        prepared = PreparedStep(feeds, [*signature.fed.values()], compiler, self.host, self._step, step,
                                self._new_step, self._record_kernels)
        self._steps[prepared] = key, placed
        return prepared

    def _graph_export(self, fetches: Any, feeds: Sequence[str], targets: Sequence[str]) -> GraphExport:
        signature = self._step_signature(flatten_fetches(fetches)[0], name_tuple(feeds, "feed"),
                                         name_tuple(targets, "target"))
        return GraphExport(self._placed, signature, self.placement(), self.host)

    def _step_signature(
        self, fetches: Sequence[str], feeds: Sequence[str], targets: Sequence[str],
        connections: Sequence[tuple[str, str]] = (), *, placed: PlacedGraph | None = None,
    ) -> StepSignature:
        nodes = self.nodes if placed is None else placed.nodes
        replaced = resolve_connections(dict(connections), nodes) if connections else {}
        fed: dict[Tensor, TensorMetadata] = {}
        for name in feeds:
            fed_tensor = tensor_of_name(name, nodes, "feed")
            if fed_tensor in fed or fed_tensor in replaced:
                raise InvalidArgument(f"tensor '{fed_tensor[0]}:{fed_tensor[1]}' is fed more than once",
                                      node=fed_tensor[0],
                                      hint="feed it under one name: 'x' and 'x:0' are the same tensor")
            fed[fed_tensor] = self._feed_meta(fed_tensor)
        fetched = [tensor_of_name(name, nodes, "fetch") for name in fetches]
        if replaced:
            fetched = [replaced.get(tensor, tensor) for tensor in fetched]
        acting = [target_node(name, nodes) for name in targets]
        ends = *(node for node, index in fetched if (node, index) not in fed), *acting
        check_fed_references(self.given_graph, self.host.registries.ops, {*fed, *replaced}, ends)
        return StepSignature(fed, fetched, acting)

    def _feed_meta(self, fed: Tensor) -> TensorMetadata:
        entry = self.nodes[fed[0]]
        assert isinstance(entry, Resolved)
        return fed_metadata(entry, fed[1], self.graph.versions.producer)

    def _record_kernels(self, executable: Executable, compiler: StepCompiler) -> None:
        """Record the kernels that declined, the kernels that serve instead, and fused kernels."""
        declined = self._environment.placers.declined
        if self._served_after != declined:
            self._served, self._served_after = {}, declined
        rows = compiler.rows()
        placement = with_rows(self._placed.placement, rows)
        for linked in executable.with_callees():
            for bound in linked.layout.calls:
                fused = bound.call.fused
                for name in fused:
                    if name in placement:  # a pass's own node has no row
                        rows[name] = replace(placement[name], fused=(bound.call.code, bound.call.node))
                row = placement.get(bound.call.node)
                if row is None or row.op != bound.call.op or fused or bound.kernel is None:
                    continue  # a pass may have replaced the node by another op
                if bound.kernel is not row.kernel:
                    refused = [(f"{row.device} {pack}.{row.op}", why)
                               for pack, why in linked.report.declined.get(row.node, ())]
                    rows[row.node] = replace(row, kernel=bound.kernel, refused=[*row.refused, *refused])
                elif row.node in self._served:
                    rows[row.node] = row  # an earlier link fused it
        self._served = {**self._served, **rows}


def _raise_released(*_: object) -> NoReturn:
    """The step of a released callable."""
    raise InvalidArgument("this callable has been released", hint="make a new one: session.make_callable(...)")


def _closed_error() -> FailedPrecondition:
    return FailedPrecondition("the session has been closed", hint="open a new one")
