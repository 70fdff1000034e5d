"""heald run --output 'out/*.png': outputs as pictures, their names, and drawings on the rows' pictures."""

import os

import numpy as np
import pytest
from builders.graphs import const, node, placeholder
from heald.errors import InvalidArgument
from heald.runtime.values import dtypes
from heald_tools.rows.drawing import Drawings, box_in_pixels, classes_of_map
from heald_tools.rows.output_pictures import OutputPictures, is_picture, palette, to_picture
from heald_tools.rows.picture_names import PictureNames
from heald_tools.rows.picture_sink import PictureSink
from PIL import Image

RAMP = np.stack([np.arange(48).reshape(6, 8) * 5, np.full((6, 8), 7), np.full((6, 8), 200)], -1).astype(np.uint8)


@pytest.fixture
def photos(tmp_path):
    """Three pictures in two folders."""
    for index, name in enumerate(("a/1.png", "a/2.png", "b/1.png")):
        path = tmp_path / "photos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(RAMP + np.uint8(index)).save(path)
    return tmp_path / "photos"


@pytest.fixture
def same(saved):
    """Its output is its input."""
    return saved(placeholder("x", (None, 6, 8, 3)), const("one", 1), node("y", "Mul", "x", "one"))


@pytest.fixture
def segmenting(saved):
    """Scores of each pixel's five classes: class 1 where red is more than 100, else class 0; and the classes."""
    weights = np.array([[0, 1, 0, 0, 0], [0] * 5, [0] * 5], np.float32).reshape(1, 1, 3, 5)
    return saved(
        placeholder("x", (None, 6, 8, 3)), const("one", 1), node("ranged", "Mul", "x", "one"), const("w", weights),
        node("c", "Conv2D", "ranged", "w", strides=[1, 1, 1, 1], padding="SAME", data_format="NHWC",
             dilations=[1, 1, 1, 1], explicit_paddings=[], use_cudnn_on_gpu=True),
        const("bias", [100, 0, 0, 0, 0]), node("scores", "BiasAdd", "c", "bias", data_format="NHWC"),
        const("axis", 3, np.int32), node("classes", "ArgMax", "scores", "axis", Tidx=dtypes.int32,
                                         output_type=dtypes.int64))


@pytest.fixture
def detecting(saved):
    """Two objects in the left and the right half of each of three pictures, and one of a low score."""
    constants = {
        "detection_boxes": [[[0, 0, 1, .5], [0, .5, 1, 1], [0, 0, 1, 1]]] * 3, "detection_scores": [[.9, .8, .1]] * 3,
        "detection_classes": [[1, 2, 3]] * 3, "num_detections": [3] * 3, "detection_masks": np.ones((3, 3, 4, 4))}
    return saved(
        placeholder("x", (3, 6, 8, 3)), const("zero", 0), node("none", "Mul", "x", "zero"),
        const("axes", [0, 1, 2, 3], np.int32), node("nil", "Sum", "none", "axes", Tidx=dtypes.int32, keep_dims=False),
        *(const(f"c_{name}", value) for name, value in constants.items()),
        *(node(name, "AddV2", f"c_{name}", "nil") for name in constants))


def pixels(path):
    with Image.open(path) as picture:
        return np.asarray(picture)


def names_below(folder):
    return sorted(os.path.relpath(os.path.join(parent, name), folder) for parent, _, names in os.walk(folder)  # noqa: PTH118
                  for name in names)


@pytest.mark.parametrize(("options", "told"), [
    ([], "0..255"), (["--rescale", "1/255"], "0..1"), (["--preset", "tf"], "-1..1"),
    (["--rescale", "1/51", "--output-range", "0,5"], None),
])
def test_outputs_become_pictures_of_their_rows_names(command, same, photos, tmp_path, options, told):
    done = command("run", same, "--input", photos, "--output", "out/*.png", *options)
    assert done.status == 0
    hint = f"hint: output 'y' is scaled from {told} to pixels; --output-range LOW,HIGH says it otherwise\n"
    assert (hint in done.err) == (told is not None)
    assert "wrote out/*.png: 3 rows in" in done.err
    assert names_below(tmp_path / "out") == ["a/1.png", "a/2.png", "b/1.png"]
    np.testing.assert_array_equal(pixels(tmp_path / "out" / "b" / "1.png"), RAMP + 2)


