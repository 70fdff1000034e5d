"""Without a driver the plugin is light, says why there is no GPU, and leaves other devices as they are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import heald
import pytest
from builders.graphs import graph, node, placeholder
from heald.runtime.service import runtime
from heald_cuda import driver

DIGITS = Path(__file__).parents[2] / "examples" / "digits"
LIBRARY = "libno-such-cuda-driver.so.1"


@pytest.fixture
def no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "LIBRARY", LIBRARY)
    monkeypatch.setattr(runtime, "process_scope", runtime.ProcessScope())


def run(code: str) -> dict[str, object]:
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False,
                          env={k: v for k, v in os.environ.items() if not k.startswith("HEALD_")})
    assert (done.returncode, done.stderr) == (0, "")
    return dict(json.loads(done.stdout))


def test_the_reason_is_the_systems_own_and_no_library_is_imported_for_it() -> None:
    answer = run(f"""
import json, sys
import heald_cuda.driver
heald_cuda.driver.LIBRARY = "{LIBRARY}"
import heald
(record,) = heald.HostContext().records("GPU")
print(json.dumps({{"record": [record.name, record.status, record.reason, record.remedy],
                   "imported": [name for name in sys.modules if name.partition(".")[0] == "cuda"]}}))
""")
    assert answer["record"] == [
        "GPU:*", "unavailable",
        f"there is no CUDA driver: {LIBRARY}: cannot open shared object file: No such file or directory",
        "install NVIDIA's driver; 'nvidia-smi' tells whether it works"]
    assert answer["imported"] == []


@pytest.mark.usefixtures("no_driver")
def test_a_request_for_a_gpu_gives_the_reason() -> None:
    net = graph(placeholder("x", (3,)), node("y", "Neg", "x", device="GPU:0"))
    with (heald.Session(net, {"placement": {"fallback": "error"}}) as session,
          pytest.raises(heald.errors.InvalidArgument, match="asks for GPU:0.*unavailable: there is no CUDA driver")):
        session.run("y", {"x": [1, 2, 3]})


@pytest.mark.usefixtures("no_driver")
def test_a_remapped_request_is_served() -> None:
    net = graph(placeholder("x", (3,)), node("y", "Neg", "x", device="GPU:0"))
    with heald.Session(net, {"placement": {"fallback": "error", "remap": {"GPU:*": "CPU:0"}}}) as session:
        assert session.run("y", {"x": [1, 2, 3]}).tolist() == [-1, -2, -3]


def test_a_text_is_compiled_without_a_driver() -> None:
    text = 'extern "C" __global__ void f(float* x, long long n) { x[threadIdx.x] = n * SCALE; }'
    binary, log = driver.compile_text(f"#ifdef FLAG\n{text}\n#endif", "sm_90", ["-DSCALE=2", "-DFLAG"])
    assert (binary[:4], b"SCALE" in binary, log) == (b"\x7fELF", False, "")
    assert b".text.f" in binary


def test_errors_of_the_compiler_are_shortened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from heald_cuda.programs import Programs

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    text = 'extern "C" __global__ void f(float* x) { a(); b(); c(); d(); }'
    message = r'kernel .f. does not compile: line 1: error: identifier "a" is undefined; .*"c" is undefined; and 1 more'
    with pytest.raises(heald.errors.Internal, match=message):
        Programs("sm_90").get(text, "", "f")


def test_the_seam_to_the_driver_is_small() -> None:
    import inspect

    public = [name for name, value in vars(driver).items()
              if inspect.isfunction(value) and value.__module__ == driver.__name__ and not name.startswith("_")]
    assert len(public) <= 25
