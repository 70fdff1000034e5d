"""Records cases of ops by real TensorFlow, for the conformance suite and the tests of kernels.

    PYTHONPATH=tests python -m workers.record_cases --tensorflow PYTHON CASES.py
    PYTHONPATH=tests python -m workers.record_cases --tensorflow PYTHON --check 200

PYTHON is the interpreter of an environment with the package tensorflow-cpu; heald need not be in it. CASES.py sets
CASES, a list of Calls. A case that is recorded already is recorded again. `--family NAME` puts the cases into a folder
of their own: work on several families meets in no file. `--check N` asks TensorFlow for N recorded
cases anew, and reports every difference.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import re
import runpy
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from heald import errors, graphdef
from heald.graphs.graph.graph import Graph, Node
from heald.runtime.contract.op import OpDef, SignatureTensor
from heald.runtime.contract.op_attrs import OpAttrs
from heald.runtime.service.runtime import runtime
from heald.runtime.support.whole_file import write_whole
from heald.runtime.values.dtypes import DType
from heald_conformance.golden import FOLDER, Case, agree, cases
from heald_eager.signature import match
from workers.tensorflow_process import TensorFlow, plain

Array = np.ndarray[Any, Any]
ROUNDING = {"float64": 1e-10, "float32": 1e-5, "float16": 1e-3, "bfloat16": 1e-2, "complex64": 1e-5,
            "complex128": 1e-10}
CLASSES = {kind.code: kind.__name__ for kind in errors.HealdError.__subclasses__()}
ALIGNMENT = 16  # bytes, of the arrays in the blob


class Call(NamedTuple):
    """One call to record. Types and numbers that the inputs determine need no attribute. A list argument is a list.

    `tolerance`: (relative, absolute) for the outputs; None for the rounding of their type, 0 where it has none.
    """

    op: str
    inputs: Sequence[Any]
    attrs: Mapping[str, Any] = {}
    tolerance: tuple[float, float] | None = None
    note: str = ""


@dataclass(frozen=True)
class Recorded:
    """A call with TensorFlow's answers: outputs, or (code, message); the shapes inferred without values, "?" where the
    rank is unknown, or an error's text."""

    call: Call
    op: OpDef
    attrs: Mapping[str, Any]
    inputs: list[tuple[SignatureTensor, Array]]
    outputs: list[Array] | tuple[int, str]
    static: list[list[int | None] | str] | str


def record(call: Call, tensorflow: TensorFlow) -> Recorded:
    """Raises InvalidArgument for a call that does not fit its op, and for one that TensorFlow cannot be asked."""
    op = runtime().plugins.registries.ops.get(call.op)
    matched = match(op._replace(deprecated=None), list(call.inputs), OpAttrs(call.attrs))
    inputs = [(tensor, np.asarray(x, tensor.dtype.numpy))
              for tensor, x in zip(op.expand_inputs(matched.attrs), matched.inputs, strict=True)]
    outputs = tensorflow.answer(op, matched.attrs, inputs, "eager")
    if outputs is None or (isinstance(outputs, tuple) and outputs[0] is None):
        why = "its process has ended" if outputs is None else outputs[1]
        raise errors.InvalidArgument(f"TensorFlow gives no answer: {why}", op=call.op)
    static = tensorflow.answer(op, matched.attrs, inputs, "shapes")
    shapes = static[1].split(" for '{{")[0] if isinstance(static, tuple) else ["?" if x is None else x for x in static]
    return Recorded(call, op, matched.attrs, inputs, _clean_outputs(outputs), shapes)


def _clean_outputs(outputs: Any) -> Any:
    """Outputs as arrays; an error's text without the places that TensorFlow adds."""
    if isinstance(outputs, tuple):
        return outputs[0], re.sub(r"^\{\{function_node [^}]*\}\} ?| \[Op:\w+\].*$", "", outputs[1], flags=re.DOTALL)
    return [np.asarray(x, object) if isinstance(x, bytes) else np.asarray(x) for x in outputs]