def test_jpegs_and_pictures_of_the_folder_at_hand(command, same, photos, tmp_path):
    assert command("run", same, "--input", photos / "a", "--output", "*.jpg").status == 0
    with Image.open(tmp_path / "2.jpg") as picture:
        assert (picture.format, picture.size) == ("JPEG", (8, 6))
    assert not (tmp_path / "*.jpg").exists()


def test_rows_of_a_table_get_numbers_and_several_outputs_their_names(command, saved, tmp_path):
    model = saved(placeholder("x", (None, 6, 8, 3)), const("c", 255), node("y", "Sub", "c", "x"),
                  node("z", "Identity", "x"), const("axes", [1, 2, 3], np.int32),
                  node("sum", "Sum", "x", "axes", Tidx=dtypes.int32, keep_dims=False))
    np.save(tmp_path / "x.npy", np.stack([RAMP, RAMP]).astype(np.float32))
    done = command("run", model, "--input", "x.npy", "--batch", "2", "--output", "out/*.png")
    assert "warning: outputs that are no pictures are left out: sum\n" in done.err
    assert names_below("out") == ["x-00001.y.png", "x-00001.z.png", "x-00002.y.png", "x-00002.z.png"]
    np.testing.assert_array_equal(pixels("out/x-00002.y.png"), 255 - RAMP)


def test_maps_of_classes_have_the_colours_of_pascal_voc_and_keep_their_indices(command, segmenting, photos):
    assert command("run", segmenting, "--input", photos, "--output", "out/*.png", "--fetch", "classes").status == 0
    with Image.open("out/a/1.png") as picture:
        np.testing.assert_array_equal(np.asarray(picture), RAMP[:, :, 0] > 100)
        assert picture.convert("RGB").getpixel((7, 5)) == (128, 0, 0)
    assert palette()[[0, 1, 2, 3, 15, 255]].tolist() == [
        [0, 0, 0], [128, 0, 0], [0, 128, 0], [128, 128, 0], [192, 128, 128], [224, 224, 192]]


@pytest.mark.parametrize(("value", "bounds", "mode", "corner"), [
    (np.full((2, 3, 3), .5, np.float32), (0, 1), "RGB", (128, 128, 128)),
    (np.full((2, 3, 1), -1.0), (-1, 1), "L", 0), (np.full((2, 3, 4), 300.0), (0, 255), "RGBA", (255,) * 4),
    (np.full((3, 2, 5), 9, np.uint8), (0, 1), "RGB", (9, 9, 9)), (np.full((2, 3), np.nan), (0, 1), "L", 0),
    (np.full((2, 3, 1), 9, np.uint8), (0, 1), "L", 9), (np.full((2, 3), 9, np.uint8), (0, 1), "P", 9),
    (np.full((2, 3, 1), 9, np.int32), (0, 1), "P", 9), (np.full((2, 3), 300), (0, 1), "RGB", (0, 64, 128)),
    (np.full((2, 3), True), (0, 1), "L", 255), (np.full((2, 3, 3), -5), (0, 1), "RGB", (0, 0, 0)),
])
def test_the_shape_and_the_type_say_the_picture(value, bounds, mode, corner):
    assert is_picture(value, is_only=True)
    picture = to_picture(value, bounds)
    expected = tuple(palette()[300 % 256].tolist()) if value.max() == 300 and mode == "RGB" else corner
    assert (picture.mode, picture.getpixel((0, 0))) == (mode, expected)


@pytest.mark.parametrize("value", [np.zeros(3), np.zeros((5, 5, 7)), np.zeros((2, 0, 3)), np.array([[b"x"]], object)])
def test_other_values_are_no_pictures(value):
    assert not is_picture(value, is_only=True)
    with pytest.raises(InvalidArgument, match="no output is a picture of each row: y "):
        OutputPictures(None).choose({"y": [value]})


def test_the_range_of_the_first_batch_holds_for_all():
    pictures = OutputPictures(None)
    pictures.choose({"y": np.full((1, 2, 2, 1), 1.005)})
    resumed = OutputPictures(None)
    resumed.restore(pictures.state)
    (_, picture), = resumed.pictures_of("", {"y": np.full((1, 2, 2, 1), .2)}, 0)
    assert picture.getpixel((0, 0)) == 51


