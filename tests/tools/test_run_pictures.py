"""heald run over pictures: size, colours, range and layout of the arrays that a model gets."""

import csv
import io

import numpy as np
import pytest
from builders.graphs import node, placeholder
from heald.graphs.graph.graph import Node
from heald.runtime.values import dtypes
from PIL import Image


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "pictures"
    folder.mkdir()
    return folder


@pytest.fixture
def seen(command, saved, folder, tmp_path):
    """`seen(shape, *options, ...)`: the arrays that an input of this shape gets, and what is said."""
    def run(shape, *options, dtype=dtypes.float32):
        model = saved(placeholder("image", shape, dtype), node("y", "Identity", "image", T=dtype))
        out = tmp_path / "seen.npz"
        out.unlink(missing_ok=True)
        done = command("run", model, "--input", folder, *options, "--output", out)
        if not out.exists():
            return None, done
        with np.load(out) as arrays:
            return arrays.get("y"), done

    return run


@pytest.fixture
def picture(folder):
    """`picture(name, pixels, ...)`: a file with these pixels."""
    def write(name, pixels, **options):
        Image.fromarray(np.asarray(pixels, np.uint8)).save(folder / name, **options)
        return folder / name

    return write


RAMP = np.stack([np.arange(48).reshape(6, 8) * 5, np.full((6, 8), 7), np.full((6, 8), 200)], -1).astype(np.uint8)


def test_pictures_get_the_size_and_the_colours_of_the_input(seen, picture):
    picture("a.png", RAMP)
    picture("b.bmp", RAMP[:, :, 0])
    pixels, done = seen((None, 6, 8, 3))
    assert done.status == 0
    np.testing.assert_array_equal(pixels[0], RAMP)
    np.testing.assert_array_equal(pixels[1], np.repeat(RAMP[:, :, :1], 3, 2))
    assert seen((None, 3, 4, 3))[0].shape == (2, 3, 4, 3)
    assert seen((None, 6, 8, 1))[0].shape == (2, 6, 8, 1)
    assert seen((None, 6, 8), dtype=dtypes.uint8)[0].shape == (2, 6, 8)
    np.testing.assert_array_equal(seen((None, 3, 6, 8))[0][0], RAMP.transpose(2, 0, 1))


def test_a_picture_is_turned_as_its_exif_says(seen, picture):
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was turned by a quarter
    picture("a.png", RAMP, exif=exif)
    np.testing.assert_array_equal(seen((None, 8, 6, 3))[0][0], np.rot90(RAMP, -1))


@pytest.mark.parametrize(("options", "expected"), [
    (["--preset", "tf"], lambda x: x / 127.5 - 1),
    (["--preset", "torch"], lambda x: (x / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]),
    (["--preset", "caffe"], lambda x: x[..., ::-1] - [103.939, 116.779, 123.68]),
    (["--rescale", "1/255"], lambda x: x / 255),
    (["--rescale", "1/127.5,-1"], lambda x: x / 127.5 - 1),
    (["--mean", "1,2,3", "--std", "2,2,2", "--bgr"], lambda x: (x[..., ::-1] - [1, 2, 3]) / 2),
])
def test_pixels_get_the_range_of_the_model(seen, picture, options, expected):
    picture("a.png", RAMP)
    np.testing.assert_allclose(seen((None, 6, 8, 3), *options)[0][0], expected(RAMP.astype(np.float64)), atol=1e-4)


def test_the_shorter_side_is_resized_and_the_middle_cropped(seen, picture):
    picture("a.png", RAMP)
    np.testing.assert_array_equal(seen((None, None, None, 3), "--crop", "2x4")[0][0], RAMP[2:4, 2:6])
    assert seen((None, None, None, 3), "--resize", "12")[0].shape == (1, 12, 16, 3)
    assert seen((None, None, None, 3), "--resize", "3x5")[0].shape == (1, 3, 5, 3)
    assert seen((None, 4, 4, 3), "--resize", "5", "--crop", "4")[0].shape == (1, 4, 4, 3)


def test_pixels_that_shrink_are_averaged_unless_told_otherwise(seen, picture):
    picture("a.png", np.tile([[[0, 0, 0], [250, 250, 250]]], (4, 4, 1)))
    assert len(np.unique(seen((None, 2, 2, 3), "--interpolation", "area")[0])) == 1
    assert set(np.unique(seen((None, 4, 4, 3), "--interpolation", "nearest")[0])) <= {0.0, 250.0}
    averaged, picked = seen((None, 4, 2, 3))[0], seen((None, 4, 2, 3), "--no-antialias")[0]
    assert averaged.shape == picked.shape


def test_a_picture_that_cannot_be_read_is_left_out_by_name(seen, picture, folder):
    picture("a.png", RAMP)
    (folder / "b.png").write_bytes(b"\x89PNG nothing")
    (folder / "c.jpg").write_bytes(picture("d.png", RAMP).read_bytes()[:-40])
    pixels, done = seen((None, 6, 8, 3))
    assert (len(pixels), done.status) == (2, 1)
    assert f"warning: {folder}/b.png: no picture that Pillow can read" in done.err
    assert "c.jpg: no picture" in done.err


def test_sizes_that_differ_need_a_resize(seen, picture):
    picture("a.png", RAMP)
    picture("b.png", RAMP[:4])
    assert "differ in shape" in seen((None, None, None, 3))[1].err
    assert seen((None, None, None, 3), "--resize", "4x4")[0].shape == (2, 4, 4, 3)
    assert [len(seen((None, None, None, 3), "--batch", "1", "--limit", "1")[0])] == [1]


def test_a_text_input_takes_the_bytes_of_the_files(command, saved, picture):
    model = saved(placeholder("jpeg", (None,), dtypes.string), Node("y", "StringLength", ("jpeg",)))
    path = picture("a.png", RAMP)
    done = command("run", model, "--input", path, "--batch", "2")
    (row,) = csv.DictReader(io.StringIO(done.out))
    assert row == {"file": str(path), "y": str(path.stat().st_size)}


def test_options_that_exclude_each_other_and_inputs_that_are_no_pictures_are_told(seen, picture):
    picture("a.png", RAMP)
    assert "give either" in seen((None, 6, 8, 3), "--preset", "tf", "--rescale", "2")[1].err
    assert "which is no picture" in seen((None, 10))[1].err
    assert "are fewer than the crop of 100x100" in seen((None, None, None, 3), "--crop", "100")[1].err
