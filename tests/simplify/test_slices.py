"""The pass `slices` of heald-simplify: ends that a StridedSlice ignores are left out, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from builders.graphs import FLOAT, const, node, placeholder
from builders.rewritten_graphs import INT, op_counts, rewrite_and_compare, session_with_passes, vector
from heald.errors import InvalidArgument
from heald.graphs.graph.graph import Node

MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


def feeds(rank):
    return {"x": np.arange(3.0**rank, dtype=np.float32).reshape((3,) * rank), "at": np.int32([1])}


def strided_slice(begin, end, strides, **masks):
    attrs = {"T": FLOAT, "Index": INT, **dict.fromkeys(MASKS, 0), **masks}
    return Node("y", "StridedSlice", ["x", begin, end, strides], attrs=attrs)


def element(rank=1, **masks):
    """x[i] or x[i, :], as Python's slices are traced."""
    zeros = ["zero"] * (rank - 1)
    return [placeholder("x", (None,) * rank), placeholder("at", (1,), np.int32),
            Node("i", "Squeeze", ["at"], attrs={"T": INT, "squeeze_dims": [0]}), const("one", 1, np.int32),
            const("zero", 0, np.int32), Node("next", "AddV2", ["i", "one"], attrs={"T": INT}),
            Node("begin", "Pack", ["i", *zeros], attrs={"T": INT, "N": rank, "axis": 0}),
            Node("end", "Pack", ["next", *zeros], attrs={"T": INT, "N": rank, "axis": 0}),
            vector("strides", [1] * rank), strided_slice("begin", "end", "strides", **masks)]


IGNORED = {"an element": (1, {"shrink_axis_mask": 1}),
           "a row": (2, {"shrink_axis_mask": 1, "begin_mask": 2, "end_mask": 2}),
           "an element of a matrix": (2, {"shrink_axis_mask": 3}), "up to the end": (1, {"end_mask": 1}),
           "a row behind an ellipsis": (2, {"shrink_axis_mask": 1, "ellipsis_mask": 2})}
READ = {"a part": (1, {}), "columns of a row": (2, {"shrink_axis_mask": 1}), "from the begin": (1, {"begin_mask": 1})}


@pytest.mark.parametrize("case", IGNORED)
def test_ends_that_are_ignored_are_not_computed(case):
    rank, masks = IGNORED[case]
    counts = op_counts(rewrite_and_compare(element(rank, **masks), "slices", feed=feeds(rank)))
    assert counts["Pack"] == 1
    assert "AddV2" not in counts


@pytest.mark.parametrize("case", READ)
def test_ends_that_are_read_stay(case):
    rank, masks = READ[case]
    assert op_counts(rewrite_and_compare(element(rank, **masks), "slices", feed=feeds(rank)))["Pack"] == 2


@pytest.mark.parametrize("index", [-3, -1, 0, 2, 3, -4])
def test_indices_have_the_same_elements_and_errors(index):
    x = np.float32([1, 2, 3])
    with session_with_passes(element(shrink_axis_mask=1), "slices") as session:
        if -3 <= index < 3:
            assert session.run("y", {"x": x, "at": np.int32([index])}) == x[index]
        else:
            with pytest.raises(InvalidArgument, match="out of bounds"):
                session.run("y", {"x": x, "at": np.int32([index])})


def test_another_number_of_ends_stays_an_error():
    nodes = [one for one in element(shrink_axis_mask=1) if one.name != "end"]
    nodes.append(Node("end", "Pack", ["next", "next"], attrs={"T": INT, "N": 2, "axis": 0}))
    with session_with_passes(nodes, "slices") as session, pytest.raises(InvalidArgument):
        session.run("y", {"x": np.ones(3, np.float32), "at": np.int32([0])})


def test_ends_with_effects_stay():
    """A stateful node may change more than its result."""
    handle = {"dtype": INT, "shape": (), "container": "", "shared_name": "count"}
    nodes = [one for one in element(shrink_axis_mask=1) if one.name != "next"]
    nodes += [Node("handle", "VarHandleOp", attrs=handle),
              Node("next", "ReadVariableOp", ["handle"], attrs={"dtype": INT}),
              Node("init", "AssignVariableOp", ["handle", "zero"], attrs={"dtype": INT}), node("z", "Neg", "y")]
    with session_with_passes(nodes, "slices") as session:
        session.run([], targets=["init"])
        assert session.run("z", {"x": np.float32([5, 6]), "at": np.int32([1])}) == -6
        *_, (_, rewritten) = session.graphs_by_pass("z", ["x", "at"])
    assert op_counts(rewritten)["ReadVariableOp"] == 1
