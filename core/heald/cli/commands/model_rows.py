"""One row for each model of a scan: what the graph says, and what this installation lacks for it.

A row is plain data. It is made without weights: passes get no initial values, so variables stay variables, and no
device is opened. An error of a model is part of its row, since one damaged file must not end a scan.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import HealdError, InvalidArgument, NotFound, typed_error
from ...runtime.contract.device import DeviceName
from ...runtime.contract.loader import LoadOptions
from ...runtime.service.loading import OpenedFile, open_file
from ...runtime.service.runtime import runtime
from ...runtime.support.gc_pause import gc_paused
from ...runtime.support.install import extra_of_plugin, plugin_of_op
from .arguments import Opened
from .model_files import ModelFile, check_links

if TYPE_CHECKING:
    from ...graphs.compiler.resolve import Resolved
    from ...graphs.graph.graph import Graph, Node
    from ...runtime.host.host import Host
    from ...runtime.program.compiled_model import CompiledModel
    from ...runtime.program.host_program import ProgramDef

    Reached = list[tuple[Node, Resolved | HealdError]]

_ARCHIVE = "archive"
_KINDS_BY_SUFFIX = {
    ".pb": "GraphDef", ".pbtxt": "GraphDef", ".meta": "checkpoint", ".index": "checkpoint", ".bef": "BEF",
    **dict.fromkeys((".zip", ".tar", ".gz", ".tgz", ".bz2", ".tbz2"), _ARCHIVE)}


def model_row(model: ModelFile, root: Path) -> dict[str, Any] | None:
    """Return the row of a model below the folder `root`, None for an archive without a model. Errors of the model are
    in the row."""
    row: dict[str, Any] = {
        "file": model.name or ".", "kind": _kind_of_suffix(model), "producer": None, "inputs": [], "outputs": [],
        "nodes": None, "ops": None, "missing": [], "extras": [], "devices": [], "file_ops": [], "runs": False,
        "error": None, "hint": None}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            check_links(model, root)
            row |= _foreign_row(model) if model.kind is not None else _opened_row(model.path)
        except HealdError as error:
            if isinstance(error, NotFound) and row["kind"] == _ARCHIVE:
                return None
            row |= _error_row(error)
        except Exception as error:  # noqa: BLE001 - one model must not end the scan
            row |= _error_row(typed_error(error))
    return row | {"warnings": [str(warning.message) for warning in caught]}


def _kind_of_suffix(model: ModelFile) -> str:
    """The kind of a model that cannot be opened."""
    if model.path.is_dir():
        return "SavedModel"
    return _KINDS_BY_SUFFIX.get(model.path.suffix.lower(), "unknown")


def _error_row(error: HealdError) -> dict[str, Any]:
    return {"error": error.message, "hint": error.hint}


def _foreign_row(model: ModelFile) -> dict[str, Any]:
    assert model.kind is not None
    name = model.kind.name.removeprefix("an ").removeprefix("a ")
    return {"kind": name, "error": "no format that heald loads", "hint": model.kind.way_out}


@gc_paused()
def _opened_row(path: Path) -> dict[str, Any]:
    registries = runtime().host.registries
    opened = open_file(path, LoadOptions(registries.ops, weights=False), registries)
    if hasattr(opened.source, "program"):
        return _program_row(opened.description.form, opened.program(), getattr(opened.source, "model", None))
    return _graph_row(opened)


def _program_row(form: str, program: ProgramDef, model: CompiledModel | None) -> dict[str, Any]:
    """The row of a compiled model or host program. Its calls stand for nodes, and its kernels for ops."""
    calls = [call.code for function in program.functions.values() for call in function.kernels]
    lacking = _lacking_plugins(model)
    return {"kind": form, **_ports(model), "nodes": len(calls), "ops": len(set(calls)),
            "extras": [extra_of_plugin(plugin) or name for plugin, name in lacking.items()],
            "devices": sorted(program.requires), "runs": not lacking,
            "error": f"it is compiled with {', '.join(lacking)}, not in use here" if lacking else None}


def _ports(model: CompiledModel | None) -> dict[str, Any]:
    """The inputs and outputs of a compiled model's chosen signature; none of a program."""
    entries = [] if model is None else [one for one in model.entries if one.signature == model.chosen_signature]
    sides = {"inputs": entries[0].inputs, "outputs": entries[0].outputs} if entries else {}
    return {side: [{"name": port.name, "op": None, "dtype": port.meta.dtype.name, "shape": port.meta.shape}
                   for port in ports] for side, ports in sides.items()}


