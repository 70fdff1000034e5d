"""Every recorded case that one op can express gives TensorFlow's results through `heald.execute`, on each device.

`tests/device_opencl` has the same for OpenCL devices, in a process of its own."""

from __future__ import annotations

import heald
import numpy as np
import pytest
from harness.eager_golden import NO_KERNEL, execute_case, run_cases
from heald.runtime.config.config import load_config
from heald.runtime.service.runtime import runtime
from heald_conformance.golden import Case, cases, disagreements
from heald_eager.core_runtime import CoreRuntime
from plugins_for_tests import kept_plugin

CONFIG = load_config({"plugins": {"allow": ["cpu", "tf_ops", "sim"]} | kept_plugin.CONFIG["plugins"]})
CORE = CoreRuntime(runtime(CONFIG).host)


def results_of_second_call(case: Case) -> list[np.ndarray] | heald.errors.HealdError | None:
    """The results of a second call with handles, which takes the fast path where there is one; None for a case that
    is an error."""
    if case.outputs is None:
        return None
    attrs = case.graph().nodes["op"].attrs
    handles = [CORE.handle(x) for x in case.inputs]
    try:
        for _ in range(2):
            results = CORE.execute(case.op, *handles, attrs=attrs)
        return [handle.numpy() for handle in (results if isinstance(results, tuple) else (results,))]
    except heald.errors.HealdError as error:
        return error


def test_repeated_cases_give_equal_results_on_the_fast_path():
    wrong = []
    for op in sorted(cases().keys() - NO_KERNEL.keys()):
        for case in [] if CORE.host.registries.ops.get(op).stateful else cases()[op]:
            got = results_of_second_call(case)
            wrong += [] if got is None else disagreements(case, got)
    assert not wrong, "\n".join(wrong)
    assert len(CORE.memo.fast) >= 1300


def test_recorded_cases_pass_on_the_cpu():
    wrong, count = [], 0
    for op in sorted(cases().keys() - NO_KERNEL.keys()):
        for case in cases()[op]:
            wrong += disagreements(case, execute_case(case, CORE, "CPU:0"))
            count += 1
    assert not wrong, "\n".join(wrong)
    assert count >= 2066


@pytest.mark.parametrize(("device", "least"), [("SIM:0", 1764), ("EXAMPLE:0", 29)])
def test_recorded_cases_pass_on_devices_with_a_kernel(device, least):
    host = runtime(CONFIG).host if device == "SIM:0" else heald.default_host()
    count, wrong = run_cases(CoreRuntime(host), device)
    assert not wrong, "\n".join(wrong)
    assert count >= least
    if device == "SIM:0":
        host.close()  # ends the thread that waits for the device
