"""Seeds: the sound files that mutants begin with, from the project's test data or made here.

A format has pools of samples, each with its share of the mutants: small files get more, since they run faster.
"""

from __future__ import annotations

import io
import json
import lzma
import tarfile
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import heald
import numpy as np
from heald import bef, graphdef
from heald.errors import HealdError, InvalidArgument, Location, NotFound
from heald.graphs.graph.attr_value import ShapeAttr
from heald.graphs.graph.graph import Graph, Node
from heald.graphs.session.ahead_of_time import compile_model
from heald.graphs.session.model import find_inputs, find_outputs
from heald.runtime.program import Call, ProgramDef, ProgramFunction
from heald.runtime.program.bef.vbr import put_vbr
from heald.runtime.values import dtypes
from heald_conformance import golden

from . import compiled_groups, samples
from .samples import MEMORY_FILES, SINGLE, Sample

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests" / "data"
_CASES_PER_OP = 2  # that mutants of programs begin with
_SMALL = 16_384  # bytes of a file: hundreds of its mutants run in a second
_QUICK = ((0.7, ("tags", "tables_tf1")), (0.25, ("tf1", "asset")))  # SavedModels that load within 1 and 6 ms


class Pool(NamedTuple):
    share: float
    samples: Sequence[Sample]


@cache
def graph_pools() -> tuple[Pool, ...]:
    """Graphs of one op, with constants, with placeholders of known shape or known rank, and small programs."""
    graphs_of_cases: list[Graph] = []
    for cases in golden.cases().values():
        for case in cases:
            if case.op != "Const":
                graphs_of_cases += _of_case(case)
    runnable = [file for file in (DATA / "programs").glob("[!r]*/graph.pb")  # the others have variables without a value
                if file.parent.name != "save_restore"]  # it opens files
    files = [*sorted((DATA / "graphs").glob("*.pb")), *sorted(runnable)]
    programs = [raw for file in files if len(raw := file.read_bytes()) < _SMALL]
    return Pool(0.85, _single(map(graphdef.dumps, graphs_of_cases))), Pool(0.15, _single(programs))


@cache
def graph_pair_pools() -> tuple[Pool, ...]:
    """Graphs beside themselves: an edit changes one of both."""
    return tuple(Pool(pool.share, [{"model.pb": graph[SINGLE], "other.pb": graph[SINGLE]} for graph in pool.samples])
                 for pool in graph_pools())


@cache
def control_flow_pools() -> tuple[Pool, ...]:
    """Graphs with branches, loops and calls of functions."""
    return (Pool(1.0, [graph for graph in graph_pools()[1].samples if graphdef.loads(graph[SINGLE]).functions]),)


def _of_case(case: golden.Case) -> list[Graph]:
    graph = case.graph()
    inputs = [(graph.nodes[f"i{number}"], value) for number, value in enumerate(case.inputs)]
    return [graph.replace(nodes=nodes) for nodes in (
        [Node(node.name, "Const", attrs={"dtype": node.attrs["dtype"], "value": value}) for node, value in inputs],
        [node.replace(attrs={"shape": ShapeAttr(value.shape)}) for node, value in inputs],
        [node.replace(attrs={"shape": ShapeAttr([None] * value.ndim)}) for node, value in inputs])]


@cache
def graphdef_text_pools() -> tuple[Pool, ...]:
    """The graphs of `graph_pools` in text form."""
    return tuple(Pool(pool.share, Derived(pool.samples, lambda raw: graphdef.dumps(graphdef.loads(raw), text=True)))
                 for pool in graph_pools())


class Derived(Sequence[Sample]):
    """Samples that are made of others, each at its first use."""

    def __init__(self, sources: Sequence[Sample], make: Callable[[bytes], bytes]) -> None:
        self._sources, self._make = sources, make
        self._samples: dict[int, Sample] = {}

    def __len__(self) -> int:
        return len(self._sources)

    def __getitem__(self, index: Any) -> Any:
        if index not in self._samples:
            self._samples[index] = {SINGLE: self._make(self._sources[index][SINGLE])}
        return self._samples[index]


