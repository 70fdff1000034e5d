"""Every recorded case that one op can express gives through `weft.execute` what TensorFlow gave, on each device."""

from __future__ import annotations

import numpy as np
import pytest
import weft
from plugins_for_tests import kept_plugin
from weft.compiler.resolve import Resolved, resolve
from weft.config.config import load_config
from weft.eager.core_runtime import CoreRuntime
from weft.session.runtime import runtime
from weft_conformance.golden import Case, cases, disagreements

NO_KERNEL = {"Const", "NoOp", "MergeV2Checkpoints"}  # the compiler's own ops, and one that only saving needs
CONFIG = load_config({"plugins": {"allow": ["cpu", "tf_ops", "sim"]} | kept_plugin.CONFIG["plugins"]})
CORE = CoreRuntime(runtime(CONFIG).host)
DEFAULT = CoreRuntime(weft.default_host())  # with all packs of this environment
BY_DEVICE = {"CPU:0": CORE, "SIM:0": CORE, "EXAMPLE:0": DEFAULT}


def executed(case: Case, core: CoreRuntime, device: str) -> list[np.ndarray] | weft.errors.WeftError:
    node = case.graph().nodes["op"]
    if core.host.registries.ops.get(case.op).stateful:
        core = CoreRuntime(core.host)  # kernels that go on where they stopped begin anew
    try:
        results = core.execute(case.op, *case.inputs, attrs=node.attrs, device=device)
        return [handle.numpy() for handle in (results if isinstance(results, tuple) else (results,))]
    except weft.errors.WeftError as error:
        return error


def test_every_case_passes_on_cpu():
    wrong, count = [], 0
    for op in sorted(cases().keys() - NO_KERNEL):
        for case in cases()[op]:
            wrong += disagreements(case, executed(case, CORE, "CPU:0"))
            count += 1
    assert not wrong, "\n".join(wrong)
    assert count == 2065


@pytest.mark.parametrize(("device", "expected"), [("SIM:0", 1764), ("EXAMPLE:0", 29)])
def test_every_case_passes_on_devices_with_a_kernel(device, expected):
    core, wrong, count = BY_DEVICE[device], [], 0
    kernels = core.host.registries.kernels
    for op in sorted(cases().keys() - NO_KERNEL):
        for case in cases()[op]:
            entry = resolve(case.graph(), core.host.registries.ops)["op"]
            if not isinstance(entry, Resolved) or case.outputs is None:
                continue
            if not any(k.refuses(entry.attrs) is None for k in kernels.candidates(op, device.partition(":")[0])):
                continue
            got = executed(case, core, device)
            if isinstance(got, weft.errors.Unimplemented) and "no kernel on" in got.message:
                continue  # every kernel declined these shapes
            wrong += disagreements(case, got)
            count += 1
    assert not wrong, "\n".join(wrong)
    assert count == expected
