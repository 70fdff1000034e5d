"""Seeds: the sound files that mutants begin with, from the project's test data or made here.

A format has pools of samples, each with its share of the mutants: small files get more, since they run faster.
"""

from __future__ import annotations

import io
import tarfile
import warnings
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import heald
import numpy as np
from heald import bef, graphdef
from heald.errors import InvalidArgument, Location, NotFound
from heald.graph.attr_value import ShapeAttr
from heald.graph.graph import Graph, Node
from heald.program.bef.vbr import put_vbr
from heald.program.host_program import Call, ProgramDef, ProgramFunction
from heald.session.model import find_inputs, find_outputs
from heald.values import dtypes
from heald_conformance import golden

from . import samples
from .samples import SINGLE, Sample

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests" / "data"
_SMALL = 16_384  # bytes of a file: hundreds of its mutants run in a second
_QUICK = ((0.7, ("tags", "tables_tf1")), (0.25, ("tf1", "asset")))  # SavedModels that load within 1 and 6 ms


class Pool(NamedTuple):
    share: float
    samples: Sequence[Sample]


@cache
def graphs() -> tuple[Pool, ...]:
    """Graphs of one op, with constants, with placeholders of known shape or known rank, and small programs."""
    found: list[Graph] = []
    for cases in golden.cases().values():
        for case in cases:
            if case.op != "Const":
                found += _of_case(case)
    runnable = [file for file in (DATA / "programs").glob("[!r]*/graph.pb")  # the others have variables without a value
                if file.parent.name != "save_restore"]  # it opens files
    files = [*sorted((DATA / "graphs").glob("*.pb")), *sorted(runnable)]
    programs = [raw for file in files if len(raw := file.read_bytes()) < _SMALL]
    return Pool(0.85, _single(map(graphdef.dumps, found))), Pool(0.15, _single(programs))


def _of_case(case: golden.Case) -> list[Graph]:
    graph = case.graph()
    inputs = [(graph.nodes[f"i{number}"], value) for number, value in enumerate(case.inputs)]
    return [graph.replace(nodes=nodes) for nodes in (
        [Node(node.name, "Const", attrs={"dtype": node.attrs["dtype"], "value": value}) for node, value in inputs],
        [node.replace(attrs={"shape": ShapeAttr(value.shape)}) for node, value in inputs],
        [node.replace(attrs={"shape": ShapeAttr([None] * value.ndim)}) for node, value in inputs])]


@cache
def texts() -> tuple[Pool, ...]:
    """The graphs of `graphs` in text form."""
    return tuple(Pool(pool.share, _Later(pool.samples)) for pool in graphs())


class _Later(Sequence[Sample]):
    """Graphs in text form, each written at its first use."""

    def __init__(self, binaries: Sequence[Sample]) -> None:
        self._binaries = binaries
        self._texts: dict[int, Sample] = {}

    def __len__(self) -> int:
        return len(self._binaries)

    def __getitem__(self, index: Any) -> Any:
        if index not in self._texts:
            graph = graphdef.loads(self._binaries[index][SINGLE])
            self._texts[index] = {SINGLE: graphdef.dumps(graph, text=True)}
        return self._texts[index]


@cache
def programs() -> tuple[Pool, ...]:
    """Compiled graphs of the tests, with constants, control flow and devices, and a program of host kernels."""
    call = Call("tfrt.add.i32", (0, 0), (1,), {"a": 1, "b": (1.5, ("s", b"b"), None), "c": [np.arange(3)]},
                location=Location("p.mlir", 3, 1), after=(0,))
    host = ProgramFunction("main", ("x",), ("i32", "i32"), (call,), (1,))
    found = [bef.dumps(ProgramDef({"main": host}))]
    with warnings.catch_warnings(action="ignore"):  # some name devices that are missing here
        for sample in graphs()[1].samples:
            with heald.Session(graphdef.loads(sample[SINGLE])) as session, suppress(InvalidArgument, NotFound):
                fetches = find_outputs(session)  # a few have none
                found.append(bef.dumps(session.prepare(fetches, find_inputs(session, fetches)).program))
    small = [raw for raw in found if len(raw) < _SMALL]
    return Pool(0.5, _single(small[:1])), Pool(0.5, _single(small[1:]))


