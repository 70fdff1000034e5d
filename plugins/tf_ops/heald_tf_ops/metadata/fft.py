"""Metadata of Fourier transforms along the last dimensions of a tensor."""

from __future__ import annotations

from heald.api import Attrs, InvalidArgument, Shape, ValueInfo, dtypes, info, shape_text

from .rules import rule
from .shapes import Dims, lengths_in, same_shape

RANKS = {"": 1, "2D": 2, "3D": 3}  # number of transformed dimensions, by the suffix of an op's name
PARTS = {dtypes.complex64: dtypes.float32, dtypes.complex128: dtypes.float64}


def _register(suffix: str, rank: int) -> None:
    @rule(f"FFT{suffix}", f"IFFT{suffix}")
    def transform(_: Attrs, x: ValueInfo) -> ValueInfo:
        _check_rank(x, rank)
        return ValueInfo(x.meta)

    @rule(f"RFFT{suffix}", values=("fft_length",))
    def of_real(attrs: Attrs, x: ValueInfo, fft_length: ValueInfo) -> ValueInfo:
        lengths = _lengths(attrs, x, fft_length, rank)
        _check_long_enough(x, lengths)
        return info(attrs["Tcomplex"], _with_lengths(x.shape, (*lengths[:-1], _half(lengths[-1]))))

    @rule(f"IRFFT{suffix}", values=("fft_length",))
    def to_real(attrs: Attrs, x: ValueInfo, fft_length: ValueInfo) -> ValueInfo:
        lengths = _lengths(attrs, x, fft_length, rank)
        _check_long_enough(x, (*lengths[:-1], _half(lengths[-1])))
        return info(attrs["Treal"], _with_lengths(x.shape, lengths))


for _suffix, _rank in RANKS.items():
    _register(_suffix, _rank)


def _check_rank(x: ValueInfo, rank: int) -> None:
    if x.rank is not None and x.rank < rank:
        raise InvalidArgument(f"Input must have rank of at least {rank} but got: {shape_text(x.shape)}")


def _lengths(attrs: Attrs, x: ValueInfo, fft_length: ValueInfo, rank: int) -> Dims:
    """Return the real tensor's lengths, or the lengths to which it is cut."""
    if PARTS[attrs["Tcomplex"]] is not attrs["Treal"]:
        raise InvalidArgument(f"Wrong types for a real FFT: {attrs['Treal']} and {attrs['Tcomplex']}")
    _check_rank(x, rank)
    same_shape((fft_length.shape, (rank,)), f"fft_length must have shape [{rank}]")
    lengths = lengths_in(fft_length, rank, "fft_length")
    for i, length in enumerate(lengths):
        if length is not None and length < 0:
            raise InvalidArgument(f"fft_length[{i}] must >= 0, but got: {length}")
    return lengths


def _half(length: int | None) -> int | None:
    """Return the number of frequencies that determine a real tensor: the others are their conjugates."""
    return length // 2 + 1 if length else length


def _check_long_enough(x: ValueInfo, lengths: Dims) -> None:
    for i, (length, needed_length) in enumerate(zip((x.shape or ())[-len(lengths) :], lengths, strict=False)):
        if length is not None and needed_length is not None and length < needed_length:
            raise InvalidArgument(f"Input dimension {i} must have length of at least {needed_length} but got: {length}")


def _with_lengths(shape: Shape, lengths: Dims) -> Shape:
    return None if shape is None else (*shape[: -len(lengths)], *lengths)
