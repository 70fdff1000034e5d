"""Edits the frozen digits network: another softmax, no head, its features as output. Runs the saved graph."""

import sys
from pathlib import Path

import heald
import numpy as np
from heald.api import Graph, Node
from heald.runtime.values.dtypes import float32, int32

DIGITS = Path(__file__).parent / "digits"
SOFTMAX, LOGITS = "functional_1/probabilities_1/Softmax", "functional_1/logits_1/BiasAdd"
FEATURES = "functional_1/global_average_pooling2d_1/Mean"
T, REDUCED = {"T": float32}, {"T": float32, "keep_dims": True, "Tidx": int32}
LOG_SOFTMAX = Graph([  # without the op of that name: x - max - log(sum(exp(x - max)))
    Node("x", "Placeholder", attrs={"dtype": float32}),
    Node("axis", "Const", attrs={"dtype": int32, "value": np.array([1], np.int32)}),
    Node("max", "Max", ["x", "axis"], attrs=REDUCED), Node("shifted", "Sub", ["x", "max"], attrs=T),
    Node("exp", "Exp", ["shifted"], attrs=T), Node("sum", "Sum", ["exp", "axis"], attrs=REDUCED),
    Node("log", "Log", ["sum"], attrs=T), Node("y", "Sub", ["shifted", "log"], attrs=T)])


def main(folder: Path) -> None:
    graph, images = heald.graphdef.load(DIGITS / "frozen.pb"), np.load(DIGITS / "test.npz")["image"]
    logs = graph.replace_subgraph(SOFTMAX, LOG_SOFTMAX, inputs={"x": LOGITS}, outputs={SOFTMAX: "y"}, prefix="log/")
    heald.graphdef.dump(logs.rename("probabilities", "log_probabilities"), folder / "logs.pb")
    features = graph.expose_output(FEATURES, "features", dtype=float32).keep_outputs("features")
    heald.graphdef.dump(features, folder / "features.pb")

    probabilities = heald.load(DIGITS / "frozen.pb", outputs=["probabilities"])(images)
    logarithms = heald.load(folder / "logs.pb", outputs=["log_probabilities"])(images)
    print(f"largest difference of the probabilities: {np.abs(np.exp(logarithms) - probabilities).max():.1e}")
    print(f"features of {len(features)} nodes: {heald.load(folder / 'features.pb')(images).shape}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
