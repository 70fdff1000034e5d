"""Metadata of ops on audio: WAV files, spectrograms, and the cepstral coefficients of speech."""

from __future__ import annotations

from heald.api import Attrs, InvalidArgument, ValueInfo, dtypes, info

from .rules import rule
from .shapes import check_single, dims_of_rank

LARGEST_INT = 2**31 - 1


@rule("DecodeWav")
def decode_wav(attrs: Attrs, contents: ValueInfo) -> tuple[ValueInfo, ...]:
    """The audio has rows of samples and columns of channels."""
    dims_of_rank(contents, 0, "contents")
    shape = tuple(_desired_length(attrs, name) for name in ("desired_samples", "desired_channels"))
    return info(dtypes.float32, shape), info(dtypes.int32, ())


def _desired_length(attrs: Attrs, name: str) -> int | None:
    length: int = attrs[name]
    if not -1 <= length <= LARGEST_INT:
        raise InvalidArgument(f"{name} must be >= -1 and an int, got {length}")
    return None if length == -1 else length


@rule("EncodeWav")
def encode_wav(_: Attrs, audio: ValueInfo, sample_rate: ValueInfo) -> ValueInfo:
    dims_of_rank(audio, 2, "audio")
    check_single(sample_rate, "sample_rate")
    return info(dtypes.string, ())


@rule("AudioSpectrogram")
def audio_spectrogram(attrs: Attrs, samples: ValueInfo) -> ValueInfo:
    """The output has the dimensions channels, windows, frequencies. A transform has a power of two as its length."""
    count, channels = dims_of_rank(samples, 2, "input")
    window, stride = attrs["window_size"], attrs["stride"]
    if not (2 <= window <= LARGEST_INT and 1 <= stride <= LARGEST_INT):
        raise InvalidArgument(f"Spectrogram initialization failed for window size {window} and stride {stride}")
    windows = None if count is None else max(0, (count - window) // stride + 1)
    return info(dtypes.float32, (channels, windows, (1 << (window - 1).bit_length()) // 2 + 1))


@rule("Mfcc")
def mfcc(attrs: Attrs, spectrogram: ValueInfo, sample_rate: ValueInfo) -> ValueInfo:
    channels, windows, frequencies = dims_of_rank(spectrogram, 3, "spectrogram")
    check_single(sample_rate, "sample_rate")
    bands, coefficients = attrs["filterbank_channel_count"], attrs["dct_coefficient_count"]
    low, high = attrs["lower_frequency_limit"], attrs["upper_frequency_limit"]
    if not 1 <= coefficients <= bands <= LARGEST_INT:
        raise InvalidArgument(f"Mfcc needs 1 <= dct_coefficient_count <= filterbank_channel_count, given "
                              f"{coefficients} and {bands}")
    if not 0 <= low < high < float("inf"):
        raise InvalidArgument(f"Mfcc needs 0 <= lower_frequency_limit < upper_frequency_limit, given {low} and {high}")
    if frequencies is not None and frequencies < 2:
        raise InvalidArgument(f"Mfcc needs at least 2 frequencies, given {frequencies}")
    return info(dtypes.float32, (channels, windows, coefficients))
