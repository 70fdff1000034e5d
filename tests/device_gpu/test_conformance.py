"""The conformance suite on GPUs of the fake driver: its quick form, and of the kernels one type each.

`make fake-gpu` runs all types. A pass says that the device keeps its contract, and that its texts, compiled by a C++
compiler, give the CPU's results. It says nothing about a GPU.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fake_cuda.host_compiler import is_there

PLUGIN = Path(__file__).parents[1] / "fake_cuda" / "plugin.py"
KERNELS = "a_kernel_agrees_with_the_cpu and (float32 or Logical or All or Any)"
FIRST_HALF = " or ".join(f"[{letter}" for letter in "abcdefghijkl")  # ops by their first letter: each part on a worker
PARTS = {  # cases by the words of their names
    "rules": "not kernels and not many_rows_or_elements",  # many groups take minutes on a C++ compiler
    "kernels A-L": f"{KERNELS} and ({FIRST_HALF})",
    "kernels M-Z": f"{KERNELS} and not ({FIRST_HALF})",
}


@pytest.mark.parametrize("part", PARTS)
def test_the_suite_passes(part: str, tmp_path: Path) -> None:
    reason = is_there()
    if reason is not None:
        pytest.skip(reason)
    command = [sys.executable, "-m", "pytest", "--pyargs", "heald_conformance", "--conformance-quick", "-q", "--device",
               "GPU:0", "-p", "no:cacheprovider", "-p", "no:xdist", "-k", PARTS[part]]
    environ = {k: v for k, v in os.environ.items() if not k.startswith("HEALD_")}
    environ |= {"HEALD_PLUGINS__LOAD": f'["{PLUGIN}"]', "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environ, check=False, timeout=900)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    assert "passed" in done.stdout
