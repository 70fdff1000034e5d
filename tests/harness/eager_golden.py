"""TensorFlow's recorded cases through `execute` of a core runtime, one op at a time."""

from __future__ import annotations

from typing import NamedTuple

import heald
import numpy as np
from heald.graphs.compiler.resolve import Resolved, resolve
from heald.runtime.service.runtime import runtime
from heald_conformance.golden import Case, cases, disagreements
from heald_eager.core_runtime import CoreRuntime

NO_KERNEL = {  # ops that no test executes, and why
    "Const": "it is recorded without a graph",
    "MergeV2Checkpoints": "only saving needs it",
    **{op: "a deprecated op has no eager form" for op in cases() if runtime().host.registries.ops.get(op).deprecated},
}


class Passed(NamedTuple):
    """The number of cases that a device ran, and its disagreements with TensorFlow."""

    count: int
    wrong: list[str]


def execute_case(case: Case, core: CoreRuntime, device: str) -> list[np.ndarray] | heald.errors.HealdError:
    """The results of a case on a device, or its error."""
    node = case.graph().nodes["op"]
    if core.host.registries.ops.get(case.op).stateful:
        core = CoreRuntime(core.host)  # kernels that go on where they stopped begin anew
    try:
        results = core.execute(case.op, *case.inputs, attrs=node.attrs, device=device)
        return [handle.numpy() for handle in (results if isinstance(results, tuple) else (results,))]
    except heald.errors.HealdError as error:
        return error


def run_cases(core: CoreRuntime, device: str, *, is_sample: bool = False) -> Passed:
    """Execute each case with results for which the device has a kernel. A sample is one case of every fourth op."""
    wrong, count = [], 0
    kernels, ops = core.host.registries.kernels, core.host.registries.ops
    for op in sorted(cases().keys() - NO_KERNEL.keys())[:: 4 if is_sample else 1]:
        before = count
        for case in cases()[op]:
            if is_sample and count > before:
                break
            entry = resolve(case.graph(), ops)["op"]
            if not isinstance(entry, Resolved) or case.outputs is None:
                continue
            if not any(k.refuses(entry.attrs) is None for k in kernels.candidates(op, device.partition(":")[0])):
                continue
            got = execute_case(case, core, device)
            if isinstance(got, heald.errors.Unimplemented) and "no kernel on" in got.message:
                continue  # every kernel declined these shapes
            wrong += disagreements(case, got)
            count += 1
    return Passed(count, wrong)
