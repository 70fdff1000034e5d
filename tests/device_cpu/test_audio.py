"""Audio: WAV files, spectrograms of known tones, and cepstral coefficients beside TensorFlow's recorded ones."""

import struct
import wave
from io import BytesIO

import heald
import numpy as np
import pytest
from harness.run_op import outputs
from heald.errors import InvalidArgument, ResourceExhausted
from heald.graphs.graph.graph import Graph, Node
from heald.runtime.config.config import load_config
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import info
from heald_tf_ops.metadata import RULES
from hypothesis import given, settings
from hypothesis import strategies as st

RNG = np.random.default_rng(0)
SAMPLES = RNG.integers(-32768, 32768, (50, 2)).astype(np.int16)


def wav_of_python(samples, rate):
    stream = BytesIO()
    with wave.open(stream, "wb") as file:
        file.setparams((samples.shape[1], 2, rate, len(samples), "NONE", None))
        file.writeframes(samples.astype("<i2").tobytes())
    return stream.getvalue()


def decode(contents, **attrs):
    return outputs("DecodeWav", np.array(contents, object), **attrs)


def encode(audio, rate=8000):
    return outputs("EncodeWav", np.float32(audio), np.int32(rate))[0].item()


def test_files_are_read_as_pythons_module_wrote_them_and_written_as_it_writes_them():
    contents = wav_of_python(SAMPLES, 44100)
    audio, rate = decode(contents)
    assert rate == 44100
    np.testing.assert_array_equal(audio, SAMPLES / np.float32(32768))
    assert encode(audio, 44100) == contents


@settings(max_examples=200)
@given(st.data())
def test_a_damaged_file_gives_audio_or_a_typed_error(data):
    contents = bytearray(wav_of_python(SAMPLES[:4], 8000))
    for _ in range(data.draw(st.integers(1, 4))):
        contents[data.draw(st.integers(0, len(contents) - 1))] = data.draw(st.integers(0, 255))
    try:
        audio, _ = decode(bytes(contents[: data.draw(st.integers(0, len(contents)))]))
    except InvalidArgument:
        return
    assert audio.nbytes <= 2 * len(contents)


def test_a_desired_length_beyond_the_memory_limit_is_refused_before_memory_is_taken():
    graph = Graph([Node("x", "Placeholder", attrs={"dtype": dtypes.string, "shape": None}),
                   Node("op", "DecodeWav", ["x"], attrs={"desired_samples": 2**31 - 1, "desired_channels": 2**31 - 1})])
    with heald.Session(graph, load_config({"limits": {"memory": "1GB"}}), device="CPU:0") as session, \
            pytest.raises((ResourceExhausted, InvalidArgument)):
        session.run("op:0", {"x": np.array(wav_of_python(SAMPLES, 8000), object)})


def test_a_tone_is_seen_at_its_frequency():
    time = np.arange(4000) / 8000
    tones = np.stack([np.sin(2 * np.pi * 1000 * time), np.cos(2 * np.pi * 3000 * time)], 1).astype(np.float32)
    spectrogram = outputs("AudioSpectrogram", tones, window_size=256, stride=100)[0]
    assert spectrogram.shape == (2, 38, 129)
    assert spectrogram.argmax(2).tolist() == [[32] * 38, [96] * 38]
    squared = outputs("AudioSpectrogram", tones, window_size=256, stride=100, magnitude_squared=True)[0]
    np.testing.assert_allclose(squared, spectrogram**2, rtol=1e-4, atol=1e-4)


def test_many_windows_are_transformed_in_parts_without_a_difference():
    samples = RNG.standard_normal((9000, 1)).astype(np.float32)
    whole = outputs("AudioSpectrogram", samples, window_size=256, stride=1)[0]
    late = outputs("AudioSpectrogram", samples[8000:], window_size=256, stride=1)[0]
    np.testing.assert_array_equal(whole[:, 8000:], late)


def test_a_louder_signal_changes_the_first_coefficient_only():
    powers = RNG.uniform(1, 9, (1, 2, 129)).astype(np.float32)
    quiet = outputs("Mfcc", powers, np.int32(16000))[0]
    loud = outputs("Mfcc", powers * 4, np.int32(16000))[0]
    np.testing.assert_allclose((loud - quiet)[..., 1:], 0, atol=1e-4)
    np.testing.assert_allclose((loud - quiet)[..., 0], np.log(2) * np.sqrt(2 * 40), rtol=1e-4)


@pytest.mark.parametrize("limits", [
    {"upper_frequency_limit": np.inf}, {"upper_frequency_limit": np.nan}, {"lower_frequency_limit": np.nan},
    {"filterbank_channel_count": 2**31}, {"dct_coefficient_count": -1},
])
def test_limits_that_end_tensorflow_or_are_beyond_an_int_are_refused(limits):
    with pytest.raises(InvalidArgument):
        outputs("Mfcc", np.ones((1, 2, 129), np.float32), np.int32(16000), **limits)


@pytest.mark.parametrize(("op", "attrs", "shapes", "expected"), [
    ("DecodeWav", {"desired_channels": -1, "desired_samples": 16000}, [()], (16000, None)),
    ("EncodeWav", {}, [None, ()], ()),
    ("AudioSpectrogram", {"window_size": 480, "stride": 160}, [(None, 1)], (1, None, 257)),
    ("AudioSpectrogram", {"window_size": 512, "stride": 160}, [None], (None, None, 257)),
    ("Mfcc", {"dct_coefficient_count": 13, "filterbank_channel_count": 40, "lower_frequency_limit": 20.0,
              "upper_frequency_limit": 4000.0}, [None, ()], (None, None, 13)),
])
def test_shapes_are_inferred_from_unknown_ones(op, attrs, shapes, expected):
    inputs = [info(dtypes.float32, shape) for shape in shapes]
    inferred = RULES[op].function(attrs, *inputs)
    assert (inferred if not isinstance(inferred, tuple) else inferred[0]).shape == expected


def test_a_header_that_lies_about_its_data_is_refused():
    contents = wav_of_python(SAMPLES, 8000)
    for size in (401, 10**9, 2**32 - 1):
        with pytest.raises(InvalidArgument):
            decode(contents[:40] + struct.pack("<I", size) + contents[44:-200])
