"""Kernels of audio: WAV files of 16 bits, spectrograms, and the cepstral coefficients of speech.

Numbers are computed in float64 and rounded once, as in TensorFlow. A spectrogram has the windows of Hann, of the length
`window_size`, filled with zeros up to a power of two. Cepstral coefficients are cosine transforms of logarithms of mel
bands. A mel band weighs the frequencies around its center by a triangle. So each frequency belongs to two bands: to the
right side of one triangle by its weight, and to the left side of the next by the rest.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from itertools import pairwise
from math import log1p, pi
from typing import Any, NamedTuple

import numpy as np
from heald.api import Bind, Kernels, errors

from ..element_types import Array
from .staging import nothing

Run = Callable[..., Any]
PCM, BITS = 1, 16
FORMAT_SIZES = (16, 18)  # bytes of the chunk "fmt "; the longer one ends with two bytes without a meaning
LARGEST_CHUNK = 2**31 - 1
FULL_SCALE = 32768  # the 16-bit integer that 1.0 becomes
LARGEST_SAMPLES_AT_ONCE = 1 << 18  # samples of windows that are transformed together
SAMPLE_BYTES = 32  # per sample of a window: windowed float64, complex transform, power
LEAST_BAND = 1e-12  # smaller bands are replaced, for the logarithm of 0 would be infinite


class _Wav(NamedTuple):
    """The 16-bit samples of a file, an array [samples, channels], and its rate in Hz."""

    samples: Array
    rate: int


class _Reader:
    """Reads the bytes of a file from front to back. Raises InvalidArgument behind the end."""

    def __init__(self, contents: bytes) -> None:
        self._contents, self._position = contents, 0

    def read(self, count: int) -> bytes:
        start = self._position
        self.skip(count)
        if self._position > len(self._contents):
            raise errors.InvalidArgument("Data too short when trying to read string")
        return self._contents[start : self._position]

    def skip(self, count: int) -> None:
        self._position += count

    def numbers(self, form: str) -> tuple[int, ...]:
        return struct.unpack(form, self.read(struct.calcsize(form)))

    def expect(self, text: bytes) -> None:
        actual = self.read(len(text))
        if actual != text:
            raise errors.InvalidArgument(f"Header mismatch: Expected {text!r} but found {actual!r}")

    def has_more(self) -> bool:
        return self._position < len(self._contents)


def _read_wav(contents: bytes) -> _Wav:
    reader = _Reader(contents)
    reader.expect(b"RIFF")
    reader.read(4)
    reader.expect(b"WAVE")
    channels, rate = _read_format(reader)
    data = [chunk for name, chunk in _chunks(reader, 2 * channels) if name == b"data"]
    if len(data) != 1:
        raise errors.InvalidArgument(f"a WAV file has one data chunk, not {len(data)}")
    return _Wav(np.frombuffer(data[0], "<i2").reshape(-1, channels), rate)


def _read_format(reader: _Reader) -> tuple[int, int]:
    """The channels and the rate."""
    reader.expect(b"fmt ")
    size, kind = reader.numbers("<IH")
    if size not in FORMAT_SIZES:
        raise errors.InvalidArgument(f"Bad format chunk size for WAV: Expected 16 or 18, but got {size}")
    if kind != PCM:
        raise errors.InvalidArgument(f"Bad audio format for WAV: Expected 1 (PCM), but got {kind}")
    channels, rate, bytes_per_second, bytes_per_sample, bits = reader.numbers("<HIIHH")
    if channels < 1:
        raise errors.InvalidArgument("Bad number of channels for WAV: Expected at least 1, but got 0")
    if bits != BITS:
        raise errors.InvalidArgument(f"Can only read 16-bit WAV files, but received {bits}")
    if bytes_per_sample != 2 * channels:
        raise errors.InvalidArgument(f"Bad bytes per sample in WAV header: Expected {2 * channels} but got "
                                     f"{bytes_per_sample}")
    if bytes_per_second != bytes_per_sample * rate:
        raise errors.InvalidArgument(f"Bad bytes per second in WAV header: Expected {bytes_per_sample * rate} but got "
                                     f"{bytes_per_second}")
    reader.skip(size - FORMAT_SIZES[0])
    return channels, rate


def _chunks(reader: _Reader, bytes_per_sample: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield name and content of each chunk up to the end; only a data chunk's content, of whole samples."""
    while reader.has_more():
        name, (size,) = reader.read(4), reader.numbers("<I")
        if size > LARGEST_CHUNK:
            raise errors.InvalidArgument(f"WAV data chunk {name!r} is too large: {size} bytes, but the limit is "
                                         f"{LARGEST_CHUNK}")
        if name == b"data":
            yield name, reader.read(size // bytes_per_sample * bytes_per_sample)
        else:
            reader.skip(size)


def decode_wav(b: Bind) -> Run:
    """Missing samples are 0, missing channels are copies of the last one."""
    desired_samples, desired_channels = b.attrs["desired_samples"], b.attrs["desired_channels"]

    def run(contents: Array) -> tuple[Array, Array]:
        wav = _read_wav(contents.item())
        count = len(wav.samples) if desired_samples == -1 else desired_samples
        channels = wav.samples.shape[1] if desired_channels == -1 else desired_channels
        b.ask(count * channels * 4, f"audio of {count} samples and {channels} channels")
        audio = np.zeros((count, channels), np.float32)
        filled = min(count, len(wav.samples))
        filled_channels = min(channels, wav.samples.shape[1])
        target = audio[:filled, :filled_channels]
        np.multiply(wav.samples[:filled, :filled_channels], np.float32(1 / FULL_SCALE), out=target)
        if channels > filled_channels:
            audio[:, filled_channels:] = audio[:, filled_channels - 1 : filled_channels]
        return audio, np.array(wav.rate, np.uint32).view(np.int32)[()]

    return run


def encode_wav(b: Bind) -> Run:
    count, channels = b.inputs[0].meta.dims
    if not 0 < channels < 2**16:
        raise errors.InvalidArgument(f"num_channels must be in (0, 2^16), got: {channels}")

    def run(audio: Array, sample_rate: Array, out: Array) -> None:
        header = _wav_header(channels, int(sample_rate), 2 * count * channels)
        b.ask(16 * audio.size, f"a WAV file of {audio.size} samples")
        wide = np.nan_to_num(audio.astype(np.float64) * FULL_SCALE, copy=False)
        rounded = np.copysign(np.floor(np.abs(wide) + 0.5), wide).clip(-FULL_SCALE, FULL_SCALE - 1)
        out[()] = header + rounded.astype("<i2").tobytes()

    return run


def _wav_header(channels: int, rate: int, size: int) -> bytes:
    """The header in front of `size` bytes of samples. Rates of bytes wrap around where the header's fields are too
    short for them, as TensorFlow's do."""
    if rate <= 0:
        raise errors.InvalidArgument(f"sample_rate must be in (0, 2^32), got: {rate}")
    if size > LARGEST_CHUNK:
        raise errors.InvalidArgument(f"a WAV file holds at most {LARGEST_CHUNK} bytes of samples, given {size}")
    form = struct.pack("<4sIHHIIHH", b"fmt ", FORMAT_SIZES[0], PCM, channels, rate, 2 * channels * rate % 2**32,
                       2 * channels % 2**16, BITS)
    return struct.pack("<4sI4s", b"RIFF", 36 + size, b"WAVE") + form + struct.pack("<4sI", b"data", size)


def audio_spectrogram(b: Bind) -> Run:
    if not b.outputs[0].size:
        return nothing
    window_size, stride = b.attrs["window_size"], b.attrs["stride"]
    length = 2 * (b.outputs[0].dims[2] - 1)
    at_once = max(1, LARGEST_SAMPLES_AT_ONCE // length)
    b.ask(at_once * length * SAMPLE_BYTES, f"windows of {window_size} samples")
    hann = 0.5 - 0.5 * np.cos(2 * pi * np.arange(window_size) / window_size)
    is_squared = b.attrs["magnitude_squared"]

    def run(samples: Array, out: Array) -> None:
        windows = np.lib.stride_tricks.sliding_window_view(samples, window_size, 0)[::stride].transpose(1, 0, 2)
        for channel, channel_out in zip(windows, out, strict=True):
            for first in range(0, len(channel), at_once):
                waves = np.fft.rfft(channel[first : first + at_once] * hann, length)
                channel_out[first : first + at_once] = waves.real**2 + waves.imag**2
        if not is_squared:
            np.sqrt(out, out)

    return run


class _Bands(NamedTuple):
    """The mel bands over the frequencies from `start` to `end`, which is included. Frequency start + i has the weight
    weights[i] in band lower[i], and 1 - weights[i] in the next one; band -1 is left out."""

    start: int
    end: int
    lower: Array
    weights: Array


def _mel(frequency: float) -> float:
    return 1127 * log1p(frequency / 700)


def _mel_bands(count: int, frequencies: int, rate: int, low: float, high: float) -> _Bands:
    step = 0.5 * rate / (frequencies - 1)
    start, end = int(1.5 + low / step), int(high / step)
    mel_low = _mel(low)
    centers = mel_low + (_mel(high) - mel_low) / (count + 1) * np.arange(count + 2)  # the first one is the low end
    mels = 1127 * np.log1p(np.arange(start, min(end + 1, frequencies)) * step / 700)
    upper = np.searchsorted(centers[1:], mels).clip(max=count)
    weights = (centers[1:][upper.clip(max=count)] - mels) / (centers[1:] - centers[:-1])[upper]
    return _Bands(start, end, upper - 1, weights)


def mfcc(b: Bind) -> Run:
    a, frequencies, coefficients = b.attrs, b.inputs[0].meta.dims[2], b.outputs[0].dims[2]
    count = a["filterbank_channel_count"]
    frames = b.inputs[0].meta.dims[0] * b.inputs[0].meta.dims[1]
    b.ask((coefficients * count + frames * (count + 3 * frequencies)) * 8, f"{count} mel bands")
    transform = _cosines(count, coefficients)

    def run(spectrogram: Array, sample_rate: Array, out: Array) -> None:
        rate = int(sample_rate)
        if rate <= 0:
            raise errors.InvalidArgument(f"Mfcc initialization failed for sample rate {rate}")
        bands = _mel_bands(count, frequencies, rate, a["lower_frequency_limit"], a["upper_frequency_limit"])
        if bands.end >= frequencies:  # TensorFlow logs an error and gives no bands
            out.fill(0)
            return
        sums = _band_sums(bands, spectrogram.reshape(-1, frequencies), count)
        logarithms = np.log(np.where(sums < LEAST_BAND, LEAST_BAND, sums))
        out[...] = (logarithms @ transform).reshape(out.shape)

    return run


def _cosines(count: int, coefficients: int) -> Array:
    """[count, coefficients]: the transform of bands to coefficients."""
    angles = np.outer(np.arange(count) + 0.5, np.arange(coefficients)) * (pi / count)
    cosines: Array = np.cos(angles) * np.sqrt(2 / count)
    return cosines


def _band_sums(bands: _Bands, powers: Array, count: int) -> Array:
    """[frames, count]: the weighed magnitudes of each band."""
    magnitudes = np.sqrt(powers[:, bands.start : bands.end + 1], dtype=np.float64)
    weighed = magnitudes * bands.weights
    sums = np.zeros((len(powers), count))
    firsts = np.flatnonzero(np.diff(bands.lower, prepend=-2))
    for first, last in pairwise([*firsts, len(bands.lower)]):
        band, part = bands.lower[first], slice(first, last)
        if band >= 0:
            sums[:, band] += weighed[:, part].sum(1)
        if band + 1 < count:
            sums[:, band + 1] += (magnitudes[:, part] - weighed[:, part]).sum(1)
    return sums


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("DecodeWav", allocates=True)(decode_wav)
    kernels.kernel("EncodeWav")(encode_wav)
    kernels.kernel("AudioSpectrogram")(audio_spectrogram)
    kernels.kernel("Mfcc")(mfcc)
