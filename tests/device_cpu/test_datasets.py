"""Ops on datasets and iterators without functions: wrong inputs, and the handles of caches, seeds and iterators.

The results of all ops are TensorFlow's, in `data/programs/datasets_*`.
"""

from __future__ import annotations

import heald
import numpy as np
import pytest
from builders.control_flow import program
from builders.datasets import ADD, INT, SCALAR, ZERO, dataset, kinds, number, number_range, total
from builders.graphs import const, placeholder
from heald.errors import FailedPrecondition, InvalidArgument, Unimplemented
from heald.graphs.graph.attr_value import ShapeAttr
from heald.graphs.graph.graph import Node
from heald.runtime.program import Call, ProgramFunction
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import TensorMetadata

PAIR = const("pair", [1, 2], np.int64)
NO = const("no", False, np.bool_)
COMPONENTS = {"Toutput_types": (INT,), "output_shapes": (SCALAR,)}
PADDED = {"Toutput_types": (INT,), "output_shapes": (ShapeAttr((None,)),), "N": 1}


def text(name, value):
    return Node(name, "Const", attrs={"dtype": dtypes.string, "value": np.array(value, object)})


def session(*nodes):
    return heald.Session(program([*number_range(3), ZERO, PAIR, NO, text("no_file", b""), *nodes], ADD))


WRONG = {
    "a vector as size of a batch": dataset("data", "Batch", "range", "pair"),
    "a vector as flag": Node("data", "BatchDatasetV2", ("range", "zero", "flags"), attrs=kinds()),
    "a vector as bound of a range": dataset("data", "Range", "pair", "zero", "zero"),
    "a vector of datasets": dataset("data", "Take", "none", "zero"),
    "more types than shapes": dataset("data", "Take", "range", "zero", output_types=(INT, INT)),
    "an element of another shape": Node("data", "TensorDataset", ("pair",), attrs=COMPONENTS),
    "slices of another shape": Node("data", "TensorSliceDataset", ("pair",), attrs=COMPONENTS | {
        "output_shapes": (ShapeAttr((2,)),)}),
    "slices of a scalar": Node("data", "TensorSliceDataset", ("zero",), attrs=COMPONENTS),
    "slices of several lengths": Node("data", "TensorSliceDataset", ("pair", "three"), attrs={
        "Toutput_types": (INT, INT), "output_shapes": (SCALAR, SCALAR)}),
    "a scalar as padded shape": Node("data", "PaddedBatchDataset", ("range", "one", "zero", "zero"), attrs=PADDED),
    "a vector as padding": Node("data", "PaddedBatchDataset", ("range", "one", "pair", "pair"), attrs=PADDED),
    "fewer padded shapes than components": Node("data", "PaddedBatchDatasetV2", (
        "range", "one", "pair", "zero", "zero", "no"), attrs=PADDED | {
            "Toutput_types": (INT, INT), "output_shapes": (SCALAR, SCALAR)}),
    "datasets of two types": dataset("data", "Concatenate", "range", "windows"),
    "a prefetch that states another shape": dataset("data", "Prefetch", "range", "zero",
                                                    output_shapes=(ShapeAttr((2,)),)),
    "a generator of seeds that is none": Node("data", "ShuffleDatasetV2", ("range", "one", "rows"), attrs=kinds()),
    "a choice by elements that are no numbers": Node("data", "DirectedInterleaveDataset", ("windows", "range"),
                                                     attrs=kinds() | {"N": 1}),
}
MORE = [const("flags", [True], np.bool_), const("none", np.empty(0), np.int64), number("one", 1),
        const("three", [1, 2, 3], np.int64),
        Node("windows", "WindowDataset", ("range", "one", "one", "one", "no"), attrs=kinds((dtypes.variant,))),
        Node("rows", "AnonymousIteratorV3", attrs=kinds())]


@pytest.mark.parametrize("node", WRONG.values(), ids=WRONG)
def test_wrong_inputs_are_refused(node):
    cardinality = Node("size", "DatasetCardinality", ("data",))
    with pytest.raises(InvalidArgument), session(*MORE, node, cardinality) as made:
        made.run("size")


def test_a_cache_in_a_file_is_unimplemented_and_one_in_memory_is_not():
    cached = [text("file", b"/cache"), dataset("a", "Cache", "range", "file"),
              Node("memory", "DummyMemoryCache"), Node("b", "CacheDatasetV2", ("range", "no_file", "memory"),
                                                       attrs=kinds()),
              total("a", name="of_file"), total("b", name="of_memory")]
    with session(*cached) as made:
        assert made.run("of_memory") == 3
        with pytest.raises(Unimplemented, match="leave the file's name empty"):
            made.run("of_file")


