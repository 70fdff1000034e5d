"""Kernels touch their operands' memory alone, also under wrong types of a file.

They run in a process of their own. A read or write outside an array ends it with a signal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from harness import onednn_pair  # noqa: F401 - skips this module without the library
from heald.runtime.executor.calls.kernel_call import KernelCall

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


MANY = 2**33  # elements along one dimension: 0 in the 32 bits of a part of the library


@pytest.mark.parametrize("nodes", [
    [const("w", np.ones((16, 10))), const("b", np.ones(10)), node("m", "MatMul", "x", "w"),
     node("y", "BiasAdd", "m", "b")],
    [node("y", "Softmax", "x")], [node("y", "Relu", "x")], [node("y", "AddV2", "x", "x")]], ids=lambda n: n[-1].op)
def test_a_tensor_with_more_elements_than_the_library_counts_is_declined(nodes) -> None:
    with heald.Session(graph(placeholder("x", (None, 16)), *nodes)) as session:
        linked = session.prepare(["y"], ["x"]).executable(((MANY, 16),))
    assert not linked.algorithms()
    assert not any(isinstance(bound, KernelCall) and bound.kernel.pack == "onednn" for bound in linked.layout.calls)
