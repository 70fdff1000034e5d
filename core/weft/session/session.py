"""Session: a graph, placed once, from which steps run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any

from ..compiler.lower import lower
from ..compiler.names import flatten, listed, mapped, target, tensor
from ..compiler.pass_manager import NodeFacts, is_of, placed_alike, run_passes
from ..compiler.place import Placement, Placer
from ..compiler.prune import Tensor, prune
from ..compiler.resolve import Resolved, check_versions, resolve
from ..contract.graph_pass import FUSION, GRAPH, PRE_PLACEMENT, GraphPass, PassContext, in_order
from ..contract.loader import Initializer
from ..contract.structural import LEGACY_SCALARS, PLACEHOLDERS
from ..errors import Cancelled, FailedPrecondition, InvalidArgument, WeftError, boundary, unexpected
from ..executor.executable import Executable
from ..executor.step import RunOptions, Step, lasting_step
from ..executor.trace import RunMetadata, Trace
from ..graph.graph import Graph, verify
from ..graph.traversal import ancestors
from ..host.cancellation import CancelToken
from ..host.resources import Resources
from ..linker.link import NodesDeclined, Shared, link
from ..program.host_program import ProgramDef
from ..support.fork_safety import inherited
from ..support.gc_pause import gc_paused
from ..values.tensor import TensorMetadata
from .constant_folding import ConstantFolder
from .prepared_step import Linked, PreparedStep
from .runtime import Runtime, runtime
from .step_graph import Nodes, PlannedGraph, StepGraph, StepSignature

MOST_PREPARED_BYTES = 32 << 20  # bytes of prepared steps that are kept, without their arrays
ARRAY_SHARE = 8  # the arrays of prepared steps may take this fraction, 1/8, of the memory limit


class Session:
    """Runs steps of a graph. Several threads may share one session.

    `config`: a dict, a path or a Config, for this session alone.
    `device`: for nodes that ask for no device, such as "CPU:0".
    `initial_state`: initializers; each runs once, before the first step that needs its resources.

    Raises InvalidArgument for a graph that no step could run. A fault of a single node is raised by the steps that need
    the node.
    """

    @boundary
    def __init__(
        self, graph: Graph, config: Any = None, *, device: str | None = None, initial_state: Sequence[Initializer] = (),
    ) -> None:
        if not isinstance(graph, Graph):
            raise InvalidArgument(f"Session takes a Graph, not {type(graph).__name__}",
                                  hint="weft.Session(weft.graphdef.load(path))")
        if device is not None and not isinstance(device, str):
            raise InvalidArgument(f"device is a {type(device).__name__}; give a name", hint="device='CPU:0'")
        device = None if device is None else str.__str__(device)
        self._lock = threading.RLock()
        self._prepared: dict[Any, PreparedStep] = {}
        self._closed = False
        self._left = tuple(initial_state)  # initializers that have not run
        self._waiting: dict[Any, tuple[Initializer, ...]] = {}  # by prepared step, those that run before its first run
        self._graph = graph
        verify(graph)  # only graphs from files have been verified
        check_versions(graph)
        self._runtime: Runtime = runtime(config)
        host, settings = self._runtime.host, self._runtime.config
        self._step = lasting_step(host, Resources())
        self._closing = CancelToken()
        passes = [p for name, p in host.registries.passes.items() if name not in settings.passes.disable]
        self._passes = in_order(passes, GRAPH)
        self._graph = graph = self._before_placement(graph, in_order(passes, PRE_PLACEMENT))
        self._left = tuple(each for each in self._left if each.target in graph)
        self.nodes = resolve(graph, host.registries.ops)
        self._placer = Placer(host, host.registries.kernels, settings.placement, device)
        # Places the nodes of passes, which are used only in the right place: so refusals give no warning.
        self._trial = Placer(host, host.registries.kernels, replace(settings.placement, fallback="allow"), device)
        self._placement = self._place(graph, self.nodes, self._placer)
        inherited.add(self)

    @property
    def graph(self) -> Graph:
        """The graph after the passes of the stage "pre_placement"."""
        return self._graph

    @boundary
    def run(
        self, fetches: Any, feeds: Mapping[str, Any] | None = None, *, targets: Sequence[str] = (),
        options: RunOptions | None = None, metadata: RunMetadata | None = None,
    ) -> Any:
        """Return the fetched tensors: an array for a name, a list for a list, a dict for a dict.

        `feeds`: tensor names to array-likes.
        `targets`: nodes to run for their effects.
        `options`: limits of the run, and the records that it makes.
        `metadata`: receives the records.

        Arrays belong to the caller. Raises InvalidArgument and NotFound for names and feeds that do not fit, and the
        error of the first kernel that fails. Raises DeadlineExceeded and Cancelled as `options` say.
        """
        names, rebuild = flatten(fetches)
        feeds = {} if feeds is None else mapped(feeds, "feeds")
        names_fed, acting = listed(tuple(feeds), "feed"), listed(targets, "target")
        if options is None:
            return rebuild(self._ready(names, names_fed, acting, self._step)(tuple(feeds.values())))
        step = self._new_step(options)
        try:
            prepared = self._ready(names, names_fed, acting, step)
            if metadata is not None:
                metadata.trace = step.trace
            return rebuild(prepared(tuple(feeds.values()), step))
        finally:
            step.close()

    @boundary
    def make_callable(self, fetches: Any, feeds: Sequence[str] = (), targets: Sequence[str] = ()) -> Callable[..., Any]:
        """Return a function of the arrays to feed, in the order of `feeds`: the fastest way to run a step."""
        names, rebuild = flatten(fetches)
        names_fed = listed(feeds, "feed")
        prepared = self._ready(names, names_fed, listed(targets, "target"), self._step)
        count = len(names_fed)
        single = isinstance(fetches, str)

        def step(*arrays: Any) -> Any:
            if len(arrays) != count:
                wanted = ", ".join(names_fed) or "none"
                raise InvalidArgument(f"this callable takes {count} arrays ({wanted}), {len(arrays)} given")
            if self._closed:
                raise _closed()
            try:
                results = prepared(arrays)
            except WeftError:
                raise
            except Exception as error:  # the boundary, without the cost of the decorator's call
                raise unexpected(error) from error
            return results[0] if single else rebuild(results)

        return step

    def placement(self) -> Placement:
        """Return the device of each node, the reason, and the refused candidates."""
        return self._placement

    @boundary
    def prepare(self, fetches: Any, feeds: Sequence[str] = (), targets: Sequence[str] = ()) -> PreparedStep:
        """Return the step for these names without running it, for inspection."""
        return self._prepare(flatten(fetches)[0], listed(feeds, "feed"), listed(targets, "target"), self._step)

    @boundary
    def optimized(
        self, fetches: Any, feeds: Sequence[str] = (), targets: Sequence[str] = ()
    ) -> Iterator[tuple[str, Graph]]:
        """Yield the graph that a step needs under "", and then the graph after each pass under the pass's name."""
        signature = self._signature(flatten(fetches)[0], listed(feeds, "feed"), listed(targets, "target"))
        return self._step_graph(signature).stages(self._step.check)

    def close(self) -> None:
        """End the session: runs are cancelled, and later runs raise FailedPrecondition. Closing twice is no error."""
        self._closed = True
        self._closing.cancel()
        self._step.cancel(Cancelled("the session was closed while this ran"))
        self._prepared.clear()
        self._runtime.host.device_memory.free_dropped()

    def forked(self) -> None:
        self._lock = threading.RLock()  # an unfinished step is not in the dict

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _before_placement(self, graph: Graph, passes: Sequence[GraphPass]) -> Graph:
        """Return the graph after the passes that run once per session."""
        if not passes:
            return graph
        registries = self._runtime.host.registries
        facts = NodeFacts(graph, {}, {}, registries.ops, ConstantFolder(self._runtime.host))
        context = PassContext(frozenset(), facts.resolve, facts.infer, self._left)
        *_, (_, graph) = run_passes(graph, passes, context)
        return graph

    def _new_step(self, options: RunOptions) -> Step:
        """Return a step for one run. Raises InvalidArgument for options of the wrong type."""
        if not isinstance(options, RunOptions):
            raise InvalidArgument(f"options= is {type(options).__name__}", hint="pass weft.RunOptions(timeout=2.0)")
        options.check()
        host = self._runtime.host
        given = () if options.cancel is None else (options.cancel,)
        trace = Trace() if options.trace else None
        return Step(host, options.timeout, (self._closing, host.cancellation, *given), trace, self._step.resources)

    def _ready(
        self, fetches: tuple[str, ...], feeds: tuple[str, ...], targets: tuple[str, ...], step: Step
    ) -> PreparedStep:
        """Return the prepared step for these names. The initializers of its state have run."""
        prepared = self._prepare(fetches, feeds, targets, step)
        if self._waiting:
            self._initialize((fetches, feeds, targets), step)
        return prepared

    def _prepare(
        self, fetches: tuple[str, ...], feeds: tuple[str, ...], targets: tuple[str, ...], step: Step
    ) -> PreparedStep:
        """Return the prepared step for these names, prepared now if there is none.

        Raises the error of `step` when it ends meanwhile.
        """
        key = (fetches, feeds, targets)
        found = self._prepared.get(key)
        if found is not None:
            return found
        if self._closed:
            raise _closed()
        with step.holding(self._lock):
            if key not in self._prepared:
                prepared = self._make(*key, step)
                self._make_room()
                self._prepared[key] = prepared
                if waiting := self._uninitialized(self._signature(*key)):
                    self._waiting[key] = waiting
            return self._prepared[key]

    def _make_room(self) -> None:
        """Drop the oldest prepared steps while all of them together take too many bytes."""
        limit = self._runtime.host.memory.limit
        most = MOST_PREPARED_BYTES, inf if limit is None else limit // ARRAY_SHARE
        held = {key: prepared.held() for key, prepared in self._prepared.items()}
        calls, arrays = (sum(each[i] for each in held.values()) for i in (0, 1))
        for key, (its_calls, its_arrays) in held.items():
            if calls <= most[0] and arrays <= most[1]:
                return
            self._prepared.pop(key, None)
            calls, arrays = calls - its_calls, arrays - its_arrays

    def _initialize(self, key: tuple[tuple[str, ...], ...], step: Step) -> None:
        """Run the initializers that a prepared step waits for; a failed initializer stays for the next run.

        Raises the error of `step` when it ends meanwhile.
        """
        with step.holding(self._lock):
            for initializer in self._waiting.get(key, ()):
                if initializer not in self._left:
                    continue  # it ran for another prepared step
                step.check()
                values = initializer.values()
                self._make((), tuple(values), (initializer.target,), step)(tuple(values.values()))
                self._left = tuple(each for each in self._left if each is not initializer)
            self._waiting.pop(key, None)

    def _uninitialized(self, signature: StepSignature) -> tuple[Initializer, ...]:
        """The initializers that have not run, of resources that a step needs or that these initializers need."""
        if not self._left:
            return ()
        found: set[str] = set()
        needed = {entry.node.name for entry in prune(self.nodes, *signature)}
        while more := {each.target for each in self._left if not each.resources.isdisjoint(needed)} - found:
            found |= more
            needed = ancestors(self._graph.nodes, more)
        return tuple(each for each in self._left if each.target in found)

    @gc_paused()
    def _make(
        self, fetches: tuple[str, ...], feeds: tuple[str, ...], targets: tuple[str, ...], step: Step
    ) -> PreparedStep:
        host = self._runtime.host
        signature = self._signature(fetches, feeds, targets)
        step_graph = self._step_graph(signature)

        def lowered(step: Step) -> ProgramDef:
            placement = step_graph.placed(self._place_anew, step.check)
            visible = frozenset(r.name for r in host.opened() if r.attributes.get("host_visible"))
            return lower(step_graph.made.order, placement, [*signature.fed.items()], signature.wanted,
                         signature.acting, visible, host.registries.ops)

        def linked(program: ProgramDef, given: Sequence[TensorMetadata], shared: Shared, step: Step) -> Linked:
            while True:
                try:
                    executable = link(program, host, given, shared=shared, waits=True, check=step.check,
                                      fuses=FUSION not in self._runtime.config.passes.disable)
                except NodesDeclined as declined:
                    self._decline(declined.refusals, step_graph.made.graph)
                    program, shared = lowered(step), shared.renumbered()
                    continue
                self._note(executable)
                return Linked(program, step_graph.left_out_text, executable, shared)

        program = lowered(step)
        return PreparedStep(feeds, [*signature.fed.values()], program, step_graph.left_out_text, linked, host,
                            self._step, self._new_step)

    def _signature(self, fetches: Sequence[str], feeds: Sequence[str], targets: Sequence[str]) -> StepSignature:
        fed: dict[Tensor, TensorMetadata] = {}
        for name in feeds:
            given = tensor(name, self.nodes, "feed")
            if given in fed:
                raise InvalidArgument(f"tensor '{given[0]}:{given[1]}' is fed more than once", node=given[0],
                                      hint="feed it under one name: 'x' and 'x:0' are the same tensor")
            fed[given] = self._feed_meta(given)
        wanted = [tensor(name, self.nodes, "fetch") for name in fetches]
        return StepSignature(fed, wanted, [target(name, self.nodes) for name in targets])

    def _feed_meta(self, fed: Tensor) -> TensorMetadata:
        entry = self.nodes[fed[0]]
        assert isinstance(entry, Resolved)
        dtype = entry.output_tensors[fed[1]].dtype
        if entry.op.name not in PLACEHOLDERS:
            return TensorMetadata(dtype, None)
        shape = entry.attrs.get("shape")
        legacy = shape == () and self._graph.versions.producer <= LEGACY_SCALARS
        return TensorMetadata(dtype, None if shape is None or legacy else tuple(shape))

    def _step_graph(self, signature: StepSignature) -> StepGraph:
        return StepGraph(self._graph, self.nodes, signature, self._passes, self._runtime.host)

    def _place_anew(self, planned: PlannedGraph) -> Placement | str:
        """Return a placement of the graph after passes, or the reason why a node of theirs cannot run in the right
        place."""
        if all(is_of(self._graph, entry.node) for entry in planned.order):
            return self._placement
        anew = self._place(planned.graph, planned.nodes, self._trial)
        return placed_alike(self._graph, self._placement, planned.order, anew)

    def _decline(self, refusals: Iterable[tuple[str, str, str, str]], after_passes: Graph) -> None:
        """Place the graph anew without the refused kernels.

        The refused nodes belong to the graph `after_passes`, whose later placements do without these kernels, too.
        """
        for refusal in refusals:
            self._trial.decline(*refusal)
            node = after_passes.nodes.get(refusal[0])
            if node is None or is_of(self._graph, node):
                self._placer.decline(*refusal)
        self._placement = self._place(self._graph, self.nodes, self._placer)

    def _place(self, graph: Graph, nodes: Nodes, placer: Placer) -> Placement:
        return placer.place(nodes, {name: (node.op, node.device) for name, node in graph.nodes.items()})

    def _note(self, executable: Executable) -> None:
        """Record in the placement the kernels that declined, the kernels that serve instead, and fused kernels."""
        for bound in executable.layout.calls:
            fused = bound.call.fused
            for member in filter(None, map(self._placement.get, fused)):  # a pass's own node has no row
                member.fused = bound.call.code, bound.call.node
            row = self._placement.get(bound.call.node)
            if row is None or row.op != bound.call.op or bound.kernel is None or fused:
                continue  # a pass may have replaced the node by another op
            row.fused = None
            if row.kernel is not bound.kernel:
                row.refused += [(f"{row.device} {pack}.{row.op}", why)
                                for pack, why in executable.declined.get(row.node, ())]
                row.kernel = bound.kernel


def _closed() -> FailedPrecondition:
    return FailedPrecondition("the session has been closed", hint="open a new one")