@cache
def program_pools() -> tuple[Pool, ...]:
    """Compiled models of one op each, compiled programs of the tests, programs of host kernels, models with groups."""
    compiled = (Derived(graphs, _compile_graph) for graphs in (_compilable(), graph_pools()[1].samples))
    return (*(Pool(share, samples) for share, samples in zip((0.55, 0.2), compiled, strict=True)),
            Pool(0.2, _single([_with_every_fact(), *_host_programs()])),
            Pool(0.05, Derived(_single(map(graphdef.dumps, compiled_groups.graphs())), _compile_groups)))


def _compilable() -> list[Sample]:
    """Graphs of one op with arguments of known shape: alone, and with constants in the place of all but the first."""
    sample_graphs = []
    for cases in golden.cases().values():
        for case in [case for case in cases if case.outputs and case.op != "Const"][:_CASES_PER_OP]:
            constants, arguments, _ = _of_case(case)
            sample_graphs.append(arguments)
            if len(case.inputs) > 1:
                sample_graphs.append(constants.replace(nodes=[arguments.nodes["i0"]]))
    return [sample for sample in _single(map(graphdef.dumps, sample_graphs)) if len(sample[SINGLE]) < _SMALL]


def _compile_graph(raw: bytes) -> bytes:
    """A graph as the file of a compiled model, for its own shapes; of the program of a step where shapes are open."""
    graph = graphdef.loads(raw)
    with TemporaryDirectory(dir=MEMORY_FILES) as folder, warnings.catch_warnings(action="ignore"):
        path = Path(folder, "graph.pb")
        path.write_bytes(raw)
        with suppress(HealdError):
            return bef.dumps(compile_model(path, mmap=False))
        with heald.Session(graph) as session, suppress(HealdError):  # a few have no fetches
            fetches = find_outputs(session)
            return bef.dumps(session.prepare(fetches, find_inputs(session, fetches)).program)
    return _with_every_fact()


def _compile_groups(raw: bytes) -> bytes:
    """A graph as the file of a compiled model, whose nodes are in groups of a compiler. Open dimensions are 2."""
    shapes = {node.name: [dim or 2 for dim in node.attrs["shape"]] for node in graphdef.loads(raw).nodes.values()
              if node.op == "Placeholder"}
    with TemporaryDirectory(dir=MEMORY_FILES) as folder:
        path = Path(folder, "graph.pb")
        path.write_bytes(raw)
        return bef.dumps(compile_model(path, inputs=shapes, mmap=False, config=compiled_groups.runtime()))


def _with_every_fact() -> bytes:
    call = Call("tfrt.add.i32", (0, 0), (1,), {"a": 1, "b": (1.5, ("s", b"b"), None), "c": [np.arange(3)]},
                location=Location("p.mlir", 3, 1), after=(0,))
    return bef.dumps(ProgramDef({"main": ProgramFunction("main", ("x",), ("i32", "i32"), (call,), (1,))}))


def _host_programs() -> list[bytes]:
    """The texts of host programs as files."""
    return [raw for text in _texts_of_tests() if len(raw := bef.dumps(heald.mlir.loads(text))) < _SMALL]


def program_words() -> tuple[bytes, ...]:
    """Counts and offsets that are far too large, and padding."""
    return (*tuple(put_vbr(1 << bits) for bits in (7, 14, 31, 40, 63)), b"\xcc" * 4, b"\xff" * 4, bytes(4))


@cache
def program_text_pools() -> tuple[Pool, ...]:
    """The texts of host programs of the tests, and the programs of compiled graphs as texts."""
    compiled = Derived(program_pools()[0].samples, _program_text), Derived(program_pools()[1].samples, _program_text)
    return Pool(0.5, _single(_texts_of_tests())), Pool(0.3, compiled[0]), Pool(0.2, compiled[1])


@cache
def _texts_of_tests() -> list[bytes]:
    """Texts of host programs whose kernels this process has."""
    texts = []
    for file in sorted((ROOT / "tests" / "programs").rglob("*.mlir")):
        with suppress(InvalidArgument, NotFound):
            _check_kernels(heald.mlir.loads(file.read_bytes()))
            texts.append(file.read_bytes())
    return texts