@pytest.mark.parametrize(("op", "more"), [("AnonymousSeedGenerator", ["no"]), ("AnonymousRandomSeedGenerator", [])])
def test_a_generator_of_seeds_serves_several_datasets(op, more):
    """Only a generator that reshuffles gives its second dataset other seeds."""
    nodes = [number("seed", 5), number("large", 100), *number_range(60, "many"), Node("seeds", op, (
        "seed", "seed", *more)), Node("delete", "DeleteSeedGenerator", ("seeds", "seeds:1"))]
    for name in ("a", "b"):
        nodes += [Node(name, "ShuffleDatasetV2", ("many", "large", "seeds"), attrs=kinds()),
                  Node(f"batch_{name}", "BatchDataset", (name, "large"), attrs=kinds(shapes=(None,))),
                  Node(f"all_{name}", "DatasetToSingleElement", (f"batch_{name}",), attrs=kinds(shapes=(None,)))]
    with session(*nodes) as made:
        one, other = made.run(["all_a", "all_b"])
        assert sorted(one.tolist()) == sorted(other.tolist()) == [*range(60)] != one.tolist()
        assert (one.tolist() == other.tolist()) == bool(more)
        made.run([], targets=["delete"])


def test_a_deleted_iterator_has_no_elements():
    nodes = [Node("rows", "AnonymousIteratorV2", attrs=kinds()), Node("start", "MakeIterator", ("range", "rows")),
             Node("delete", "DeleteIterator", ("rows", "rows:1"), controls=("start",)),
             Node("next", "IteratorGetNextSync", ("rows",), attrs=kinds(), controls=("start",)),
             Node("late", "IteratorGetNext", ("rows",), attrs=kinds(), controls=("delete",))]
    with session(*nodes) as made:
        assert made.run("next") == 0
        with pytest.raises(FailedPrecondition, match="not been initialized"):
            made.run("late")


@pytest.mark.parametrize("kind", [
    kinds((dtypes.int32,)), kinds(shapes=(ShapeAttr((2,)),)), kinds((INT, INT), (SCALAR, SCALAR))])
def test_an_iterator_of_other_elements_is_refused(kind):
    nodes = [Node("rows", "AnonymousIterator", attrs=kinds()), Node("start", "MakeIterator", ("range", "rows")),
             Node("other", "AnonymousIterator", attrs=kind), Node("wrong", "MakeIterator", ("range", "other")),
             Node("next", "IteratorGetNext", ("rows",), attrs=kind, controls=("start",)),
             Node("optional", "IteratorGetNextAsOptional", ("rows",), attrs=kind, controls=("start",)),
             Node("has", "OptionalHasValue", ("optional",))]
    with session(*nodes) as made:
        for fetches, targets in ((["next:0"], []), (["has"], []), ([], ["wrong"])):
            with pytest.raises(InvalidArgument):
                made.run(fetches, targets=targets)


def test_numbers_from_feeds_are_checked_in_the_run():
    nodes = [placeholder("n", None, INT), dataset("data", "Batch", "range", "n", output_shapes=(None,)),
             Node("size", "DatasetCardinality", ("data",))]
    with session(*nodes) as made:
        assert made.run("size", {"n": 2}) == 2
        for value in (0, -1, [1], []):
            with pytest.raises(InvalidArgument):
                made.run("size", {"n": np.array(value, np.int64)})


@pytest.mark.parametrize("wrong", [
    {"output_types": 5}, {"output_shapes": 3}, {"element_types": None}, {"element_types": ("a",)}, {"trailing": -1},
    {"trailing": 99}, {"output_types": ()}, {"output_shapes": (SCALAR, SCALAR)}, {"f": 1},
])
def test_calls_of_host_programs_with_wrong_attributes_are_refused(wrong):
    variant, number_type = (TensorMetadata(dtype, None) for dtype in (dtypes.variant, INT))
    attrs = {"output_types": (INT,), "output_shapes": (SCALAR,), "element_types": (INT,)} | wrong
    main = ProgramFunction("main", ("x",), (variant, variant), (
        Call("dataset.map", (0,), (1,), attrs, functions=("f",)),), results=(1,))
    same = ProgramFunction("f", ("a",), (number_type,), (), results=(0,))
    with pytest.raises(InvalidArgument):
        raise heald.HostProgram({"main": main, "f": same}).run("main", np.int64(3))[0].error
