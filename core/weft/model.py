"""Model: a file loaded for answers. Inputs and outputs are found, and calling it runs a step."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import graphdef
from .errors import InvalidArgument, NotFound, Unimplemented, WeftError, boundary
from .graph import Graph
from .place import Placement
from .prune import needed_placeholders
from .resolve import Resolved
from .session import Session
from .tensor import TensorMetadata

NO_OUTPUTS = frozenset({"NoOp", "Assert", "Print", "PrintV2", "SaveV2", "Save", "SaveSlices", "MergeV2Checkpoints",
                        "Const", "Placeholder", "PlaceholderV2"})


class Model:
    """A loaded model. `inputs` and `outputs` map names to metadata, in the order that calls use."""

    def __init__(self, session: Session, inputs: Sequence[str] | None, outputs: Sequence[str] | None) -> None:
        self.session = session
        self._output_names = tuple(outputs) if outputs is not None else find_outputs(session)
        self._input_names = tuple(inputs) if inputs is not None else find_inputs(session, self._output_names)
        prepared = session.prepare(self._output_names, self._input_names)
        function = prepared.program.functions["main"]
        self.inputs: dict[str, TensorMetadata] = dict(zip(self._input_names, function.arg_metas, strict=True))
        self.outputs: dict[str, TensorMetadata] = dict(zip(self._output_names, function.result_metas, strict=True))
        fetches = self._output_names[0] if len(self._output_names) == 1 else {n: n for n in self._output_names}
        self._step = session.make_callable(fetches, self._input_names)

    def __call__(self, *arrays: Any, **named: Any) -> Any:
        """Outputs for these inputs, in order or by name (or one dict by name): the array, or several in a dict.

        Raises InvalidArgument when inputs are missing, unknown or do not fit.
        """
        if len(arrays) == 1 and isinstance(arrays[0], Mapping) and not named:
            named, arrays = dict(arrays[0]), ()
        if len(arrays) > len(self._input_names):
            raise InvalidArgument(f"the model takes {len(self._input_names)} inputs, {len(arrays)} given")
        given = dict(zip(self._input_names, arrays, strict=False))
        for name, value in named.items():
            if name not in self.inputs:
                raise InvalidArgument(f"the model has no input '{name}'",
                                      hint=f"its inputs: {', '.join(self._input_names) or 'none'}")
            if name in given:
                raise InvalidArgument(f"input '{name}' is given twice")
            given[name] = value
        missing = [name for name in self._input_names if name not in given]
        if missing:
            raise InvalidArgument(f"missing input: {', '.join(missing)}")
        return self._step(*[given[name] for name in self._input_names])

    def placement(self) -> Placement:
        """Where each node runs and why."""
        return self.session.placement()


@boundary
def load(
    path: str | os.PathLike[str], *, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None,
    device: str | None = None, config: Any = None,
) -> Model:
    """Load a frozen GraphDef (.pb, .pbtxt) for inference.

    Without `outputs` they are the nodes whose results nobody takes; without `inputs` the placeholders that those
    need. `device`, such as "CPU:0", is where nodes go that ask for none. Raises NotFound, InvalidArgument, DataLoss
    for what cannot be read, and whatever is wrong with a node that the outputs need.
    """
    if Path(path).is_dir():
        raise Unimplemented(f"'{os.fspath(path)}' is a folder: SavedModels are not read yet",
                            hint="give the frozen graph, a .pb file")
    return Model(Session(graphdef.load(path), config, device=device), inputs, outputs)


def find_outputs(session: Session) -> tuple[str, ...]:
    """The nodes with outputs that no node takes, in the graph's order: tensors by name.

    Raises NotFound when there are none, or what is wrong with the only ones there are.
    """
    graph: Graph = session.graph
    taken = {i.node for node in graph.nodes.values() for i in node.inputs}
    found: list[str] = []
    broken: list[WeftError] = []
    for name, node in graph.nodes.items():
        entry = session.nodes[name]
        if name in taken or node.op in NO_OUTPUTS:
            continue
        if not isinstance(entry, Resolved):
            broken.append(entry)
            continue
        count = len(entry.output_tensors)
        found += [name] if count == 1 else [f"{name}:{i}" for i in range(count)]
    if not found and broken:
        raise broken[0]
    if not found:
        raise NotFound("the graph has no node whose result nobody takes", hint="name the outputs: outputs=['y']")
    return tuple(found)


def find_inputs(session: Session, outputs: Sequence[str]) -> tuple[str, ...]:
    """The placeholders that must be fed for these outputs, in the graph's order."""
    needed = needed_placeholders(session.nodes, [name.partition(":")[0] for name in outputs])
    return tuple(name for name in session.graph.nodes if name in needed)
