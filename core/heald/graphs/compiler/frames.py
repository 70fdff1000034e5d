"""Frames: the loops around each node of a graph with TensorFlow 1's control flow.

Enter takes a tensor into a frame, Exit takes one out of it. Every other edge stays within a frame, but for control
edges, which may come from an outer frame.
"""

# The theory of frames
#
# A frame is one loop of the graph, and frames are a tree whose root is the graph outside loops. (parent, frame_name)
# identifies a frame: all Enters of one loop share it.
#
#   op               takes inputs in        has outputs in
#   Enter            the frame around       the frame `frame_name` within it
#   Exit             its loop's frame       the frame around
#   NextIteration    its loop's frame       the same frame, one iteration later
#   any other op     the frame of its inputs, for both
#
# Two frames never meet at one node, except that a control edge may come from an outer frame: its source runs once,
# before all iterations. The only edges against the topological order leave NextIteration. The first pass skips them,
# since their frame is not known yet, and `_check_back_edges` compares them in the end.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn

from ...errors import InvalidArgument, ResourceExhausted
from ...runtime.contract.structural import ENTERS, EXITS, NEXT_ITERATIONS
from ..graph.node import Node

DEEPEST_NESTED_LOOPS = 64  # loops within loops; each becomes a function within a function


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


class FrameMembership:
    """The frames of nodes, by name: `input_frames`, where a node takes its inputs, and `output_frames`, where its
    outputs are.

    The two differ for Enter and Exit only.
    """

    def __init__(self, order: Sequence[Node]) -> None:
        """Find the frames of nodes that are in topological order, but for the outputs of NextIteration.

        Raises InvalidArgument where frames meet without Enter or Exit, ResourceExhausted for too many nested loops.
        """
        self.root = LoopFrame()
        self.input_frames: dict[str, LoopFrame] = {}
        self.output_frames: dict[str, LoopFrame] = {}
        self._frames: dict[tuple[LoopFrame, str], LoopFrame] = {}
        for node in order:
            frame = self.input_frames[node.name] = self._frame_of_inputs(node)
            self.output_frames[node.name] = self._frame_of_outputs(node, frame)
        nodes = {node.name: node for node in order}
        for node in order:
            self._check_back_edges(node, nodes)

    def _frame_of_inputs(self, node: Node) -> LoopFrame:
        frame, source = self.root, ""
        for tensor in node.inputs:
            source_frame = self.output_frames.get(tensor.node)
            if source_frame is None:  # a back edge
                continue
            if source and source_frame is not frame:
                _raise_frame_error(node, source, frame, tensor.node, source_frame)
            frame, source = source_frame, tensor.node
        for name in node.controls:
            source_frame = self.output_frames.get(name, frame)
            if source_frame is frame or frame.is_within(source_frame):
                continue
            if node.inputs or not source_frame.is_within(frame):
                _raise_frame_error(node, source, frame, name, source_frame)
            frame, source = source_frame, name
        return frame

    def _frame_of_outputs(self, node: Node, frame: LoopFrame) -> LoopFrame:
        if node.op in ENTERS:
            name = node.attrs.get("frame_name", b"")
            text = name.decode("utf-8", "backslashreplace") if isinstance(name, bytes) else str(name)
            if (frame, text) not in self._frames:
                if frame.depth >= DEEPEST_NESTED_LOOPS:
                    raise ResourceExhausted(f"more than {DEEPEST_NESTED_LOOPS} loops are nested", node=node.name,
                                            op=node.op, hint="flatten the loops")
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
            if nodes[name].op in NEXT_ITERATIONS and self.output_frames[name] is not self.input_frames[node.name]:
                _raise_frame_error(node, node.name, self.input_frames[node.name], name, self.output_frames[name])


def _raise_frame_error(node: Node, source: str, frame: LoopFrame, other: str, frame_of_other: LoopFrame) -> NoReturn:
    raise InvalidArgument(f"'{other}' is in {frame_of_other}, '{source or node.name}' in {frame}", node=node.name,
                          op=node.op, hint="tensors go into a loop through Enter, and out of it through Exit")
