"""Sounds as rows: WAV, FLAC and Ogg, with the rate, channels, range and layout that a model takes.

An input's shape says its layout: [batch, samples], [batch, samples, channels] or [batch, channels, samples]; without a
batch [samples] or [samples, channels]. A dimension of at most MOST_CHANNELS at the place of channels is one. Floats are
-1 to 1, integers have the range of their type. libsndfile decodes, libsoxr resamples.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from heald.api import TensorMetadata, dtypes
from heald.errors import DataLoss, HealdError, HealdWarning, InvalidArgument, ResourceExhausted, describe_exception

from .formats import SOUNDFILE, SOXR, check_library
from .preprocessing import Preprocessing
from .row_batch import Undecoded

MOST_CHANNELS = 8
MOST_SAMPLES = 1 << 27  # of a sound, all channels together: 512 MB of floats
HEADS = (b"RIFF", b"RIFX", b"RF64", b"fLaC", b"OggS")  # libsndfile has parsers for many more formats
_READ_TYPES = {dtypes.int16: "int16", dtypes.int32: "int32"}  # all other types are made of floats
_FLOATS = (dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16)
_UNKNOWN_SIZES = (0, 0xFFFFFFFF)  # of a WAV file that was written to a pipe


class SoundLayout(NamedTuple):
    """An input's idea of a sound. None for a number of samples or channels that may be any."""

    samples: int | None
    channels: int | None
    has_channels: bool
    channels_first: bool


def column_of_sounds(files: Sequence[Path], meta: TensorMetadata, name: str, preprocessing: Preprocessing) -> Undecoded:
    """Return the rows of these files, undecoded. An input of texts takes the files' bytes.

    Raises InvalidArgument for an input that is no sound, Unimplemented where the library that resamples is missing.
    Decoding raises DataLoss for a file that is no sound, ResourceExhausted for one of too many samples, InvalidArgument
    for one that does not fit the input.
    """
    if meta.dtype is dtypes.string:
        return Undecoded(files, Path.read_bytes, 0)
    check_library(SOUNDFILE, f"reading '{files[0]}'")
    layout = layout_of_sound(meta, name)
    options = preprocessing.sound
    if options.rate is not None:
        check_library(SOXR, "--sample-rate")
    elif options.rates is not None:
        options.rates.check(files)
    return Undecoded(files, lambda path: _array_of(path, meta, layout, preprocessing), 2 if layout.has_channels else 1)


def layout_of_sound(meta: TensorMetadata, name: str) -> SoundLayout:
    """The layout of one sound in an input. Raises InvalidArgument for an input that is no sound."""
    shape = meta.shape
    if meta.dtype in _FLOATS or meta.dtype in _READ_TYPES:
        if shape is None:
            return SoundLayout(None, 1, has_channels=False, channels_first=False)
        if len(shape) == 3 and _is_channels(shape[1]) and not _is_channels(shape[2]):
            return SoundLayout(shape[2], shape[1], has_channels=True, channels_first=True)
        if len(shape) == 3 and (shape[2] is None or _is_channels(shape[2])):
            return SoundLayout(shape[1], shape[2], has_channels=True, channels_first=False)
        if len(shape) == 2 and _is_channels(shape[1]):
            return SoundLayout(shape[0], shape[1], has_channels=True, channels_first=False)
        if len(shape) in (1, 2):
            return SoundLayout(shape[-1], 1, has_channels=False, channels_first=False)
    raise InvalidArgument(f"input '{name}' is {meta}, which is no sound",
                          hint="sounds feed inputs such as float32[?,16000], float32[?,?,2] or int16[?], or texts with "
                               "the files' bytes")


def _is_channels(size: int | None) -> bool:
    return size is not None and 1 <= size <= MOST_CHANNELS


class Rates:
    """The rates of the files of a run. Files that differ are told once."""

    def __init__(self) -> None:
        self._first: tuple[Path, int] | None = None
        self._is_told = False

    def check(self, files: Sequence[Path]) -> None:
        """Compare the rates of these files with those before. A file that cannot be read is told when it is decoded."""
        for file in () if self._is_told else files:
            try:
                with _open_sound(file) as sound:
                    rate = int(sound.samplerate)
            except HealdError:
                continue
            first_file, first_rate = self._first = self._first or (file, rate)
            if rate != first_rate:
                self._is_told = True
                warnings.warn(f"sounds of several rates: {first_rate:,} Hz in '{first_file}', {rate:,} Hz in '{file}'; "
                              "--sample-rate makes them one", HealdWarning, stacklevel=2)
                return