def program_words() -> tuple[bytes, ...]:
    """Counts and offsets that are far too large, and padding."""
    return (*tuple(put_vbr(1 << bits) for bits in (7, 14, 31, 40, 63)), b"\xcc" * 4, b"\xff" * 4, bytes(4))


@cache
def program_texts() -> tuple[Pool, ...]:
    """The texts of host programs of the tests, without those that need the kernels of a test plugin."""
    found = []
    for file in sorted((ROOT / "tests" / "programs").rglob("*.mlir")):
        with suppress(InvalidArgument):
            heald.mlir.loads(file.read_bytes())
            found.append(file.read_bytes())
    return (Pool(1.0, _single(found)),)


def program_text_words() -> tuple[bytes, ...]:
    """The vocabulary of MLIR: types, attributes, locations."""
    words = ("i1 i32 ui8 f32 bf16 !tfrt.chain tensor<2x?xf32> (i32)->i32 dense<1> unit array<i32:1> loc(unknown) #a !a "
             "^bb1 %arg0 @f tfrt.sync tfrt.native bef.nonstrict heald.stream tfrt.cost_threshold _tfrt_cost 0x7FC00000")
    return tuple(words.encode().split())


@cache
def graph_texts() -> tuple[Pool, ...]:
    """Texts of random graphs in the TF Graph IR: as TensorFlow prints them, and with what keeps their bytes."""
    with tarfile.open(DATA / "tfg" / "random.tar.xz") as archive:
        files = {member.name: archive.extractfile(member).read() for member in archive}  # type: ignore[union-attr]
    theirs = [raw for name, raw in files.items() if name.endswith(".tfg")]
    ours = [heald.tfg.dumps(graphdef.loads(raw)).encode("utf-8", "surrogateescape") for name, raw in files.items()
            if name.endswith(".pb") and ".exported" not in name]
    return tuple(Pool(0.5, _single([text for text in texts if len(text) < _SMALL])) for texts in (theirs, ours))


def graph_text_words() -> tuple[bytes, ...]:
    """The vocabulary of the TF Graph IR: types, attributes, parts of operations."""
    words = ("!tf_type.control tensor<*xf32> tensor<*x!tf_type.resource> tensor<2x?xi32> #tf_type.shape<-1x3> [%ctl] "
             '#tf_type.func<@f,{}> #tf_type.placeholder<"T"> #tf_type.version<producer=9> dense<1> dense<"0x00"> '
             'name("x") device("/cpu:0") assigned_device("d") get_result(%a)"x":0 tfg.name _heald.node _heald.order '
             "_heald.values _heald.layout generic return yield condition IfRegion WhileRegion -> %ctl %Const #0 :2 "
             "unit")
    return tuple(word.encode() for word in words.split())


@cache
def saved_models() -> tuple[Pool, ...]:
    """The SavedModels of the tests; the fast ones get the most mutants."""
    found = {path.parent.name: samples.folder(path) for path in sorted((DATA / "saved_models").glob("*/model"))}
    quick = tuple(Pool(share, [found.pop(name) for name in names]) for share, names in _QUICK)
    return *quick, Pool(0.05, list(found.values()))


@cache
def checkpoints() -> tuple[Pool, ...]:
    """Checkpoints alone, with every type and with slices, and checkpoints within fast SavedModels."""
    models = [model for pool in saved_models() for model in pool.samples]
    alone = [{name.removeprefix("variables/"): data for name, data in model.items() if name.startswith("variables/")}
             for model in models]
    pair = samples.folder(DATA / "saved_models" / "checkpoint")
    alone += [{n: data for n, data in pair.items() if n.startswith(f"{stem}.")} for stem in ("ckpt", "sliced")]
    quick = [model for pool in saved_models()[:2] for model in pool.samples]
    return (Pool(0.7, [sample for sample in alone if 0 < sum(map(len, sample.values())) < _SMALL]),
            Pool(0.3, [model for model in quick if any(name.endswith(".index") for name in model)]))


