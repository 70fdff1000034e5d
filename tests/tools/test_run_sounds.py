"""heald run from sounds and to sounds."""

import json
import struct
import sys

import numpy as np
import pytest
from builders.graphs import node, placeholder
from heald.errors import InvalidArgument
from heald.graphs.graph.graph import Node
from heald.runtime.values import dtypes
from heald_tools.rows import sounds
from heald_tools.rows.sound_files import encode_wav

soundfile = pytest.importorskip("soundfile")
pytest.importorskip("soxr")

RATE = 8000
SUBTYPES = {"wav": "FLOAT", "flac": "PCM_24", "ogg": "VORBIS"}
TOLERANCES = {"wav": 0.0, "flac": 1e-6, "ogg": 0.1}  # Vorbis loses


def tone(seconds=0.25, rate=RATE, hertz=440.0, channels=1):
    times = np.arange(round(seconds * rate)) / rate
    waves = [0.5 * np.sin(2 * np.pi * hertz * (channel + 1) * times) for channel in range(channels)]
    return np.stack(waves, axis=1).astype(np.float32)


@pytest.fixture
def sound(tmp_path):
    """`sound(name, samples, rate)`: a file of these samples; the suffix is the format."""
    def write(name, samples, rate=RATE, subtype=None):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        soundfile.write(path, samples, rate, subtype or SUBTYPES[path.suffix[1:]])
        return path

    return write


@pytest.fixture
def model(saved):
    """`model(shape, dtype)`: y = the input."""
    def make(*shape, dtype=dtypes.float32):
        return saved(placeholder("x", shape, dtype), node("y", "Identity", "x", T=dtype))

    return make


def answers(done):
    assert done.err.count("error: ") == 0, done.err
    return [np.array(json.loads(line)["y"], np.float32) for line in done.out.splitlines()]


@pytest.mark.parametrize("suffix", SUBTYPES)
def test_a_sound_of_each_format_is_a_row_of_samples(command, model, sound, suffix):
    path = sound(f"a.{suffix}", tone())
    (y,) = answers(command("run", model(None, None), "--input", path, "--json"))
    np.testing.assert_allclose(y, tone()[:, 0], atol=TOLERANCES[suffix])


LAYOUTS = {  # by the input's shape: the answer to a sound of two channels
    (None, None): lambda stereo: stereo.mean(axis=1), (None,): lambda stereo: stereo.mean(axis=1),
    (None, None, 1): lambda stereo: stereo.mean(axis=1)[:, None], (None, None, 2): lambda stereo: stereo,
    (None, None, None): lambda stereo: stereo, (None, 2, None): lambda stereo: stereo.T,
    (None, 2): lambda stereo: stereo, (None, 2000): lambda stereo: stereo.mean(axis=1), None: lambda s: s.mean(axis=1),
}


@pytest.mark.parametrize("shape", LAYOUTS, ids=str)
def test_the_input_says_layout_and_channels(command, saved, sound, shape):
    saved_model = saved(placeholder("x", shape), node("y", "Identity", "x"))
    path = sound("a.wav", tone(channels=2))
    (y,) = answers(command("run", saved_model, "--input", path, "--batch", "1", "--json"))
    np.testing.assert_allclose(y, LAYOUTS[shape](tone(channels=2)), atol=1e-7)


def test_mono_mixes_channels_that_the_input_would_take(command, model, sound):
    path = sound("a.wav", tone(channels=2))
    (y,) = answers(command("run", model(None, None, None), "--input", path, "--mono", "--json"))
    np.testing.assert_allclose(y, tone(channels=2).mean(axis=1, keepdims=True), atol=1e-7)


@pytest.mark.parametrize(("dtype", "subtype"), [(dtypes.int16, "PCM_16"), (dtypes.int32, "PCM_32")])
def test_an_input_of_integers_has_the_range_of_its_type(command, saved, sound, dtype, subtype):
    saved_model = saved(placeholder("x", (None, None), dtype), node("y", "Identity", "x", T=dtype))
    samples = np.array([[0, 1], [-3, 2], [100, 200]], dtype.numpy)
    path = sound("a.wav", samples, subtype=subtype)
    (y,) = answers(command("run", saved_model, "--input", path, "--json"))
    assert y.tolist() == [0, 0, 150]  # the mean, halves to even


def test_another_rate_is_resampled(command, model, sound):
    for rate in (4000, 11025, 48000):
        path = sound("a.wav", tone(rate=rate), rate)
        (y,) = answers(command("run", model(None, None), "--input", path, "--sample-rate", RATE, "--json"))
        assert abs(len(y) - 2000) <= 1
        middle = slice(200, 1800)  # the ends have the filter's own
        np.testing.assert_allclose(y[middle], tone()[middle, 0], atol=2e-3)


