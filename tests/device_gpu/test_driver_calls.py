"""The functions of heald_cuda.driver call the driver's C functions with the right arguments, through cuda-bindings.

tests/fake_cuda/libcuda.cc takes the driver's place. It checks the order and the types of arguments, and nothing else.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fake_cuda import host_compiler

SOURCE = Path(host_compiler.__file__).with_name("libcuda.cc")
PROGRAM = """
import json, os, sys
from pathlib import Path
from types import SimpleNamespace
from cuda.core.utils import StridedMemoryView
from heald.api import dtypes
from heald_cuda import driver, foreign
from heald_cuda.driver import Context

def fail():
    raise ValueError("a kernel that waits")

def shared(stream):
    queue = SimpleNamespace(record=lambda: SimpleNamespace(marks=[SimpleNamespace(handle=3)]))
    buffer = SimpleNamespace(pointer=0x7000, ordinal=1, queue=queue)
    got = StridedMemoryView.from_dlpack(foreign.View(buffer, dtypes.float32, (2, 3), 4), stream_ptr=stream)
    return got.ptr, got.shape, got.device_id, str(got.dtype)

answers, calls = [], Path(os.environ["HEALDTEST_CALLS"])
for call in json.loads(sys.argv[1]):
    calls.write_text("")
    try:
        result = eval(call)
    except Exception as error:
        result = f"{type(error).__name__}: {error}"
    answers.append((result, calls.read_text().splitlines()))
