"""ClusterSession: a session whose graph runs in several workers.

The session cuts the graph once, and each worker keeps its part. A run is one call to each worker that the step needs,
and one wait for all of them. Workers send tensors to one another without the session.
"""

# The theory of a step
#
# - A step has one id, which no other step of the session has. A worker refuses an id that it has seen.
# - The first error ends the step: the session aborts it in all other workers, and raises that error. Later errors of
#   the same step are consequences of the abort.
# - The session waits for all workers before it returns, so a step leaves no call behind. A worker that does not answer
#   an abort within ABORT_SECONDS is left alone.
# - The death of a worker ends its steps with Unavailable (`lifelines`). The session repeats nothing.
# - At most `max_steps` steps are in flight. The next one waits, within its own deadline.

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from itertools import count
from time import monotonic, perf_counter_ns
from typing import Any, NamedTuple

import heald
from heald.api import Graph, TensorMetadata
from heald.errors import (
    Cancelled,
    DeadlineExceeded,
    FailedPrecondition,
    HealdError,
    InvalidArgument,
    Unavailable,
    Unimplemented,
    boundary,
    describe_exception,
)
from heald.graphs.compiler import flatten_fetches, name_tuple, resolve, target_node, tensor_of_name
from heald.runtime.config import Config, load_config
from heald.runtime.contract import Assignment, Placement
from heald.runtime.service import check_limits, convert_feed, dict_of_mapping

from .cluster import StartCluster
from .lifelines import Lifelines
from .sent_config import config_without_remap, pack_config
from .step_plan import StepPlan, plan_step
from .task_graphs import Nodes, Requests, TaskGraphs, cut_by_task, task_name
from .tensor_message import pack_error, pack_tensors, unpack_error, unpack_tensors
from .trace_message import merge_traces

MOST_STEPS = 64  # steps in flight
ABORT_SECONDS = 5.0  # seconds that the session waits for workers after it has aborted a step
POLL_SECONDS = 0.05  # seconds between two looks for a caller's cancellation
_RECORDS = "session.run(..., options=options, metadata=metadata) records them"
_PARTIAL = "partial runs stay in one process"
Names = tuple[str, ...]


class _Step(NamedTuple):
    """What one combination of names needs in each run."""

    plan: StepPlan
    metas: tuple[TensorMetadata, ...]
    feed_tasks: Mapping[str, int]  # by the tensor's full name, its position among the feeds
    texts: Mapping[int, bytes]


