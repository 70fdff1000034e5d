"""No kernel believes a file: lies about compiled ops are refused, or the answer is right.

The lies about an op run in a process of their own, which a lie that is believed may end. The gate takes a sample of ops
on the CPU; with HEALDTEST_CASES=all, every recorded op that a native pack has kernels for runs on every device.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import heald
import pytest
from fake_cuda.host_compiler import is_there
from heald.runtime.service.runtime import runtime
from heald_conformance.golden import cases

TESTS = Path(__file__).parents[2]
SAMPLE = ("Softmax", "MaxPool", "ConcatV2", "BatchMatMulV2")
IS_THOROUGH = os.environ.get("HEALDTEST_CASES") == "all"
FAKE = {"HEALD_PLUGINS__LOAD": json.dumps([str(TESTS / "fake_cuda/plugin.py")])}


def faults(device: str, op: str, largest_count: int) -> list[str]:
    """Run the lies about an op. Returns a text for each that had a fault, and for one that ended the process."""
    environment = {**os.environ, "PYTHONPATH": str(TESTS), **(FAKE if device == "GPU:0" else {})}
    command = [sys.executable, "-m", "workers.lie_worker", device, str(largest_count), op]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=3000)
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    if ran.returncode:
        return [f"{lines[-1] if lines else op}: status {ran.returncode}: {ran.stderr[-2000:]}"]
    all_faults = [f"{lie}: {line['fault']}" for lie, line in pairwise(lines)
                  if isinstance(line, dict) and "fault" in line]
    assert lines[-1].get("lies", 0) or device != "CPU:0", "no case of the op was compiled"
    return all_faults


@pytest.mark.parametrize("op", SAMPLE)
def test_lies_about_an_op_of_the_cpu_are_refused_or_the_answer_is_right(op):
    assert faults("CPU:0", op, 1) == []


def native(device: str) -> list[str]:
    kernels = runtime().host.registries.kernels
    return sorted(op for op in cases() if any(kernel.pack != "cpu" for kernel in kernels.candidates(op, device)))


@pytest.mark.skipif(not IS_THOROUGH, reason="HEALDTEST_CASES=all runs them")
@pytest.mark.parametrize("device", ["CPU:0", "OPENCL:0", "GPU:0"])
def test_lies_about_every_recorded_op_of_a_native_pack_are_refused_or_the_answer_is_right(device):
    if device == "GPU:0" and is_there() is not None:
        pytest.skip(is_there())
    if device == "OPENCL:0" and device not in [record.name for record in heald.devices()]:
        pytest.skip("no OpenCL device")
    ops = native(device.partition(":")[0]) if device != "GPU:0" else native("OPENCL")
    assert [fault for op in ops for fault in faults(device, op, 3)] == []
