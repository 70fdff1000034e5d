"""`heald.load`: a compiled model runs from its file alone, without the modules that graphs need."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import FailedPrecondition, InvalidArgument, Location, boundary
from ..contract.device import DeviceName, load_callable
from ..program.bef import file as bef
from ..program.compiled_model import CompiledModel
from ..support.file_path import file_path
from ..support.gc_pause import gc_paused
from .compiled_model import LoadedCompiledModel
from .runtime import runtime

if TYPE_CHECKING:
    from ..contract.model import LoadedModel


@boundary
@gc_paused()
def load(
    path: str | os.PathLike[str], *, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None,
    device: str | None = None, config: Any = None, signature: str | None = None, tags: Collection[str] | None = None,
    format: str | None = None, mmap: bool = True,  # noqa: A002 - the contract's word
) -> LoadedModel:
    """Load a file or folder for inference: a frozen GraphDef (.pb, .pbtxt), a compiled model (.bef), or a format that a
    plugin reads.

    `format` names the loader ("graphdef", "bef", "saved_model"); without it a file that begins as BEF is a compiled
    model, and any other is read by the only loader that recognises it. A path may lead to a model: an archive, a folder
    of versions, a checkpoint (docs/files.md).

    A GraphDef's outputs are, without `outputs`, the nodes whose results no node takes; nodes that no user fetches, such
    as gradients, are left aside. Its inputs are, without `inputs`, the placeholders that the outputs need. A SavedModel
    declares both in `signature` ("serving_default", "__call__" or the only one) of the graph with exactly the tags
    `tags` ({"serve"} or the only ones); `inputs` and `outputs` choose among them, or name other tensors of the graph.
    `model.signatures["name"](...)` runs another signature. All signatures share one session and its state, which begins
    with the saved values. `device`, such as "CPU:0", is the place of nodes that ask for none.

    A compiled model has signatures and no session: `heald compile` has decided its inputs, outputs and devices.

    Large files are memory-mapped. A mapped file that is written in place ends the model: replace files by rename, or
    load with `mmap=False`, which reads them whole (docs/files.md).

    Raises NotFound, InvalidArgument, DataLoss for a file that cannot be read, that no loader recognises, or that
    several do; PluginError for a loader that fails. A node that the outputs need and that cannot be run is an error
    here or, for a format that declares inputs and outputs, at the first call. A compiled model raises
    FailedPrecondition for another device than its own, and for plugins that it needs and that are not installed.
    """
    file = file_path(path)
    if format == "bef" or (format is None and bef.is_bef(file)):
        _refuse_of_graphs(file, {"inputs": inputs, "outputs": outputs, "tags": tags})
        return loaded_model(bef.load(file, mmap=mmap), file, config, device, signature)
    owner = runtime(config)
    if owner.host.registries.graph_models is None:
        raise FailedPrecondition("no plugin in use makes models of graphs", location=Location(str(file)),
                                 hint="heald plugins tells what became of core's own, 'heald'")
    model: LoadedModel = load_callable(owner.host.registries.graph_models)(
        file, inputs=inputs, outputs=outputs, device=device, config=owner, signature=signature, tags=tags, form=format,
        mmap=mmap)
    return model


def _refuse_of_graphs(file: Path, arguments: Mapping[str, Any]) -> None:
    for name, value in arguments.items():
        if value is not None:
            raise InvalidArgument(f"{name}= needs a graph, and this is a compiled model", location=Location(str(file)),
                                  hint=f"load its source with {name}=, or choose with signature=")


def loaded_model(
    model: CompiledModel, file: Path, config: Any, device: str | None, signature: str | None
) -> LoadedCompiledModel:
    """Return the model of a BEF file on this host. Takes the arguments of `load`, and raises its errors."""
    here = Location(str(file))
    if not model.entries:
        raise InvalidArgument("this is a host program, not a model", location=here,
                              hint=f"load it with heald.HostProgram.load('{file}')")
    have = model.program.requires
    if device is not None and not _is_among(DeviceName.of_this_process(device), have):
        raise FailedPrecondition(f"the model is compiled for {', '.join(have) or 'the host'}, not for {device}",
                                 device=device, location=here, hint=f"heald compile SOURCE --device {device}")
    return LoadedCompiledModel(model if signature is None else model._replace(chosen_signature=signature), config)


def _is_among(request: DeviceName, devices: Sequence[str]) -> bool:
    names = map(DeviceName.parse, devices)
    return any(name.type == request.type and request.index in (None, name.index) for name in names)
