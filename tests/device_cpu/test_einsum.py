"""Einsum: NumPy's, with TensorFlow's rules for ellipses, labels and repeated labels."""

import ml_dtypes
import numpy as np
import pytest
from harness.run_op import run_op
from heald.errors import InvalidArgument
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import info
from heald_tf_ops.metadata import RULES
from hypothesis import given, settings
from hypothesis import strategies as st

LENGTHS = {"a": 2, "b": 3, "c": 1, "d": 4, "e": 2}


def run(equation, *xs):
    return run_op("Einsum", list(xs), {"N": len(xs), "T": dtypes.of_numpy(xs[0].dtype), "equation": equation})[0]


def random(shape, dtype=np.float64):
    return np.random.default_rng(0).integers(-4, 5, shape).astype(dtype)


def infer(equation, *shapes):
    return RULES["Einsum"].function({"equation": equation}, *(info(dtypes.float32, s) for s in shapes)).shape


@st.composite
def equations(draw):
    """An equation that NumPy knows, and the shapes of its inputs."""
    terms = draw(st.lists(st.lists(st.sampled_from("abcde"), max_size=4), min_size=1, max_size=2))
    used_labels = sorted({label for term in terms for label in term})
    output = draw(st.permutations(used_labels))[: draw(st.integers(0, len(used_labels)))]
    return ",".join(map("".join, terms)) + "->" + "".join(output), [[LENGTHS[x] for x in term] for term in terms]


@settings(max_examples=150)
@given(equations())
def test_an_equation_without_ellipsis_is_numpys(case):
    equation, shapes = case
    xs = [random(shape) for shape in shapes]
    np.testing.assert_array_equal(run(equation, *xs), np.einsum(equation, *xs))


@pytest.mark.parametrize(("equation", "shapes"), [
    ("...ij,...jk->...ik", [(5, 1, 2, 3), (4, 3, 2)]), ("i...,...j->ij...", [(3, 1, 2), (4, 2, 5)]),
    ("...ab,cb->...ac", [(2, 3, 4, 2), (5, 2)]), ("bqhd,bkhd->bhqk", [(2, 3, 4, 5), (2, 6, 4, 5)]),
    ("bhqk,bkhd->bqhd", [(2, 4, 3, 6), (2, 6, 4, 5)]), ("abc,cde->abde", [(2, 3, 4), (4, 5, 6)]),
    ("abcd,cde->abe", [(2, 3, 4, 5), (4, 5, 6)]), ("ijb,jkb->ikb", [(2, 3, 4), (3, 5, 4)]),
    ("...i->...", [(2, 3)]), ("ab,ab->", [(0, 3), (0, 3)]), ("ij,ij->ij", [(2, 3), (2, 3)]),
])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.int32, np.complex64])
def test_products_sums_and_broadcasting_in_every_type(equation, shapes, dtype):
    xs = [random(shape, dtype) for shape in shapes]
    wide = np.dtype(np.complex128 if dtype == np.complex64 else np.float64)
    want = np.einsum(equation, *(x.astype(wide) for x in xs))
    got = run(equation, *xs)
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, want.astype(dtype))


def test_labels_repeated_in_the_output_spread_over_its_diagonal():
    x = random((3,))
    np.testing.assert_array_equal(run("i->ii", x), np.diag(x))
    np.testing.assert_array_equal(run("i,j->iji", x, x), np.einsum("i,j,ik->ijk", x, x, np.eye(3)))


def test_any_character_is_a_label():
    np.testing.assert_array_equal(run("12,2$->$1", random((2, 3)), random((3, 4))), (random((2, 3)) @ random((3, 4))).T)


@pytest.mark.parametrize(("equation", "shapes"), [
    ("ij,jk", [(2, 2), (2, 2)]), ("ij->ji->ij", [(2, 2)]), ("ij,jk,kl->il", [(2, 2)] * 3), ("ij->ij", [(2, 2)] * 2),
    ("ij,ij->ij", [(2, 2)]), ("ijk->i", [(2, 2)]), ("i->i", [(2, 2)]), ("...ijk->i", [(2, 2)]), ("i->ij", [(2,)]),
    ("...i...->i", [(2, 2)]), ("i..j->ij", [(2, 2)]), ("...i->i", [(2, 2)]), ("ii->i", [(2, 3)]),
    ("ij,jk->ik", [(2, 3), (1, 4)]), ("...,...->...", [(2,), (3,)]), ("i j,jk->ik", [(2, 3), (3, 4)]),
])
def test_equations_that_are_none_or_do_not_fit_are_refused(equation, shapes):
    with pytest.raises(InvalidArgument):
        run(equation, *map(random, shapes))


def test_unknown_lengths_are_inferred():
    assert infer("...ij,jk->...ik", (None, 2, 3), (None, 5)) == (None, 2, 5)
    assert infer("ij,jk->ik", None, (3, 5)) == (None, 5)
    assert infer("...ij->...ji", None) is None
    assert infer("ij,kj->ik", (None, 4), (6, None)) == (None, 6)
