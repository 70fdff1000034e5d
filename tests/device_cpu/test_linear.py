"""Matrix products: TensorFlow's semantics."""

import ml_dtypes
import numpy as np
import pytest
from harness.run_op import run_op
from heald.errors import InvalidArgument
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import info, merge_shapes
from heald_tf_ops.metadata import RULES
from hypothesis import given, settings
from hypothesis import strategies as st

fast = settings(max_examples=60)
TYPES = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int32, np.int64, np.complex64]


def run(op, x, y, **attrs):
    return run_op(op, [x, y], {"T": dtypes.of_numpy(x.dtype)} | attrs)[0]


def random(*shape, dtype=np.float32):
    return np.random.default_rng(0).integers(-4, 5, shape).astype(dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("turn_a", [False, True])
@pytest.mark.parametrize("turn_b", [False, True])
def test_a_product_of_any_type_and_orientation(dtype, turn_a, turn_b):
    a, b = random(3, 4, dtype=dtype), random(4, 5, dtype=dtype)
    wide = np.complex64 if dtype == np.complex64 else np.float64
    want = (a.astype(wide) @ b.astype(wide)).astype(dtype)
    a, b = np.ascontiguousarray(a.T) if turn_a else a, np.ascontiguousarray(b.T) if turn_b else b
    got = run("MatMul", a, b, transpose_a=turn_a, transpose_b=turn_b)
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, want)


def test_an_empty_inner_dimension_gives_zeros():
    assert run("MatMul", random(2, 0), random(0, 3)).tolist() == [[0, 0, 0], [0, 0, 0]]
    assert not run("BatchMatMulV2", random(2, 2, 0), random(0, 3)).any()


def test_only_the_batched_product_conjugates():
    x = np.array([[1 + 2j]])
    assert run("MatMul", x, x, transpose_a=True).item() == (1 + 2j) ** 2
    assert run("BatchMatMulV2", x, x, adj_x=True).item() == 5


def test_half_precision_is_summed_in_float32():
    x = np.ones((1, 64), np.float16)
    x[0, 0] = 2048
    assert run("MatMul", x, np.ones((64, 1), np.float16)).item() == np.float16(2048 + 63)


def test_integers_wrap_around():
    big = np.full((1, 1), 2**31 - 1, np.int32)
    assert run("MatMul", big, np.full((1, 1), 2, np.int32)).item() == -2


@fast
@given(st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.booleans()), max_size=3), st.booleans(), st.booleans())
def test_batches_broadcast(batch, adj_x, adj_y):
    x_batch = [1 if ones else n for n, ones, _ in batch]
    y_batch = [1 if ones else n for n, _, ones in batch]
    x, y = random(*x_batch, 2, 3), random(*y_batch, 3, 4)
    turned = [np.ascontiguousarray(m.swapaxes(-2, -1)) if turn else m for m, turn in ((x, adj_x), (y, adj_y))]
    np.testing.assert_array_equal(run("BatchMatMulV2", *turned, adj_x=adj_x, adj_y=adj_y), x @ y)


def test_the_first_batched_product_does_not_broadcast():
    x = random(2, 3, 4)
    np.testing.assert_array_equal(run("BatchMatMul", x, random(2, 4, 5)), x @ random(2, 4, 5))
    for other in ((1, 4, 5), (4, 5)):
        with pytest.raises(InvalidArgument):
            run("BatchMatMul", x, random(*other))


@pytest.mark.parametrize(("left", "right", "output"), [
    (np.int8, np.uint8, np.int32), (np.int8, ml_dtypes.bfloat16, ml_dtypes.bfloat16), (np.float32,) * 3,
])
def test_a_product_of_two_types_is_summed_in_a_third(left, right, output):
    x, y = np.full((2, 1, 9), 100, left), np.full((9, 1), 100, right)
    types = {name: dtypes.of_numpy(np.dtype(d)) for name, d in (("Ta", left), ("Tb", right), ("Tout", output))}
    got = run_op("BatchMatMulV3", [x, y], types)[0]
    np.testing.assert_array_equal(got, np.full((2, 1, 1), 90000, output))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_a_fused_product_is_the_product_and_what_follows(dtype):
    def fused_matmul(*ops, args):
        attrs = {"T": dtypes.of_numpy(np.dtype(dtype)), "num_args": len(args), "fused_ops": ops, "leakyrelu_alpha": 0.5}
        return run_op("_FusedMatMul", [a, b, *args], attrs)[0]

    a, b, bias, other = (random(*shape, dtype=dtype) for shape in ((2, 3), (3, 4), (4,), (2, 4)))
    total = a.astype(np.float32) @ b.astype(np.float32) + bias.astype(np.float32)
    np.testing.assert_array_equal(fused_matmul("BiasAdd", args=[bias]), total.astype(dtype))
    np.testing.assert_array_equal(fused_matmul("BiasAdd", "Relu", args=[bias]), np.maximum(total, 0).astype(dtype))
    np.testing.assert_array_equal(fused_matmul("BiasAdd", "Add", args=[bias, other]),
                                  (total + other.astype(np.float32)).astype(dtype))
    np.testing.assert_array_equal(fused_matmul("BiasAdd", "LeakyRelu", args=[bias]),
                                  np.where(total > 0, total, total / 2).astype(dtype))
    for ops, args in ((("Relu",), []), (("BiasAdd", "Mul"), [bias, other]), (("BiasAdd",), [other]),
                      (("BiasAdd", "Add"), [bias, bias]), (("BiasAdd", "Add", "Relu"), [bias, other])):
        with pytest.raises(InvalidArgument):
            fused_matmul(*ops, args=args)


def test_only_the_conjugate_transpose_conjugates():
    x = np.array([[1 + 2j, 3], [4j, 5]])
    got = run_op("ConjugateTranspose", [x, np.int32([1, 0])], {"T": dtypes.complex128, "Tperm": dtypes.int32})[0]
    np.testing.assert_array_equal(got, x.conj().T)


def test_products_that_do_not_fit_are_refused_matmul():
    for op, a, b in (
        ("MatMul", (2, 3), (2, 3)), ("MatMul", (1, 2, 3), (3, 2)), ("BatchMatMulV2", (2, 3, 4), (2, 3, 4)),
        ("BatchMatMulV2", (2, 3, 4), (3, 4, 2)), ("BatchMatMulV2", (4,), (4, 2)),
    ):
        with pytest.raises(InvalidArgument):
            run(op, random(*a), random(*b))


@fast
@given(st.lists(st.booleans(), min_size=7, max_size=7))
def test_an_inference_from_unknown_lengths_is_true(hidden):
    x, y = (5, 1, 2, 3), (4, 3, 6)
    shapes = [d if keep else None for d, keep in zip((*x, *y), hidden, strict=True)]
    inputs = info(dtypes.float32, tuple(shapes[:4])), info(dtypes.float32, tuple(shapes[4:]))
    guess = RULES["BatchMatMulV2"].function({"adj_x": False, "adj_y": False}, *inputs).shape
    assert merge_shapes(guess, (5, 4, 2, 6)) == (5, 4, 2, 6)
    if all(hidden):
        assert guess == (5, 4, 2, 6)
