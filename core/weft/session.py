"""Session: a graph, placed once, from which steps are run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from .collector import resting
from .errors import Cancelled, FailedPrecondition, InvalidArgument, WeftError, boundary, unexpected
from .evaluation import Evaluation
from .forked import inherited
from .graph import Graph, Node, verify
from .graph_pass import FUSION, GraphPass, PassContext, in_order
from .host_program import HostProgram
from .lower import lower
from .names import flatten, target, tensor
from .optimize import NodeFacts, is_of, optimize, placed_alike
from .place import Placement, Placer
from .prune import Tensor, prune
from .resolve import Resolved, check_versions, resolve
from .running.executor import Executable
from .running.link import NodesDeclined, Shared, link
from .running.prepared import Linked, Prepared
from .running.resources import Resources
from .running.step import CancelToken, RunOptions
from .running.trace import RunMetadata
from .runtime import Runtime, runtime
from .tensor import TensorMetadata

MOST_PREPARED = 256  # combinations of feeds, fetches and targets that are kept
LEGACY_SCALARS = 21  # up to this GraphDef version a placeholder of shape [] may be of any shape


class Session:
    """Runs steps of a graph. Several threads may share one.

    `config` is a dict, a path or a Config, for this session alone; `device` ("CPU:0") is where nodes go that ask for
    none; `initializers` are nodes that are run once, in order, before the first step. Raises InvalidArgument for a
    graph that no step could run; what is wrong with single nodes is raised by the steps that need them.
    """

    @boundary
    def __init__(
        self, graph: Graph, config: Any = None, *, device: str | None = None, initializers: Sequence[str] = (),
    ) -> None:
        if not isinstance(graph, Graph):
            raise InvalidArgument(f"Session takes a Graph, not {type(graph).__name__}",
                                  hint="weft.Session(weft.graphdef.load(path))")
        self._lock = threading.RLock()
        self._prepared: dict[Any, Prepared] = {}
        self._closed = False
        self._initializers = tuple(initializers)  # those that have not been run
        self._graph = graph
        verify(graph)  # graphs from files are; those made by hand or by passes may not be
        check_versions(graph)
        self._runtime: Runtime = runtime(config)
        host, settings = self._runtime.host, self._runtime.config
        self._step = host.lasting_step(Resources())
        self._closing = CancelToken()
        self._passes = in_order([p for name, p in host.registries.passes.items()
                                 if name not in settings.passes.disable], "graph")
        self.nodes = resolve(graph, host.registries.ops)
        self._placer = Placer(host, host.registries.kernels, settings.placement, device)
        # of what passes make, which is used only where it goes where it should: nobody is told of what is refused
        self._trial = Placer(host, host.registries.kernels, replace(settings.placement, fallback="allow"), device)
        self._placement = self._place(graph, self.nodes, self._placer)
        inherited.add(self)

    @property
    def graph(self) -> Graph:
        return self._graph

    @boundary
    def run(
        self, fetches: Any, feeds: Mapping[str, Any] | None = None, *, targets: Sequence[str] = (),
        options: RunOptions | None = None, metadata: RunMetadata | None = None,
    ) -> Any:
        """The fetched tensors: a name gives an array, a list a list, a dict a dict. Arrays are the caller's own.

        `feeds` maps tensor names to anything array-like; `targets` are nodes to run for their effect. Raises
        InvalidArgument, NotFound for names and feeds that do not fit, the error of the first kernel that fails,
        DeadlineExceeded and Cancelled as `options` say. `metadata` is filled with what the options ask for.
        """
        names, rebuild = flatten(fetches)
        feeds = feeds or {}
        prepared = self._prepare(names, tuple(feeds), (targets,) if isinstance(targets, str) else tuple(targets))
        if self._initializers:
            self._initialize()
        return rebuild(prepared(tuple(feeds.values()), options, metadata))

    @boundary
    def make_callable(self, fetches: Any, feeds: Sequence[str] = (), targets: Sequence[str] = ()) -> Callable[..., Any]:
        """A function of the arrays to feed, in the order of `feeds`: the fastest way to run a step."""
        names, rebuild = flatten(fetches)
        names_fed = (feeds,) if isinstance(feeds, str) else tuple(feeds)
        prepared = self._prepare(names, names_fed, (targets,) if isinstance(targets, str) else tuple(targets))
        if self._initializers:
            self._initialize()
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
        """Where each node runs and why, with what was refused."""
        return self._placement

    @boundary
    def prepare(self, fetches: Any, feeds: Sequence[str] = (), targets: Sequence[str] = ()) -> Prepared:
        """The step for these names without running it, for those who look inside."""
        return self._prepare(flatten(fetches)[0], tuple(feeds), tuple(targets))

    @boundary
    def optimized(
        self, fetches: Any, feeds: Sequence[str] = (), targets: Sequence[str] = ()
    ) -> Iterator[tuple[str, Graph]]:
        """What a step for these names needs of the graph, under "", and then that after each pass, under its name."""
        fed = [tensor(name, self.nodes, "feed") for name in feeds]
        wanted = [tensor(name, self.nodes, "fetch") for name in flatten(fetches)[0]]
        acting = [target(name, self.nodes) for name in targets]
        metas = {given: self._feed_meta(given) for given in fed}
        return self._optimize(prune(self.nodes, fed, wanted, acting), metas, wanted, acting, self._passes)

    def close(self) -> None:
        """End the session: what runs is cancelled, later runs raise FailedPrecondition. Closing twice is no error."""
        self._closed = True
        self._closing.cancel()
        self._step.cancel(Cancelled("the session was closed while this ran"))
        self._prepared.clear()
        self._runtime.host.device_memory.free_dropped()

    def forked(self) -> None:
        self._lock = threading.RLock()  # what was being prepared is not in the dict yet

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _prepare(self, fetches: tuple[str, ...], feeds: tuple[str, ...], targets: tuple[str, ...]) -> Prepared:
        key = (fetches, feeds, targets)
        found = self._prepared.get(key)
        if found is not None:
            return found
        if self._closed:
            raise _closed()
        with self._lock:
            if key not in self._prepared:
                if len(self._prepared) >= MOST_PREPARED:
                    self._prepared.pop(next(iter(self._prepared)))
                self._prepared[key] = self._make(*key)
            return self._prepared[key]

    def _initialize(self) -> None:
        """Run the initializers that are left; one that fails stays, for the next who comes."""
        with self._lock:
            while self._initializers:
                self._prepare((), (), self._initializers[:1])(())
                self._initializers = self._initializers[1:]

    @resting()
    def _make(self, fetches: tuple[str, ...], feeds: tuple[str, ...], targets: tuple[str, ...]) -> Prepared:
        fed = [tensor(name, self.nodes, "feed") for name in feeds]
        for i, this in enumerate(fed):
            if this in fed[:i]:
                raise InvalidArgument(f"tensor '{this[0]}:{this[1]}' is fed more than once", node=this[0])
        wanted = [tensor(name, self.nodes, "fetch") for name in fetches]
        acting = [target(name, self.nodes) for name in targets]
        metas = [self._feed_meta(t) for t in fed]
        plain = prune(self.nodes, fed, wanted, acting)
        stand_ins = {node.name for node in self._stand_ins(plain, fed)}
        left_out: dict[str, str] = {}  # by pass, why what it makes cannot be run

        def stages() -> Iterator[tuple[str, Graph]]:
            passes = [entry for entry in self._passes if entry.name not in left_out]
            return self._optimize(plain, dict(zip(fed, metas, strict=True)), wanted, acting, passes)

        def finished(graph: Graph) -> tuple[Graph, Mapping[str, Resolved | WeftError], list[Resolved]]:
            graph = self._completed(graph, stand_ins)
            nodes = resolve(graph, self._runtime.host.registries.ops)
            return graph, nodes, prune(nodes, fed, wanted, acting)

        def rewritten() -> tuple[Graph, Mapping[str, Resolved | WeftError], list[Resolved]]:
            if len(left_out) == len(self._passes):
                return self._graph, self.nodes, plain
            *_, (_, graph) = stages()
            return finished(graph)

        optimized, nodes, order = rewritten()

        def placed() -> Placement:
            """Where nodes go; the first pass that makes some that cannot be where they ask to be is left out, as long
            as there is one."""
            nonlocal optimized, nodes, order
            while isinstance(placement := self._place_anew(optimized, nodes, order), str):
                tried = ((name, self._place_anew(*finished(graph))) for name, graph in stages())
                name, why = next((name, why) for name, why in tried if isinstance(why, str))
                left_out[name] = why
                optimized, nodes, order = rewritten()
            return placement

        def lowered() -> HostProgram:
            placement = placed()
            visible = frozenset(r.name for r in self._runtime.host.opened() if r.attributes.get("host_visible"))
            return lower(order, placement, list(zip(fed, metas, strict=True)), wanted, acting, visible,
                         self._runtime.host.registries.ops)

        def linked(program: HostProgram, given: Sequence[TensorMetadata], shared: Shared) -> Linked:
            while True:
                try:
                    executable = link(program, self._runtime.host, given, shared=shared, waits=True,
                                      fuses=FUSION not in self._runtime.config.passes.disable)
                except NodesDeclined as declined:
                    for refusal in declined.refusals:
                        self._trial.decline(*refusal)
                        node = optimized.nodes.get(refusal[0])
                        if node is None or is_of(self._graph, node):
                            self._placer.decline(*refusal)
                    self._placement = self._place(self._graph, self.nodes, self._placer)
                    program, shared = lowered(), shared.renumbered()
                    continue
                self._note(executable)
                return Linked(program, told(), executable, shared)

        def told() -> str:
            return "; ".join(f"pass '{name}': {why}" for name, why in left_out.items())

        program = lowered()
        return Prepared(feeds, metas, program, told(), linked, self._runtime.host, self._step, self._closing)

    def _feed_meta(self, fed: Tensor) -> TensorMetadata:
        entry = self.nodes[fed[0]]
        assert isinstance(entry, Resolved)
        dtype = entry.output_tensors[fed[1]].dtype
        if not entry.op.name.startswith("Placeholder"):
            return TensorMetadata(dtype, None)
        shape = entry.attrs.get("shape")
        legacy = shape == () and self._graph.versions.producer <= LEGACY_SCALARS
        return TensorMetadata(dtype, None if shape is None or legacy else tuple(shape))

    def _optimize(
        self, order: Sequence[Resolved], fed: Mapping[Tensor, TensorMetadata], wanted: Sequence[Tensor],
        acting: Sequence[str], passes: Sequence[GraphPass],
    ) -> Iterator[tuple[str, Graph]]:
        """What a step needs of the graph, under "", and then that after each of these passes, under its name."""
        kept = frozenset(node for node, _ in (*fed, *wanted)).union(acting)
        needed = {entry.node.name for entry in order}.union(kept)
        graph = self._graph.replace(without=[name for name in self._graph.nodes if name not in needed],
                                    nodes=self._stand_ins(order, fed))
        yield "", graph
        host = self._runtime.host
        facts = NodeFacts(self._graph, self.nodes, fed, host.registries.ops, Evaluation(host))
        yield from optimize(graph, passes, PassContext(kept, facts.resolve, facts.infer))

    def _stand_ins(self, order: Sequence[Resolved], fed: Iterable[Tensor]) -> list[Node]:
        """Placeholders for the nodes that are fed and not computed as well: what these take is not there."""
        computed = {entry.node.name for entry in order}
        given = [self.nodes[name] for name in dict.fromkeys(name for name, _ in fed) if name not in computed]
        return [Node(entry.node.name, "Placeholder", attrs={"dtype": entry.output_tensors[0].dtype})
                for entry in given if isinstance(entry, Resolved) and (entry.inputs or entry.node.controls)]

    def _completed(self, optimized: Graph, stand_ins: Collection[str]) -> Graph:
        """What the passes gave, with the nodes that they did not get or have taken away, where these tell what others
        are colocated with, or what types are fed."""
        if not stand_ins and not any("_class" in node.attrs for node in self._graph):
            return optimized
        return optimized.replace(nodes=[node for node in self._graph
                                        if node.name not in optimized or node.name in stand_ins])

    def _place_anew(self, optimized: Graph, nodes: Mapping[str, Any], order: Sequence[Resolved]) -> Placement | str:
        """Where nodes go that passes gave; the reason, where they go somewhere else than those that they stand for."""
        if all(is_of(self._graph, entry.node) for entry in order):
            return self._placement
        return placed_alike(self._graph, self._placement, order, self._place(optimized, nodes, self._trial))

    def _place(self, graph: Graph, nodes: Mapping[str, Any], placer: Placer) -> Placement:
        return placer.place(nodes, {name: (node.op, node.device) for name, node in graph.nodes.items()})

    def _note(self, executable: Executable) -> None:
        """Keep in the placement which kernels declined at bind, which serve instead, and which do several nodes."""
        for bound in executable.layout.calls:
            fused = bound.call.fused
            for member in filter(None, map(self._placement.get, fused)):  # a node that a pass has made has none
                member.fused = bound.call.code, bound.call.node
            row = self._placement.get(bound.call.node)
            if row is None or row.op != bound.call.op or bound.kernel is None or fused:
                continue  # a pass may have put another op in a node's place
            row.fused = None
            if row.kernel is not bound.kernel:
                row.refused += [(f"{row.device} {pack}.{row.op}", why)
                                for pack, why in executable.declined.get(row.node, ())]
                row.kernel = bound.kernel


def _closed() -> FailedPrecondition:
    return FailedPrecondition("the session has been closed", hint="open a new one")
