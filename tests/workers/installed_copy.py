"""The smoke test of an installed heald: its parts come from this environment, and work together.

    python installed_copy.py examples/digits    # with the interpreter of the environment; prints one line of facts
"""

from __future__ import annotations

import sys
from importlib.metadata import distributions
from pathlib import Path

import heald
import numpy as np


def check_origin() -> int:
    """The number of our distributions, each of this environment and of one version, with its licence text."""
    ours = [distribution for distribution in distributions() if distribution.name.startswith("heald")]
    for distribution in ours:
        assert distribution.version == heald.__version__, distribution.name
        assert Path(str(distribution.locate_file(""))).is_relative_to(sys.prefix), distribution.name
        assert distribution.read_text("licenses/LICENSE"), distribution.name
    return len(ours)


def check_plugins() -> int:
    """The number of plugins. Each is usable."""
    states = {plugin.id: plugin.status for plugin in heald.plugins()}
    assert set(states.values()) == {"ok"}, states
    return len(states)


def check_digits(folder: Path) -> None:
    """A frozen graph and a SavedModel return TensorFlow's recorded results."""
    recorded = np.load(folder / "test.npz")
    outputs = ["digit", "logits", "probabilities"]
    for model in (heald.load(folder / "frozen.pb", outputs=outputs), heald.load(folder / "saved_model")):
        results = model(recorded["image"])
        for name in outputs:
            np.testing.assert_allclose(results[name], recorded[name], atol=1e-4)


GRAPH = """
tfg.graph #tf_type.version<producer = 1000, min_consumer = 0> {
  %x, %ctl = Placeholder name("x") {dtype = f32, shape = #tf_type.shape<2>} : () -> (tensor<*xf32>)
  %y, %ctl_0 = Neg(%x) name("y") {T = f32} : (tensor<*xf32>) -> (tensor<*xf32>)
}"""
PROGRAM = """
func.func @double(%x: i32) -> i32 {
  %0 = "tfrt.add.i32"(%x, %x) : (i32, i32) -> i32
  "tfrt.return"(%0) : (i32) -> ()
}"""


def check_texts() -> None:
    """A graph and a host program of texts, and an eager op, compute."""
    graph = heald.tfg.loads(GRAPH)
    assert heald.Session(graph).run("y", {"x": [1, -2]}).tolist() == [-1, 2]
    assert heald.mlir.loads(PROGRAM).run("double", 21)[0].get() == 42
    assert heald.ops.relu(np.float32([-1, 2])).numpy().tolist() == [0, 2]


def main(digits: Path) -> None:
    counts = check_origin(), check_plugins()
    check_digits(digits)
    check_texts()
    print(f"heald {heald.__version__}: {counts[0]} distributions, {counts[1]} plugins, digits and texts work")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
