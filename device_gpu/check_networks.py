"""Networks on GPU:0 against CPU:0, within a thousandth of the logits' standard deviation. Part of check.sh."""

from __future__ import annotations

import sys
from pathlib import Path

import heald
import numpy as np
from builders.mobilenet import mobilenet

TOLERANCE = 1e-3
SIDE = 224  # pixels
DIGITS_FOLDER = Path(__file__).parents[1] / "examples" / "digits"
STRICT = {"placement": {"fallback": "error"}}


def apart(graph: object, fetch: str, feed: str, x: np.ndarray) -> float:
    """The largest difference over three runs, the last two captured, in standard deviations."""
    with heald.Session(graph, device="CPU:0") as on_cpu, heald.Session(graph, STRICT, device="GPU:0") as session:
        expected = on_cpu.run(fetch, {feed: x})
        return max(float(np.abs(session.run(fetch, {feed: x}) - expected).max() / expected.std()) for _ in range(3))


def main() -> int:
    rng = np.random.default_rng(3)
    images = np.load(DIGITS_FOLDER / "test.npz")["image"]
    distances = {"digits": apart(heald.graphdef.load(DIGITS_FOLDER / "frozen.pb"), "logits:0", "image:0", images)}
    for batch in (1, 16):
        x = rng.normal(size=(batch, SIDE, SIDE, 3)).astype(np.float32)
        distances[f"MobileNetV2, batch {batch}"] = apart(mobilenet(SIDE, batch=batch), "logits", "x", x)
    for name, distance in distances.items():
        print(f"{name}: {distance:.1e} of the standard deviation apart, {'ok' if distance <= TOLERANCE else 'TOO FAR'}")
    return int(not all(distance <= TOLERANCE for distance in distances.values()))


if __name__ == "__main__":
    sys.exit(main())
