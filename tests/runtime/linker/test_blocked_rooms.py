"""The linker and the executor need neither graphs nor protobuf, lazily either."""

from __future__ import annotations

import subprocess
import sys

RUN = """
import sys


class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.startswith(("heald.graphs.graph", "heald.graphs.protobuf", "google.protobuf")):
            raise ImportError(f"{name} is blocked")


sys.meta_path.insert(0, Blocked())
import numpy as np
import heald
from heald.runtime.program.host_program import Call, ProgramFunction
from heald.runtime.values.dtypes import float32
from heald.runtime.values.tensor import TensorMetadata

X = TensorMetadata(float32, (None, 2))
CALLS = (Call("heald.constant", (), (1,), {"index": 0}, 0), Call("cpu.MatMul", (0, 1), (2,), {
             "T": float32, "transpose_a": False, "transpose_b": False}, 0, "product"),
         Call("cpu.Relu", (2,), (3,), {"T": float32}, 0, "relu"))
main = ProgramFunction("main", ("x",), (X, TensorMetadata(float32, (2, 2)), X, X), CALLS, (3,))
program = heald.HostProgram({"main": main}, (np.eye(2, dtype="f4") * 2,), ("CPU:0",))
(result,) = program.run("main", np.float32([[1, -2]]))
print(result.get().tolist())
assert not [name for name in sys.modules if name.startswith(("heald.graphs.graph", "heald.graphs.protobuf"))]
"""


def test_a_host_program_is_linked_and_runs_without_the_rooms_of_graphs_and_protobuf():
    done = subprocess.run([sys.executable, "-c", RUN], capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.stderr, done.returncode) == ("[[2.0, 0.0]]\n", "", 0)