class ClusterSession:
    """Runs steps of a graph in `count` workers. Several threads may share one session.

    `start`: starts the workers. `config`: as of `heald.Session`. `max_steps`: the most steps in flight.
    """

    @boundary
    def __init__(
        self, graph: Graph, start: StartCluster, count_of_tasks: int, config: Config | Mapping[str, Any] | None = None,
        max_steps: int = MOST_STEPS,
    ) -> None:
        if isinstance(max_steps, bool) or not isinstance(max_steps, int) or max_steps < 1:
            raise InvalidArgument(f"max_steps is {max_steps!r}", hint="give a number of 1 or more")
        self._config = load_config(config).with_absolute_paths()
        self._count = count_of_tasks
        placement = self._config.placement
        self._requests = Requests(count_of_tasks, placement.remap)
        self._graph = _without_devices(graph) if placement.clear else graph
        self._local: Any = heald.Session(_without_devices(graph), config_without_remap(self._config, fallback="allow"),
                                         target="local")
        self._lock = threading.Lock()
        self.steps: dict[tuple[Names, Names, Names], _Step] = {}
        self._ids, self.in_flight = count(1), set[int]()
        self._slots = threading.Semaphore(max_steps)
        self._closed = threading.Event()
        self._nodes, self._graphs = self._read(self._graph)
        parts = {task: heald.graphdef.dumps(part) for task, part in self._graphs.parts.items()}
        self.cluster = start(parts, pack_config(self._config))
        self.lifelines = Lifelines(self.cluster, range(count_of_tasks), self._renew)

    @boundary
    def run(
        self, fetches: Any, feeds: Mapping[str, Any] | None = None, *, targets: Sequence[str] = (),
        options: Any = None, metadata: Any = None,
    ) -> Any:
        """Return the fetched tensors, as `heald.Session.run` does. A trace has the events of all workers."""
        names, rebuild = flatten_fetches(fetches)
        values = {} if feeds is None else dict_of_mapping(feeds, "feeds")
        step = self._step_of_names(names, name_tuple(tuple(values), "feed"), name_tuple(targets, "target"))
        options = _check_options(options)
        if metadata is not None:
            metadata.trace = None
            metadata.partition_graphs = self._partition_graphs(step) if options.partition_graphs else {}
        return rebuild(self._run(step, tuple(values), tuple(values.values()), len(names), options, metadata))

    @boundary
    def make_callable(
        self, fetches: Any, feeds: Sequence[str] = (), targets: Sequence[str] = (), *,
        connections: Mapping[str, str] | None = None,
    ) -> Callable[..., Any]:
        """Return a function of the arrays to feed. `connections` are Unimplemented."""
        if connections:
            raise Unimplemented("a session of several workers takes no connections", hint="feed and fetch the tensors")
        names, rebuild = flatten_fetches(fetches)
        fed = name_tuple(feeds, "feed")
        step = self._step_of_names(names, fed, name_tuple(targets, "target"))
        released = threading.Event()

        @boundary
        def run(*arrays: Any, options: Any = None) -> Any:
            if released.is_set():
                raise InvalidArgument("this callable was released")
            if len(arrays) != len(fed):
                raise InvalidArgument(f"this callable takes {len(fed)} arrays ({', '.join(fed) or 'none'}), "
                                      f"{len(arrays)} given")
            return rebuild(self._run(step, fed, arrays, len(names), check_limits(_check_options(options), _RECORDS)))

        run.release = released.set  # type: ignore[attr-defined]
        return run

    @boundary
    def extend(self, graph: Graph) -> None:
        """Add the nodes and functions of a graph.

        Raises FailedPrecondition where the new nodes would move a node to another worker.
        """
        self._check_open()
        self._renew_lost(range(self._count))
        with self._lock:
            self._local.extend(_without_devices(graph))
            functions = [function for name, function in graph.functions.items() if name not in self._graph.functions]
            extended_graph = self._graph.replace(nodes=list(graph), functions=functions)
            nodes, graphs = self._read(extended_graph)
            _check_extension(self._graphs, graphs)
            self._graph, self._nodes, self._graphs = extended_graph, nodes, graphs
            self.steps.clear()
            for task in range(self._count):
                self._extend(task)

    @boundary
    def reset(self, containers: Sequence[str] = ()) -> None:
        """Drop the state in these containers, in all workers."""
        self._on_all("reset", list(name_tuple(containers, "container") if containers else ()))

    @boundary
    def partial_run_setup(self, fetches: Any, feeds: Sequence[str] = (), targets: Sequence[str] = ()) -> str:
        """Raises Unimplemented."""
        self._check_open()
        raise Unimplemented(_PARTIAL, hint="run the steps one after the other")

    @boundary
    def partial_run(self, handle: str, fetches: Any, feeds: Mapping[str, Any] | None = None) -> Any:
        """Raises Unimplemented."""
        self._check_open()
        raise Unimplemented(_PARTIAL, hint="run the steps one after the other")

    @boundary
    def placement(self) -> Placement:
        """Return the assignment of each node: the full name of its device, or "" where the runtime serves the node."""
        rows: dict[str, Assignment] = {}
        for task, placed in self._on_all("placement").items():
            for name, (device, reason, error) in placed.items():
                if name in self._graph:
                    node = self._graph[name]
                    full = f"{task_name(task)}/device:{device}" if device else ""
                    rows[name] = Assignment(name, node.op, node.device, full, reason=reason,
                                            error=None if error is None else unpack_error(error.encode()))
        return Placement({name: rows[name] for name in self._graph.nodes if name in rows})

    @boundary
    def partitions(
        self, fetches: Any, feeds: Sequence[str] = (), targets: Sequence[str] = ()
    ) -> Mapping[str, Graph]:
        """Return the graphs of a step's partitions, by the full names of their devices."""
        return self._partition_graphs(self._step_of_names(flatten_fetches(fetches)[0], name_tuple(feeds, "feed"),
                                                          name_tuple(targets, "target")))

    def _partition_graphs(self, step: _Step) -> Mapping[str, Graph]:
        graphs = {}
        for task, text in step.texts.items():
            self._renew_lost([task])
            parts = _call_result(self.cluster.call(task, "partitions", text), task)
            for device, part in parts.items():
                graphs[task_name(task) + device[device.index("/device:"):]] = heald.graphdef.loads(part)
        return graphs

    @boundary
    def client_graph(
        self, fetches: Any, feeds: Sequence[str] = (), targets: Sequence[str] = (), *, convention: str = "call_frame",
    ) -> Graph:
        """Return the graph of a step after pruning, placed as in one process."""
        self._check_open()
        graph: Graph = self._local.client_graph(fetches, feeds, targets, convention=convention)
        return graph

    @boundary
    def messages(self, fetches: Any, feeds: Sequence[str] = (), targets: Sequence[str] = ()) -> int:
        """Return the number of messages that workers send to one another in one run."""
        names = flatten_fetches(fetches)[0]
        return self._step_of_names(names, name_tuple(feeds, "feed"), name_tuple(targets, "target")).plan.messages

    @boundary
    def close(self) -> None:
        """End the session, its running steps and its workers. A second call does nothing."""
        if not self._closed.is_set():
            self._closed.set()
            deadline = monotonic() + ABORT_SECONDS
            while self.in_flight and monotonic() < deadline:
                threading.Event().wait(POLL_SECONDS)
            self.cluster.close()
            self._local.close()

    def __enter__(self) -> ClusterSession:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _read(self, graph: Graph) -> tuple[Nodes, TaskGraphs]:
        nodes = resolve.resolve(graph, self._local.host.registries.ops)
        return nodes, cut_by_task(graph, nodes, self._requests, self._count)

    def _extend(self, task: int) -> None:
        """Tell a worker the extended graph. A dead worker gets it when it has started again."""
        call = self.cluster.call(task, "extend", heald.graphdef.dumps(self._graphs.parts[task]))
        if call.exception() is not None:
            self.lifelines.mark_lost(task)
        else:
            _call_result(call, task)

    def _renew(self, task: int) -> Future[Any]:
        """Tell a worker that started again the graph, which may have been extended, and the checkpoint."""
        return self.cluster.call(task, "renew", heald.graphdef.dumps(self._graphs.parts[task]),
                                 self._config.cluster.checkpoint)

    def _check_open(self) -> None:
        if self._closed.is_set():
            raise FailedPrecondition("the session is closed", hint="make a new one")

    def _step_of_names(self, fetches: Names, feeds: Names, targets: Names) -> _Step:
        self._check_open()
        key = fetches, feeds, targets
        step = self.steps.get(key)
        if step is None:
            with self._lock:
                step = self.steps[key] = self._prepare(*key)
        return step

    def _prepare(self, fetches: Names, feeds: Names, targets: Names) -> _Step:
        fed = [tensor_of_name(name, self._nodes, "feed") for name in feeds]
        fetched = [tensor_of_name(name, self._nodes, "fetch") for name in fetches]
        plan = plan_step(self._graphs, fed, fetched, [target_node(name, self._nodes) for name in targets])
        metas = tuple(TensorMetadata(self._nodes[name].output_tensors[port].dtype, None)  # type: ignore[union-attr]
                      for name, port in fed)
        positions = {f"{name}:{port}": index for index, (name, port) in enumerate(fed)}
        return _Step(plan, metas, positions, {task: part.dumps() for task, part in plan.tasks.items()})

    def _run(
        self, step: _Step, names: Names, values: Sequence[Any], number: int, options: Any, metadata: Any = None
    ) -> list[Any]:
        self._check_open()
        arrays = [convert_feed(value, meta, name)
                  for name, value, meta in zip(names, values, step.metas, strict=True)]
        watch = _Watch(options, self._closed)
        while not self._slots.acquire(timeout=watch.slice()):
            watch.check()
        try:
            with self._lock:
                step_id = next(self._ids)
                self.in_flight.add(step_id)
                oldest = min(self.in_flight)
            try:
                return self._run_step(step, step_id, oldest, arrays, number, watch,
                                      metadata if options.trace else None)
            finally:
                self.lifelines.end(step_id)
                with self._lock:
                    self.in_flight.discard(step_id)
        finally:
            self._slots.release()

    def _run_step(
        self, step: _Step, step_id: int, oldest: int, arrays: Sequence[Any], number: int, watch: _Watch,
        traced: Any = None,
    ) -> list[Any]:
        """Run a step. `traced`: the RunMetadata that gets its trace."""
        method, traces, begin_ns = "run" if traced is None else "run_traced", dict[int, bytes](), perf_counter_ns()
        calls: dict[Future[Any], int] = {}
        death = self.lifelines.begin(step_id, step.plan.tasks, watch.check)
        for task, part in step.plan.tasks.items():
            feeds = pack_tensors([arrays[step.feed_tasks[name]] for name in part.feeds])
            call = self.cluster.call(task, method, step_id, oldest, step.texts[task], feeds, watch.remaining())
            calls[call] = task
        results: list[Any] = [None] * number
        for task, message in self._collect(calls, death, step_id, watch).items():
            if traced is not None:
                message, traces[task] = message
            for index, tensor in zip(step.plan.tasks[task].fetched, unpack_tensors(message), strict=True):
                results[index] = _writable(tensor)
        if traced is not None:
            traced.trace = merge_traces(traces, begin_ns, perf_counter_ns())
        return results

    def _collect(
        self, calls: Mapping[Future[Any], int], death: Future[None], step_id: int, watch: _Watch
    ) -> dict[int, Any]:
        """Wait for all calls of a step. Raises the first error, after the other workers have ended the step."""
        results, left = {}, set(calls)
        try:
            while left:
                done = self.cluster.wait(left, watch.slice())
                left -= done
                if death.done():
                    death.result()
                for call in done:
                    results[calls[call]] = _call_result(call, calls[call])
                if left:
                    watch.check()
        except HealdError as error:
            self._abort(calls, step_id, error)
            raise
        return results

    def _abort(self, calls: Mapping[Future[Any], int], step_id: int, error: HealdError) -> None:
        text = pack_error(error)
        left = [call for call in calls if not call.done()]
        for call in left:
            self.cluster.call(calls[call], "abort", step_id, text)
        self._wait_for_all(left, ABORT_SECONDS)
        for call, task in calls.items():
            is_lost = call.done() and call.exception() is not None
            if is_lost or (isinstance(error, Unavailable) and error.device == task_name(task)):
                self.lifelines.mark_lost(task)

    def _wait_for_all(self, calls: Iterable[Future[Any]], seconds: float) -> None:
        """Wait until calls are done, for at most `seconds`."""
        left, end = set(calls), monotonic() + seconds
        while left and monotonic() < end:
            left -= self.cluster.wait(left, end - monotonic())

    def _renew_lost(self, tasks: Iterable[int]) -> None:
        self.lifelines.renew_lost(tasks, _Watch(heald.RunOptions(), self._closed).check)

    def _on_all(self, method: str, *args: Any) -> dict[int, Any]:
        """Call a method of all workers, and return their results."""
        self._check_open()
        self._renew_lost(range(self._count))
        calls = {task: self.cluster.call(task, method, *args) for task in range(self._count)}
        return {task: _call_result(call, task) for task, call in calls.items()}