def test_names_stay_below_the_folder_and_differ():
    names = PictureNames(["p/a/1.jpg", "p/a/1.png", "p/a/1-2.gif", "p/b/../../q/1.jpg", "p/a/1.JPG", "-"])
    assert [names.stem_of(file, None) for file in ("p/a/1.jpg", "p/a/1.png", "p/a/1-2.gif", "p/a/1.JPG")] == [
        "p/a/1", "p/a/1-2", "p/a/1-2-2", "p/a/1-3"]
    assert names.stem_of("p/b/../../q/1.jpg", None) == "q/1"
    assert names.stem_of("-", 7, "a/b:0") == "row-00007.a_b_0"


def test_a_run_that_was_cut_off_resumes(command, same, photos, monkeypatch, tmp_path):
    run = ("run", same, "--input", photos, "--batch", "1", "--output", "out/*.png")
    write, calls = PictureSink.write_pictures, []

    def cut_off(self, *arguments):
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        write(self, *arguments)

    monkeypatch.setattr(PictureSink, "write_pictures", cut_off)
    assert command(*run).status != 0
    assert names_below("out") == ["a/1.png", "a/2.png", "journal.json"]
    assert command(*run).err.endswith("error: 'out/journal.json' is of an earlier run\n"
                                      "  hint: --resume goes on with it; remove 'out' to begin anew\n")
    (tmp_path / "out" / "a" / "1.png").unlink()
    done = command(*run, "--resume")
    assert (done.status, "is scaled" in done.err) == (0, False)
    assert names_below("out") == ["a/2.png", "b/1.png"]
    assert command(*run).status == 0


def test_boxes_are_drawn_with_names_and_scores_from_the_threshold_on(command, detecting, photos):
    for path in photos.rglob("*.png"):
        Image.new("RGB", (400, 300)).save(path)
    (photos / "labels.txt").write_text("cat\n")
    run = ("run", detecting, "--input", f"{photos}/**/*.png", "--output", "out/*.png", "--draw", "boxes", "--labels",
           photos / "labels.txt")
    assert command(*run).status == 0
    drawn = pixels("out/a/1.png")
    assert drawn.shape == (300, 400, 3)
    assert drawn[150, 0].tolist() == [128, 0, 0]  # class 1, on the left
    assert drawn[150, 399].tolist() == [0, 128, 0]
    assert drawn[200, 100].tolist() == [0, 0, 0]
    assert drawn[:16, :60].max() == 255  # the name in white
    assert command(*run, "--threshold", "0.85").status == 0
    assert pixels("out/a/1.png")[150, 399].tolist() == [0, 0, 0]


def test_masks_of_objects_cover_their_boxes(command, detecting, photos):
    done = command("run", detecting, "--input", photos, "--output", "out/*.png", "--draw", "masks", "--rescale", "0")
    assert done.status == 0
    drawn, original = pixels("out/a/1.png").astype(float), RAMP.astype(float)
    np.testing.assert_allclose(drawn[3, 0], original[3, 0] * .5 + [64, 0, 0], atol=1)
    np.testing.assert_allclose(drawn[3, 6], original[3, 6] * .5 + [0, 64, 0], atol=1)


@pytest.mark.parametrize("fetch", ["scores", "classes"])
def test_a_map_of_classes_covers_the_picture(command, segmenting, photos, fetch):
    done = command("run", segmenting, "--input", photos, "--output", "out/*.png", "--draw", "masks", "--fetch", fetch)
    assert done.status == 0
    drawn, is_covered = pixels("out/a/1.png").astype(float), RAMP[:, :, :1] > 100
    expected = np.where(is_covered, RAMP * .5 + np.array([64, 0, 0]), RAMP)
    np.testing.assert_allclose(drawn, expected, atol=1)


