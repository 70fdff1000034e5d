"""The example that trains with eager ops: its gradients equal finite differences, and a step learns."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import heald
import numpy as np

SPEC = importlib.util.spec_from_file_location("eager_example", Path(__file__).parents[2] / "examples" / "eager.py")
example = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(example)
RANDOM = np.random.default_rng(1)
IMAGES = RANDOM.random((6, 8, 8, 1)).astype(np.float32)
LABELS = np.arange(6, dtype=np.int32)


def test_the_gradients_equal_finite_differences():
    network = example.Network(np.random.default_rng(0))
    values, labels = network.forward(heald.TensorHandle(IMAGES)), heald.TensorHandle(LABELS)
    _, gradients = network.gradients(values, labels)
    for name, gradient in gradients.items():
        weight, step = network.weights[name], RANDOM.normal(size=network.weights[name].shape).astype(np.float32)
        losses = []
        for sign in (1, -1):
            network.weights[name] = weight + sign * 5e-5 * step  # small: ReLU and MaxPool have kinks
            losses.append(float(network.gradients(network.forward(values["x"]), labels)[0]))
        network.weights[name] = weight
        expected = float((gradient.numpy() * step).sum())
        measured = (losses[0] - losses[1]) / 1e-4
        assert np.isclose(measured, expected, rtol=0.05, atol=5e-3), (name, measured, expected)


def test_training_lowers_the_loss():
    network = example.Network(np.random.default_rng(0))
    losses = [float(network.train(IMAGES, LABELS, 3e-3)) for _ in range(25)]
    assert losses[-1] < losses[0] / 4
