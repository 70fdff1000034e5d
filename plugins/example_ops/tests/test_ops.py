"""The op in a graph and as an eager call."""

from __future__ import annotations

import heald
import numpy as np
import pytest
from heald.api import Graph, Node

A, B = (np.array(elements, "float32") for elements in ([3, -1], [4, 0]))


def test_a_graph_runs_the_op() -> None:
    graph = Graph([Node("a", "Placeholder", attrs={"dtype": "float32"}),
                   Node("b", "Placeholder", attrs={"dtype": "float32"}),
                   Node("y", "Example>Norm", ["a", "b"], attrs={"T": "float32", "N": 2})])
    assert heald.Session(graph).run("y", {"a": A, "b": B}).tolist() == [5, 1]


@pytest.mark.parametrize(("kind", "expected"), [("l1", [7, 1]), ("l2", [5, 1])])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_eager_call_runs_the_op(kind: str, expected: list[float], dtype: type) -> None:
    y = heald.execute("Example>Norm", [A.astype(dtype), B.astype(dtype)], attrs={"kind": kind})
    assert y.numpy().tolist() == expected
    assert y.numpy().dtype == dtype


def test_tensors_of_different_shapes_are_an_error() -> None:
    with pytest.raises(heald.errors.InvalidArgument, match="all tensors must have one shape"):
        heald.execute("Example>Norm", [A, np.array([1, 2, 3], "float32")]).numpy()


def test_another_kind_is_an_error() -> None:
    with pytest.raises(heald.errors.InvalidArgument, match="'kind' is 'l3', which is not among"):
        heald.execute("Example>Norm", [A, B], attrs={"kind": "l3"}).numpy()
