"""A writer of SavedModels: the graph and signatures of a model or session, and the current values of its variables.

A model that was loaded from a SavedModel keeps the bytes of its saved_model.pb and assets. Its checkpoint gets the
values that the session has now. A session's graph becomes a SavedModel of TensorFlow 1, with nodes
that restore its variables.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from heald import Model, Session
from heald.api import Graph, Input, Node, TensorMetadata, constant, dtypes, new_name
from heald.errors import FailedPrecondition, InvalidArgument, boundary
from heald.graphs.graph import graphdef, parse_input
from heald.graphs.protobuf import message_class
from heald.runtime.support import file_path, mapped_file, whole_file

from .checkpoint_restore import HANDLES
from .checkpoint_writer import write_checkpoint
from .freeze import ASSIGN_OPS, REFERENCE_OPS
from .saved_model import SERVE, SavedModel
from .source import SERVING, SavedModelSource
from .tensor_slice import parse_shape_and_slice

_PREDICT = "tensorflow/serving/predict"
_SCHEMA_VERSION = 1
Sides = tuple[Mapping[str, str], Mapping[str, str]]  # tensors by the names of inputs, and of outputs


@boundary
def save(
    model_or_session: Model | Session, folder: str | os.PathLike[str], *,
    signatures: Mapping[str, Sides] | None = None, overwrite: bool = False,
) -> None:
    """Write a SavedModel with the current values of all variables. The folder appears once all of it is written.

    `signatures`: By name the tensors of inputs and of outputs, as in `{"serving_default": ({"x": "x:0"}, {"y":
    "y:0"})}`. A session needs them. A model has its own, and takes none.
    `overwrite`: Replaces an existing folder. At each moment the folder is the old one or the new one.

    Mutable tables of a loaded model keep their saved content. Raises AlreadyExists for an existing folder,
    InvalidArgument for signatures that do not fit, FailedPrecondition for a variable of a session without a value, and
    NotFound, PermissionDenied, ResourceExhausted or Unknown when a file cannot be written.
    """
    target = file_path.file_path(folder)
    if isinstance(model_or_session, Model):
        if signatures is not None:
            raise InvalidArgument("a model has signatures of its own", hint="save(model.session, folder, "
                                  "signatures=...) writes others")
        session, source = model_or_session.session, model_or_session.source
        saved = source.saved if isinstance(source, SavedModelSource) else None
        signatures = {SERVING: (model_or_session.fed, model_or_session.fetched)}
    elif isinstance(model_or_session, Session):
        session, saved = model_or_session, None
        if not signatures:
            raise InvalidArgument("a session has no signatures", hint="save(session, folder, signatures="
                                  "{'serving_default': ({'x': 'x:0'}, {'y': 'y:0'})})")
    else:
        raise InvalidArgument(f"a {type(model_or_session).__name__} cannot be saved", hint="give a Model or a Session")
    with whole_file.writing_folder(target, overwrite=overwrite) as new:
        if saved is not None:
            _write_loaded(saved, session, new)
        else:
            _write_session(session, signatures, new)


def _write_loaded(saved: SavedModel, session: Session, folder: Path) -> None:
    """Write the files of a loaded SavedModel again, with the values that the session has."""
    mapped_file.check_unchanged((saved.raw,))
    whole_file.write_new(folder / "saved_model.pb", [saved.raw])
    for name in ("assets", "assets.extra"):
        _copy_files(saved.folder / name, folder / name)
    if not saved.has_checkpoint:
        return
    tensors: dict[str, Any] = {name: saved.checkpoint.read(name) for name in saved.checkpoint.names}
    values = variable_values(session)
    for node, (key, part) in saved.variable_keys.items():
        if node in values and part:
            full_tensor = tensors[key] = tensors[key].copy()
            shape_and_slice = parse_shape_and_slice(part)
            full_tensor[shape_and_slice.indices] = values[node]
        elif node in values:
            tensors[key] = values[node]
    write_checkpoint(folder / "variables" / "variables", tensors)


def _copy_files(folder: Path, copy: Path) -> None:
    """Copy the files of a folder and of its subfolders. A link becomes a file."""
    for path, _, names in os.walk(folder, followlinks=True):
        target = copy / Path(path).relative_to(folder)
        whole_file.make_folders(target)
        for name in names:
            whole_file.write_new(target / name, [mapped_file.contents(Path(path, name))])


def _write_session(session: Session, signatures: Mapping[str, Sides], folder: Path) -> None:
    graph = session.given_graph
    variables = [node for node in graph if node.op in ASSIGN_OPS]
    values = variable_values(session)
    for node in variables:
        if node.name not in values:
            raise FailedPrecondition("a variable without a value cannot be saved", node=node.name, op=node.op,
                                     hint="run the step that initializes it first")
    restoring = _with_restore_nodes(graph, variables) if variables else GraphWithSaver(graph, {})
    about = {"tags": sorted(SERVE)}
    meta_graph: Any = message_class("MetaGraphDef")(
        meta_info_def=about, saver_def=restoring.saver or None,
        signature_def={name: _signature_def(session, name, sides) for name, sides in signatures.items()})
    meta_graph.graph_def.ParseFromString(graphdef.dumps(restoring.graph))
    saved: Any = message_class("SavedModel")(saved_model_schema_version=_SCHEMA_VERSION, meta_graphs=[meta_graph])
    whole_file.write_new(folder / "saved_model.pb", [saved.SerializeToString(deterministic=True)])
    if variables:
        write_checkpoint(folder / "variables" / "variables", {node.name: values[node.name] for node in variables})


def variable_values(session: Session) -> dict[str, Any]:
    """Return the values of the session's variables that have one now, by the names of their nodes in the given graph.

    Constants of the pass `freeze` and variables whose initializer has not run are left out.
    """
    handles = {node.name: node.replace(controls=(), attrs={k: v for k, v in node.attrs.items() if k != "_class"})
               for node in session.graph if node.op in HANDLES}
    reads = {name: Node(f"{name}/saved", "ReadVariableOp", [Input(name)], device=node.device,
                        attrs={"dtype": node.attrs["dtype"]}) for name, node in handles.items()}
    checks = {name: Node(f"{name}/has_value", "VarIsInitializedOp", [Input(name)], device=node.device)
              for name, node in handles.items()}
    if not handles:
        return {}
    with session.beside(Graph([*handles.values(), *reads.values(), *checks.values()])) as state:
        has_value = state.run({name: check.name for name, check in checks.items()})
        values = state.run({name: read.name for name, read in reads.items() if has_value[name]})
    references = {f"{node.name}/handle": node.name for node in session.given_graph if node.op in REFERENCE_OPS}
    return {references.get(name, name): value for name, value in values.items()}


class GraphWithSaver(NamedTuple):
    """A graph with nodes that save and restore its variables, and the fields of the SaverDef that names them."""

    graph: Graph
    saver: dict[str, Any]


def _with_restore_nodes(graph: Graph, variables: Sequence[Node]) -> GraphWithSaver:
    """Add nodes that restore the variables, which TensorFlow's loader runs, and nodes that save them."""
    used_names = set(graph.nodes)

    def unused_name(name: str) -> str:
        return new_name(f"save/{name}", used_names)

    prefix, names, slices = (constant(unused_name(name), _strings(value)) for name, value in (
        ("Const", b"model"), ("tensor_names", [node.name.encode() for node in variables]),
        ("shape_and_slices", [b""] * len(variables))))
    types = [node.attrs["dtype"] for node in variables]
    restore_inputs = [Input(source.name) for source in (prefix, names, slices)]
    restore = Node(unused_name("RestoreV2"), "RestoreV2", restore_inputs, attrs={"dtypes": types})
    assigns = [Node(unused_name("Assign"), ASSIGN_OPS[node.op], [Input(node.name), Input(restore.name, None, index)],
                    attrs={"T" if node.op in REFERENCE_OPS else "dtype": node.attrs["dtype"]})
               for index, node in enumerate(variables)]
    reads = [Node(unused_name("Read"), "Identity" if node.op in REFERENCE_OPS else "ReadVariableOp", [Input(node.name)],
                  attrs={"T" if node.op in REFERENCE_OPS else "dtype": node.attrs["dtype"]}) for node in variables]
    saving = Node(unused_name("SaveV2"), "SaveV2", [*restore_inputs, *(Input(read.name) for read in reads)],
                  attrs={"dtypes": types})
    done = Node(unused_name("control_dependency"), "Identity", [Input(prefix.name)], controls=[saving.name],
                attrs={"T": dtypes.string})
    restore_all = Node(unused_name("restore_all"), "NoOp", controls=[assign.name for assign in assigns])
    nodes = [prefix, names, slices, restore, *assigns, *reads, saving, done, restore_all]
    saver = {"filename_tensor_name": f"{prefix.name}:0", "save_tensor_name": f"{done.name}:0",
             "restore_op_name": restore_all.name, "version": 2}
    return GraphWithSaver(graph.replace(nodes=nodes), saver)


