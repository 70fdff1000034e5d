"""Model: a file or a SavedModel loaded for answers. Inputs and outputs are found, and calling it runs a step."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ..compiler.names import listed, mapped
from ..compiler.place import Placement
from ..compiler.prune import needed_placeholders
from ..compiler.resolve import Resolved
from ..contract.structural import VALUELESS
from ..errors import InvalidArgument, NotFound, WeftError, boundary
from ..graph import graphdef
from ..graph.graph import Graph
from ..saved_model.signature import Place, Signature
from ..support.file_path import file_path
from ..support.gc_pause import gc_paused
from ..values.tensor import TensorMetadata
from .runtime import runtime
from .session import Session

if TYPE_CHECKING:
    from ..saved_model.saved_model import SavedModel

SERVING = "serving_default"  # the signature that is meant where none is named
_NONE: Mapping[str, Signature] = MappingProxyType({})


class Model:
    """A loaded model. `inputs` and `outputs` map names to metadata, in the order that calls use; `signatures` are all
    those of a SavedModel, by name.
    """

    def __init__(
        self, session: Session, inputs: Mapping[str, Place], outputs: Mapping[str, Place],
        signatures: Mapping[str, Signature] = _NONE,
    ) -> None:
        """The step is made when it is first run: what cannot be run is no error before."""
        self.session = session
        self.signatures = signatures
        self.inputs: dict[str, TensorMetadata] = {name: place.meta for name, place in inputs.items()}
        self.outputs: dict[str, TensorMetadata] = {name: place.meta for name, place in outputs.items()}
        self.fed = {name: place.tensor for name, place in inputs.items()}  # the session's names of inputs
        self.fetched = {name: place.tensor for name, place in outputs.items()}
        self._input_names = tuple(inputs)

    @cached_property
    def _step(self) -> Callable[..., Any]:
        fetches: Any = self.fetched if len(self.fetched) != 1 else next(iter(self.fetched.values()))
        return self.session.make_callable(fetches, tuple(self.fed.values()))

    def __call__(self, *arrays: Any, **named: Any) -> Any:
        """Outputs for these inputs, in order or by name (or one dict by name): the array, or several in a dict.

        Raises InvalidArgument when inputs are missing, unknown or do not fit; for a SavedModel also what is wrong
        with a node that the outputs need.
        """
        if len(arrays) == 1 and isinstance(arrays[0], Mapping) and not named:
            named, arrays = mapped(arrays[0], "inputs"), ()
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
@gc_paused()
def load(
    path: str | os.PathLike[str], *, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None,
    device: str | None = None, config: Any = None, signature: str | None = None, tags: Collection[str] | None = None,
    mmap: bool = True,
) -> Model:
    """Load a frozen GraphDef (.pb, .pbtxt), or a SavedModel's folder, for inference.

    Of a GraphDef the outputs are, without `outputs`, the nodes whose results nobody takes, and the inputs, without
    `inputs`, the placeholders that those need. Of a SavedModel they are those of its `signature` ("serving_default"),
    in the graph that has exactly these `tags` ({"serve"}); `inputs` and `outputs` choose among them, or name other
    tensors of the graph. Variables that are only read become constants; of the others each model has its own,
    which begin with what was saved. `device`, such as "CPU:0", is where nodes go that ask for none.

    Large files are memory-mapped. A mapped file that is written in place ends the model: replace files by rename, or
    load with `mmap=False`, which reads them whole (docs/files.md).

    Raises NotFound, InvalidArgument, DataLoss for what cannot be read. What is wrong with a node that the outputs need
    is raised here, but by a SavedModel, whose signature tells inputs and outputs, when it is called.
    """
    file = file_path(path)
    inputs, outputs, tags = (None if names is None else listed(names, use)
                             for names, use in ((inputs, "feed"), (outputs, "fetch"), (tags, "tag")))
    if file.is_dir():
        return _load_signature(file, inputs, outputs, device, config, signature, tags, mmap)
    if signature is not None or tags is not None:
        raise InvalidArgument(f"'{file}' is no SavedModel's folder: it has no signatures and no tags")
    session = Session(graphdef.load(file, mmap=mmap), config, device=device)
    fetches = find_outputs(session) if outputs is None else outputs
    feeds = find_inputs(session, fetches) if inputs is None else inputs
    return Model(session, *_described(session, {name: name for name in feeds}, {name: name for name in fetches}))


def _load_signature(
    folder: Path, inputs: Sequence[str] | None, outputs: Sequence[str] | None, device: str | None, config: Any,
    signature: str | None, tags: Collection[str] | None, mmap: bool,
) -> Model:
    saved, graph, found = open_signature(folder, signature, tags, outputs or (), config, mmap=mmap)
    session = Session(graph, config, device=device, initializers=found.initializers)
    if inputs is None and outputs is None:
        return Model(session, found.inputs, found.outputs, saved.signatures)
    fed, fetched = ({name: place.tensor for name, place in side.items()} for side in (found.inputs, found.outputs))
    if outputs is not None:
        fetched = {name: fetched.get(name, name) for name in outputs}
    if inputs is not None:
        fed = {name: fed.get(name, name) for name in inputs}
    else:
        names = {tensor.removesuffix(":0"): name for name, tensor in fed.items()}
        fed = {names.get(node, node): node for node in find_inputs(session, tuple(fetched.values()))}
    return Model(session, *_described(session, fed, fetched), saved.signatures)


def open_signature(
    folder: Path, signature: str | None = None, tags: Collection[str] | None = None, outputs: Sequence[str] = (),
    config: Any = None, *, mmap: bool = True,
) -> tuple[SavedModel, Graph, Signature]:
    """A SavedModel, the graph of one of its signatures, and the signature in terms of that graph."""
    from ..saved_model import saved_model  # whoever loads single graphs needs no checkpoints, and no messages
    from ..saved_model.signature_graph import signature_graph

    saved = saved_model.read(folder, saved_model.SERVE if tags is None else tags, mmap=mmap)
    ops = runtime(config).host.registries.ops
    return saved, *signature_graph(saved, SERVING if signature is None else signature, ops, outputs)


def _described(
    session: Session, fed: Mapping[str, str], fetched: Mapping[str, str]
) -> tuple[dict[str, Place], dict[str, Place]]:
    """What the step for these tensors, by the names of inputs and outputs, tells of them."""
    function = session.prepare(tuple(fetched.values()), tuple(fed.values())).program.functions["main"]
    return _places(fed, function.arg_metas), _places(fetched, function.result_metas)


def _places(tensors: Mapping[str, str], metas: Sequence[TensorMetadata]) -> dict[str, Place]:
    return {name: Place(tensor, meta) for (name, tensor), meta in zip(tensors.items(), metas, strict=True)}


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
        if name in taken or node.op in VALUELESS:
            continue
        if not isinstance(entry, Resolved):
            broken.append(entry)
            continue
        count = 0 if entry.op.for_effect else len(entry.output_tensors)
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
