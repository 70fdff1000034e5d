"""Logits by leaves: a logit of gradient boosted trees is the sum of an initial prediction and of a leaf of each tree.

ydf's general engine turns logits into probabilities. So the sums are made here, in the order of the trees and in
float32, as TF-DF's fast engines make them. Its general engine gives other numbers, which are no logits: of two classes
it returns the example before, of several it divides by their sum.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from yggdrasil_decision_forests.model.decision_tree import decision_tree_pb2

from .feature_banks import Array


class LeafSums:
    """The leaves of checked trees. Tree number t belongs to the class t modulo the number of classes."""

    def __init__(self, nodes: Iterable[bytes], initial_predictions: Iterable[float]) -> None:
        self._initial_predictions = np.array([*initial_predictions], np.float32)
        self._trees = _leaf_values(nodes)

    def sum(self, leaves: Array) -> Array:
        """Return the logits, [examples, classes], for the index of each example's leaf in each tree."""
        width = len(self._initial_predictions)
        logits = np.tile(self._initial_predictions, (len(leaves), 1))
        for number, values in enumerate(self._trees):
            logits[:, number % width] += values[leaves[:, number]]
        return logits


def _leaf_values(nodes: Iterable[bytes]) -> list[Array]:
    """Return the values of the leaves of each tree, in the order in which ydf numbers them: that of the file."""
    trees, values, waiting = list[Any](), list[float](), 0
    for data in nodes:
        node = decision_tree_pb2.Node.FromString(data)
        waiting = waiting or 1
        if node.HasField("condition"):
            waiting += 1
        else:
            waiting -= 1
            values.append(node.regressor.top_value)
        if not waiting:
            trees.append(np.array(values, np.float32))
            values = []
    return trees
