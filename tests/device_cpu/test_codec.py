"""Codecs: TensorFlow's semantics of encoded strings. Files are made by Pillow and by NumPy."""

import base64
import json
import struct
import sys
import zlib
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from harness.run_op import run_op
from heald.errors import InvalidArgument, Unimplemented
from heald.runtime.values import dtypes
from PIL import Image

RNG = np.random.default_rng(0)
JPEGS = json.loads((Path(__file__).parents[1] / "data/jpegs.json").read_text())
COLORS = RNG.integers(0, 256, (5, 7, 3), np.uint8)


def text(*strings):
    array = np.empty(len(strings), object)
    array[:] = strings
    return array


def scalar(string):
    return text(string).reshape(())


def decode(op, contents, **attrs):
    return run_op(op, [scalar(contents)], attrs)[0]


def encode(op, image, **attrs):
    return run_op(op, [image], ({"T": dtypes.of_numpy(image.dtype)} if op == "EncodePng" else {}) | attrs)[0]


def encode_image(pixels, kind, **options):
    stream = BytesIO()
    image = pixels if isinstance(pixels, Image.Image) else Image.fromarray(pixels)
    image.save(stream, kind, **options)
    return stream.getvalue()


@pytest.mark.parametrize("little", [True, False])
@pytest.mark.parametrize("dtype", ["float16", "float64", "int32", "uint16", "int8", "complex64", "bfloat16", "bool_"])
def test_raw_numbers_come_back(dtype, little):
    kind = getattr(dtypes, dtype)
    x = RNG.integers(0, 2, (3, 4)).astype(kind.numpy)
    rows = x if little else x.byteswap()
    got = run_op("DecodeRaw", [text(*(row.tobytes() for row in rows))], {"out_type": kind, "little_endian": little})[0]
    assert got.dtype == x.dtype
    np.testing.assert_array_equal(got, x)


def test_raw_strings_of_nothing_and_those_that_do_not_fit():
    attrs = {"out_type": dtypes.int16}
    assert run_op("DecodeRaw", [text()], attrs)[0].shape == (0, 0)
    assert run_op("DecodeRaw", [text(b"", b"")], attrs)[0].shape == (2, 0)
    for strings in ((b"ab", b"abcd"), (b"abc",)):
        with pytest.raises(InvalidArgument):
            run_op("DecodeRaw", [text(*strings)], attrs)


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_an_image_encoded_as_png_is_decoded_again(dtype, channels):
    x = RNG.integers(0, np.iinfo(dtype).max + 1, (2, 5, 6, channels)).astype(dtype)
    for contents, image in zip(encode("EncodePng", x), x, strict=True):
        if dtype == np.uint16 and channels == 2:
            with pytest.raises(Unimplemented):
                decode("DecodePng", contents, dtype=dtypes.uint16)
            continue
        np.testing.assert_array_equal(decode("DecodePng", contents, dtype=dtypes.of_numpy(x.dtype)), image)


def test_pngs_have_the_channels_and_the_type_that_are_asked_for():
    contents = encode_image(COLORS, "PNG")
    np.testing.assert_array_equal(decode("DecodeImage", contents, channels=4),
                                  np.dstack([COLORS, np.full((5, 7), 255, np.uint8)]))
    np.testing.assert_allclose(decode("DecodePng", contents, channels=1)[:, :, 0], COLORS @ [0.299, 0.587, 0.114],
                               atol=1)
    np.testing.assert_array_equal(decode("DecodePng", contents, dtype=dtypes.uint16), COLORS.astype(np.uint16) * 257)
    np.testing.assert_allclose(decode("DecodeImage", contents, dtype=dtypes.float32), COLORS / 255, rtol=1e-6)
    gray = encode_image(COLORS[:, :, 0], "PNG")
    np.testing.assert_array_equal(decode("DecodePng", gray, channels=3), np.repeat(COLORS[:, :, :1], 3, 2))


def test_palettes_become_colors_and_their_clear_one_alpha():
    image = Image.fromarray(np.array([[0, 1, 2]], np.uint8)).convert("P")
    image.putpalette([255, 0, 0, 0, 255, 0, 0, 0, 255])
    assert decode("DecodePng", encode_image(image, "PNG")).tolist() == [[[255, 0, 0], [0, 255, 0], [0, 0, 255]]]
    assert decode("DecodePng", encode_image(image, "PNG", transparency=1)).tolist() == [
        [[255, 0, 0, 255], [0, 255, 0, 0], [0, 0, 255, 255]]]


def test_jpegs_are_decoded_as_colors_as_gray_and_smaller():
    smooth = np.add.outer(np.arange(16) * 4, np.arange(24) * 3)[:, :, None].repeat(3, 2).astype(np.uint8)
    contents = encode("EncodeJpeg", smooth)[()]
    np.testing.assert_allclose(decode("DecodeJpeg", contents).astype(int), smooth, atol=4)
    np.testing.assert_allclose(decode("DecodeImage", contents, channels=1).astype(int), smooth[:, :, :1], atol=4)
    assert decode("DecodeJpeg", contents, ratio=8).shape == (2, 3, 3)
    assert decode("DecodeJpeg", encode("EncodeJpeg", smooth[:, :, :1])[()]).shape == (16, 24, 1)