def test_files_of_several_rates_are_told_once(command, model, sound, tmp_path):
    for index, rate in enumerate((8000, 16000, 8000, 44100, 16000)):
        sound(f"in/{index}.wav", tone(rate=rate), rate)
    arguments = "run", model(None, None), "--input", tmp_path / "in", "--batch", "1", "--json"
    done = command(*arguments)
    assert [len(y) for y in answers(done)] == [2000, 4000, 2000, 11025, 4000]
    assert done.err.count("sounds of several rates") == 1
    assert (f"warning: sounds of several rates: 8,000 Hz in '{tmp_path}/in/0.wav', 16,000 Hz in "
            f"'{tmp_path}/in/1.wav'; --sample-rate makes them one") in done.err
    done = command(*arguments, "--sample-rate", "8000")
    assert [len(y) for y in answers(done)] == [2000] * 5
    assert "several rates" not in done.err


def test_sounds_of_several_lengths_run_one_by_one(command, model, sound, tmp_path):
    for index in range(2):
        sound(f"in/{index}.wav", tone(0.1 * (index + 1)))
    arguments = "run", model(None, None), "--input", tmp_path / "in", "--json"
    assert command(*arguments).err.replace(f"{tmp_path}/", "").startswith(
        "error: rows of input 'x' differ in shape: [800] of 'in/0.wav' and [1600] of 'in/1.wav'\n"
        "  hint: --batch 1 runs each alone")
    assert [len(y) for y in answers(command(*arguments, "--batch", "1"))] == [800, 1600]


def test_a_text_input_takes_the_bytes_of_a_sound(command, saved, sound):
    saved_model = saved(placeholder("x", (None,), dtypes.string), Node("y", "StringLength", ["x"]))
    path = sound("a.wav", tone())
    done = command("run", saved_model, "--input", path, "--json")
    assert json.loads(done.out)["y"] == path.stat().st_size


DAMAGES = {
    "no sound": (lambda data: b"ID3" + data, "no WAV, FLAC or Ogg"),
    "cut off": (lambda data: data[:-100], "the sound is cut off: "),
    "empty": (lambda data: b"", "no WAV, FLAC or Ogg"),
    "a bad head": (lambda data: data[:20] + b"\xff" * 8 + data[28:], "no sound that libsndfile can read: "),
}


@pytest.mark.parametrize(("damage", "reason"), DAMAGES.values(), ids=DAMAGES)
def test_a_bad_sound_is_told_and_the_others_go_on(command, model, sound, tmp_path, damage, reason):
    for name in ("a", "b", "c"):
        path = sound(f"in/{name}.wav", tone())
        if name == "b":
            path.write_bytes(damage(path.read_bytes()))
    done = command("run", model(None, None), "--input", tmp_path / "in", "--json")
    assert done.status == 1
    assert f"warning: {tmp_path}/in/b.wav: {reason}" in done.err
    assert len(done.out.splitlines()) == 2