class Archive:
    """The recorded cases of a folder: index.json, the bytes of all arrays in data.npz, and a graph for each case."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder
        if not (folder / "index.json").exists():
            self._index: dict[str, Any] = _head_of_index() | {"cases": []}
            self._blob, self._graphs = bytearray(), {}
            return
        self._index = json.loads((folder / "index.json").read_text("utf-8"))
        self._blob = bytearray(np.load(folder / "data.npz")["blob"].tobytes())
        with zipfile.ZipFile(folder / "graphs.zip") as archive:
            self._graphs = {name: archive.read(name) for name in archive.namelist()}

    def add(self, recorded: Recorded) -> str:
        """Add a case, or put it in the place of the same one. Returns its id."""
        row = self._row(recorded)
        rows = self._index["cases"]
        row_index = next((i for i, other in enumerate(rows) if other["id"] == row["id"]), len(rows))
        rows[row_index : row_index + 1] = [row]
        self._graphs[f"{row['id']}.pb"] = graphdef.dumps(graph_of(recorded))
        return str(row["id"])

    def write(self) -> None:
        """Write all three files, each aside and then in its place."""
        self._folder.mkdir(exist_ok=True)
        data, graphs = io.BytesIO(), io.BytesIO()
        np.savez_compressed(data, blob=np.frombuffer(bytes(self._blob), np.uint8))
        with zipfile.ZipFile(graphs, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in self._graphs.items():
                archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
        for name, text in (("data.npz", data.getvalue()), ("graphs.zip", graphs.getvalue()),
                           ("index.json", _lines(self._index).encode())):
            write_whole(self._folder / name, [text])

    def _row(self, recorded: Recorded) -> dict[str, Any]:
        attrs = {name: _attribute(value) for name, value in recorded.attrs.items()}
        content = repr((attrs, [(t.dtype.name, x.shape, x.tolist()) for t, x in recorded.inputs]))
        key = hashlib.sha256(content.encode()).hexdigest()[:8]
        row: dict[str, Any] = {"id": f"{recorded.op.name}#{key}", "op": recorded.op.name, "attrs": attrs,
                               "in": [self._reference(t.dtype, x) for t, x in recorded.inputs]}
        if isinstance(recorded.outputs, tuple):
            code, message = recorded.outputs
            row["error"] = {"class": f"{CLASSES[code]}Error", "code": code, "message": message}
        else:
            types = [tensor.dtype for tensor in recorded.op.expand_outputs(recorded.attrs)]
            row["out"] = [self._reference(t, x) for t, x in zip(types, recorded.outputs, strict=True)]
            rounding = max((ROUNDING.get(t.name, 0) for t in types), default=0)
            row["tol"] = [*(recorded.call.tolerance or (rounding, rounding))]
        row["static"] = recorded.static if isinstance(recorded.static, list) else {"error": recorded.static}
        return row | ({"note": recorded.call.note} if recorded.call.note else {})

    def _reference(self, dtype: DType, array: Array) -> list[Any]:
        """The array as the index has it; its bytes go to the blob."""
        if dtype.name == "string":
            return ["string", [*array.shape], [text.decode("latin1") for text in array.reshape(-1)]]
        self._blob += bytes(-len(self._blob) % ALIGNMENT)
        start = len(self._blob)
        self._blob += np.ascontiguousarray(array).tobytes()
        return [dtype.tf_name, [*array.shape], start]


def _head_of_index() -> dict[str, Any]:
    """The facts about all cases, of which each folder's index has a copy."""
    index: dict[str, Any] = json.loads((FOLDER / "index.json").read_text("utf-8"))
    return {name: value for name, value in index.items() if name != "cases"}


def _lines(index: Mapping[str, Any]) -> str:
    """The index as JSON with a line for each case."""
    head = json.dumps({name: value for name, value in index.items() if name != "cases"})
    rows = ",\n".join(json.dumps(row, separators=(",", ":")) for row in index["cases"])
    return f'{head[:-1]}, "cases": [\n{rows}\n]}}\n'


