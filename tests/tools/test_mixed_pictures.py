"""A folder of mixed and broken pictures: each is right, or told by its name."""

import csv
import io
import os

import numpy as np
import pytest
from builders.graphs import node, placeholder
from heald.graphs.graph.graph import Node
from heald.runtime.values import dtypes
from heald_tools import images
from PIL import Image

GRAY = np.arange(0, 240, 10, np.uint8).reshape(4, 6)


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "pictures"
    folder.mkdir()
    return folder


@pytest.fixture
def pixels_of(command, saved, folder, tmp_path):
    """`pixels_of(channels)`: the pixels by file name, the status, and the lines on stderr by file name."""
    def run(channels=3, size=(4, 6)):
        model = saved(placeholder("image", (None, *size, channels)), node("y", "Identity", "image"))
        done = command("run", model, "--input", folder, "--output", "seen.npz", "--batch", "4")
        told = {line.partition(": ")[2].partition(": ")[0].removeprefix(f"{folder}/"): line.rpartition(": ")[2]
                for line in done.err.splitlines() if line.startswith("warning")}
        with np.load("seen.npz") as arrays:
            pixels = dict(zip((os.path.relpath(file, folder) for file in arrays["file"].astype(str)), arrays["y"],
                              strict=True))
        return pixels, done.status, told

    return run


def test_pictures_of_all_kinds_are_their_colours(pixels_of, folder):
    wide = GRAY.astype(np.uint16) * 256 + 77
    Image.fromarray(wide).save(folder / "wide.png")
    Image.fromarray(GRAY).save(folder / "gray.png")
    Image.fromarray(GRAY).convert("RGB").save(folder / "animated.gif", save_all=True, append_images=[
        Image.new("RGB", (6, 4), (255, 0, 0))], loop=0)
    Image.merge("RGBA", [Image.fromarray(GRAY)] * 3 + [Image.new("L", (6, 4), 0)]).save(folder / "clear.png")
    Image.merge("LA", [Image.fromarray(GRAY), Image.new("L", (6, 4), 9)]).save(folder / "gray_clear.png")
    palette = Image.fromarray(GRAY).convert("P")
    palette.save(folder / "palette.png", transparency=bytes(range(256)))
    Image.fromarray(GRAY > 100).save(folder / "bits.png")
    Image.fromarray(GRAY).save(folder / "UPPER.BMP")
    pixels, status, told = pixels_of()
    assert (status, told) == (0, {})
    expected = np.repeat(GRAY[:, :, None], 3, 2)
    for name in ("wide.png", "gray.png", "animated.gif", "clear.png", "gray_clear.png", "palette.png", "UPPER.BMP"):
        np.testing.assert_array_equal(pixels[name], expected, err_msg=name)
    np.testing.assert_array_equal(pixels["bits.png"], np.where(expected > 100, 255, 0))


def test_transparency_reaches_an_input_of_four_channels(pixels_of, folder):
    Image.merge("RGBA", [Image.fromarray(GRAY)] * 4).save(folder / "clear.png")
    Image.fromarray(GRAY).save(folder / "gray.png")
    pixels, _, _ = pixels_of(4)
    np.testing.assert_array_equal(pixels["clear.png"][:, :, 3], GRAY)
    assert (pixels["gray.png"][:, :, 3] == 255).all()


@pytest.mark.parametrize(("cmyk", "color"), [((0, 255, 255, 0), (255, 0, 0)), ((0, 0, 0, 255), (0, 0, 0)),
                                             ((255, 0, 0, 0), (0, 255, 255))])
def test_jpegs_of_printing_colours_get_red_green_and_blue(pixels_of, folder, cmyk, color):
    Image.new("CMYK", (6, 4), cmyk).save(folder / "print.jpg", quality=100)
    pixels, status, _ = pixels_of()
    assert status == 0
    np.testing.assert_allclose(pixels["print.jpg"][0, 0], color, atol=3)


def test_broken_pictures_are_told_by_name_and_the_others_go_on(pixels_of, folder, tmp_path):
    (folder / "text.jpg").write_text("this is a text")
    (folder / "empty.png").touch()
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (4, 6, 3), np.uint8)).save(folder / "whole.jpg")
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (64, 64, 3), np.uint8)).save(folder / "cut.jpg")
    (folder / "cut.jpg").write_bytes((folder / "cut.jpg").read_bytes()[:-600])
    (folder / "dangling.jpg").symlink_to(tmp_path / "nothing.jpg")
    os.mkfifo(folder / "pipe.jpg")
    (folder / "folder.jpg").mkdir()
    Image.fromarray(GRAY).save(folder / "folder.jpg" / "inner.png")
    (folder / ".hidden.jpg").write_text("no picture")
    pixels, status, told = pixels_of()
    assert (sorted(pixels), status) == (["folder.jpg/inner.png", "whole.jpg"], 1)
    unreadable = "no PNG, JPEG, WebP, BMP or GIF; left out"
    assert told.pop("cut.jpg").startswith("image file is truncated")
    assert told == {"text.jpg": unreadable, "empty.png": unreadable, "pipe.jpg": "no regular file; left out",
                    "dangling.jpg": "a link to a file that is not there; left out"}


def test_a_list_names_files_that_are_missing_and_folders(command, saved, folder, tmp_path):
    Image.fromarray(GRAY).save(folder / "a.png")
    (folder / "b.png").mkdir()
    (tmp_path / "list.txt").write_text("pictures/a.png\npictures/b.png\npictures/c.png\n")
    model = saved(placeholder("image", (None, 4, 6, 1)), node("y", "Identity", "image"))
    done = command("run", model, "--input", "@list.txt", "--output", "y.csv")
    assert done.status == 1
    assert "warning: pictures/b.png: a folder, not a file; left out\n" in done.err
    assert "warning: pictures/c.png: there is no such file; left out\n" in done.err
    assert "1 rows in" in done.err


def test_an_input_of_texts_leaves_out_files_that_cannot_be_read(command, saved, folder, tmp_path):
    (folder / "a.jpg").write_bytes(b"12345")
    (folder / "b.jpg").symlink_to(tmp_path / "nothing.jpg")
    os.mkfifo(folder / "c.jpg")
    model = saved(placeholder("jpeg", (None,), dtypes.string), Node("y", "StringLength", ("jpeg",)))
    done = command("run", model, "--input", folder)
    assert [row["y"] for row in csv.DictReader(io.StringIO(done.out))] == ["5"]
    assert "c.jpg: no regular file" in done.err


def test_a_picture_of_too_many_pixels_is_told_by_name(pixels_of, folder, monkeypatch):
    monkeypatch.setattr(images, "MOST_PIXELS", 30)
    Image.fromarray(GRAY).save(folder / "small.png")
    Image.new("L", (7, 5)).save(folder / "large.png")
    pixels, status, told = pixels_of()
    assert (list(pixels), status, told) == (["small.png"], 1, {"large.png": "7x5 pixels, more than 30; left out"})