def test_drawings_are_on_the_part_that_a_crop_leaves(command, saved, photos):
    options = ("--input", photos, "--crop", "4", "--output", "out/*.png", "--draw", "masks")
    colored = saved(placeholder("x", (None, 4, 4, 3), dtypes.uint8), node("y", "Identity", "x", T=dtypes.uint8))
    assert command("run", colored, *options).err.startswith(
        "error: --draw masks: no output is a map of classes, and none is detection_masks: y [3, 4, 4, 3]\n")
    gray = saved(placeholder("x", (None, 4, 4, 1), dtypes.int32), node("y", "Identity", "x", T=dtypes.int32))
    assert command("run", gray, *options).status == 0
    assert pixels("out/a/1.png").shape == (4, 4, 3)


@pytest.mark.parametrize(("box", "expected"), [
    ([0, 0, 1, 1], (0, 0, 100, 50)), ([.5, .25, 1, .5], (25, 25, 50, 50)), ([-1, -1, 1.5, 2], (0, 0, 100, 50)),
    ([10, 20, 20, 40], (50, 25, 100, 50)), ([1, 1, 0, 0], (0, 0, 100, 50)), ([np.nan, 0, 1, 1], (0, 0, 100, 50)),
], ids=["whole", "shares", "beyond", "pixels of the model's picture", "turned", "not a number"])
def test_boxes_are_shares_or_pixels_of_the_models_picture(box, expected):
    assert box_in_pixels(np.array(box, np.float32), (20, 40), (101, 51)) == expected


def test_the_classes_of_a_map_are_numbers_scores_or_a_chance():
    assert classes_of_map(np.array([[[.2], [.6]]]), .5).tolist() == [[False, True]]
    assert classes_of_map(np.array([[[.2, .1, .9, 0, 0]]]), .5).tolist() == [[2]]
    assert classes_of_map(np.array([[[3]]]), .5).tolist() == [[3]]


def test_a_single_label_names_the_chance_of_one_class():
    drawings = Drawings(("masks",), lambda _: (Image.new("RGB", (200, 100)), (1, 2)), ["person"], None)
    (_, picture), = drawings.pictures_of("", {"y": np.array([[[[.2], [.6]]]])}, 0)
    assert picture.getpixel((150, 80)) == (64, 0, 0)
    assert np.asarray(picture)[:20, :60].max() > 200


@pytest.mark.parametrize(("options", "message"), [
    (["--output", "y.csv", "--draw", "boxes"], "--draw is for pictures as output\n  hint: --output 'out/*.png'\n"),
    (["--output-range", "0,1"], "--output-range is for pictures as output\n  hint: --output 'out/*.png'\n"),
    (["--output", "out/*.png", "--draw", "boxes"], "--draw boxes: the model has no detection_boxes [rows,objects,4] "
                                                   "with detection_scores: y [3, 6, 8, 3]\n"),
    (["--output", "y.png"], "--output 'y.png' is no file of a known format\n  hint: known: .csv, .jsonl, .npz, "
                            ".parquet; a folder such as 'out/' or 'out/*.jsonl' gets shards, 'out/*.png' pictures, "
                            "'out/*.wav' sounds\n"),
    (["--output", "photos/*.png"], "--output 'photos/*.png' would replace the input 'PHOTOS/a/1.png'\n"
                                   "  hint: name another folder\n"),
])
def test_options_about_pictures_need_pictures(command, same, photos, options, message):
    assert command("run", same, "--input", photos, *options).err == f"error: {message}".replace("PHOTOS", str(photos))


@pytest.mark.parametrize(("options", "message"), [
    (["--draw", "lines"], "argument --draw: 'lines' is neither boxes nor masks nor boxes,masks"),
    (["--output-range", "1,0"], "argument --output-range: '1,0' is no range such as 0,1"),
    (["--output-range", "0,nan"], "argument --output-range: '0,nan' is no range such as 0,1"),
])
def test_words_and_ranges_that_make_no_sense_are_told(command, same, photos, options, message):
    assert message in command("run", same, "--input", photos, "--output", "out/*.png", *options).err


def test_drawing_needs_pictures_as_input(command, same, tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((2, 6, 8, 3), np.float32))
    assert command("run", same, "--input", "x.npy", "--batch", "2", "--output", "out/*.png", "--draw", "boxes").err == (
        "error: --draw: no input takes pictures\n  hint: it draws on the pictures of --input x=photos/\n")