def _check_kernels(program: heald.HostProgram) -> None:
    """Raises NotFound for a call whose host kernel this process lacks."""
    for function in program.functions.values():
        for call in function.kernels:
            if call.is_host_kernel:
                heald.default_host().registries.host_kernels.get(call.code)


def _program_text(raw: bytes) -> bytes:
    """The program of a BEF file as text; another text where text lacks words for a value."""
    try:
        return heald.mlir.dumps(bef.loads(raw).program).encode("utf-8", "surrogateescape")
    except HealdError:
        return _texts_of_tests()[0]


def program_text_words() -> tuple[bytes, ...]:
    """The vocabulary of MLIR: types, attributes, locations."""
    words = ("i1 i32 ui8 f32 bf16 !tfrt.chain tensor<2x?xf32> (i32)->i32 dense<1> unit array<i32:1> loc(unknown) #a !a "
             "^bb1 %arg0 @f tfrt.sync tfrt.native bef.nonstrict heald.stream tfrt.cost_threshold _tfrt_cost 0x7FC00000")
    return tuple(words.encode().split())


@cache
def tfg_text_pools() -> tuple[Pool, ...]:
    """Graphs in the TF Graph IR: random ones in two forms, TensorFlow's and the one that keeps all bytes; runnable ones
    of `graph_pools`; programs with their control flow as regions; texts in other spellings, over several lines."""
    with tarfile.open(DATA / "tfg" / "random.tar.xz") as archive:
        files = {member.name: archive.extractfile(member).read() for member in archive}  # type: ignore[union-attr]
    theirs = [raw for name, raw in files.items() if name.endswith(".tfg")]
    ours = [_graph_text(graphdef.loads(raw)) for name, raw in files.items()
            if name.endswith(".pb") and ".exported" not in name]
    random = (Pool(0.1, _single([text for text in texts if len(text) < _SMALL])) for texts in (theirs, ours))
    single, programs = graph_pools()
    return (*random, Pool(0.2, _single(_texts_in_other_spellings())),
            Pool(0.3, Derived(single.samples, lambda raw: _graph_text(graphdef.loads(raw)))),
            Pool(0.3, Derived(programs.samples, lambda raw: _graph_text(
                heald.tfg.functional_to_region(graphdef.loads(raw))))))


def _texts_in_other_spellings() -> list[bytes]:
    """The recorded texts of tests/tfg: valid and faulty ones, in the generic form, with aliases, comments and so on."""
    with lzma.open(DATA / "tfg" / "reading.jsonl.xz", "rt", encoding="ascii") as lines:
        return [json.loads(line)["source"].encode("utf-8", "surrogateescape") for line in lines]


def _graph_text(graph: Graph) -> bytes:
    return heald.tfg.dumps(graph).encode("utf-8", "surrogateescape")


def graph_text_words() -> tuple[bytes, ...]:
    """The vocabulary of the TF Graph IR: types, attributes, parts of operations."""
    words = ("!tf_type.control tensor<*xf32> tensor<*x!tf_type.resource> tensor<2x?xi32> #tf_type.shape<-1x3> [%ctl] "
             '#tf_type.func<@f,{}> #tf_type.placeholder<"T"> #tf_type.version<producer=9> dense<1> dense<"0x00"> '
             'name("x") device("/cpu:0") assigned_device("d") get_result(%a)"x":0 tfg.name _heald.node _heald.order '
             "_heald.values _heald.layout generic return yield condition IfRegion WhileRegion -> %ctl %Const #0 :2 "
             "unit")
    return tuple(word.encode() for word in words.split())


@cache
def saved_model_pools() -> tuple[Pool, ...]:
    """The SavedModels of the tests; the fast ones get the most mutants."""
    models = {path.parent.name: samples.folder(path) for path in sorted((DATA / "saved_models").glob("*/model"))}
    quick = tuple(Pool(share, [models.pop(name) for name in names]) for share, names in _QUICK)
    return *quick, Pool(0.05, list(models.values()))


