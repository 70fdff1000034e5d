"""Doors: the ways into heald for a stranger's file, from its bytes to the arrays of a run.

A door takes a sample and the path of an empty folder. It raises the errors that heald raises.
"""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import heald
import numpy as np
from heald import bef, graphdef
from heald.errors import InvalidArgument, ResourceExhausted
from heald.graphs.session.model import Model, find_inputs, find_outputs
from heald.runtime.config.config import load_config, plugin_config
from heald.runtime.discovery.discovery import Plugins
from heald.runtime.service.feeds import convert_feed
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import TensorMetadata
from heald_tools import inputs

from .graph_runs import Lossy, run_graph
from .program_runs import OPTIONS, made_up, run_model, run_program
from .samples import SINGLE, Sample, write_files

Door = Callable[[Sample, Path], None]
_LARGEST_GRANT_BYTES = 128 << 20
_STANDARD = [sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib")]


def graph(sample: Sample, _folder: Path) -> None:
    """A binary GraphDef: read, written again, opened, linked and run."""
    run_graph(graphdef.loads(sample[SINGLE]))


def text(sample: Sample, _folder: Path) -> None:
    """A GraphDef in text form, likewise."""
    run_graph(graphdef.loads(sample[SINGLE], text=True))


def program(sample: Sample, _folder: Path) -> None:
    """A BEF file: every function and array is read; written again, it is the same program; its functions run."""
    model = bef.loads(sample[SINGLE])
    written_again = bef.dumps(model)
    again = bef.loads(written_again)
    if [*again.program.functions] != [*model.program.functions] or bef.dumps(again) != written_again:
        raise Lossy("a program is not what it was when it has been written and read")
    list(model.prepared)
    run_model(model, sample[SINGLE])


def program_text(sample: Sample, _folder: Path) -> None:
    """A text of a host program: read, written with its locations, read again; its functions run. An error of the text
    has its place."""
    try:
        program = heald.mlir.loads(sample[SINGLE])
    except InvalidArgument as error:
        if b"loc(" not in sample[SINGLE] and not (error.location and error.location.line and error.location.column):
            raise Lossy(f"an error without line and column: {error}") from error
        raise
    written_again = heald.mlir.dumps(program, locations=True)
    if heald.mlir.dumps(heald.mlir.loads(written_again), locations=True) != written_again:
        raise Lossy("a program is not what it was when it has been written and read")
    run_program(program, sample[SINGLE])


def graph_text(sample: Sample, _folder: Path) -> None:
    """A text in the TF Graph IR: read, printed and read again, it is the same GraphDef, and runs. An error has its
    place."""
    try:
        graph = heald.tfg.loads(sample[SINGLE])
    except InvalidArgument as error:
        if not (error.location and error.location.line and error.location.column):
            raise Lossy(f"an error without line and column: {error}") from error
        raise
    again = heald.tfg.loads(heald.tfg.dumps(graph, verify=False))
    if graphdef.dumps(again) != graphdef.dumps(graph):
        raise Lossy("a graph is not what it was when it has been printed and read")
    run_graph(graph)


def saved_model(sample: Sample, folder: Path) -> None:
    """A SavedModel: loaded, with the values of its variables, and run."""
    write_files(sample, folder)
    _run_loaded(folder, sample).session.close()


def _run_loaded(folder: Path, sample: Sample) -> Model:
    """The model in a folder, which has run once: its variables have values then."""
    model: Model = heald.load(folder)
    feeds = made_up(model.inputs, sample["saved_model.pb"])
    model.session.run(model.fetched, {model.fed[name]: value for name, value in feeds.items()}, options=OPTIONS)
    return model


def saved_again(sample: Sample, folder: Path) -> None:
    """A SavedModel: loaded, run and written by `heald.saved_model.save`, then loaded from there and run."""
    write_files(sample, folder / "model")
    model = _run_loaded(folder / "model", sample)
    heald.saved_model.save(model, folder / "again")
    model.session.close()
    _run_loaded(folder / "again", sample).session.close()


def saved_session(sample: Sample, folder: Path) -> None:
    """A binary GraphDef: opened, written as a SavedModel, loaded from there and run."""
    with heald.Session(graphdef.loads(sample[SINGLE])) as session:
        fetches = find_outputs(session)
        sides = ({f"x{at}": tensor for at, tensor in enumerate(tensors)}
                 for tensors in (find_inputs(session, fetches), fetches))
        heald.saved_model.save(session, folder / "saved", signatures={"serving_default": (next(sides), next(sides))})
    _run_loaded(folder / "saved", {"saved_model.pb": sample[SINGLE]}).session.close()


def decision_forest(sample: Sample, folder: Path) -> None:
    """The files of a decision forest: read, and asked for predictions by each engine, and for leaves."""
    from heald_decision_forests.feature_banks import Banks
    from heald_decision_forests.forest import Forest
    from heald_decision_forests.model_files import read_model

    write_files(sample, folder)
    prefix = next(name for name in sample if name.endswith("done")).removesuffix("done")
    with np.load(folder / "banks.npz") as arrays:
        banks = Banks(*(arrays[f"bank{i}"] for i in range(6)))
    for gives_leaves in (False, True):
        files = read_model(str(folder), prefix, lambda name, _access: Path(name), _grant)
        forest = Forest(files, _grant, gives_leaves=gives_leaves)
        count = forest.example_count(banks)
        forest.predict(banks, count)
    forest.leaves(banks, count)


def _grant(nbytes: int, what: str) -> None:
    """Grant memory within the budget of a session of mutants."""
    if nbytes > _LARGEST_GRANT_BYTES:
        raise ResourceExhausted(f"{what} needs {nbytes} bytes")


def checkpoint(sample: Sample, folder: Path) -> None:
    """A checkpoint: every tensor is read; of a SavedModel, the model is loaded and run too."""
    from heald_saved_model.checkpoint import Checkpoint

    if "saved_model.pb" in sample:
        saved_model(sample, folder)
    stem = next(name for name in sample if name.endswith(".index")).removesuffix(".index")

    def shard(number: int, count: int) -> bytes:
        name = f"{stem}.data-{number:05}-of-{count:05}"
        if name not in sample:
            raise heald.errors.NotFound(f"there is no shard '{name}'")
        return sample[name]

    opened = Checkpoint(sample[f"{stem}.index"], shard)
    for name in opened.names:
        opened.read(name)


def arrays(sample: Sample, folder: Path) -> None:
    """An .npz file that is given to `heald run --input`: the array x, or the only one, for an input of any shape."""
    write_files({"given.npz": sample[SINGLE]}, folder)
    meta = TensorMetadata(dtypes.float32, None)
    convert_feed(inputs.read(str(folder / "given.npz"), meta, "x"), meta, "x")


def config(sample: Sample, folder: Path) -> None:
    """A config file: found from the folder it is in, then named."""
    from heald_onednn.plugin import Config as OneDNN

    write_files(sample, folder)
    loaded = load_config(environ={"XDG_CONFIG_HOME": str(folder)}, folder=folder)
    loaded.origins()
    named = load_config(folder / next(iter(sample)), environ={"XDG_CONFIG_HOME": str(folder)}, folder=folder)
    named.origins()
    plugin_config(named, "onednn", OneDNN)


def distribution(sample: Sample, folder: Path) -> None:
    """A folder of sys.path: its distributions' metadata are read, their plugins loaded."""
    write_files(sample, folder)
    before = sys.path[:]
    sys.path[:] = [str(folder), *_STANDARD]
    try:
        plugins = Plugins(load_config({}, environ={}, folder=folder))
        plugins.load()
        for record in plugins.records():
            str(record)
    finally:
        sys.path[:] = before
        sys.modules.pop("heald_stranger", None)
        sys.path_importer_cache.pop(str(folder), None)
