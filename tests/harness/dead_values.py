"""Two interpreters of graphs of scalars with dead values: one of TensorFlow 1's control flow, one of functions.

`run_frames` gives each node a value in each iteration of the loops around it. `run_functions` knows If, While and
`_Frame`. Both return the values of tensors, DEAD among them, and the inputs of all Log nodes, sorted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from heald.graphs.graph.graph import Function, Graph, Input, Node

DEAD = "dead"
MODULUS = 101
COMPUTE: dict[str, Callable[..., Any]] = {
    "Add": lambda x, y: (x + y) % MODULUS, "Mul": lambda x, y: x * y % MODULUS, "Less": lambda x, y: x < y,
    "Identity": lambda x: x, "LoopCond": lambda x: x, "Exit": lambda x: x, "Enter": lambda x: x,
    "NextIteration": lambda x: x,
}


class Endless(Exception):
    """A loop that does not end."""


class Ambiguous(Exception):
    """A Merge with several live inputs: TensorFlow takes the one that comes first."""


Logged = list[tuple[str, int]]
MOST_ITERATIONS = 50  # of a loop: more of them are endless


def _op(node: Node, inputs: Sequence[Any], controls: Sequence[bool], log: Logged) -> tuple[Any, ...]:
    """The outputs of a node for its inputs, and for control inputs that are alive or not."""
    if node.op == "Merge":
        return next(((x, index) for index, x in enumerate(inputs) if x is not DEAD), (DEAD, DEAD))
    if node.op == "ControlTrigger":
        return ()
    if any(x is DEAD for x in inputs) or not all(controls):
        return DEAD, DEAD
    if node.op == "Const":
        return (node.attrs["value"].array().item(),)
    if node.op == "NoOp":
        return ()
    if node.op == "Switch":
        return (DEAD, inputs[0]) if inputs[1] else (inputs[0], DEAD)
    if node.op == "Log":
        log.append((node.name, int(inputs[0])))
        return (inputs[0],)
    return (COMPUTE[node.op](*inputs),)


def _alive(outputs: Sequence[Any], node: Node) -> bool:
    """True when a node ran: control edges from it do not kill."""
    if node.op == "Switch":
        return any(x is not DEAD for x in outputs)
    return not outputs or outputs[0] is not DEAD


class _Frames:
    def __init__(self, graph: Graph, feeds: Mapping[str, Any], *, exact: bool) -> None:
        self.graph, self.feeds, self.exact = graph, feeds, exact
        self.done: dict[tuple[str, tuple[Any, ...]], tuple[Any, ...]] = {}
        self.log: Logged = []
        self.frame: dict[str, tuple[bytes, ...]] = {}
        waiting = list(graph)
        while waiting:
            later = [node for node in waiting if not self._find_frame(node)]
            assert len(later) < len(waiting)
            waiting = later
        self.inside: dict[tuple[bytes, ...], list[Node]] = {}
        for node in graph:
            self.inside.setdefault(self.frame[node.name], []).append(node)

    def _find_frame(self, node: Node) -> bool:
        """Find the frame in which the outputs of a node are."""
        frames = [self.frame[i] for i in (*(t.node for t in node.inputs), *node.controls) if i in self.frame]
        if not frames and (node.inputs or node.controls):
            return False
        frame = frames[0] if frames else ()
        if node.op == "Enter":
            frame = (*frame, node.attrs["frame_name"])
        self.frame[node.name] = frame[:-1] if node.op == "Exit" else frame
        return True

    def outputs(self, name: str, at: tuple[int, ...]) -> tuple[Any, ...]:
        """The outputs of a node in an iteration of each loop around it."""
        if (name, at) not in self.done:
            self.done[name, at] = self._run(self.graph[name], at)
        return self.done[name, at]

    def value(self, tensor: Input, at: tuple[int, ...]) -> Any:
        return self.outputs(tensor.node, at)[tensor.index]

    def _run(self, node: Node, at: tuple[int, ...]) -> tuple[Any, ...]:
        if node.name in self.feeds:
            return (self.feeds[node.name],)
        if node.op == "Enter":
            first_only = at[-1] > 0 and not node.attrs.get("is_constant")
            return (DEAD,) if first_only else self._in(node, at[:-1])
        if node.op == "NextIteration":
            return (DEAD,) if at[-1] == 0 else self._in(node, (*at[:-1], at[-1] - 1))
        if node.op == "Exit":
            iterations = self.iterations(self.frame[node.inputs[0].node], at)
            values = [self._in(node, (*at, number))[0] for number in range(iterations)]
            return (next((x for x in reversed(values) if x is not DEAD), DEAD),)
        return self._in(node, at)

    def _in(self, node: Node, at: tuple[int, ...]) -> tuple[Any, ...]:
        inputs = [self.value(tensor, at) for tensor in node.inputs]
        controls = [_alive(self.outputs(name, at), self.graph[name]) for name in node.controls]
        if self.exact and node.op == "Merge" and sum(x is not DEAD for x in inputs) > 1:
            raise Ambiguous
        return _op(node, inputs, controls, self.log)

    def iterations(self, frame: tuple[bytes, ...], at: tuple[int, ...]) -> int:
        """The number of iterations of a frame: the last one gives no value to NextIteration."""
        ends = [node for node in self.inside[frame] if node.op == "NextIteration"]
        number = 0
        while any(self._in(node, (*at, number))[0] is not DEAD for node in ends):
            number += 1
            if number > MOST_ITERATIONS:
                raise Endless
        return number + 1

    def run_all(self, frame: tuple[bytes, ...], at: tuple[int, ...]) -> None:
        for node in self.inside.get(frame, ()):
            if node.op not in ("Enter", "NextIteration"):
                self.outputs(node.name, at)
        for inner in {inner_frame for inner_frame in self.inside if inner_frame[:-1] == frame and inner_frame}:
            for number in range(self.iterations(inner, at)):
                self.run_all(inner, (*at, number))


def run_frames(
    graph: Graph, fetches: Sequence[tuple[str, int]], feeds: Mapping[str, Any], *, exact: bool = False
) -> tuple[list[Any], Logged]:
    """Run a graph with frames. `exact`: raise Ambiguous for a Merge whose result depends on time."""
    frames = _Frames(graph, feeds, exact=exact)
    frames.run_all((), ())
    return [frames.value(Input(name, None, index), ()) for name, index in fetches], sorted(frames.log)


class _Call:
    """A function, or the graph itself, that is being run."""

    def __init__(self, nodes: Mapping[str, Node], functions: Mapping[str, Function], arguments: Mapping[str, Any],
                 log: Logged) -> None:
        self.nodes, self.functions, self.log = nodes, functions, log
        self.done: dict[str, tuple[Any, ...]] = {name: (value,) for name, value in arguments.items()}

    def outputs(self, name: str) -> tuple[Any, ...]:
        if name not in self.done:
            node = self.nodes[name]
            inputs = [self.outputs(tensor.node)[tensor.index] for tensor in node.inputs]
            controls = [_alive(self.outputs(c), self.nodes[c]) for c in node.controls]
            self.done[name] = self._run(node, inputs, controls)
        return self.done[name]

    def _run(self, node: Node, inputs: list[Any], controls: list[bool]) -> tuple[Any, ...]:
        if node.op not in ("If", "StatelessIf", "While", "StatelessWhile", "_Frame"):
            return _op(node, inputs, controls, self.log)
        attrs = node.attrs
        if any(x is DEAD for x in inputs) or not all(controls):
            return (DEAD,) * max(1, len(attrs["Tout"] if "Tout" in attrs else attrs["T"]))
        if "If" in node.op:
            branch = attrs["then_branch"] if inputs[0] else attrs["else_branch"]
            return tuple(self._call(branch.name, inputs[1:]))
        number = 0
        if "While" in node.op:
            while self._call(attrs["cond"].name, inputs)[0]:
                inputs = self._call(attrs["body"].name, inputs)
                assert DEAD not in inputs
                number += 1
                if number > MOST_ITERATIONS:
                    raise Endless
            return tuple(inputs)
        count = attrs["variables"]
        variables, exits = inputs[:count], [DEAD] * len(attrs["Tout"])
        while True:
            results = self._call(attrs["body"].name, [*variables, *inputs[count:]])
            variables = results[:count]
            exits = [new if new is not DEAD else old for new, old in zip(results[count:], exits, strict=True)]
            number += 1
            if number > MOST_ITERATIONS:
                raise Endless
            if all(x is DEAD for x in variables):
                return tuple(exits)

    def _call(self, name: str, arguments: Sequence[Any]) -> list[Any]:
        function = self.functions[name]
        argument_values = {arg.name: value for arg, value in zip(function.inputs, arguments, strict=True)}
        call = _Call(function.nodes, self.functions, argument_values, self.log)
        for node in function.control_ret.values():
            call.outputs(node)
        tensors = [function.ret[out.name] for out in function.outputs]
        return [call.outputs(tensor.node)[tensor.index] for tensor in tensors]


def run_functions(graph: Graph, fetches: Sequence[tuple[str, int]], feeds: Mapping[str, Any]
                  ) -> tuple[list[Any], Logged]:
    log: Logged = []
    call = _Call(graph.nodes, graph.functions, feeds, log)
    for name in graph.nodes:
        call.outputs(name)
    return [call.outputs(name)[index] for name, index in fetches], sorted(log)


def normal(value: Any) -> Any:
    return value if value is DEAD else int(np.asarray(value))