@pytest.mark.parametrize("suffix", ["flac", "ogg"])
def test_a_packed_sound_that_is_cut_off_is_told(command, model, sound, suffix):
    path = sound(f"a.{suffix}", tone(2.0))
    path.write_bytes(path.read_bytes()[:path.stat().st_size // 2])
    done = command("run", model(None, None), "--input", path, "--json")
    assert (done.status, done.out) == (1, "") or suffix == "ogg"  # Ogg ends with any page


def test_a_sound_that_does_not_fit_is_told(command, model, sound):
    path = sound("a.wav", tone(channels=3))
    assert f"{path}: 3 channels, where the input takes 2; left out" in command(
        "run", model(None, None, 2), "--input", path).err
    assert f"{path}: 2,000 samples, where the input takes 1,000; left out" in command(
        "run", model(None, 1000), "--input", path).err


def test_a_sound_has_a_longest_length(command, model, sound, monkeypatch):
    path = sound("a.flac", tone(4.0) * 0)
    monkeypatch.setattr(sounds, "MOST_SAMPLES", 20_000)
    assert f"{path}: 32,000 samples of 1 channels, more than 20,000 in all; left out" in command(
        "run", model(None, None), "--input", path).err
    path = sound("b.wav", tone(20.0, rate=100), 100)
    assert (f"{path}: 2,000 samples at 100 Hz become 320,000 at 16,000 Hz, more than 20,000 in all channels; left out"
            in command("run", model(None, None), "--input", path, "--sample-rate", "16000").err)


def test_an_input_that_is_no_sound_is_told(command, saved, sound):
    path = sound("a.wav", tone())
    for shape, dtype in (((None, 9, 9), dtypes.float32), ((None, 4, 4, 4), dtypes.float32), ((None,), dtypes.int64)):
        saved_model = saved(placeholder("x", shape, dtype), node("y", "Identity", "x", T=dtype))
        done = command("run", saved_model, "--input", path)
        assert "which is no sound\n  hint: sounds feed inputs such as float32[?,16000]" in done.err


def test_sounds_out_are_named_after_the_inputs_and_hold_the_samples(command, model, sound, tmp_path):
    for folder in ("in", "in/deep"):
        for name in ("a", "b"):
            sound(f"{folder}/{name}.wav", tone(hertz=440 if name == "a" else 880))
    arguments = "run", model(None, None), "--input", tmp_path / "in", "--sample-rate", RATE, "--output"
    assert command(*arguments, f"{tmp_path}/out/*.wav").status == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["a-2.wav", "a.wav", "b-2.wav", "b.wav"]
    samples, rate = soundfile.read(tmp_path / "out" / "b.wav", dtype="float32")
    assert rate == RATE
    np.testing.assert_array_equal(samples, tone(hertz=880)[:, 0])
    first = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    command(*arguments, f"{tmp_path}/again/*.wav")
    assert {path.name: path.read_bytes() for path in (tmp_path / "again").iterdir()} == first


def test_rows_of_a_table_name_sounds_by_their_number(command, model, tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((3, 50), np.float32))
    command("run", model(None, 50), "--input", tmp_path / "x.npy", "--batch", "2", "--sample-rate", RATE,
            "--output", f"{tmp_path}/out/*.wav")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["x-1.wav", "x-2.wav", "x-3.wav"]


def test_a_model_without_a_batch_makes_sounds(command, model, sound, tmp_path):
    path = sound("a.wav", tone())
    assert command("run", model(None), "--input", path, "--sample-rate", RATE,
                   "--output", f"{tmp_path}/out/*.wav").status == 0
    np.testing.assert_array_equal(soundfile.read(tmp_path / "out" / "a.wav", dtype="float32")[0], tone()[:, 0])


def test_an_output_of_sounds_that_cannot_be_is_told(command, saved, model, sound, tmp_path):
    path, output = sound("a.wav", tone()), f"{tmp_path}/out/*.wav"
    arguments = "run", model(None, None), "--input", path, "--output", output
    assert command(*arguments).err.startswith(
        f"error: --output '{output}' needs the rate of its sounds\n  hint: --sample-rate 16000\n")
    assert command(*arguments, "--sample-rate", "8000", "--resume").err.startswith(
        "error: --resume: a folder of sounds has no journal\n")
    two = saved(placeholder("x", (None, None)), node("y", "Identity", "x"), node("z", "Neg", "x"), name="two.pb")
    assert command("run", two, "--input", path, "--sample-rate", "8000", "--output", output).err.startswith(
        "error: 2 outputs are sounds: y, z\n  hint: --fetch names the output to write\n")
    assert "'0' is no rate of samples" in command(*arguments, "--sample-rate", "0").err


ARRAYS = {
    "floats": np.float32([0.5, -1.5, 0.25]), "doubles": np.float64([0.5, -0.25]),
    "stereo": np.float32([[0, 1], [0.5, 0]]), "int16": np.int16([1, -2, 3]), "int32": np.int32([[1, -2, 3]] * 2).T,
    "an odd number of bytes": np.uint8([0, 128, 255]),
    "channels first": np.zeros((2, 100), np.float32), "one channel": np.zeros((100, 1), np.int16),
}


@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS)
def test_a_wav_file_reads_back_as_its_array(tmp_path, array):
    data = b"".join(encode_wav(array, 16000))
    assert struct.unpack("<I", data[4:8])[0] == len(data) - 8
    (tmp_path / "a.wav").write_bytes(data)
    if array.dtype == np.uint8:
        assert soundfile.info(tmp_path / "a.wav").subtype == "PCM_U8"
        assert data[-4:] == bytes([0, 128, 255, 0])
        return
    kind = {"f": "float32", "i": array.dtype.name}[array.dtype.kind]
    samples, rate = soundfile.read(tmp_path / "a.wav", dtype=kind)
    expected = array.T if array.shape == (2, 100) else array[:, 0] if array.shape == (100, 1) else array
    np.testing.assert_array_equal(samples, expected.astype(kind))
    assert rate == 16000


@pytest.mark.parametrize("array", [
    np.float32(1), np.zeros((20, 20), np.float32), np.int64([1]), np.array([b"a"], object)])
def test_an_array_that_is_no_sound_is_told(array):
    with pytest.raises(InvalidArgument, match="is no sound"):
        encode_wav(array, 16000)


@pytest.mark.parametrize(("module", "use"), [("soundfile", "reading '{path}'"), ("soxr", "--sample-rate")])
def test_a_missing_library_is_told_with_its_command(command, model, sound, monkeypatch, module, use):
    from heald.runtime.support import install

    path = sound("a.wav", tone())
    install.is_importable.cache_clear()
    monkeypatch.setitem(sys.modules, module, None)
    done = command("run", model(None, None), "--input", path, "--sample-rate", "16000")
    install.is_importable.cache_clear()
    assert done.err.startswith(f"error: {use.format(path=path)} needs {module}\n  hint: pip install {module}\n")
