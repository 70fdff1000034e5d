"""Every writer of the project: it writes a version of its content, and a reader says which version is there.

A reader raises for content that is not whole.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import heald
import numpy as np
from heald import bef, graphdef, mlir, tfg
from heald.api import Graph, Input, Node, ShapeAttr, constant, dtypes
from heald.graphs.protobuf import parse_message
from heald.runtime.config import trust
from heald.runtime.executor.trace import Trace
from heald.runtime.support.disk_cache import DiskCache
from heald_mlir import translation
from heald_saved_model.checkpoint import Checkpoint, shard_name
from heald_saved_model.checkpoint_writer import merge_checkpoints, write_checkpoint
from heald_tools import new, outputs

ELEMENTS = 5000  # of an array: several pages of a file
PROGRAM = """\
func @main() -> i32 {{
  %x = "tfrt.constant.i32"() {{value = {} : i32}} : () -> i32
  tfrt.return %x : i32
}}
"""


class Writer(NamedTuple):
    """`write(folder, version)`, and `read(folder)`: the versions of the files there, none before the first."""

    write: Callable[[Path, int], None]
    read: Callable[[Path], set[int]]


def _array(version: int) -> Any:
    return np.arange(ELEMENTS, dtype=np.int32) * 10 + version  # equal elements would be kept as one


def _version(*arrays: Any) -> set[int]:
    assert all((array // 10 == np.arange(ELEMENTS)).all() for array in arrays)
    return {int(value) for array in arrays for value in np.unique(array % 10)}


def _graph(version: int) -> Graph:
    return Graph([constant("c", _array(version))])


def _graph_version(graph: Graph) -> set[int]:
    return _version(graph["c"].attrs["value"].array())


def _file(name: str, write: Callable[[Path, int], object], read: Callable[[Path], set[int]]) -> Writer:
    """The writer of one file."""
    def read_existing(folder: Path) -> set[int]:
        return read(folder / name) if (folder / name).exists() else set()

    def write_file(folder: Path, version: int) -> None:
        write(folder / name, version)

    return Writer(write_file, read_existing)


def _write_trace(path: Path, version: int) -> None:
    trace = Trace()
    trace.threads = dict.fromkeys(range(500), str(version))
    trace.dump(path)


def _read_trace(path: Path) -> set[int]:
    rows = json.loads(path.read_bytes())["traceEvents"]
    assert len(rows) == 500
    return {int(row["args"]["name"]) for row in rows}


def _write_metadata(path: Path, version: int) -> None:
    metadata = heald.RunMetadata()
    metadata.partition_graphs = {"CPU:0": _graph(version)}
    metadata.dump(path)


def _read_metadata(path: Path) -> set[int]:
    [partition] = parse_message("RunMetadata", path.read_bytes()).partition_graphs
    return _graph_version(graphdef.loads(partition.SerializeToString()))


def _cache(folder: Path) -> DiskCache:
    cache = DiskCache("")
    cache.folder = folder / "cache"
    return cache


def _read_cache(folder: Path) -> set[int]:
    value = _cache(folder).get("key")
    return set() if value is None else _version(np.frombuffer(value, np.int32))


def _write_trust(folder: Path, version: int) -> None:
    trust.set_trust(folder / "config", Path("heald.toml"), str(version) * 1000)


def _read_trust(folder: Path) -> set[int]:
    hashes = set(trust.trusted_hashes(folder / "config").values())
    assert all(len(text) == 1000 for text in hashes)
    return {int(text[0]) for text in hashes}


def _checkpoint(prefix: Path) -> Checkpoint:
    return Checkpoint(Path(f"{prefix}.index").read_bytes(),
                      lambda shard, count: Path(f"{prefix}.{shard_name(shard, count)}").read_bytes())


def _read_checkpoint(index: Path) -> set[int]:
    checkpoint = _checkpoint(index.with_suffix(""))
    assert checkpoint.names == ["a", "b"]
    return _version(*map(checkpoint.read, checkpoint.names))


def _write_checkpoint(index: Path, version: int) -> None:
    write_checkpoint(index.with_suffix(""), dict.fromkeys("ab", _array(version)))


def _write_merged_checkpoint(index: Path, version: int) -> None:
    parts = [index.parent / "parts" / name for name in "ab"]
    for part in parts:
        write_checkpoint(part, {part.name: _array(version)})
    merge_checkpoints(parts, index.with_suffix(""))


def _write_saved_model(folder: Path, version: int) -> None:
    attributes = {"dtype": dtypes.int32, "shape": ShapeAttr((ELEMENTS,))}
    nodes = [Node("v", "VarHandleOp", attrs=attributes), constant("value", _array(version)),
             Node("set", "AssignVariableOp", [Input("v"), Input("value")], attrs={"dtype": dtypes.int32}),
             Node("y", "ReadVariableOp", [Input("v")], attrs={"dtype": dtypes.int32})]
    with heald.Session(Graph(nodes)) as session:
        session.run([], targets=["set"])
        heald.saved_model.save(session, folder, signatures={"serving_default": ({}, {"y": "y:0"})}, overwrite=True)


def _read_saved_model(folder: Path) -> set[int]:
    checkpoint = _checkpoint(folder / "variables" / "variables")
    source = graphdef.loads(parse_message("SavedModel", (folder / "saved_model.pb").read_bytes())
                            .meta_graphs[0].graph_def.SerializeToString())
    return _version(checkpoint.read("v"), source["value"].attrs["value"].array())


def _write_archive(path: Path, version: int) -> None:
    outputs.write(str(path), {"a": _array(version), "b": _array(version)})


def _read_archive(path: Path) -> set[int]:
    with np.load(path) as archive:
        assert sorted(archive) == ["a", "b"]
        return _version(*(archive[name] for name in archive))


def _write_arrays(folder: Path, version: int) -> None:
    outputs.write(f"{folder / 'arrays'}/", {"a": _array(version), "b": _array(version)})


def _read_arrays(folder: Path) -> set[int]:
    return _version(*map(np.load, (folder / "arrays").glob("*.npy")))


def _write_plugin(folder: Path, version: int) -> None:
    if (folder / "plugin").exists():  # the command refuses it
        (folder / "plugin").rename(folder / f"moved-{os.urandom(6).hex()}")
    new._write(new._template("pass"), folder / "plugin", new._names("pass", f"copy{version}"))


def _read_plugin(folder: Path) -> set[int]:
    if not (folder / "plugin").exists():
        return set()
    files = [path for path in (folder / "plugin").rglob("*") if path.is_file()]
    assert len(files) == len(list(new.template_files(new._template("pass"))))
    return {version for version in range(10) if f"copy{version}" in (folder / "plugin/pyproject.toml").read_text()}


def _write_by_op(path: Path, version: int) -> None:
    nodes = [constant("name", np.array(str(path).encode(), object)),
             constant("contents", np.array(_array(version).tobytes(), object)),
             Node("write", "WriteFile", [Input("name"), Input("contents")])]
    with heald.Session(Graph(nodes), {"files": {"write": [str(path.parent)]}}) as session:
        session.run([], targets=["write"])


def _read_numbers(path: Path) -> set[int]:
    return _version(np.frombuffer(path.read_bytes(), np.int32))


def _program_version(program: Any) -> set[int]:
    return {int(value.get()) for value in program.run("main")}


WRITERS = {
    "graphdef": _file("g.pb", lambda path, v: graphdef.dump(_graph(v), path),
                      lambda path: _graph_version(graphdef.load(path))),
    "graphdef text": _file("g.pbtxt", lambda path, v: graphdef.dump(_graph(v), path),
                           lambda path: _graph_version(graphdef.load(path))),
    "tfg text": _file("g.tfg", lambda path, v: tfg.dump(_graph(v), path), lambda path: _graph_version(tfg.load(path))),
    "bef": _file("p.bef", lambda path, v: bef.dump(mlir.loads(PROGRAM.format(v)), path),
                 lambda path: _program_version(heald.HostProgram.load(path))),
    "program text": _file("p.mlir", lambda path, v: mlir.dump(mlir.loads(PROGRAM.format(v)), path),
                          lambda path: _program_version(mlir.load(path))),
    "translation": _file("t.txt", lambda path, v: translation.write(str(path), [_array(v).tobytes()]), _read_numbers),
    "trace": _file("trace.json", _write_trace, _read_trace),
    "run metadata": _file("metadata.pb", _write_metadata, _read_metadata),
    "archive of outputs": _file("y.npz", _write_archive, _read_archive),
    "folder of outputs": Writer(_write_arrays, _read_arrays),
    "list of trusted files": Writer(_write_trust, _read_trust),
    "disk cache": Writer(lambda folder, v: _keep(_cache(folder).put("key", _array(v).tobytes())), _read_cache),
    "checkpoint": _file("m.index", _write_checkpoint, _read_checkpoint),
    "merged checkpoint": _file("m.index", _write_merged_checkpoint, _read_checkpoint),
    "saved model": _file("model", _write_saved_model, _read_saved_model),
    "new plugin": Writer(_write_plugin, _read_plugin),
    "WriteFile": _file("f.bin", _write_by_op, _read_numbers),
}
# Each file of these is whole, but a kill between two names leaves files of both versions.
SEVERAL = frozenset(("folder of outputs",))


def _keep(is_kept: bool) -> None:
    assert is_kept