def _lacking_plugins(model: CompiledModel | None) -> dict[str, str]:
    """The plugins that a compiled model needs and that are not in use, with the distribution of each."""
    usable = {record.id for record in runtime().plugins.records() if record.status == "ok"}
    requirements = model.requirements if model is not None else ()
    return {need.plugin: need.distribution for need in requirements if need.plugin not in usable}


def _graph_row(opened: OpenedFile) -> dict[str, Any]:
    from ...graphs.session.graph_reader import read_verified_graph
    from .coverage import dependencies, reachable_nodes, rewritten_graph, sinks, unrunnable_nodes
    from .inspect import declared_rows, inferred_rows

    host = runtime().host
    description, signature = opened.description, opened.chosen_signature()
    graph = read_verified_graph(opened)
    view = Opened(graph, description.form, signature, description.signatures, ())
    needed = view.needed
    runnable, nodes = rewritten_graph(needed)
    outputs = view.outputs or sinks(runnable, nodes)
    reached = [*reachable_nodes(dependencies(runnable, outputs), nodes, runnable, host)]
    sides = (inferred_rows(needed, runnable, nodes, host) if signature is None else declared_rows(needed, signature))
    missing = unrunnable_nodes(reached, host)
    return {
        "kind": description.form, "producer": graph.versions.producer,
        "inputs": sides["inputs"], "outputs": sides["outputs"],
        "nodes": len(graph) + sum(len(function.nodes) for function in graph.functions.values()),
        "ops": len({node.op for node, _ in reached}),
        "missing": [{"op": row.op, "count": len(row.nodes), "reason": row.reason} for row in missing],
        "extras": _unique(extra for row in missing for extra in _extras_of_op(row.op, host)),
        "devices": _devices(graph), "file_ops": _file_ops(reached, host), "runs": bool(outputs) and not missing,
        "error": None if outputs else "the graph has no node whose result nobody takes",
    }


def _extras_of_op(op: str, host: Host) -> Iterator[str]:
    """The extras and libraries that bring a kernel of the op and are not installed."""
    plugin = None if op in host.registries.ops else plugin_of_op(op)
    if plugin is not None and (extra := extra_of_plugin(plugin)) is not None:
        yield extra
    for device_type in host.preference():
        for kernel in host.registries.kernels.candidates(op, device_type):
            if kernel.library is not None and kernel.library.lack() is not None:
                yield kernel.library.requirement


def _devices(graph: Graph) -> list[str]:
    """The devices that nodes of a graph and of its functions ask for, in the short form."""
    texts = {node.device for function in graph.functions.values() for node in function.nodes.values()}
    return _unique(_short_device(text) for text in sorted(texts | {node.device for node in graph}) if text)


def _short_device(text: str) -> str:
    try:
        name = DeviceName.parse(text)
    except InvalidArgument:
        return text
    return name.short if name.is_local else text


def _file_ops(reached: Reached, host: Host) -> list[str]:
    """The ops of these nodes whose kernels open files."""
    return sorted(op for op in {node.op for node, _ in reached}
                  if any(kernel.files for device_type in host.preference()
                         for kernel in host.registries.kernels.candidates(op, device_type)))


def _unique(texts: Iterable[str]) -> list[str]:
    return [*dict.fromkeys(texts)]