@cache
def forest_pools() -> tuple[Pool, ...]:
    """The files of decision forests, and banks.npz, the inputs of their op."""
    forest_samples = []
    with np.load(DATA / "decision_forests" / "models.npz") as archive:
        arrays = dict(archive)
    for name in sorted({key.partition("/")[0] for key in arrays}):
        sample = {key.removeprefix(f"{name}/file/"): array.tobytes() for key, array in arrays.items()
                  if key.startswith(f"{name}/file/")}
        banks = {f"bank{i}": arrays[f"{name}/{i}"] for i in range(6)}
        forest_samples.append({**sample, "banks.npz": _archive(banks)[SINGLE]})
    return (Pool(1, forest_samples),)


@cache
def checkpoint_pools() -> tuple[Pool, ...]:
    """Checkpoints alone, with every type and with slices, and checkpoints within fast SavedModels."""
    models = [model for pool in saved_model_pools() for model in pool.samples]
    alone = [{name.removeprefix("variables/"): data for name, data in model.items() if name.startswith("variables/")}
             for model in models]
    pair = samples.folder(DATA / "saved_models" / "checkpoint")
    alone += [{n: data for n, data in pair.items() if n.startswith(f"{stem}.")} for stem in ("ckpt", "sliced")]
    quick = [model for pool in saved_model_pools()[:2] for model in pool.samples]
    return (Pool(0.7, [sample for sample in alone if 0 < sum(map(len, sample.values())) < _SMALL]),
            Pool(0.3, [model for model in quick if any(name.endswith(".index") for name in model)]))


@cache
def archive_pools() -> tuple[Pool, ...]:
    """Archives of arrays: many element types, ranks 0 to 3, both memory orders, empty arrays, compressed members."""
    npz_samples: list[Sample] = []
    for dtype in ("f4", "f8", "f2", "i1", "i4", "i8", "u1", "u2", "?", "c8", "S3", "U2", ">f4", "M8[s]"):
        for shape in ((), (3,), (2, 3), (2, 0, 1)):
            array = np.zeros(shape, dtype)
            npz_samples += [_archive({"x": array}), _archive({"x": np.asfortranarray(array)}, is_compressed=True)]
    record = np.zeros(2, [("a", "f4"), ("b", "i2")])
    several = {"x": np.arange(6, dtype="f4"), "y:0": np.eye(3), "scope/z": np.array(7)}
    npz_samples += [_archive({"x": record}), _archive(several), _archive(several, is_compressed=True)]
    return (Pool(1.0, npz_samples),)


def _archive(arrays: dict[str, Any], is_compressed: bool = False) -> Sample:
    out = io.BytesIO()
    (np.savez_compressed if is_compressed else np.savez)(out, **arrays)
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
def config_pools() -> tuple[Pool, ...]:
    """Config files, found from the working folder or named."""
    project = '[project]\nname = "x"\n\n' + _CONFIG.replace("[", "[tool.heald.", 1).replace("\n[", "\n[tool.heald.")
    nested = '# a comment\nplugins = {block = ["a"], strict = true}\nplugin."x-y".z = [{a = 1}, {b = 2.5}]\n'
    multi = 'passes.disable = [\n  "a", # first\n  """b\nc""",\n]\nkernels = {}\n'
    return (Pool(1.0, [{"heald.toml": _CONFIG.encode()}, {"heald.toml": nested.encode()},
                       {"heald.toml": multi.encode()},
                       {"pyproject.toml": project.replace("[tool.heald.tool.heald.", "[tool.heald.").encode()}]),)


_MODELS_CONFIG = """\
model_config_list {
  config {
    name: "a" base_path: "/models/a" model_platform: "tensorflow"
    model_version_policy { specific { versions: 1 versions: 2 } }
    version_labels { key: "stable" value: 1 }
  }
  config { name: "b" base_path: "/models/b" model_version_policy { latest { num_versions: 2 } } }
}
"""
_BATCHING_CONFIG = """\
max_batch_size { value: 32 } batch_timeout_micros { value: 2000 } max_enqueued_batches { value: 4 }
num_batch_threads { value: 2 } thread_pool_name { value: "t" } allowed_batch_sizes: [8, 16, 32]
enable_large_batch_splitting { value: true } max_execution_batch_size { value: 32 } pad_variable_length_inputs: true
"""
SERVE_WORDS = tuple(word.encode() for word in (
    "logging_config", "custom_model_config", "all", "latest", "gs://a", "-1", "0", "1e99", "9223372036854775808", "NaN",
    "-Infinity", '{"b64": "@"}', "[]", "{}", "null", "signature_name", "instances", "inputs", "examples", "context",
    "binary_data_size", "binary_data_output", "shared_memory_region", "BYTES", "BF16", "\\ud800", "\\x00"))


