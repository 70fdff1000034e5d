"""Model: a file loaded for inference. Its inputs and outputs are found, and calling it runs a step.

All signatures of a file share one session, and so its variables and tables.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from ...errors import HealdError, HealdWarning, InvalidArgument, NotFound, boundary, callers_code
from ...runtime.contract.loader import LoadOptions, SignatureDef, Source, TensorInfo, signature_text
from ...runtime.contract.placement import Placement
from ...runtime.contract.structural import PLACEHOLDERS
from ...runtime.executor.step import RunOptions
from ...runtime.service.arguments import inputs_in_order, take_options
from ...runtime.service.loading import open_file
from ...runtime.service.runtime import Runtime, runtime
from ...runtime.values.tensor import TensorMetadata, fits, shape_text
from ..compiler.default_outputs import default_outputs
from ..compiler.names import HANDLE_TYPES, name_tuple
from ..compiler.needed_feeds import needed_feeds
from ..compiler.resolve import Resolved
from ..graph.graph import Graph
from ..graph.rewriting import pruned
from ..graph.traversal import ancestors
from .asynchronous_step import AsynchronousStep
from .graph_reader import read_graph
from .session import Session
from .signature_check import check_description, checked_signature
from .targets import is_local, target_of_config

MOST_WARNINGS = 10  # of outputs that are left out: a file may have any number of them
MOST_NAMES = 20  # of signatures, in an error
_NONE: Mapping[str, Any] = MappingProxyType({})


class Signature:
    """One signature of a loaded file. Calling it runs a step of `session`, which all signatures of the file share.

    `inputs` and `outputs` map names to metadata, in the order that calls use.
    """

    def __init__(
        self, session: Session, inputs: Mapping[str, TensorInfo], outputs: Mapping[str, TensorInfo],
        error: HealdError | None = None,
    ) -> None:
        """The step is prepared by the first call, which also raises `error`, the reason why it cannot be run."""
        self.session = session
        self.inputs: dict[str, TensorMetadata] = {name: info.meta for name, info in inputs.items()}
        self.outputs: dict[str, TensorMetadata] = {name: info.meta for name, info in outputs.items()}
        self.fed = {name: info.tensor for name, info in inputs.items()}  # the session's names of inputs
        self.fetched = {name: info.tensor for name, info in outputs.items()}
        self._input_names = tuple(inputs)
        self._error = error

    def __str__(self) -> str:
        return signature_text(self.inputs, self.outputs)

    def _repr_html_(self) -> str:
        from ...runtime.support.notebook_table import notebook_table

        rows = [{"kind": kind, "name": name, "type": str(meta)} for kind, tensors in
                (("input", self.inputs), ("output", self.outputs)) for name, meta in tensors.items()]
        return notebook_table(type(self).__name__, rows, ("kind", "name", "type"), "kind")

    @property
    def is_runnable(self) -> bool:
        """False when loading found a reason why the signature cannot be run."""
        return self._error is None

    @property
    def graph(self) -> Graph:
        """The part of the session's graph that the signature needs. Variables that are only read are constants there,
        so the graph of a SavedModel is the frozen model."""
        return pruned(self.session.graph, {tensor.partition(":")[0] for tensor in (*self.fed.values(),
                                                                                   *self.fetched.values())})

    @cached_property
    def _step(self) -> Callable[..., Any]:
        return self._prepare(self.session.make_callable)

    def _prepare(self, make: Callable[..., Callable[..., Any]]) -> Callable[..., Any]:
        if self._error is not None:
            raise self._error
        step = make(self.fetched if len(self.fetched) != 1 else next(iter(self.fetched.values())), self.fed)
        declared = self._inputs_of_unknown_shape()
        return _with_declared_shapes(step, declared) if declared else step

    def _inputs_of_unknown_shape(self) -> dict[int, tuple[str, TensorMetadata]]:
        """Return by position the inputs that are no placeholders and of whose shape the step knows less than the
        signature declares. The step itself checks every other input."""
        inner = [position for position, tensor in enumerate(self.fed.values())
                 if self.session.graph[tensor.partition(":")[0]].op not in PLACEHOLDERS]
        if not inner:
            return {}
        prepared = self.session.prepare(tuple(self.fetched.values()), tuple(self.fed.values()))
        metas = prepared.program.functions["main"].arg_metas
        inputs = [*self.inputs.items()]
        return {position: inputs[position] for position in inner
                if inputs[position][1].shape not in (None, metas[position].shape)}

    @boundary
    def asynchronous(self) -> AsynchronousStep:
        """Return the step of the signature, for callers that do not wait for its runs. Raises as a call."""
        if self._error is not None:
            raise self._error
        return self.session.asynchronous(tuple(self.fetched.values()), tuple(self.fed.values()))

    def __call__(self, *arrays: Any, **named: Any) -> Any:
        """Outputs for these inputs, in order or by name (or one dict by name): the array, or several in a dict.

        `options=RunOptions(...)`: limits of the run and its preparation. Other values of that name are an input's.

        Raises InvalidArgument when inputs are missing, unknown or do not fit; also the error of a node that the
        outputs need, where loading did not raise it. Raises DeadlineExceeded and Cancelled as the options say.
        """
        options = take_options(named)
        inputs = inputs_in_order(self._input_names, arrays, named)
        return self._step(*inputs) if options is None else self._run_limited(inputs, options)

    @boundary
    def _run_limited(self, inputs: Sequence[Any], options: RunOptions) -> Any:
        with self.session.limited_step(options) as step:
            if "_step" not in self.__dict__:
                self._step = self._prepare(partial(self.session.callable_within, step))
            return self._step(*inputs, options=step)


class Model(Signature):
    """A loaded file: its chosen signature, and in `signatures` all of the file, by name, over the same session."""

    def __init__(
        self, session: Session, inputs: Mapping[str, TensorInfo], outputs: Mapping[str, TensorInfo],
        signatures: Mapping[str, Signature] = _NONE, source: Source | None = None,
    ) -> None:
        """`source` is the opened file."""
        super().__init__(session, inputs, outputs)
        self.source = source
        self.signatures = signatures

    def placement(self) -> Placement:
        """The device of each node, and the reason."""
        return self.session.placement()


def _with_declared_shapes(
    step: Callable[..., Any], declared: Mapping[int, tuple[str, TensorMetadata]],
) -> Callable[..., Any]:
    """Return the step, which raises InvalidArgument for arrays without these declared shapes."""
    def checked_step(*arrays: Any, **options: Any) -> Any:
        for position, (name, meta) in declared.items():
            with callers_code(f"feed '{name}' is no tensor of {meta.dtype.name}"):
                shape = np.shape(arrays[position])
            if not fits(shape, meta):
                raise InvalidArgument(f"feed '{name}' has shape {shape_text(shape)}, the signature's is "
                                      f"{shape_text(meta.shape)}")
        return step(*arrays, **options)

    return checked_step


def load_graph(
    file: Path, *, inputs: Sequence[str] | None, outputs: Sequence[str] | None, device: str | None, config: Any,
    signature: str | None, tags: Collection[str] | None, form: str | None, mmap: bool,
) -> Model:
    """Load a file of a graph. Takes the arguments, and raises the errors, of `heald.load`."""
    inputs, outputs, tags = (None if names is None else name_tuple(names, use)
                             for names, use in ((inputs, "feed"), (outputs, "fetch"), (tags, "tag")))
    model_runtime = runtime(config)
    registries = model_runtime.host.registries
    options = LoadOptions(registries.ops, signature, tags, inputs, outputs, mmap)
    opened = open_file(file, options, registries, form)
    default_signature = opened.chosen_signature()
    names = opened.description.signatures or (opened.signatures if hasattr(opened.source, "graph") else ())
    if default_signature is None and outputs is None and names:
        raise _several_signatures_error(names)
    session = open_session(read_graph(opened), model_runtime, device=device, initial_state=opened.initial_state(),
                           readable_folders=opened.readable_folders())
    check_description(session.nodes.get, default_signature, opened)
    checked = {name: checked_signature(session.nodes.get, name, loaded, opened)
               for name, loaded in opened.signatures.items()}
    signatures = {name: _signature(session, loaded, opened.description.signatures.get(name))
                  for name, loaded in checked.items()}
    if default_signature is not None and outputs is None:
        chosen = opened.description.signature or next(iter(checked))
        if isinstance(error := checked[chosen], HealdError):
            raise error
    if default_signature is not None and inputs is None and outputs is None:
        return Model(session, default_signature.inputs, default_signature.outputs, signatures, opened.source)
    return Model(session, *_tensor_infos(session, *_tensors(session, default_signature, inputs, outputs)), signatures,
                 opened.source)


def open_session(graph: Graph, model_runtime: Runtime, **arguments: Any) -> Session:
    """Return a session of this process, or of the target in config."""
    target = target_of_config(model_runtime.config)
    if is_local(target):
        return Session(graph, model_runtime, **arguments)
    from .target_session import TargetSession  # most processes have no target

    return TargetSession(target, graph, model_runtime, **arguments)


def _several_signatures_error(signatures: Collection[str]) -> NotFound:
    names = ", ".join([*signatures][:MOST_NAMES]) + (", ..." if len(signatures) > MOST_NAMES else "")
    return NotFound(f"the model has {len(signatures)} signatures, and none is the default: {names}",
                    hint=f"choose one: signature={next(iter(signatures))!r}")


def _signature(session: Session, loaded: SignatureDef | HealdError, declared: SignatureDef | None) -> Signature:
    if not isinstance(loaded, HealdError):
        return Signature(session, loaded.inputs, loaded.outputs)
    inputs, outputs = (_NONE, _NONE) if declared is None else (declared.inputs, declared.outputs)
    return Signature(session, inputs, outputs, loaded)


def _tensors(
    session: Session, default_signature: SignatureDef | None, inputs: Sequence[str] | None,
    outputs: Sequence[str] | None
) -> tuple[dict[str, str], dict[str, str]]:
    """The tensors to feed and to fetch, by the names of the inputs and outputs of a model."""
    sides = (_NONE, _NONE) if default_signature is None else (default_signature.inputs, default_signature.outputs)
    fed, fetched = ({name: info.tensor for name, info in side.items()} for side in sides)
    if outputs is None and default_signature is None:
        outputs = find_outputs(session)
    if outputs is not None:
        fetched = {name: fetched.get(name, name) for name in outputs}
    if inputs is not None:
        return {name: fed.get(name, name) for name in inputs}, fetched
    tensors = tuple(fetched.values())
    needed = declared_inputs(session, tensors, tuple(fed.values()))
    names = {tensor: name for name, tensor in fed.items()}
    return ({names[tensor]: tensor for tensor in needed}
            | {node: node for node in find_inputs(session, tensors, needed)}), fetched


def _tensor_infos(
    session: Session, fed: Mapping[str, str], fetched: Mapping[str, str]
) -> tuple[dict[str, TensorInfo], dict[str, TensorInfo]]:
    """The metadata of these tensors in their step, by the names of inputs and of outputs."""
    function = session.prepare(tuple(fetched.values()), tuple(fed.values())).program.functions["main"]
    return _infos(fed, function.arg_metas), _infos(fetched, function.result_metas)


def _infos(tensors: Mapping[str, str], metas: Sequence[TensorMetadata]) -> dict[str, TensorInfo]:
    return {name: TensorInfo(tensor, meta) for (name, tensor), meta in zip(tensors.items(), metas, strict=True)}


def find_outputs(session: Session) -> tuple[str, ...]:
    """The graph's default outputs, in the graph's order: tensors by name (`default_outputs`). Warns of nodes that are
    left out because their ops are not known.

    Raises NotFound for a graph without such nodes, and the error of the first node when all of them are faulty.
    """
    graph: Graph = session.graph
    outputs: list[str] = []
    broken: list[HealdError] = []
    for name in default_outputs(graph.nodes, session.nodes).names:
        entry = session.nodes[name]
        if not isinstance(entry, Resolved):
            broken.append(entry)
            continue
        tensors = entry.output_tensors
        outputs += [name if len(tensors) == 1 else f"{name}:{i}" for i, tensor in enumerate(tensors)
                    if tensor.dtype not in HANDLE_TYPES]
    if not outputs and broken:
        raise broken[0]
    for error in broken[:MOST_WARNINGS]:
        warnings.warn(f"output '{error.node}' is left out: {error}", HealdWarning, stacklevel=4)
    if len(broken) > MOST_WARNINGS:
        warnings.warn(f"{len(broken) - MOST_WARNINGS:,} more outputs are left out; "
                      "'heald ops --missing MODEL' lists the reasons", HealdWarning, stacklevel=4)
    if not outputs:
        raise NotFound("the graph has no node whose result nobody takes", hint="name the outputs: outputs=['y']")
    return tuple(outputs)


def declared_inputs(session: Session, outputs: Sequence[str], inputs: Sequence[str]) -> tuple[str, ...]:
    """Return those of a signature's inputs that these outputs depend on."""
    needed = ancestors(session.graph.nodes, [name.partition(":")[0] for name in outputs])
    return tuple(tensor for tensor in inputs if tensor.partition(":")[0] in needed)


def find_inputs(session: Session, outputs: Sequence[str], fed: Sequence[str] = ()) -> tuple[str, ...]:
    """The tensors that must be fed for these outputs, in the graph's order: placeholders, and elements of iterators
    that cannot run. `fed`: tensors that are fed anyway, which hide their dependencies and are not returned."""
    return tuple(needed_feeds(session.graph.nodes, session.nodes, outputs, session.host, fed))
