"""Task graphs: cuts a session's graph into one graph for each worker, joined by Send and Recv.

A node's task is the task that it requests. The rules, in order:

    request            of the node, after remap, or of the functions that it calls
    connected nodes    colocation, resources and variants, references, and the nodes of a loop share a task
    constant           the task of its consumers, if they share one
    any other node     task 0

The whole graph is cut once, so a variable has one worker. A worker places its nodes on its requested_task devices.
"""

# The theory of the cut
#
# - The cut is the one between devices, with a task for each device. So the names of Sends and Recvs are those
#   of TensorFlow, and new nodes at the end of a graph leave all earlier names as they were.
# - Handles of resources and variants stay in their process. The cut never separates their producers and consumers.
# - A contradiction is the error of the nodes in question. Steps that need none of them run.

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from heald.api import Graph, Node
from heald.errors import HealdError, InvalidArgument, Unimplemented
from heald.graphs.compiler import (
    HANDLE_TYPES,
    HostTensors,
    Partitioner,
    Resolved,
    called_functions,
    colocation_groups,
    outermost_loops,
)
from heald.runtime.contract import CONST, DeviceName

JOB = "worker"
_LOOP_HINT = "request one worker for the full_graph loop or function"
Nodes = Mapping[str, Resolved | HealdError]


def task_name(task: int) -> str:
    """Return the full name of a worker."""
    return f"/job:{JOB}/replica:0/task:{task}"


class Cut(NamedTuple):
    """A tensor that crosses from one worker to another. `send`, `recv`: the names of its two nodes."""

    send: str
    recv: str
    source: int
    destination: int
    tensor: str


class TaskGraphs(NamedTuple):
    """The graphs of all workers.

    `task_of`: The task of each node of the whole graph.
    `parts`: The graph of each task, with requests for devices of its own process.
    `cuts`: The cut tensors by task and name of their Recv.
    `faults`: The errors of nodes that have no task.
    """

    task_of: Mapping[str, int]
    parts: Mapping[int, Graph]
    cuts: Mapping[tuple[int, str], Cut]
    faults: Mapping[str, HealdError]


class Requests:
    """Reads the requests of nodes, after remap. Raises InvalidArgument for a task that the cluster lacks."""

    def __init__(self, count: int, remap: Mapping[str, str]) -> None:
        self._count = count
        self._remap = [(DeviceName.parse(old), DeviceName.parse(new)) for old, new in remap.items()]

    def device(self, node: Node) -> DeviceName:
        request = DeviceName.parse(node.device)
        return next((new for old, new in self._remap
                     if old.type == request.type and old.index in (None, request.index)), request)

    def task(self, node: Node) -> int | None:
        """Return the task that a node requests, or None."""
        request = self.device(node)
        if request.job not in (None, JOB) or request.replica not in (None, 0):
            if request.is_local:
                return None
            raise InvalidArgument(f"'{node.device}' is no device of this cluster, whose job is '{JOB}'",
                                  node=node.name, op=node.op, hint="remap the request in [placement]")
        if request.task is not None and request.task >= self._count:
            raise InvalidArgument(f"'{node.device}' is on task {request.task}, and the cluster has {self._count}",
                                  node=node.name, op=node.op, hint=f"tasks: 0 to {self._count - 1}")
        return request.task

    def local(self, node: Node) -> str:
        """Return the node's request within its worker."""
        request = self.device(node)
        return "" if request.type is None else request.short


def cut_by_task(graph: Graph, nodes: Nodes, requests: Requests, count: int) -> TaskGraphs:
    """Return the graphs of `count` workers. `nodes`: the resolved nodes of the graph."""
    task_of, faults = _TaskChoice(graph, nodes, requests).choose()
    full_graph = graph.replace(nodes=[node.replace(device=_device(task_of[node.name])) for node in graph])
    resolved: Any = nodes  # nodes with errors share a task with their neighbours, so the cut never asks for their types
    by_device = Partitioner(full_graph, resolved, HostTensors()).partitions()
    parts = {task: by_device.get(_device(task), Graph()) for task in range(count)}
    cuts = {(cut.destination, cut.recv): cut for cut in _cuts(graph, parts)}
    worker_graphs = {task: _worker_graph(part, graph, requests) for task, part in parts.items()}
    return TaskGraphs(task_of, worker_graphs, cuts, faults)


