"""Edits the frozen digits network: another softmax, no head, its features as output. Runs what it saved."""

import sys
from pathlib import Path

import numpy as np
import weft
from weft.api import Graph, Node
from weft.values.dtypes import float32, int32

DIGITS = Path(__file__).parent / "digits"
SOFTMAX = "functional_1/probabilities_1/Softmax"
LOGITS = "functional_1/logits_1/BiasAdd"
FEATURES = "functional_1/global_average_pooling2d_1/Mean"


def main(folder: Path) -> None:
    graph = weft.graphdef.load(DIGITS / "frozen.pb")
    images = np.load(DIGITS / "test.npz")["image"]

    of_float = {"T": float32}  # log-softmax without the op of that name: x - max - log(sum(exp(x - max)))
    axis = Node("axis", "Const", attrs={"dtype": int32, "value": np.array([1], np.int32)})
    reduced = of_float | {"keep_dims": True, "Tidx": int32}
    log_softmax = Graph([
        Node("x", "Placeholder", attrs={"dtype": float32}), axis,
        Node("max", "Max", ["x", "axis"], attrs=reduced), Node("shifted", "Sub", ["x", "max"], attrs=of_float),
        Node("exp", "Exp", ["shifted"], attrs=of_float), Node("sum", "Sum", ["exp", "axis"], attrs=reduced),
        Node("log", "Log", ["sum"], attrs=of_float), Node("y", "Sub", ["shifted", "log"], attrs=of_float),
    ])
    logs = graph.replace_subgraph(SOFTMAX, log_softmax, inputs={"x": LOGITS}, outputs={SOFTMAX: "y"}, prefix="log/")
    weft.graphdef.dump(logs.rename("probabilities", "log_probabilities"), folder / "logs.pb")
    features = graph.expose_output(FEATURES, "features", dtype=float32).keep_outputs("features")
    weft.graphdef.dump(features, folder / "features.pb")

    probabilities = weft.load(DIGITS / "frozen.pb", outputs=["probabilities"])(images)
    logarithms = weft.load(folder / "logs.pb", outputs=["log_probabilities"])(images)
    print(f"largest difference of the probabilities: {np.abs(np.exp(logarithms) - probabilities).max():.1e}")
    print(f"features of {len(features)} nodes: {weft.load(folder / 'features.pb')(images).shape}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
