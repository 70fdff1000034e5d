"""The pass changes graphs, and never a result."""

from __future__ import annotations

import heald
import numpy as np
import pytest
from heald.api import Graph, Node, PassContext
from heald_example_pass.double_negation import remove_double_negation

X = np.array([1, -2, np.inf], "float32")
NODES = [Node("x", "Placeholder", attrs={"dtype": "float32"}),
         *(Node(name, "Neg", [source], attrs={"T": "float32"}) for name, source in ("ax", "ba", "cb"))]


def ops(*kept_names: str) -> list[str]:
    context = PassContext(frozenset(kept_names), resolve=lambda node: None, infer=lambda graph: {})
    return [node.op for node in remove_double_negation(Graph(NODES), context)]


def test_of_two_negations_in_a_row_none_is_left() -> None:
    assert ops("x", "c") == ["Placeholder", "Neg", "Identity", "Identity"]


def test_a_negation_that_is_fed_or_fetched_stays() -> None:
    assert ops("x", "a", "b", "c") == ["Placeholder", "Neg", "Neg", "Neg"]


@pytest.mark.parametrize("fetches", ["c", ["b", "c"], ["a", "b", "c"]])
def test_results_stay(fetches: str | list[str]) -> None:
    without = {"passes": {"disable": ["example-pass"]}}
    results, expected = (heald.Session(Graph(NODES), config).run(fetches, {"x": X}) for config in ({}, without))
    np.testing.assert_array_equal(results, expected)


def test_a_fed_negation_counts_with_its_feed() -> None:
    assert heald.Session(Graph(NODES)).run("c", {"a": X}).tolist() == X.tolist()
