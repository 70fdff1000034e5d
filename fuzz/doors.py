"""Doors: the ways into heald for a stranger's file, from its bytes to the arrays of a run.

A door takes a sample and the path of an empty folder. It raises the errors that heald raises.
"""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Callable, Mapping
from math import prod
from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

import heald
import numpy as np
from heald import bef, graphdef
from heald.config.config import load_config, plugin_config
from heald.discovery.discovery import Plugins
from heald.errors import InvalidArgument
from heald.executor.step import RunOptions
from heald.graph.graph import Graph
from heald.session.feeds import convert
from heald.session.model import Model, find_inputs, find_outputs
from heald.values import dtypes
from heald.values.tensor import TensorMetadata
from heald_tools import inputs

from .samples import SINGLE, Sample, written

Door = Callable[[Sample, Path], None]
_OPTIONS = RunOptions(timeout=0.25)
_MOST_ELEMENTS = 1 << 16  # of an array that is made up
_STANDARD = [sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib")]
_MOST_DIMS = 64  # of NumPy's arrays
_TEXTS = (b"", b"a", b"1", b"0.5", b"b c", b"\xc3\xa9", b"2020-01-01")


class Lossy(AssertionError):
    """A graph that was read and written is not the same any more."""


def graph(sample: Sample, _folder: Path) -> None:
    """A binary GraphDef: read, written again, opened, linked and run."""
    _run_graph(graphdef.loads(sample[SINGLE]))


def text(sample: Sample, _folder: Path) -> None:
    """A GraphDef in text form, likewise."""
    _run_graph(graphdef.loads(sample[SINGLE], text=True))


def program(sample: Sample, _folder: Path) -> None:
    """A BEF file: every function and array is read; written again, it is the same program."""
    model = bef.loads(sample[SINGLE])
    written_again = bef.dumps(model)
    again = bef.loads(written_again)
    if [*again.program.functions] != [*model.program.functions] or bef.dumps(again) != written_again:
        raise Lossy("a program is not what it was when it has been written and read")
    list(model.prepared)


def program_text(sample: Sample, _folder: Path) -> None:
    """A text of a host program: read, written with its locations, read again. An error of the text has its place."""
    try:
        program = heald.mlir.loads(sample[SINGLE])
    except InvalidArgument as error:
        if b"loc(" not in sample[SINGLE] and not (error.location and error.location.line and error.location.column):
            raise Lossy(f"an error without line and column: {error}") from error
        raise
    written_again = heald.mlir.dumps(program, locations=True)
    if heald.mlir.dumps(heald.mlir.loads(written_again), locations=True) != written_again:
        raise Lossy("a program is not what it was when it has been written and read")


def graph_text(sample: Sample, _folder: Path) -> None:
    """A text in the TF Graph IR: read, printed and read again, it is the same GraphDef. An error has its place."""
    try:
        graph = heald.tfg.loads(sample[SINGLE])
    except InvalidArgument as error:
        if not (error.location and error.location.line and error.location.column):
            raise Lossy(f"an error without line and column: {error}") from error
        raise
    again = heald.tfg.loads(heald.tfg.dumps(graph))
    if graphdef.dumps(again) != graphdef.dumps(graph):
        raise Lossy("a graph is not what it was when it has been printed and read")


def _run_graph(graph: Graph) -> None:
    again = graphdef.loads(graphdef.dumps(graph.replace()))
    if [bytes(n.raw) for n in again] != [bytes(n.raw) for n in graph] or again.versions != graph.versions:
        raise Lossy("a graph is not what it was when it has been written and read")
    with heald.Session(graph) as session:
        fetches = find_outputs(session)
        feeds = find_inputs(session, fetches)
        step = session.prepare(fetches, feeds)
        metas = step.program.functions["main"].arg_metas
        session.run(fetches, _made_up(dict(zip(feeds, metas, strict=True)), graphdef.dumps(graph)), options=_OPTIONS)


def saved_model(sample: Sample, folder: Path) -> None:
    """A SavedModel: loaded, with the values of its variables, and run."""
    written(sample, folder)
    model: Model = heald.load(folder)
    feeds = _made_up(model.inputs, sample["saved_model.pb"])
    with model.session as session:
        session.run(model.fetched, {model.fed[name]: value for name, value in feeds.items()}, options=_OPTIONS)


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
    written({"given.npz": sample[SINGLE]}, folder)
    meta = TensorMetadata(dtypes.float32, None)
    convert(inputs.read(str(folder / "given.npz"), meta, "x"), meta, "x")


def config(sample: Sample, folder: Path) -> None:
    """A config file: found from the folder it is in, then named."""
    from heald_onednn.plugin import Config as OneDNN

    written(sample, folder)
    found = load_config(environ={"XDG_CONFIG_HOME": str(folder)}, folder=folder)
    found.origins()
    named = load_config(folder / next(iter(sample)), environ={"XDG_CONFIG_HOME": str(folder)}, folder=folder)
    named.origins()
    plugin_config(named, "onednn", OneDNN)


def distribution(sample: Sample, folder: Path) -> None:
    """A folder of sys.path: its distributions' metadata are read, their plugins loaded."""
    written(sample, folder)
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


def _made_up(metas: Mapping[str, TensorMetadata], data: bytes) -> dict[str, Any]:
    """Small arrays for inputs, the same for the same file: open dimensions are 1 or 2."""
    rng = Random(crc32(data))
    return {name: _array(rng, meta) for name, meta in metas.items()}


def _array(rng: Random, meta: TensorMetadata) -> Any:
    dims = [None] * rng.randrange(4) if meta.shape is None else meta.shape[:_MOST_DIMS]
    shape = [rng.choice((1, 2, 2, 3)) if dim is None else dim for dim in dims]
    while prod(dim or 1 for dim in shape) > _MOST_ELEMENTS:
        shape[shape.index(max(shape))] //= 2  # the session refuses the shape
    if meta.dtype is dtypes.string:
        return np.array([rng.choice(_TEXTS) for _ in range(int(np.prod(shape)))], object).reshape(shape)
    numbers = np.random.default_rng(rng.randrange(1 << 32)).integers(0, 4, shape)
    return numbers.astype(meta.dtype.numpy if meta.dtype.itemsize else np.float32)
