"""Candidate sampling and random crops: the choices of TensorFlow 2.21 from the same seeds."""

import heald
import numpy as np
import pytest
from builders.graphs import const, graph
from harness.run_op import outputs
from heald.errors import InvalidArgument
from heald.graphs.graph.graph import Node
from heald_cpu.philox import below, blocks, words

TRUE = np.int64([[1, 2], [9, 0]])
BOXES = np.float32([[[.1, .2, .9, .8], [.5, .5, .6, .7]]])

SAMPLED = [  # recorded, with the seeds 3 and 4: op, attributes, classes, expected counts of the true classes
    ("LogUniform", {"num_sampled": 6, "unique": True, "range_max": 10}, [1, 3, 6, 0, 5, 7],
     [[.86965876, .75483567], [.35991114, .9765507]]),
    ("LogUniform", {"num_sampled": 6, "unique": False, "range_max": 10}, [1, 3, 1, 6, 0, 0],
     [[1.0145526, .7198365], [.23848459, 1.7343889]]),
    ("LogUniform", {"num_sampled": 5, "unique": True, "range_max": 5 * 10**12},
     [89381, 27312758, 10455, 96344225595, 8], [[.06933289, .049192466], [.016297655, .11852536]]),
    ("Uniform", {"num_sampled": 6, "unique": True, "range_max": 10}, [1, 5, 9, 7, 3, 4], [[.5217031] * 2] * 2),
    ("Uniform", {"num_sampled": 6, "unique": False, "range_max": 10}, [1, 5, 9, 9, 7, 3], [[.6] * 2] * 2),
    ("Uniform", {"num_sampled": 5, "unique": True, "range_max": 5 * 10**12},
     [722558373121, 4417180638865, 4593247080559, 1222917744329, 1652174533577], [[1e-12] * 2] * 2),
]

CROPS = [  # recorded, with the seeds 1 and 2: size, attributes, begin, extent, the box
    (np.int32([50, 60, 3]), {}, [3, 3, 0], [37, 37, -1], [.06, .05, .8, .6666667]),
    (np.uint8([200, 250, 3]), {"area_range": (.25, .5)}, [34, 93, 0], [124, 122, 255], [.17, .372, .79, .86]),
    (np.int64([7, 5, 1]), {"aspect_ratio_range": (.3, 3.0)}, [2, 0, 0], [3, 4, -1], [.2857143, 0, .71428573, .8]),
    (np.int32([50, 60, 3]), {"area_range": (.9, .1)}, [0, 0, 0], [50, 60, -1], [0, 0, 1, 1]),
]


def sample(op, true=TRUE, **attrs):
    return outputs(f"{op}CandidateSampler", true, **{"num_true": 2, "num_sampled": 4, "unique": True, "range_max": 10,
                                                     "seed": 3, "seed2": 4} | attrs)


def crop(size=CROPS[0][0], boxes=BOXES, covered=.3, **attrs):
    return outputs("SampleDistortedBoundingBoxV2", size, boxes, np.float32(covered), seed=1, seed2=2, **attrs)


@pytest.mark.parametrize(("op", "attrs", "classes", "expected"), SAMPLED)
def test_classes_and_what_is_expected_of_them_are_tensorflows(op, attrs, classes, expected):
    sampled, of_true, of_sampled = sample(op, **attrs)
    assert sampled.tolist() == classes
    np.testing.assert_allclose(of_true, expected, rtol=3e-7)
    places = {c: expected[row][column] for (row, column), c in np.ndenumerate(TRUE)}
    for c, got in zip(classes, of_sampled, strict=True):
        np.testing.assert_allclose(got, places.get(c, got), rtol=3e-7)


def test_all_classes_are_sampled_where_as_many_are_wanted():
    for op in ("LogUniform", "Uniform"):
        assert sorted(sample(op, num_sampled=10)[0]) == [*range(10)]


