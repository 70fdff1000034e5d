"""Step plans: the part of one step that each worker runs, and the messages between workers.

A tensor's wave counts the borders on the longest path that ends at its Send. Two workers exchange one message for each
wave and direction: all tensors of the wave between them.
"""

# The theory of waves
#
# A Send of wave n depends on Recvs of waves below n alone. So the messages of wave 0 depend on no message. By induction
# each message becomes complete after finitely many others, and waiting for all tensors of a wave never blocks a step.
# The number of messages is known before the step: one for each (source, destination, wave).

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from heald.api import Graph

from .task_graphs import TaskGraphs

Place = tuple[int, str]  # a task, and the name of a node of its graph


class TaskPlan(NamedTuple):
    """One worker's part of a step.

    `feeds`, `fetches`: Names of tensors. `targets`: Nodes, with the Sends of the step.
    `fetched`: The indices of the fetches among the step's.
    `waves`: By tensor and destination, as "tensor@task": the destination and the wave of the message.
    """

    feeds: tuple[str, ...]
    fetches: tuple[str, ...]
    fetched: tuple[int, ...]
    targets: tuple[str, ...]
    waves: Mapping[str, tuple[int, int]]

    def dumps(self) -> bytes:
        return json.dumps([self.feeds, self.fetches, self.targets, self.waves]).encode()


class StepPlan(NamedTuple):
    """A step of all workers. `messages`: the number of messages between workers."""

    tasks: Mapping[int, TaskPlan]
    messages: int


def plan_step(
    graphs: TaskGraphs, feeds: Sequence[tuple[str, int]], fetches: Sequence[tuple[str, int]], targets: Sequence[str]
) -> StepPlan:
    """Return the plan of a step. Raises the error of a needed node that has no task."""
    fed = set(feeds)
    needs = _NeededNodes(graphs, fed)
    needed_names = [name for name, port in fetches if (name, port) not in fed] + list(targets)
    places = needs.collect([(graphs.task_of[name], name) for name in needed_names])
    waves = needs.waves(places)
    needed_cuts = [graphs.cuts[task_node] for task_node in places if task_node in graphs.cuts]
    sends = [(cut, waves[cut.source, cut.send]) for cut in needed_cuts]
    involved = {task for task, _ in places} | {graphs.task_of[name] for name, _ in fetches}
    plans = {}
    for task in sorted(involved):
        own_fetches = [(index, tensor) for index, tensor in enumerate(fetches) if graphs.task_of[tensor[0]] == task]
        plans[task] = TaskPlan(
            tuple(f"{name}:{port}" for name, port in feeds if graphs.task_of[name] == task),
            tuple(f"{name}:{port}" for _, (name, port) in own_fetches), tuple(index for index, _ in own_fetches),
            (*(name for name in targets if graphs.task_of[name] == task),
             *(cut.send for cut, _ in sends if cut.source == task)),
            {f"{cut.tensor}@{cut.destination}": (cut.destination, wave) for cut, wave in sends if cut.source == task})
    messages = {(cut.source, cut.destination, wave) for cut, wave in sends}
    return StepPlan(plans, len(messages))


class _NeededNodes:
    """The nodes that a step needs, across workers."""

    def __init__(self, graphs: TaskGraphs, fed: set[tuple[str, int]]) -> None:
        self._graphs, self._fed = graphs, fed
        self._fed_nodes = {name for name, _ in fed}

    def collect(self, stack: list[Place]) -> list[Place]:
        """Return the needed nodes, each after the nodes that it needs, but for the back edges of loops."""
        order: list[Place] = []
        state: dict[Place, bool] = {}
        while stack:
            task_node = stack[-1]
            if task_node in state:
                stack.pop()
                if not state[task_node]:
                    state[task_node] = True
                    order.append(task_node)
                continue
            state[task_node] = False
            if task_node[1] in self._graphs.faults:
                raise self._graphs.faults[task_node[1]]
            stack += [source for source in self.sources(task_node) if source not in state]
        return order

    def sources(self, task_node: Place) -> list[Place]:
        cut = self._graphs.cuts.get(task_node)
        if cut is not None:
            return [(cut.source, cut.send)]
        task, name = task_node
        part: Graph = self._graphs.parts[task]
        node: Any = part[name]
        names = [source.node for source in node.inputs if (source.node, source.index) not in self._fed]
        return [(task, source) for source in (*names, *(c for c in node.controls if c not in self._fed_nodes))]

    def waves(self, order: list[Place]) -> dict[Place, int]:
        """Return the number of borders before each node. Loops need several rounds; no border is within one."""
        waves = dict.fromkeys(order, 0)
        changed = True
        while changed:
            changed = False
            for task_node in order:
                crossing = task_node in self._graphs.cuts
                wave = max((waves[source] for source in self.sources(task_node)), default=0) + crossing
                if wave > waves[task_node]:
                    waves[task_node], changed = wave, True
        return waves
