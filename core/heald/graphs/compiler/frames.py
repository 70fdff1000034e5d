"""Frames: the loops around each node of a graph with TensorFlow 1's control flow.

Enter takes a tensor into a frame, Exit takes one out of it. Every other edge stays within a frame, but for control
edges, which may come from an outer frame.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn

from ...errors import InvalidArgument, ResourceExhausted
from ...runtime.contract.structural import ENTERS, EXITS, NEXT_ITERATIONS
from ..graph.node import Node

MOST_NESTED = 64  # loops within loops; each becomes a function within a function


class LoopFrame:
    """The frame of a loop, or the graph outside all loops, which has no parent."""

    __slots__ = ("depth", "name", "parent")

    def __init__(self, name: str = "", parent: LoopFrame | None = None) -> None:
        self.name, self.parent = name, parent
        self.depth: int = 0 if parent is None else parent.depth + 1

    def is_within(self, other: LoopFrame) -> bool:
        """True for the other frame itself, and for frames in it."""
        frame = self
        while frame.depth > other.depth and frame.parent is not None:
            frame = frame.parent
        return frame is other

    def __str__(self) -> str:
        return f"loop '{self.name}'" if self.parent else "the graph outside loops"


class Membership:
    """The frames of nodes, by name: `runs`, where a node takes its inputs, and `gives`, where its outputs are.

    The two differ for Enter and Exit only.
    """

    def __init__(self, order: Sequence[Node]) -> None:
        """Find the frames of nodes that are in topological order, but for the outputs of NextIteration.

        Raises InvalidArgument where frames meet without Enter or Exit, ResourceExhausted for too many nested loops.
        """
        self.root = LoopFrame()
        self.runs: dict[str, LoopFrame] = {}
        self.gives: dict[str, LoopFrame] = {}
        self._frames: dict[tuple[LoopFrame, str], LoopFrame] = {}
        for node in order:
            frame = self.runs[node.name] = self._of_inputs(node)
            self.gives[node.name] = self._outputs(node, frame)
        nodes = {node.name: node for node in order}
        for node in order:
            self._check_back_edges(node, nodes)

    def _of_inputs(self, node: Node) -> LoopFrame:
        frame, source = self.root, ""
        for tensor in node.inputs:
            given = self.gives.get(tensor.node)
            if given is None:  # a back edge
                continue
            if source and given is not frame:
                _refuse(node, source, frame, tensor.node, given)
            frame, source = given, tensor.node
        for name in node.controls:
            given = self.gives.get(name, frame)
            if given is frame or frame.is_within(given):
                continue
            if node.inputs or not given.is_within(frame):
                _refuse(node, source, frame, name, given)
            frame, source = given, name
        return frame

    def _outputs(self, node: Node, frame: LoopFrame) -> LoopFrame:
        if node.op in ENTERS:
            name = node.attrs.get("frame_name", b"")
            text = name.decode("utf-8", "backslashreplace") if isinstance(name, bytes) else str(name)
            if (frame, text) not in self._frames:
                if frame.depth >= MOST_NESTED:
                    raise ResourceExhausted(f"more than {MOST_NESTED} loops are nested", node=node.name, op=node.op,
                                            hint="flatten the loops")
                self._frames[frame, text] = LoopFrame(text, frame)
            return self._frames[frame, text]
        if node.op in EXITS or node.op in NEXT_ITERATIONS:
            if frame.parent is None:
                raise InvalidArgument(f"{node.op} is in no loop: no Enter leads to its input '{node.inputs[0]}'",
                                      node=node.name, op=node.op, hint="take the input into a loop with Enter")
            return frame.parent if node.op in EXITS else frame
        return frame

    def _check_back_edges(self, node: Node, nodes: Mapping[str, Node]) -> None:
        for name in (*(tensor.node for tensor in node.inputs), *node.controls):
            if nodes[name].op in NEXT_ITERATIONS and self.gives[name] is not self.runs[node.name]:
                _refuse(node, node.name, self.runs[node.name], name, self.gives[name])


def _refuse(node: Node, source: str, frame: LoopFrame, other: str, frame_of_other: LoopFrame) -> NoReturn:
    raise InvalidArgument(f"'{other}' is in {frame_of_other}, '{source or node.name}' in {frame}", node=node.name,
                          op=node.op, hint="tensors go into a loop through Enter, and out of it through Exit")
