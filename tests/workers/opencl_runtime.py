"""An interpreter of its own that has an OpenCL device: PoCL where `make opencl-cpu` has put it, else what this machine
has, in the end Oclgrind, an interpreter of kernels that comes with the development environment.

The drivers bring threads, and read their environment once: both are kept away from all other tests.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]
PREAMBLE = """
import gc, json, os, sys, threading
import numpy as np
import heald
from builders.graphs import FLOAT, const, graph, node, placeholder
from heald.runtime.values import dtypes
from heald.runtime.service.runtime import runtime

def tell(**facts):
    print(json.dumps(facts))
"""


def unpacked_environment() -> dict[str, str]:
    """The environment that `make opencl-cpu` prints; empty where that was not run."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser(), "heald", "opencl-cpu")
    if not (home / "ready").exists():
        return {}
    paths = [(home / "library_path").read_text("utf-8").strip(), os.environ.get("LD_LIBRARY_PATH", "")]
    return {"OCL_ICD_VENDORS": str(home / "vendors"), "LD_LIBRARY_PATH": ":".join(p for p in paths if p)}


def environment() -> dict[str, str]:
    """Of a process that is to find that device, and the modules of the tests."""
    kept_variables = {k: v for k, v in os.environ.items() if not k.startswith("HEALD_")}
    return kept_variables | unpacked_environment() | {"PYTHONPATH": str(TESTS)}


def run(code: str, cache: Path, env: Mapping[str, str] | None = None) -> Any:
    """The argument of `tell(...)` in `code`, run by a fresh interpreter where warnings are errors."""
    cache_folders = {"XDG_CONFIG_HOME": str(cache), "XDG_CACHE_HOME": str(cache)}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PREAMBLE + textwrap.dedent(code)],
        env=environment() | cache_folders | dict(env or {}),
        cwd=cache, capture_output=True, text=True, timeout=600, check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
