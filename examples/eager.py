"""Trains a network on handwritten digits with eager ops and gradients written by hand.

    python examples/eager.py

Every op is a function of `heald.ops` or an operator of a handle. The 540 images of examples/digits are divided: four of
five to train, shifted by up to a pixel each time, the fifth to measure the accuracy.
"""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

import heald
import numpy as np

ops, Handle = heald.ops, heald.TensorHandle
SAME = {"strides": [1, 1, 1, 1], "padding": "SAME"}
POOL = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
EPOCHS, BATCH = 60, 48
RATE, FIRST, SECOND, EPSILON = 3e-3, 0.9, 0.99, 1e-8  # Adam's


class Network:
    """Two convolutions, a pool between them, and two dense layers. Each weight has its two moments of Adam."""

    def __init__(self, random: np.random.Generator) -> None:
        shapes = {"c1": (3, 3, 1, 16), "b1": (16,), "c2": (3, 3, 16, 32), "b2": (32,), "d1": (512, 64), "e1": (64,),
                  "d2": (64, 10), "e2": (10,)}
        self.weights = {name: self._initial(shape, random) for name, shape in shapes.items()}
        self.moments = {name: (Handle(np.zeros(shape, np.float32)), Handle(np.zeros(shape, np.float32)))
                        for name, shape in shapes.items()}
        self._steps = 0

    @staticmethod
    def _initial(shape: tuple[int, ...], random: np.random.Generator) -> Handle:
        if len(shape) == 1:
            return Handle(np.zeros(shape, np.float32))
        return Handle(random.normal(0, np.sqrt(2 / np.prod(shape[:-1])), shape).astype(np.float32))

    def forward(self, x: Handle) -> dict[str, Handle]:
        """The values of all layers, the inputs of the gradients."""
        w = self.weights
        v = {"x": x}
        v["r1"] = ops.relu(ops.bias_add(ops.conv2d(x, w["c1"], **SAME), w["b1"]))
        v["p1"] = ops.max_pool(v["r1"], **POOL)
        v["r2"] = ops.relu(ops.bias_add(ops.conv2d(v["p1"], w["c2"], **SAME), w["b2"]))
        v["flat"] = ops.reshape(v["r2"], [-1, 512])
        v["h"] = ops.relu(v["flat"] @ w["d1"] + w["e1"])
        v["logits"] = v["h"] @ w["d2"] + w["e2"]
        return v

    def gradients(self, v: dict[str, Handle], labels: Handle) -> tuple[Handle, dict[str, Handle]]:
        """The mean loss, and the gradient of each weight."""
        w, g = self.weights, {}
        count = v["x"].shape[0]
        loss, d = ops.sparse_softmax_cross_entropy_with_logits(v["logits"], labels)
        d = d / count
        g["e2"], g["d2"] = ops.sum(d, 0), ops.matmul(v["h"], d, transpose_a=True)
        d = ops.relu_grad(ops.matmul(d, w["d2"], transpose_b=True), v["h"])
        g["e1"], g["d1"] = ops.sum(d, 0), ops.matmul(v["flat"], d, transpose_a=True)
        d = ops.reshape(ops.matmul(d, w["d1"], transpose_b=True), [-1, 4, 4, 32])
        d = ops.relu_grad(d, v["r2"])
        g["b2"] = ops.bias_add_grad(d)
        g["c2"] = ops.conv2d_backprop_filter(v["p1"], [3, 3, 16, 32], d, **SAME)
        d = ops.conv2d_backprop_input([count, 4, 4, 16], w["c2"], d, **SAME)
        d = ops.relu_grad(ops.max_pool_grad(v["r1"], v["p1"], d, **POOL), v["r1"])
        g["b1"] = ops.bias_add_grad(d)
        g["c1"] = ops.conv2d_backprop_filter(v["x"], [3, 3, 1, 16], d, **SAME)
        return ops.mean(loss, 0), g

    def train(self, images: np.ndarray, labels: np.ndarray, rate: float) -> Handle:
        """Take one step of Adam. Returns the loss before it."""
        self._steps += 1
        loss, gradients = self.gradients(self.forward(Handle(images)), Handle(labels))
        scale = Handle(np.float32(rate * np.sqrt(1 - SECOND**self._steps) / (1 - FIRST**self._steps)))
        for name, g in gradients.items():
            mean, square = self.moments[name]
            mean = mean * FIRST + g * (1 - FIRST)
            square = square * SECOND + g * g * (1 - SECOND)
            self.moments[name] = mean, square
            change = scale * mean / (ops.sqrt(square) + EPSILON)
            self.weights[name] = heald.execute("Sub", self.weights[name], change, donate=(0,))
        return loss

    def accuracy(self, images: np.ndarray, labels: np.ndarray) -> float:
        predicted = ops.arg_max(self.forward(Handle(images))["logits"], 1)
        return float(ops.mean(ops.cast(predicted == labels.astype(np.int64), DstT="float32"), 0))


def shift_images(images: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """The images, each moved by up to a pixel."""
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    offsets = random.integers(0, 3, (len(images), 2))
    return np.stack([image[y:y + 8, x:x + 8] for image, (y, x) in zip(padded, offsets, strict=True)])


def main() -> None:
    data = np.load(Path(__file__).parent / "digits" / "test.npz")
    images, labels = data["image"], data["label"]
    is_test = np.arange(len(images)) % 5 == 0
    random, started = np.random.default_rng(0), perf_counter()
    network = Network(random)
    for epoch in range(EPOCHS):
        order = random.permutation(np.flatnonzero(~is_test))
        for batch in np.array_split(order, len(order) // BATCH):
            loss = network.train(shift_images(images[batch], random), labels[batch], RATE * (1 - epoch / EPOCHS))
        if epoch % 10 == 9:
            accuracy = network.accuracy(images[is_test], labels[is_test])
            seconds = perf_counter() - started
            print(f"epoch {epoch + 1}: loss {float(loss):.3f}, accuracy {accuracy:.1%}, {seconds:.1f} s")
    assert accuracy > 0.95, "the network has not learnt enough"


if __name__ == "__main__":
    main()