@pytest.mark.parametrize("image", JPEGS["images"])
def test_a_jpeg_has_tensorflows_pixels(image):
    """tests/data/jpegs.json has the checksums of TensorFlow 2.21's pixels, for each op and its attributes."""
    contents = base64.b64decode(JPEGS["images"][image])
    for case in JPEGS["cases"]:
        if case["image"] != image:
            continue
        attrs = dict(case["attrs"])
        window = [np.array(attrs.pop("crop_window"), np.int32)] if "crop_window" in attrs else []
        inputs = [scalar(contents), *window]
        if "error" in case:
            with pytest.raises(InvalidArgument):
                run_op(case["op"], inputs, attrs)
        else:
            pixels = run_op(case["op"], inputs, attrs)[0]
            assert (list(pixels.shape), zlib.crc32(pixels.tobytes())) == (case["shape"], case["crc"]), case


@pytest.mark.parametrize("image", ["truncated", "truncated_444", "truncated_progressive", "cut"])
def test_a_truncated_jpeg_is_completed_on_request(image):
    contents = base64.b64decode(JPEGS["images"][image])
    assert decode("DecodeJpeg", contents, try_recover_truncated=True).shape == (21, 27, 3)


@pytest.mark.parametrize(("module", "kind", "name"), [
    ("simplejpeg", "JPEG", "simplejpeg"), ("PIL.PngImagePlugin", "PNG", "Pillow"),
])
def test_an_image_whose_library_is_not_installed_names_it(monkeypatch, module, kind, name):
    contents = encode_image(COLORS, kind)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(Unimplemented, match=f"needs {name}"):
        decode("DecodeImage", contents)


def test_a_jpeg_is_cropped_and_tells_its_shape():
    contents = encode_image(COLORS, "JPEG")
    full_image = decode("DecodeJpeg", contents)
    window = np.array([1, 2, 3, 4], np.int32)
    np.testing.assert_array_equal(run_op("DecodeAndCropJpeg", [scalar(contents), window], {})[0], full_image[1:4, 2:6])
    assert decode("ExtractJpegShape", contents, output_type=dtypes.int64).tolist() == [5, 7, 3]
    for bad in ([0, 0, 6, 1], [-1, 0, 2, 2], [0, 0, 0, 1], [0, 0, 1]):
        with pytest.raises(InvalidArgument):
            run_op("DecodeAndCropJpeg", [scalar(contents), np.array(bad, np.int32)], {})
    for attrs in ({"ratio": 3}, {"dct_method": "SLOW"}, {"channels": 2}, {"channels": 4}):
        with pytest.raises(InvalidArgument):
            decode("DecodeJpeg", contents, **attrs)


def test_webp_images_are_animations():
    contents = encode_image(COLORS, "WEBP", lossless=True)
    np.testing.assert_array_equal(decode("DecodeWebP", contents), COLORS[None])
    np.testing.assert_array_equal(decode("DecodeImage", contents, expand_animations=False), COLORS)
    for attrs in ({"channels": 4}, {"channels": 1}, {"dtype": dtypes.uint16}):
        with pytest.raises(InvalidArgument):
            decode("DecodeImage", contents, **attrs)


def test_bitmaps_run_from_the_bottom_up_or_down():
    contents = encode_image(COLORS, "BMP")
    np.testing.assert_array_equal(decode("DecodeBmp", contents), COLORS)
    down = bytearray(contents)
    struct.pack_into("<i", down, 22, -5)
    np.testing.assert_array_equal(decode("DecodeImage", bytes(down)), COLORS[::-1])


def test_animations_have_frames():
    frames = [Image.fromarray(np.full((2, 3), n, np.uint8)) for n in (0, 90, 200)]
    contents = encode_image(frames[0], "GIF", save_all=True, append_images=frames[1:])
    want = np.array([0, 90, 200], np.uint8)[:, None, None, None] * np.ones((1, 2, 3, 3), np.uint8)
    np.testing.assert_array_equal(decode("DecodeGif", contents), want)
    np.testing.assert_array_equal(decode("DecodeImage", contents), want)
    np.testing.assert_array_equal(decode("DecodeImage", contents, expand_animations=False), want[0])
    with pytest.raises(InvalidArgument, match="animated"):
        decode("DecodePng", contents)


@pytest.mark.parametrize("contents", [
    b"", b"text", b"BM", b"BM" + bytes(60), b"RIFF" + bytes(20), encode_image(COLORS, "GIF")[:30],
    encode_image(COLORS, "JPEG")[:300],
    encode_image(COLORS, "PNG")[:60], encode_image(COLORS, "PNG")[:-20],
])
@pytest.mark.parametrize("op", ["DecodeBmp", "DecodeGif", "DecodeImage", "DecodeJpeg", "DecodePng", "DecodeWebP",
                                "ExtractJpegShape"])
def test_files_that_are_broken_are_refused(op, contents):
    with pytest.raises(InvalidArgument):
        decode(op, contents)


def png_chunk(kind, content):
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def test_an_image_that_is_too_large_is_refused_by_its_header():
    header = struct.pack(">IIBBBBB", 1 << 16, 1 << 16, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(b"")), (b"IEND", b"")]
    contents = b"\x89PNG\r\n\x1a\n" + b"".join(png_chunk(*c) for c in chunks)
    with pytest.raises(InvalidArgument, match="too large"):
        decode("DecodePng", contents)


def test_images_that_cannot_be_encoded_are_refused():
    for op, shape, attrs in (("EncodePng", (2, 2), {}), ("EncodePng", (2, 2, 5), {}),
                             ("EncodePng", (2, 2, 1), {"compression": 10}), ("EncodeJpeg", (2, 2, 2), {}),
                             ("EncodeJpeg", (2, 2, 1), {"format": "rgb"}), ("EncodeJpeg", (2, 2, 3), {"quality": 101}),
                             ("EncodePng", (0, 2, 3), {}), ("EncodeJpeg", (0, 2, 3), {})):
        with pytest.raises(InvalidArgument):
            encode(op, np.zeros(shape, np.uint8), **attrs)