@cache
def archives() -> tuple[Pool, ...]:
    """Archives of arrays: many element types, ranks 0 to 3, both memory orders, empty arrays, compressed members."""
    made: list[Sample] = []
    for dtype in ("f4", "f8", "f2", "i1", "i4", "i8", "u1", "u2", "?", "c8", "S3", "U2", ">f4", "M8[s]"):
        for shape in ((), (3,), (2, 3), (2, 0, 1)):
            array = np.zeros(shape, dtype)
            made += [_archive({"x": array}), _archive({"x": np.asfortranarray(array)}, packed=True)]
    record = np.zeros(2, [("a", "f4"), ("b", "i2")])
    several = {"x": np.arange(6, dtype="f4"), "y:0": np.eye(3), "scope/z": np.array(7)}
    made += [_archive({"x": record}), _archive(several), _archive(several, packed=True)]
    return (Pool(1.0, made),)


def _archive(arrays: dict[str, Any], packed: bool = False) -> Sample:
    out = io.BytesIO()
    (np.savez_compressed if packed else np.savez)(out, **arrays)
    return {SINGLE: out.getvalue()}


_CONFIG = """\
[plugins]
block = ["opencl", 'sim']
strict = false

[placement]
order = ["CPU"]

[kernels]
MatMul = "cpu"

[allocator]
name = "pooled"
limit = "2GiB"

[work_queue]
name = "multi_threaded"
threads = 2

[passes]
disable = ["fusion", "constants"]

[debug]
poison = true

[plugin.onednn]
precision = "f32"
"""

CONFIG_WORDS = tuple(word.encode() for word in (
    "plugins", "plugin", "placement", "kernels", "allocator", "work_queue", "passes", "debug", "limits", "memory",
    "fallback", "remap", "clear", "allow", "load", "80%", "1e3GiB", "-1", "[tool.heald]", "[[plugins]]", "x.y.z"))


@cache
def configs() -> tuple[Pool, ...]:
    """Config files, found from the working folder or named."""
    project = '[project]\nname = "x"\n\n' + _CONFIG.replace("[", "[tool.heald.", 1).replace("\n[", "\n[tool.heald.")
    nested = '# a comment\nplugins = {block = ["a"], strict = true}\nplugin."x-y".z = [{a = 1}, {b = 2.5}]\n'
    multi = 'passes.disable = [\n  "a", # first\n  """b\nc""",\n]\nkernels = {}\n'
    return (Pool(1.0, [{"heald.toml": _CONFIG.encode()}, {"heald.toml": nested.encode()},
                       {"heald.toml": multi.encode()},
                       {"pyproject.toml": project.replace("[tool.heald.tool.heald.", "[tool.heald.").encode()}]),)


_METADATA = """\
Metadata-Version: 2.4
Name: heald-stranger
Version: 1.2.3
Requires-Python: >=3.11
Requires-Dist: heald-core<0.2,>=0.1
Requires-Dist: numpy>=1.26; extra == 'all'

A description.
"""
_MODULE = """\
from heald.api import hookimpl


@hookimpl
def heald_ops(registry):
    pass
"""


@cache
def distributions() -> tuple[Pool, ...]:
    """Folders of sys.path with a distribution that announces a plugin."""
    entries = ("[console_scripts]\nx = heald_stranger:main\n\n[heald.plugins]\nstranger = heald_stranger\n# no\n"
               "y=heald_stranger [z]\n")
    folders = []
    for kind, head in (("dist-info", "METADATA"), ("egg-info", "PKG-INFO")):
        folder = f"heald_stranger-1.2.3.{kind}"
        folders.append({f"{folder}/entry_points.txt": entries.encode(), f"{folder}/{head}": _METADATA.encode(),
                        "heald_stranger.py": _MODULE.encode()})
    return (Pool(1.0, folders),)


def op_names() -> tuple[bytes, ...]:
    """The vocabulary of graphs: ops with a kernel, attributes, types."""
    words = {*golden.cases(), *(key for cases in golden.cases().values() for case in cases for key in case.attrs)}
    return tuple(sorted(word.encode() for word in {*words, *(f"DT_{t.name.upper()}" for t in dtypes.ALL), "i0", "i1",
                                                    "op", "op:1", "^i0", "^op", "T", "N", "value", "dtype", "shape"}))


def _single(files: Iterable[bytes]) -> list[Sample]:
    return [{SINGLE: data} for data in files]