def _attribute(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_attribute(element) for element in value]
    return value.tf_name if isinstance(value, DType) else plain(value)


def graph_of(recorded: Recorded) -> Graph:
    """Placeholders i0, i1, ... of unknown shape, and the node `op`."""
    fed = [Node(f"i{i}", "Placeholder", attrs={"dtype": tensor.dtype, "shape": None})
           for i, (tensor, _) in enumerate(recorded.inputs)]
    return Graph([*fed, Node("op", recorded.op.name, [node.name for node in fed], attrs=recorded.attrs)])


def call_of(case: Case) -> Call:
    """The call of a recorded case."""
    op = runtime().plugins.registries.ops.get(case.op)
    nodes = case.graph().nodes
    attrs = {name: value for name, value in nodes["op"].attrs.items() if name in op.attrs}
    counts = [arg.count(attrs) for arg in op.inputs]
    arrays = iter(case.inputs)
    grouped: list[Any] = [[next(arrays) for _ in range(count)] for count in counts]
    is_list = [arg.number_attr is not None or arg.type_list_attr is not None for arg in op.inputs]
    return Call(case.op, [group if many else group[0] for group, many in zip(grouped, is_list, strict=True)], attrs)


def differences(case: Case, fresh: Recorded) -> Iterator[str]:
    """The differences between a recorded case and TensorFlow's present answer."""
    static = fresh.static if isinstance(fresh.static, list) else {"error": fresh.static}
    if static != case.static and not (isinstance(static, dict) and isinstance(case.static, dict)):
        yield f"{case.id}: shapes {static}, recorded {case.static}"
    if isinstance(fresh.outputs, tuple) or case.outputs is None:
        code = fresh.outputs[0] if isinstance(fresh.outputs, tuple) else None
        if code != case.code:
            yield f"{case.id}: code {code}, recorded {case.code}"
        return
    for i, (got, want) in enumerate(zip(fresh.outputs, case.outputs, strict=True)):
        if want is not None and not agree(got, want, case.tolerance):
            yield f"{case.id}: output {i} is {got!r}, recorded {want!r}"


def check(number: int, tensorflow: TensorFlow) -> int:
    """Compare cases, evenly chosen among the recorded ones. Returns the exit status."""
    every = [case for of_op in cases().values() for case in of_op]
    sample = every[:: max(1, len(every) // number)][:number]
    wrong = skipped = 0
    for case in sample:
        try:
            recorded = record(call_of(case), tensorflow)
        except (errors.HealdError, LookupError) as error:
            print(f"{case.id}: not asked: {error}")
            skipped += 1
            continue
        texts = [*differences(case, recorded)]
        wrong += bool(texts)
        print(*texts, sep="\n", end="\n" if texts else "")
    print(f"{len(sample)} cases: {len(sample) - wrong - skipped} as recorded, {wrong} differ, {skipped} not asked")
    return int(wrong > 0)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("cases", nargs="?", metavar="CASES.py", help="a file that sets CASES, a list of Calls")
    parser.add_argument("--tensorflow", default=sys.executable, metavar="PYTHON", help="an interpreter with TensorFlow")
    parser.add_argument("--family", default="", metavar="NAME", help="record into the folder NAME of the cases")
    parser.add_argument("--check", type=int, default=0, metavar="N", help="compare N recorded cases with TensorFlow")
    args = parser.parse_args(arguments)
    tensorflow = TensorFlow(args.tensorflow)
    try:
        if args.check:
            return check(args.check, tensorflow)
        archive = Archive(FOLDER / args.family)
        for call in runpy.run_path(args.cases)["CASES"]:
            recorded = record(call, tensorflow)
            said = recorded.outputs[1] if isinstance(recorded.outputs, tuple) else recorded.static
            print(f"{archive.add(recorded)}: {said}")
        archive.write()
    finally:
        tensorflow.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