class _TaskChoice:
    """Chooses a task for each node of a graph."""

    def __init__(self, graph: Graph, nodes: Nodes, requests: Requests) -> None:
        self._graph, self._nodes, self._requests = graph, nodes, requests
        self._faults: dict[str, HealdError] = {}
        self._loops = outermost_loops(graph)

    def choose(self) -> tuple[dict[str, int], dict[str, HealdError]]:
        edges = [*self._handle_edges(), *self._loop_edges()]
        task_of: dict[str, int] = {}
        for group in colocation_groups(self._graph, edges):
            tasks = self._requested_tasks([name for name in group if name in self._graph])
            if len(tasks) > 1:
                self._note_refusal(tasks, group)
            if tasks:
                task_of.update(dict.fromkeys(group, next(iter(tasks))))
            elif len(group) > 1 or self._graph[group[0]].op != CONST:
                task_of.update(dict.fromkeys(group, 0))
        self._place_constants(task_of)
        return task_of, self._faults

    def _handle_edges(self) -> Iterator[tuple[str, str]]:
        """Yield the ends of edges that no process border may cut."""
        for node in self._graph:
            entry = self._nodes[node.name]
            for index, source in enumerate(node.inputs):
                producer = self._nodes[source.node]
                if (isinstance(entry, HealdError) or isinstance(producer, HealdError)
                        or _must_stay_in_process(entry, index)):
                    yield node.name, source.node

    def _loop_edges(self) -> Iterator[tuple[str, str]]:
        for names in self._loops.values():
            for name in names[1:]:
                yield names[0], name

    def _requested_tasks(self, group: Iterable[str]) -> dict[int, str]:
        """Return the tasks that nodes of a group request, each with the first such node."""
        tasks: dict[int, str] = {}
        for name in group:
            node = self._graph[name]
            try:
                requested_task = self._requests.task(node)
                inner = self._tasks_of_functions(node)
            except HealdError as error:
                self._faults[name] = error
                continue
            for task, node_path in ({requested_task: name} if requested_task is not None else {} | inner).items():
                tasks.setdefault(task, node_path)
            if requested_task is not None and any(task != requested_task for task in inner):
                inner[requested_task] = name
            if len(inner) > 1:
                self._faults[name] = _crossing_error(f"the functions of '{name}'", inner, node)
        return tasks

    def _tasks_of_functions(self, node: Node) -> dict[int, str]:
        tasks: dict[int, str] = {}
        for name in sorted(called_functions(self._graph, [node])) if self._graph.functions else ():
            for inner in self._graph.functions[name].nodes.values():
                task = self._requests.task(inner)
                if task is not None:
                    tasks.setdefault(task, f"{name}/{inner.name}")
        return tasks

    def _note_refusal(self, tasks: Mapping[int, str], group: list[str]) -> None:
        """Note the error of a group whose members request several tasks."""
        loop = next((name for name, members in self._loops.items() if not set(members).isdisjoint(group)), None)
        first = self._graph[next(iter(tasks.values()))]
        if loop is not None:
            error: HealdError = _crossing_error(f"loop '{loop}'", tasks, first)
        else:
            error = InvalidArgument(f"nodes that share a resource or are colocated request several workers: "
                                    f"{_places_text(tasks)}", node=first.name, op=first.op,
                                    hint="request one worker for all of them")
        self._faults.update((name, error) for name in group if name not in self._faults)

    def _place_constants(self, task_of: dict[str, int]) -> None:
        """Give free constants the task of their consumers, if these share one."""
        tasks: dict[str, set[int]] = {}
        for node in self._graph:
            for name in (*(source.node for source in node.inputs), *node.controls):
                if name not in task_of:
                    tasks.setdefault(name, set()).add(task_of.get(node.name, 0))
        for node in self._graph:
            if node.name not in task_of:
                consumer_tasks = tasks.get(node.name, set())
                task_of[node.name] = next(iter(consumer_tasks)) if len(consumer_tasks) == 1 else 0


def _must_stay_in_process(entry: Resolved, index: int) -> bool:
    """True for an input that no process border may cut: a handle, or a reference that the node writes in place."""
    tensor = entry.input_tensors[index]
    return tensor.dtype in HANDLE_TYPES or any(arg.is_ref for arg in entry.op.inputs if arg.name == tensor.arg)


def _device(task: int) -> str:
    return f"{task_name(task)}/device:CPU:0"


def _worker_graph(part: Graph, full_graph: Graph, requests: Requests) -> Graph:
    """Return a worker's graph, whose nodes and functions ask for devices of their own process."""
    nodes = [node.replace(device=_local_request(full_graph[node.name], requests) if node.name in full_graph else "")
             for node in part]
    functions = [function.replace(nodes=[node.replace(device=_local_request(node, requests))
                                         for node in function.nodes.values()])
                 for function in part.functions.values()]
    return Graph(nodes, functions, versions=part.versions)


def _local_request(node: Node, requests: Requests) -> str:
    try:
        return requests.local(node)
    except HealdError:
        return node.device


def _cuts(full_graph: Graph, parts: Mapping[int, Graph]) -> Iterator[Cut]:
    """Yield the cuts: each Recv that is no node of the whole graph, with the Send of its tensor."""
    task_of_device = {_device(task): task for task in parts}
    sends = {_tensor(node): (task, node.name) for task, part in parts.items()
             for node in part if node.name not in full_graph and node.op == "_Send"}
    for part in parts.values():
        for node in part:
            if node.name not in full_graph and node.op == "_Recv":
                source, send = sends[_tensor(node)]
                yield Cut(send, node.name, source, task_of_device[node.device], _tensor(node)[0])


def _tensor(node: Node) -> tuple[str, str]:
    return _text(node.attrs["tensor_name"]), _text(node.attrs["recv_device"])


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _crossing_error(subject: str, tasks: Mapping[int, str], node: Node) -> Unimplemented:
    return Unimplemented(f"{subject} crosses workers: {_places_text(tasks)}", node=node.name, op=node.op,
                         hint=_LOOP_HINT)


def _places_text(tasks: Mapping[int, str]) -> str:
    return ", ".join(f"'{name}' on {task_name(task)}" for task, name in sorted(tasks.items()))