def test_a_sampler_goes_on_from_run_to_run():
    attrs = {"num_true": 2, "num_sampled": 3, "unique": True, "range_max": 1000, "seed": 3, "seed2": 4}
    sampler = Node("s", "UniformCandidateSampler", ["x"], attrs=attrs)
    with heald.Session(graph(const("x", TRUE, np.int64), sampler), device="CPU:0") as session:
        first, second = (session.run("s:0", {}).tolist() for _ in range(2))
    assert first == sample("Uniform", num_sampled=3, range_max=1000)[0].tolist()
    assert second != first


def test_classes_that_cannot_be_sampled_are_refused():
    with pytest.raises(InvalidArgument, match="Sampler's range is too small"):
        sample("Uniform", num_sampled=11)
    with pytest.raises(InvalidArgument, match=r"out of range \[0, 10\), received 10"):
        sample("Uniform", np.int64([[9, 10]]))
    with pytest.raises(InvalidArgument, match="must have num_true columns"):
        sample("Uniform", num_true=3)
    with pytest.raises(InvalidArgument):
        sample("Uniform", TRUE[0])


@pytest.mark.parametrize(("size", "attrs", "begin", "extent", "box"), CROPS)
def test_a_random_crop_is_tensorflows(size, attrs, begin, extent, box):
    got = crop(size, **attrs)
    assert [got[0].tolist(), got[1].tolist()] == [begin, extent]
    assert got[0].dtype == size.dtype
    np.testing.assert_allclose(got[2], [[box]], rtol=1e-7)


def test_the_first_version_has_the_share_of_an_object_as_an_attribute():
    old = outputs("SampleDistortedBoundingBox", CROPS[0][0], BOXES, seed=1, seed2=2, min_object_covered=.3)
    assert [x.tolist() for x in old] == [x.tolist() for x in crop()]


def test_the_image_is_the_object_where_that_is_meant():
    nothing = BOXES[:, :0]
    full_box = np.float32([[[0, 0, 1, 1]]])
    assert crop(boxes=nothing, use_image_if_no_bounding_boxes=True)[0].tolist() == crop(boxes=full_box)[0].tolist()
    with pytest.raises(InvalidArgument, match="No bounding boxes provided"):
        crop(boxes=nothing)


def test_an_image_without_pixels_is_not_cropped():
    begin, extent, _ = crop(np.int32([0, 60, 3]))
    assert (begin.tolist(), extent.tolist()) == ([0, 0, 0], [0, 60, -1])


@pytest.mark.parametrize(("settings", "what"), [
    ({"size": np.int32([-5, 60, 3])}, "image height cannot be >= int32 max"),
    ({"size": np.int64([5, 2**33, 3])}, "image width cannot be >= int32 max"),
    ({"size": np.int32([5, 60])}, "image_size"),
    ({"boxes": BOXES[0]}, "bounding_boxes"),
    ({"boxes": BOXES * 2}, r"must be in \[0.0, 1.0\]: 1.8"),
    ({"boxes": BOXES * np.nan}, r"must be in \[0.0, 1.0\]: nan"),
    ({"covered": -1}, "Min object covered must be non-negative: -1"),
    ({"covered": np.nan}, "Min object covered must be non-negative: nan"),
    ({"aspect_ratio_range": (1.0,)}, "Aspect ratio range field must specify 2 dimensions"),
    ({"aspect_ratio_range": (0.0, 1.0)}, "Aspect ratio range must be non-negative"),
    ({"area_range": (0.5, 2.0)}, "Area range must be less then or equal to 1.0"),
    ({"max_attempts": 0}, "Max attempts must be non-negative: 0"),
])
def test_settings_that_give_no_crop_are_refused(settings, what):
    with pytest.raises(InvalidArgument, match=what):
        crop(**settings)


def test_words_are_those_of_the_blocks_in_order():
    drawn = words(7, 5)
    want = blocks(7, 5, np.arange(100, dtype=np.uint64)).reshape(-1).tolist()
    assert [next(drawn) for _ in want] == want


@pytest.mark.parametrize(("limit", "want"), [(0, 0), (1, 0), (8, 3), (10, 4), (6, 2)])
def test_numbers_that_would_favour_some_are_passed_over(limit, want):
    assert below(limit, iter([3, 14]), 4) == want