class _Watch:
    """The limits of one run: its deadline, its token, and the end of the session."""

    def __init__(self, options: Any, closed: threading.Event) -> None:
        self._timeout, self._token, self._closed = options.timeout, options.cancel, closed
        self._end = None if self._timeout is None else monotonic() + self._timeout

    def remaining(self) -> float | None:
        return None if self._end is None else max(0.0, self._end - monotonic())

    def slice(self) -> float:
        """Return the seconds until the next check."""
        remaining = self.remaining()
        return POLL_SECONDS if remaining is None else min(POLL_SECONDS, remaining)

    def check(self) -> None:
        """Raises DeadlineExceeded and Cancelled."""
        if self._end is not None and monotonic() >= self._end:
            raise DeadlineExceeded(f"the step took longer than {self._timeout} s")
        if self._token is not None and self._token.is_cancelled:
            raise Cancelled("the caller cancelled the step")
        if self._closed.is_set():
            raise Cancelled("the session was closed")


def _check_options(options: Any) -> Any:
    options = heald.RunOptions() if options is None else options
    if not isinstance(options, heald.RunOptions):
        raise InvalidArgument(f"options= is {type(options).__name__}", hint="pass heald.RunOptions(timeout=2.0)")
    options.check()
    if options.work_queue:
        raise Unimplemented("a session of several workers has no work_queue of a run")
    return options


