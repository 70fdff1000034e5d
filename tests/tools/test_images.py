"""Images as inputs: pixels in the channels, the rank and the type of the tensor that they are for."""

import json
import struct
import sys
import zlib

import numpy as np
import pytest
from builders.graphs import node, placeholder
from heald.runtime.values import dtypes
from PIL import Image


@pytest.fixture
def pictures(tmp_path):
    """Pictures of 2 rows and 3 columns, and a file that is none."""
    for name, mode, color in (("color.png", "RGB", (200, 0, 0)), ("gray.png", "L", 90), ("photo.JPG", "RGB", 9)):
        Image.new(mode, (3, 2), color).save(tmp_path / name)
    (tmp_path / "broken.jpeg").write_bytes(b"not an image")


@pytest.mark.parametrize(("file", "shape", "fed"), [
    ("color.png", (None, 2, 3, 3), [1, 2, 3, 3]), ("photo.JPG", (2, 3, 3), [2, 3, 3]),
    ("color.png", (1, None, None, 1), [1, 2, 3, 1]), ("gray.png", (1, 2, 3, 4), [1, 2, 3, 4]),
    ("color.png", (None, None, None, None), [1, 2, 3, 3]), ("gray.png", (None, None, None, None), [1, 2, 3, 1]),
    ("color.png", None, [2, 3, 3]), ("gray.png", (None, None), [2, 3]),
])
@pytest.mark.usefixtures("pictures")
def test_pixels_take_the_channels_and_the_rank_of_the_input(command, saved, file, shape, fed):
    model = saved(placeholder("x", shape), node("y", "Identity", "x"))
    report = json.loads(command("run", model, "--input", file, "--json").out)["outputs"]["y"]
    assert (report["shape"], report["dtype"]) == (fed, "float32")


@pytest.mark.parametrize(("shape", "fed"), [((), []), ((None,), [1]), ((None, 1), [1, 1]), (None, [])])
def test_a_string_tensor_takes_the_bytes_of_an_image_file(command, saved, tmp_path, shape, fed):
    (tmp_path / "cat.jpg").write_bytes(b"\xff\xd8\x00bytes")
    model = saved(placeholder("b", shape, dtypes.string), node("y", "Identity", "b", T=dtypes.string))
    done = command("run", model, "--input", "b=cat.jpg", "--output", "y.npz")
    assert (done.status, done.err) == (0, "")
    with np.load("y.npz") as arrays:
        output = arrays["y"]
    assert ([*output.shape], output.reshape(-1)[0]) == (fed, b"\xff\xd8\x00bytes")


@pytest.mark.usefixtures("pictures")
@pytest.mark.parametrize(("file", "channels", "least", "largest"), [
    ("color.png", 3, 0, 200), ("color.png", 1, 60, 60), ("gray.png", 1, 90, 90), ("gray.png", 4, 90, 255),
])
def test_pixels_are_from_0_to_255_and_gray_is_made_of_color_where_there_is_one_channel(
    command, saved, file, channels, least, largest
):
    model = saved(placeholder("x", (None, 2, 3, channels)), node("y", "Identity", "x"))
    report = json.loads(command("run", model, "--input", file, "--json").out)["outputs"]["y"]
    assert (report["min"], report["max"]) == (least, largest)


@pytest.mark.usefixtures("pictures")
def test_a_last_dimension_that_cannot_be_channels_gets_gray_pixels(command, saved):
    model = saved(placeholder("x", (None, 2, 8)), node("y", "Identity", "x"))
    done = command("run", model, "--input", "color.png")
    assert done.err.startswith("error: 'color.png' is an image of shape [1,2,3],")


@pytest.mark.usefixtures("pictures")
def test_an_image_of_another_size_is_told_with_the_size_to_make(command, saved):
    model = saved(placeholder("x", (None, 224, 160, 3)), node("y", "Identity", "x"))
    assert command("run", model, "--input", "color.png") == (1, "", (
        "error: 'color.png' is an image of shape [1,2,3,3], input 'x' is float32[?,224,160,3]\n"
        "  hint: resize it to 160x224 pixels first\n"))


@pytest.mark.usefixtures("pictures")
def test_a_file_that_is_no_image_is_told(command, saved):
    model = saved(placeholder("x", None, dtypes.uint8), node("y", "Identity", "x", T=dtypes.uint8))
    assert command("run", model, "--input", "broken.jpeg").err.startswith(
        "error: 'broken.jpeg': no picture that Pillow can read: no PNG, JPEG, WebP, BMP or GIF")


def test_an_error_without_pillow_says_how_to_get_it(command, saved, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "PIL", None)
    (tmp_path / "cat.png").touch()
    model = saved(placeholder("x", None), node("y", "Identity", "x"))
    assert command("run", model, "--input", "cat.png") == (1, "", (
        "error: reading 'cat.png' needs Pillow\n  hint: pip install pillow\n"))


def png(side):
    """The start of a gray image of so many rows and columns, up to its pixels."""
    header = b"IHDR" + struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n\0\0\0\r" + header + struct.pack(">I", zlib.crc32(header)) + b"\0\0\0\0IDAT"


@pytest.mark.parametrize(("content", "message"), [
    (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 3 2\n", "no picture that Pillow can read: no PNG, JPEG, WebP, BMP"),
    (png(2), "no picture that Pillow can read"), (png(2)[:20], "no picture that Pillow can read"),
    (png(10_000), "10000x10000 pixels, more than 89,478,485"), (png(20_000), "too many pixels: DecompressionBombError"),
], ids=["PostScript", "no pixels", "truncated", "100 million pixels", "400 million pixels"])
def test_a_file_that_is_no_image_or_too_large_a_one_is_a_typed_error(command, saved, tmp_path, content, message):
    (tmp_path / "x.png").write_bytes(content)
    model = saved(placeholder("x", (None, 2, 3, 3)), node("y", "Identity", "x"))
    done = command("run", model, "--input", "x.png")
    assert (done.status, done.out) == (1, "")
    assert done.err.startswith(f"error: 'x.png': {message}")
    assert ("hint: resize it first" in done.err) == (len(content) > 40 and "pixels" in message)


@pytest.mark.parametrize("suffix", ["webp", "bmp", "gif"])
def test_pictures_of_all_formats_are_values(command, saved, tmp_path, suffix):
    Image.new("L", (3, 2), 90).save(tmp_path / f"x.{suffix}")
    model = saved(placeholder("x", (None, 2, 3, 1)), node("y", "Identity", "x"))
    report = json.loads(command("run", model, "--input", f"x.{suffix}", "--json").out)["outputs"]["y"]
    assert (report["shape"], round(report["mean"])) == ([1, 2, 3, 1], 90)


def test_a_single_picture_is_turned_as_its_exif_says(command, saved, tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("L", (3, 2), 90).save(tmp_path / "x.png", exif=exif)
    model = saved(placeholder("x", (None, None, None, 1)), node("y", "Identity", "x"))
    assert json.loads(command("run", model, "--input", "x.png", "--json").out)["outputs"]["y"]["shape"] == [1, 3, 2, 1]
