"""Kernels touch their operands' memory alone, whoever states the types: in a process of their own, which a read or
write outside an array ends with a signal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from harness import onednn_pair  # noqa: F401 - skips this module without the library

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="guards need Linux")


def test_no_kernel_leaves_its_operands_where_metadata_or_arrays_lie() -> None:
    path = os.pathsep.join((str(ROOT), str(ROOT / "tests")))
    done = subprocess.run([sys.executable, "-X", "faulthandler", "-m", "workers.lying_binds"], text=True,
                          capture_output=True, env=os.environ | {"PYTHONPATH": path}, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    outcomes = json.loads(done.stdout)
    assert outcomes["bind: declined"] > 900
    assert outcomes["attach: typed"] > 100
    assert "attach: ran" not in outcomes