def _call_result(call: Future[Any], task: int) -> Any:
    """Return the result of a call. Raises the worker's error, and Unavailable for a call that the engine lost."""
    try:
        outcome = call.result()
    except HealdError as error:
        raise error.at(device=task_name(task)) from None
    except Exception as error:  # noqa: BLE001 - engines raise many types
        raise Unavailable(f"{task_name(task)} gave no answer: {describe_exception(error)}",
                          device=task_name(task)) from None
    return _result(outcome)


def _result(outcome: Sequence[Any]) -> Any:
    succeeded, result = outcome
    if succeeded:
        return result
    raise unpack_error(result)


def _writable(tensor: Any) -> Any:
    """Return an array that the caller may write."""
    return tensor if tensor.flags.writeable else tensor.copy()


def _without_devices(graph: Graph) -> Graph:
    functions = [function.replace(nodes=[node.replace(device="") for node in function.nodes.values()])
                 for function in graph.functions.values()]
    return Graph([node.replace(device="") for node in graph], functions, versions=graph.versions)


def _check_extension(old: TaskGraphs, new: TaskGraphs) -> None:
    """Raises FailedPrecondition where an old node moves or has other inputs."""
    for task, part in new.parts.items():
        before = old.parts[task]
        for node in before:
            if node.name not in part or part[node.name].inputs != node.inputs:
                raise FailedPrecondition(f"with the new nodes '{node.name}' would move to another worker",
                                         node=node.name, op=node.op, hint="request a worker for the new nodes")
