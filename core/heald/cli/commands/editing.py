"""A model between its file and another one: the graph, with the names that the model has for its nodes."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from .arguments import Opened

if TYPE_CHECKING:
    from ...graphs.graph.graph import Graph
    from ...runtime.service.runtime import Runtime
    from ...runtime.values.dtypes import DType


class Editing:
    """A graph between two steps, with the names that the model's signature and state have for its nodes."""

    def __init__(self, opened: Opened, graph: Graph, runtime: Runtime) -> None:
        self.opened, self.graph, self._runtime = opened, graph, runtime
        signature = opened.signature
        sides = () if signature is None else (*signature.inputs.values(), *signature.outputs.values())
        self.ends = [info.tensor.partition(":")[0] for info in sides]
        self.state = {name for initializer in opened.initial_state for name in initializer.resources}

    def tensor(self, name: str) -> str:
        """The graph's name of a tensor that the signature may have another name for."""
        return name if name.lstrip("^").partition(":")[0] in self.graph.nodes else self.opened.tensor(name)

    def rename(self, old: str, new: str) -> Graph:
        after = self.graph.rename(old, new)
        names = dict(zip(self.graph.nodes, after.nodes, strict=True))
        self.ends = [names.get(name, name) for name in self.ends]
        self.state = {names.get(name, name) for name in self.state}
        return after

    def dtype(self, tensor: str) -> DType | None:
        """The type of a tensor by its op, None where that is not known."""
        from ...errors import HealdError
        from ...graphs.compiler.resolve import resolve_node
        from ...graphs.graph.node import parse_input

        source = parse_input(tensor)
        try:
            ops = self._runtime.host.registries.ops
            tensor_types = resolve_node(self.graph[source.node], self.graph, ops).output_tensors
        except HealdError:
            return None
        return tensor_types[source.index].dtype if source.index < len(tensor_types) else None

    def kept_node_names(self) -> list[str]:
        """The nodes that passes keep: placeholders, and the tensors of the signature or, without one, all nodes that no
        other node needs."""
        from ...runtime.contract.structural import PLACEHOLDERS

        needed = {name for node in self.graph for name in (*(i.node for i in node.inputs), *node.controls)}
        declared = [name for name in self.ends if name in self.graph.nodes]
        ends = declared or [name for name in self.graph.nodes if name not in needed]
        return [*ends, *(node.name for node in self.graph if node.op in PLACEHOLDERS)]

    def graphs_after(self, passes: Sequence[str], *, feeds: Sequence[str] = (), fetches: Sequence[str] = (),
                     entry: str | None = None) -> Iterator[tuple[str, Graph]]:
        """Yield the name of each pass and the graph after it.

        Without feeds and fetches, the nodes of `kept_node_names` stay.
        """
        from ...graphs.session.requested_passes import run_requested_passes

        kept_nodes = () if feeds or fetches else self.kept_node_names()
        for name, graph in run_requested_passes(self.graph, passes, kept_nodes, self._runtime, feeds=feeds,
                                                fetches=fetches, entry=entry):
            self.graph = graph
            yield name, graph

    def check_state(self) -> None:
        """Raises FailedPrecondition when the graph has a variable or table whose first value is outside of it."""
        from ...errors import FailedPrecondition
        from ...runtime.contract.structural import CONST

        left = next((node for node in self.graph if node.name in self.state and node.op != CONST), None)
        if left is not None:
            raise FailedPrecondition(f"the value of '{left.name}' is not part of the graph, and a GraphDef cannot hold "
                                     "it", node=left.name, op=left.op,
                                     hint="--freeze makes constants of variables; --keep-outputs cuts off other state")


def add_changes(parser: ArgumentParser) -> None:
    """--freeze and --force, which commands that write a changed model have."""
    parser.add_argument("--force", action="store_true", help="replace a file that exists")
    parser.add_argument("--freeze", action="store_true",
                        help="of a SavedModel: make constants of variables that are only read")


def check_output(path: Any, force: bool) -> None:
    """Raises AlreadyExists for a file that exists, unless `force`."""
    from ...errors import AlreadyExists

    if path.exists() and not force:
        raise AlreadyExists(f"'{path}' exists already", hint="--force replaces it")


def frozen(opened: Opened) -> Graph:
    """The part of the graph that the signature needs, with constants for variables that are only read.

    Raises InvalidArgument for a model without signatures.
    """
    from ...errors import InvalidArgument

    if opened.signature is None:
        raise InvalidArgument(f"--freeze is for models with signatures and variables, this is a {opened.form}",
                              hint="leave it out: constants are frozen already")
    return opened.needed