def serve_config_pools() -> tuple[Pool, ...]:
    """Files of the server's options."""
    from . import serve_doors

    texts = {serve_doors.MODELS: _MODELS_CONFIG, serve_doors.BATCHING: _BATCHING_CONFIG,
             serve_doors.MONITORING: 'prometheus_config { enable: true path: "/metrics" }',
             serve_doors.TLS: 'server_key: "KEY" server_cert: "CERT" custom_ca: "CA" client_verify: true'}
    return (Pool(1.0, [{name: text.encode()} for name, text in texts.items()]),)


def rest_body_pools() -> tuple[Pool, ...]:
    """Bodies of REST: rows, columns and examples."""
    return (Pool(1.0, _single([
        b'{"instances": [1.0, 2.5, -3e-7]}', b'{"inputs": {"x": [[1, 2], [3, NaN]]}}', b'{"inputs": [-Infinity, 0]}',
        b'{"signature_name": "s1", "instances": [{"a": 1, "s": "u"}, {"s": {"b64": "aGk="}, "a": -7}]}',
        b'{"signature_name": "s2", "instances": ["\\u00e9", {"b64": "aGk="}]}',
        b'{"signature_name": "s3", "inputs": {"b": [true], "u": [18446744073709551615], "d": [1e308]}}',
        b'{"signature_name": "c", "context": {"q": 1}, "examples": [{"x": [1, 2], "y": 1.5, "z": {"b64": "aGk="}}]}',
    ])),)


def binary_body_pools() -> tuple[Pool, ...]:
    """Bodies of the Open Inference Protocol."""
    import zlib

    from .serve_doors import BODY, LENGTH

    plain = (b'{"id": "1", "inputs": [{"name": "x", "shape": [2], "datatype": "FP32", "data": [1, 2.5]}, {"name": "s", '
             b'"shape": [1, 1], "datatype": "BYTES", "data": [["u"]]}], "outputs": [{"name": "x", "parameters": '
             b'{"binary_data": true}}]}')
    head = (b'{"inputs": [{"name": "s", "shape": [2], "datatype": "BYTES", "parameters": {"binary_data_size": 11}}, '
            b'{"name": "h", "shape": [1, 2], "datatype": "BF16", "parameters": {"binary_data_size": 4}}], '
            b'"parameters": {"binary_data_output": true}}')
    raw = b"\1\0\0\0a\2\0\0\0bc\0\x80\x80?"
    length = str(len(head)).encode()
    return (Pool(1.0, [{BODY: plain, LENGTH: b""}, {BODY: head + raw, LENGTH: length},
                       {BODY: zlib.compress(head + raw), LENGTH: length}]),)


def warmup_pools() -> tuple[Pool, ...]:
    """Warm-up records: a message of each kind."""
    from heald_serve.messages import message_class

    logs = []
    for _ in range(3):
        logs.append(message_class("PredictionLog")())
    tensor = logs[0].predict_log.request.inputs["x"]
    tensor.dtype = 1
    tensor.tensor_shape.dim.add(size=2)
    tensor.float_val.extend([1, 2])
    for log in (logs[1].regress_log, logs[2].multi_inference_log):
        feature = log.request.input.example_list.examples.add().features.feature["x"]
        feature.float_list.value.append(1)
    logs[1].regress_log.request.model_spec.signature_name = "s2"
    logs[2].multi_inference_log.request.tasks.add().model_spec.signature_name = "s2"
    return (Pool(1.0, [{"log.pb": log.SerializeToString(), "records": b""} for log in logs]),)


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
def distribution_pools() -> tuple[Pool, ...]:
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