def _strings(value: bytes | list[bytes]) -> Any:
    import numpy as np

    return np.array(value, object)


def _signature_def(session: Session, name: str, sides: object) -> dict[str, Any]:
    """Return the fields of a SignatureDef. Raises InvalidArgument and NotFound for tensors that do not fit."""
    if not (isinstance(sides, Sequence) and len(sides) == 2 and all(isinstance(side, Mapping) for side in sides)):
        raise InvalidArgument(f"signature '{name}' is no pair of dicts", hint="({'x': 'x:0'}, {'y': 'y:0'})")
    inputs, outputs = sides
    function = session.prepare(tuple(outputs.values()), tuple(inputs.values())).program.functions["main"]
    return {"method_name": _PREDICT, "inputs": _tensor_infos(inputs, function.arg_metas),
            "outputs": _tensor_infos(outputs, function.result_metas)}


def _tensor_infos(side: Mapping[str, str], metas: Sequence[TensorMetadata]) -> dict[str, Any]:
    infos = {}
    for (name, tensor), meta in zip(side.items(), metas, strict=True):
        shape = ({"unknown_rank": True} if meta.shape is None
                 else {"dim": [{"size": -1 if size is None else size} for size in meta.shape]})
        source = parse_input(tensor)
        infos[name] = message_class("TensorInfo")(name=f"{source.node}:{source.index}", dtype=meta.dtype.number,
                                                  tensor_shape=shape)
    return infos
