"""Fourier transforms: NumPy's, cut to fft_length, without the inputs that TensorFlow refuses."""

import numpy as np
import pytest
from harness.run_op import run_op
from heald.errors import InvalidArgument
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import info
from heald_tf_ops.metadata import RULES

PART = {np.complex64: np.float32, np.complex128: np.float64}


def run(op, x, *lengths, dtype=np.complex64):
    attrs = {"Tcomplex": dtypes.of_numpy(np.dtype(dtype))}
    if not lengths:
        return run_op(op, [x], attrs)[0]
    return run_op(op, [x, np.array(*lengths, np.int32)], attrs | {"Treal": dtypes.of_numpy(np.dtype(PART[dtype]))})[0]


def random(shape, dtype=np.complex64):
    parts = np.random.default_rng(0).standard_normal((2, *shape))
    return (parts[0] + 1j * parts[1]).astype(dtype) if np.dtype(dtype).kind == "c" else parts[0].astype(dtype)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize(("suffix", "rank"), [("", 1), ("2D", 2), ("3D", 3)])
def test_an_inverse_transform_gives_back_what_was_transformed(dtype, suffix, rank):
    x = random((2, 3, 4, 5), dtype)
    frequencies = run("FFT" + suffix, x, dtype=dtype)
    assert frequencies.dtype == dtype
    np.testing.assert_allclose(frequencies, np.fft.fftn(x, axes=range(-rank, 0)), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(run("IFFT" + suffix, frequencies, dtype=dtype), x, rtol=1e-4, atol=1e-5)
    real, lengths = x.real.copy(), x.shape[-rank:]
    half = run("RFFT" + suffix, real, lengths, dtype=dtype)
    assert half.shape[-1] == 3
    np.testing.assert_allclose(run("IRFFT" + suffix, half, lengths, dtype=dtype), real, rtol=1e-4, atol=1e-5)


def test_real_transforms_are_cut_to_the_length_asked_for():
    x = random((2, 4, 8), np.float32)
    np.testing.assert_allclose(run("RFFT2D", x, [3, 6]), np.fft.rfft2(x[:, :3, :6]), rtol=1e-4, atol=1e-5)
    assert run("IRFFT", random((2, 5)), [3]).shape == (2, 3)


def test_transforms_of_nothing():
    assert run("FFT2D", random((2, 0, 3))).shape == (2, 0, 3)
    assert run("RFFT", random((2, 4), np.float32), [0]).shape == (2, 0)
    assert run("IRFFT", random((0, 4)), [6]).shape == (0, 6)


@pytest.mark.parametrize(("op", "x", "lengths"), [
    ("RFFT", random((4,), np.float32), [5]), ("RFFT", random((4,), np.float32), [-1]),
    ("RFFT", random((4,), np.float32), 4), ("RFFT", random((4,), np.float32), [2, 2]),
    ("RFFT2D", random((4,), np.float32), [2, 2]), ("RFFT2D", random((3, 4), np.float32), [4, 2]),
    ("IRFFT", random((4,)), [8]), ("RFFT", random((2, 0), np.float32), [4]),
])
def test_lengths_that_the_input_has_not_are_refused(op, x, lengths):
    with pytest.raises(InvalidArgument):
        run(op, x, lengths)


def test_real_and_complex_type_are_of_one_precision():
    attrs = {"Treal": dtypes.float64, "Tcomplex": dtypes.complex64}
    with pytest.raises(InvalidArgument, match="Wrong types"):
        RULES["RFFT"].function(attrs, info(dtypes.float64, (4,)), info(dtypes.int32, (1,)))


def test_only_the_batch_is_known_without_the_lengths():
    attrs = {"Treal": dtypes.float32, "Tcomplex": dtypes.complex64}
    got = RULES["RFFT2D"].function(attrs, info(dtypes.float32, (7, 3, 4)), info(dtypes.int32, (2,)))
    assert got.shape == (7, None, None)
