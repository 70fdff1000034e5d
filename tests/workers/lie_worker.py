"""A process that runs lies about compiled ops, since a lie that is believed may end it.

    python -m workers.lie_worker DEVICE CASES OP...

It writes one JSON text per line: the lie that it tries, then its fault, if there is one. The last line has the counts.
"""

from __future__ import annotations

import json
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import heald
import numpy as np
from builders.lies import lies
from heald.errors import HealdError, Internal, PluginError, Unknown
from heald.graphs.graph.graph import Node
from heald.graphs.session.ahead_of_time import compile_model
from heald.runtime.program.compiled_model import CompiledModel
from heald.runtime.service.compiled_model import LoadedCompiledModel
from heald_conformance.golden import Case, agree, cases

FAULTS = (Internal, PluginError, Unknown)
TOLERANCE = (1e-3, 1e-4)


def compile_case(case: Case, device: str, folder: Path, *, constant: bool) -> CompiledModel:
    """The case's op, compiled for its shapes. `constant`: all inputs but the first are constants."""
    graph = case.graph()
    fed = case.inputs[:1] if constant else case.inputs
    if constant:
        graph = graph.replace(nodes=[
            Node(f"i{i}", "Const", attrs={"dtype": graph.nodes[f"i{i}"].attrs["dtype"], "value": x})
            for i, x in enumerate(case.inputs) if i])
    path = folder / "case.pb"
    heald.graphdef.dump(graph, path)
    count = len(case.outputs or ())
    return compile_model(path, inputs={f"i{i}": x.shape for i, x in enumerate(fed)},
                         outputs=[f"op:{i}" for i in range(count)], device=device, mmap=False)


def run(model: CompiledModel, inputs: list[Any]) -> list[Any]:
    results = LoadedCompiledModel(model)(*inputs)
    return [*results.values()] if isinstance(results, dict) else [results]


def on_reference(model: CompiledModel) -> CompiledModel:
    """The model with the CPU's reference kernels."""
    functions = {name: function._replace(kernels=tuple(
        call._replace(code=f"cpu.{call.op}") if call.stream >= 0 and call.op not in ("constant", "copy", "event")
        else call for call in function.kernels)) for name, function in model.program.functions.items()}
    return model._replace(program=model.program._replace(functions=functions), prepared=())


def fault(lie: str, model: CompiledModel, inputs: list[Any], expected: list[Any], device: str) -> str | None:
    """Describe the fault of the answer, None without one."""
    try:
        results = run(model, inputs)
    except FAULTS as error:
        return f"{type(error).__name__}: {error}"
    except HealdError as error:
        return None if type(error) is not HealdError else str(error)
    except BaseException as error:  # noqa: BLE001 - no raw exception may come out
        return f"raw {type(error).__name__}: {error}"
    if not lie.startswith(("register", "'")) or "' of " in lie:
        if device != "CPU:0":
            return None
        try:
            expected = run(on_reference(model), inputs)
        except HealdError as error:
            return f"a result, the reference raises {type(error).__name__}: {error}"
    if len(results) != len(expected) or not all(agree(a, b, TOLERANCE) for a, b in zip(results, expected, strict=True)):
        return f"{results!r:.200}, expected {expected!r:.200}"
    return None


def attempts(op: str, device: str, count: int, folder: Path) -> Iterator[tuple[CompiledModel, list[Any], list[Any]]]:
    for case in cases()[op][:count]:
        for constant in (False, True):
            if case.outputs is None or not case.inputs or (constant and len(case.inputs) < 2):
                continue
            inputs = case.inputs[:1] if constant else case.inputs
            try:
                model = compile_case(case, device, folder, constant=constant)
                expected, again = run(model, inputs), run(model, inputs)
            except HealdError:
                continue
            if all(map(np.array_equal, expected, again)):  # random numbers tell nothing
                yield model, inputs, expected


def main(device: str, count: int, ops: list[str]) -> None:
    counts: Counter[str] = Counter()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        for op in ops:
            for model, inputs, expected in attempts(op, device, count, Path(folder)):
                counts["models"] += 1
                for lie, changed in lies(model):
                    print(json.dumps([op, lie]), flush=True)
                    outcome = fault(lie, changed, inputs, expected, device)
                    counts["lies"] += 1
                    if outcome is not None:
                        print(json.dumps({"fault": outcome}), flush=True)
    print(json.dumps(counts), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