print(json.dumps(answers))
"""
NEW = ["cuDeviceGet 1", "cuDevicePrimaryCtxRetain 101", "cuCtxSetCurrent 5", "cuMemPoolCreate 1 0 1 1",
       "cuMemPoolSetAttribute 7 4 18446744073709551615", "cuDeviceGetCount", "cuDeviceGet 0",
       "cuDeviceCanAccessPeer 100 101", "cuMemPoolSetAccess 7 1 0 3 1"]
SHARED = ["cuPointerGetAttribute 9 28672", "cuPointerGetAttributes 28672"]  # 9: DEVICE_ORDINAL
LOST = "DriverError: a fault (CUDA_ERROR_ILLEGAL_ADDRESS)"
CALLS: dict[str, tuple[Any, list[str]]] = {  # call: its result, the calls of the driver
    "driver.open_context(1)": ([1, 5, 7], NEW),
    "driver.close_context(Context(1, 5, 7))": (
        None, ["cuMemPoolDestroy 7", "cuDeviceGet 1", "cuDevicePrimaryCtxRelease 101"]),
    "driver.enter(5)": (None, ["cuCtxSetCurrent 5"]),
    "driver.can_access(0, 1)": (True, ["cuDeviceGet 0", "cuDeviceGet 1", "cuDeviceCanAccessPeer 100 101"]),
    "driver.new_stream()": (21, ["cuStreamCreate 1"]),  # CU_STREAM_NON_BLOCKING
    "driver.new_event()": (22, ["cuEventCreate 0"]),
    "driver.destroy('stream', 3)": (None, ["cuStreamDestroy 3"]),
    "driver.destroy('event', 3)": (None, ["cuEventDestroy 3"]),
    "driver.destroy('graph', 3)": (None, ["cuGraphExecDestroy 3"]),
    "driver.record(3, 4)": (None, ["cuEventRecord 3 4"]),
    "driver.wait(4, 3)": (None, ["cuStreamWaitEvent 4 3 0"]),
    "driver.synchronize(3)": (None, ["cuEventSynchronize 3"]),
    "driver.elapsed(3, 4)": (1.5, ["cuEventElapsedTime 3 4"]),
    "driver.allocate(Context(1, 5, 7), 64, 4)": (0x7000, ["cuMemAllocFromPoolAsync 64 7 4"]),
    "driver.free(4096, 4)": (None, ["cuMemFreeAsync 4096 4"]),
    "driver.trim(Context(1, 5, 7))": (1000, ["cuMemPoolTrimTo 7 0", "cuMemGetInfo"]),
    "driver.allocate_host(64)": (0x8000, ["cuMemHostAlloc 64 1"]),  # CU_MEMHOSTALLOC_PORTABLE
    "driver.free_host(4096)": (None, ["cuMemFreeHost 4096"]),
    "driver.copy(1, 2, 3, 4)": (None, ["cuMemcpyAsync 1 2 3 4"]),
    "driver.function(b'cubin', 'add')": (42, ["cuModuleLoadData cubin", "cuModuleGetFunction 41 add"]),
    "driver.launch(9, (1, 2, 3), (4, 5, 6), 7, 8, 4096)": (None, ["cuLaunchKernel 9 1 2 3 4 5 6 7 8 4096 0"]),
    "driver.capture(4, lambda: None)": (32, [
        "cuStreamBeginCapture 4 1", "cuStreamEndCapture 4", "cuGraphInstantiateWithFlags 31 0", "cuGraphDestroy 31"]),
    "driver.capture(4, fail)": ("ValueError: a kernel that waits", [
        "cuStreamBeginCapture 4 1", "cuStreamEndCapture 4", "cuGraphDestroy 31"]),
    "driver.replay(3, 4)": (None, ["cuGraphLaunch 3 4"]),
    "driver.replay(3, 666)": (LOST, ["cuGraphLaunch 3 666", "cuGetErrorString 700"]),
    "shared(4)": ([0x7000, [2, 3], 1, "float32"], SHARED),
    "shared(6)": ([0x7000, [2, 3], 1, "float32"], ["cuStreamWaitEvent 6 3 0", *SHARED]),
    "driver.devices()[1]": ([1, "A GPU", "65" * 16, "0000:01:00.0", 1 << 35, [75, 76], 16, 13000, 36000, 37, [13, 0]], [
        "cuDeviceGetCount", *(f"{name}{number}" for number in (100, 101) for name in (
            f"cuDeviceGet {number - 100}#", "cuDeviceGetName 256 ", "cuDeviceGetUuid ", "cuDeviceGetPCIBusId 32 ",
            "cuDeviceTotalMem ", *(f"cuDeviceGetAttribute {n} " for n in (75, 76, 16, 13, 36, 37)),
            "cuDriverGetVersion#"))]),
}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    reason = host_compiler.is_there()
    if reason is not None:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("libcuda")
    subprocess.run(["g++", "-std=c++20", "-w", "-fPIC", "-shared", str(SOURCE), "-o", str(folder / "libcuda.so.1")],
                   check=True)
    return folder


def answers(library: Path, calls: list[str], version: str = "13000") -> list[Any]:
    environ = os.environ | {"LD_LIBRARY_PATH": str(library), "HEALDTEST_CALLS": str(library / "calls"),
                            "HEALDTEST_DRIVER": version}
    done = subprocess.run([sys.executable, "-c", PROGRAM, json.dumps(calls)], capture_output=True, text=True,
                          env=environ, check=False)
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


def test_every_function_calls_the_driver_with_the_arguments_of_cuda_h(library: Path) -> None:
    for (call, (result, calls)), answer in zip(CALLS.items(), answers(library, list(CALLS)), strict=True):
        expected = [call_text.partition("#")[0] for call_text in calls]  # the number behind # is only the loop's
        assert answer == [result, expected], call


def test_every_function_of_the_seam_is_called() -> None:
    from heald_cuda import driver

    names = {name for name, value in vars(driver).items() if getattr(value, "__module__", "") == driver.__name__
             and callable(value) and not isinstance(value, type) and not name.startswith("_")}
    called = {call.partition(".")[2].partition("(")[0] for call in CALLS if call.startswith("driver.")}
    assert names - called == {"compile_text", "probe"}  # these two are called below and in test_no_driver


def test_a_driver_that_is_older_than_the_compiler_is_told(library: Path) -> None:
    (((refusal, _),), ((fine, _),)) = (answers(library, ["driver.probe()"], version) for version in ("12090", "13000"))
    assert refusal.startswith("Unavailable: the driver is of CUDA 12.9, the compiler of 13")
    assert fine is None
