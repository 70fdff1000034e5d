"""Classifies handwritten digits with a frozen TensorFlow network, without TensorFlow.

The network was trained with TensorFlow on scanned digits of 8x8 pixels; test.npz holds 540 test images that it never
saw, and TensorFlow's own outputs for them.
"""

import os
import sys
from collections import Counter
from pathlib import Path
from time import perf_counter

import heald
import numpy as np
from tabulate import tabulate

HERE = Path(__file__).parent
SHADES = " .:-=+*#%@"
NEXT = {  # arguments of heald to try next, and their effect
    "explain {model}": "device and kernel of each node, with the reasons",
    "bench {model}": "latency, throughput, memory",
    "new ops my-ops": "a plugin with an op of your own, ready to run",
}


def picture(image: np.ndarray) -> list[str]:
    """An image of floats from 0 to 1 as lines of characters, two a pixel."""
    return ["".join(SHADES[round(float(v) * (len(SHADES) - 1))] * 2 for v in row) for row in image[..., 0]]


def main() -> None:
    test = np.load(HERE / "test.npz")
    images, labels = test["image"], test["label"]

    model = heald.load(HERE / "frozen.pb", outputs=["digit", "probabilities", "logits"])
    answers = model(images)

    for i in range(3):
        digit = answers["digit"][i]
        print(*picture(images[i]), sep="\n")
        print(f"-> {digit} with probability {answers['probabilities'][i, digit]:.4f}; it is {labels[i]}\n")

    right = int((answers["digit"] == labels).sum())
    print(f"accuracy: {right} of {len(labels)} test images ({right / len(labels):.2%})")
    print(f"largest difference from TensorFlow's logits: {np.abs(answers['logits'] - test['logits']).max():.2e}\n")

    rows = Counter((row["op"], row["assigned"], row["kernel"]) for row in model.placement().table() if row["kernel"])
    print(tabulate([(op, n, device, kernel) for (op, device, kernel), n in sorted(rows.items())],
                   headers=["op", "nodes", "device", "kernel"]))

    print(f"\ntime per image: {microseconds_per_image(model, images):.0f} us in one batch of {len(images)}, "
          f"{microseconds_per_image(model, images[:1]):.0f} us alone")

    program, file = os.path.relpath(Path(sys.executable).with_name("heald")), os.path.relpath(HERE / "frozen.pb")
    print("\nThree things to try next:")
    print(tabulate([(f"{program} {arguments.format(model=file)}", f"# {effect}") for arguments, effect in NEXT.items()],
                   tablefmt="plain"))


def microseconds_per_image(model: heald.Model, images: np.ndarray) -> float:
    """Microseconds per image, the best of 20 runs."""
    best = float("inf")
    for _ in range(20):
        start = perf_counter()
        model(images)
        best = min(best, perf_counter() - start)
    return best / len(images) * 1e6


if __name__ == "__main__":
    main()