def _array_of(path: Path, meta: TensorMetadata, layout: SoundLayout, preprocessing: Preprocessing) -> Any:
    import numpy as np

    options = preprocessing.sound
    samples, rate = read_sound(path, _READ_TYPES.get(meta.dtype, "float32"))
    if options.mono or not layout.has_channels or layout.channels == 1:
        samples = _mix(samples)
    if layout.channels not in (None, samples.shape[1]):
        raise InvalidArgument(f"{samples.shape[1]} channels, where the input takes {layout.channels}")
    if options.rate is not None and options.rate != rate:
        samples = resample(samples, rate, options.rate)
    if layout.samples not in (None, len(samples)):
        raise InvalidArgument(f"{len(samples):,} samples, where the input takes {layout.samples:,}")
    samples = samples.astype(meta.dtype.numpy, copy=False)
    if not layout.has_channels:
        return samples[:, 0]
    return np.ascontiguousarray(samples.T) if layout.channels_first else samples


def read_sound(path: Path, dtype: str) -> tuple[Any, int]:
    """Return the samples of a file as [samples, channels], and its rate.

    Raises DataLoss for a damaged file, ResourceExhausted for more than MOST_SAMPLES.
    """
    with _open_sound(path) as sound:
        if sound.frames * sound.channels > MOST_SAMPLES:
            raise ResourceExhausted(f"{sound.frames:,} samples of {sound.channels} channels, "
                                    f"more than {MOST_SAMPLES:,} in all")
        try:
            samples = sound.read(dtype=dtype, always_2d=True)
        except (RuntimeError, ValueError) as error:  # RuntimeError: of libsndfile
            raise DataLoss(f"the sound is damaged: {describe_exception(error)}") from error
        except MemoryError as error:
            raise ResourceExhausted(f"no memory for {sound.frames:,} samples") from error
        if len(samples) < sound.frames:
            raise DataLoss(f"the sound is cut off: {len(samples):,} of {sound.frames:,} samples")
        return samples, int(sound.samplerate)


def _open_sound(path: Path) -> Any:
    """Raises DataLoss for a file that is no sound of the formats of HEADS, or is cut off."""
    import soundfile

    try:
        with path.open("rb") as file:
            head = file.read(8)
            size = os.fstat(file.fileno()).st_size
    except OSError as error:
        raise DataLoss(f"the file cannot be read: {error.strerror}") from error
    if not head.startswith(HEADS):
        raise DataLoss("no WAV, FLAC or Ogg")
    if head.startswith(b"RIFF"):
        length = int.from_bytes(head[4:8], "little")
        if length + 8 > size and length not in _UNKNOWN_SIZES:
            raise DataLoss(f"the sound is cut off: {size:,} of {length + 8:,} bytes")
    try:
        return soundfile.SoundFile(path)
    except (RuntimeError, ValueError, TypeError, OSError) as error:  # RuntimeError: of libsndfile
        raise DataLoss(f"no sound that libsndfile can read: {describe_exception(error)}") from error


def _mix(samples: Any) -> Any:
    """The mean of all channels, as one channel."""
    import numpy as np

    if samples.shape[1] == 1:
        return samples
    mean = samples.mean(axis=1, keepdims=True, dtype=np.float64)
    return (np.rint(mean) if samples.dtype.kind == "i" else mean).astype(samples.dtype)


def resample(samples: Any, rate: int, new_rate: int) -> Any:
    """Raises ResourceExhausted for a sound that would have more than MOST_SAMPLES."""
    import soxr

    count = len(samples) * new_rate // max(rate, 1)
    if count * samples.shape[1] > MOST_SAMPLES:
        raise ResourceExhausted(f"{len(samples):,} samples at {rate:,} Hz become {count:,} at {new_rate:,} Hz, "
                                f"more than {MOST_SAMPLES:,} in all channels")
    try:
        return soxr.resample(samples, rate, new_rate)
    except (RuntimeError, ValueError) as error:
        raise InvalidArgument(f"no way from {rate:,} Hz to {new_rate:,} Hz: {describe_exception(error)}") from error
