"""heald run --dry-run: the first batch, its origins and ranges, the contact sheet, and the range of a graph."""

import json

import numpy as np
import pytest
from builders.graphs import const, node, placeholder
from heald.graphs.graph.graph import Graph, Node
from heald.runtime.values import dtypes
from heald_tools.rows.contact_sheet import TILE, make_sheet, picture_of_input
from heald_tools.rows.preprocessing import PRESETS, Layout, Numbers, apply_numbers, undo_numbers
from heald_tools.rows.rescaling import FirstOps, find_first_ops
from PIL import Image


@pytest.fixture
def photos(tmp_path):
    """Five pictures of 6 rows and 8 columns, each in its shade."""
    for index in range(5):
        path = tmp_path / "photos" / "red" / f"{index}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 6), (50 * index, 0, 0)).save(path)
    return tmp_path / "photos"


@pytest.fixture
def rescaling(saved):
    """A model that rescales its pixels itself."""
    return saved(placeholder("x", (None, 6, 8, 3)), const("scale", 1 / 255), node("scaled", "Mul", "x", "scale"),
                 node("y", "Identity", "scaled"))


@pytest.fixture
def plain(saved):
    """A model that takes pixels in the range of its training."""
    return saved(placeholder("x", (None, 6, 8, 3)), node("y", "Relu", "x"))


def test_the_first_batch_is_told_and_nothing_runs(command, rescaling, photos):
    done = command("run", rescaling, "--input", photos, "--batch", "4", "--labels-from-folders", "--dry-run")
    assert done == (0, """\
nothing ran: this is the first batch, 4 of 5 rows
input 'x' float32[?,6,8,3]
  from    PHOTOS, 5 files; pixels from 0 to 255
  batch   float32[4,6,8,3]
  values  min 0  mean 25  max 150
columns: file, label, y
""".replace("PHOTOS", str(photos)), "")


def test_the_origin_of_each_input_is_told(command, saved, tmp_path):
    model = saved(placeholder("price", (None,)), node("cost", "AddV2", "price", "factor"), placeholder("factor", ()),
                  placeholder("name", (None,), dtypes.string), node("same", "Identity", "name", T=dtypes.string))
    (tmp_path / "data.csv").write_text("id,price,title\na,1,one\nb,2,three\nc,x,four\n")
    run = ("run", model, "--input", "data.csv", "--input", "factor=3", "--map", "name=title", "--keep", "id",
           "--dry-run")
    done = command(*run)
    assert done.status == 1
    assert done.err == "warning: data.csv:3: 'x' is no float32 for input 'price'; left out\n"
    assert done.out == """\
nothing ran: this is the first batch, 3 rows, 1 of them bad
input 'price' float32[?]
  from    data.csv
  batch   float32[2]
  values  min 1  mean 1.5  max 2
input 'factor' float32<unknown rank>
  from    --input, the same for all rows
  batch   float32[]
  values  min 3  mean 3  max 3
input 'name' string[?]
  from    column title of data.csv
  batch   string[2]
  values  least bytes 3  most bytes 5
columns: file, row, id, cost, same
"""
    assert json.loads(command(*run, "--json").out)["inputs"][2] == {
        "name": "name", "expected": "string[?]", "origin": "column title of data.csv", "batch": "string[2]",
        "values": {"least_bytes": 3, "most_bytes": 5}}


def test_a_model_of_one_row_at_a_time_has_arrays_of_several_shapes(command, saved, photos):
    Image.new("RGB", (2, 2)).save(photos / "small.png")
    model = saved(placeholder("x", (None, None, 3), dtypes.uint8), node("y", "Identity", "x", T=dtypes.uint8))
    done = command("run", model, "--input", photos, "--resize", "4", "--dry-run")
    assert "  batch   uint8[4,4,3], uint8[4,5,3], one row at a time\n" in done.out
    assert "; --resize 4, pixels from 0 to 255\n" in done.out


def test_the_contact_sheet_shows_the_pictures_as_the_model_sees_them(command, plain, photos, tmp_path):
    done = command("run", plain, "--input", photos, "--preset", "tf", "--dry-run", "--contact-sheet")
    assert done.status == 0
    assert done.out.endswith("wrote contact-sheet.png: 5 pictures as the model sees them\n")
    with Image.open(tmp_path / "contact-sheet.png") as sheet:
        middles = [sheet.getpixel((8 + index * 168 + TILE // 2, 8 + TILE // 2)) for index in range(5)]
    assert middles == [(0, 0, 0), (50, 0, 0), (100, 0, 0), (150, 0, 0), (200, 0, 0)]
    assert command("run", plain, "--input", photos, "--dry-run", "--contact-sheet", "other.png").status == 0
    assert (tmp_path / "other.png").exists()


def test_a_contact_sheet_needs_pictures_a_png_and_a_dry_run(command, plain, saved, photos, tmp_path):
    run = ("run", plain, "--input", photos)
    assert command(*run, "--contact-sheet").err == (
        "error: --contact-sheet is a part of --dry-run\n  hint: give both\n")
    assert command(*run, "--dry-run", "--contact-sheet", "sheet.jpg").err == (
        "error: --contact-sheet 'sheet.jpg' is no .png file\n  hint: such as contact-sheet.png\n")
    np.save(tmp_path / "x.npy", np.zeros((2, 6, 8, 3), np.float32))
    done = command("run", plain, "--input", "x.npy", "--batch", "2", "--dry-run", "--contact-sheet")
    assert done.err.startswith("error: --contact-sheet: no input takes pictures\n")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "a.jpg").touch()
    done = command("run", plain, "--input", "broken", "--dry-run", "--contact-sheet")
    assert "error: --contact-sheet: the first batch has no picture that can be read\n" in done.err


@pytest.mark.parametrize("numbers", [
    None, *PRESETS.values(), Numbers(1 / 255), Numbers(2, 3, (1, 2, 3), (4, 5, 6), bgr=True)])
def test_the_range_of_a_model_is_undone(numbers):
    from heald.api import TensorMetadata

    pixels = np.random.default_rng(0).integers(0, 256, (5, 4, 3), np.uint8)
    values = apply_numbers(pixels, numbers, TensorMetadata(dtypes.float32, (None, 5, 4, 3)))
    np.testing.assert_array_equal(undo_numbers(values, numbers), pixels)


@pytest.mark.parametrize(("shape", "layout"), [
    ((5, 4, 3), Layout(5, 4, 3, False, True)), ((3, 5, 4), Layout(5, 4, 3, True, True)),
    ((5, 4, 1), Layout(5, 4, 1, False, True)), ((5, 4), Layout(5, 4, 1, False, False)),
    ((5, 4, 4), Layout(5, 4, 4, False, True)),
])
def test_arrays_of_all_layouts_are_pictures(shape, layout):
    picture = picture_of_input(np.full(shape, 300.0, np.float32), layout, None)
    assert (picture.size, picture.mode, picture.getpixel((0, 0))) == ((4, 5), "RGB", (255, 255, 255))


def test_a_sheet_has_rows_of_six_and_shortens_long_and_foreign_names():
    sheet = make_sheet([Image.new("RGB", (400, 2))] * 7, ["a" * 90, "\u202eb\n", *"cdefg"])
    assert sheet.size == (6 * 168 + 8, 2 * 186 + 8)


def test_a_range_that_is_set_twice_is_a_warning(command, rescaling, photos):
    done = command("run", rescaling, "--input", photos, "--preset", "tf", "--output", "y.npz")
    assert done.err.startswith("warning: the graph itself rescales input 'x' (node 'scaled', op Mul), and so do the "
                               "options; without them pixels are from 0 to 255\n")
    assert (done.status, done.err.count("rescales")) == (0, 1)


def test_a_range_that_is_set_nowhere_is_a_hint_told_once(command, plain, photos):
    done = command("run", plain, "--input", photos, "--batch", "2", "--output", "y.npz")
    hint, summary = done.err.splitlines()
    assert hint == ("hint: input 'x' gets pixels from 0 to 255, and the graph begins with Relu, which does not rescale "
                    "them; ranges: --preset tf, torch or caffe, or --rescale 1/255")
    assert "5 rows in" in summary
    assert "hint" not in command("run", plain, "--input", photos, "--rescale", "1", "--output", "z.npz").err


def test_whole_numbers_and_texts_have_no_range(command, saved, photos):
    model = saved(placeholder("x", (None, 6, 8, 3), dtypes.uint8), node("y", "Identity", "x", T=dtypes.uint8))
    assert command("run", model, "--input", photos, "--output", "y.npz").err.count("\n") == 1


GRAPHS = {
    "Rescaling": ([node("c", "Cast", "x"), const("k", .5), const("o", -1), node("m", "Mul", "c", "k"),
                   node("a", "AddV2", "m", "o")], FirstOps("m", "Mul")),
    "Normalization": ([const("mean", 3), const("variance", 4), node("root", "Sqrt", "variance"),
                       node("s", "Sub", "x", "mean"), node("d", "RealDiv", "s", "root")], FirstOps("s", "Sub")),
    "a factor before": ([const("k", 1 / 255), node("id", "Identity", "k"), node("m", "Mul", "id", "x")],
                        FirstOps("m", "Mul")),
    "a convolution": ([const("k", .5), node("r", "Conv2D", "x", "k"), node("m", "Mul", "r", "k")],
                      FirstOps(None, "Conv2D")),
    "arithmetic with itself": ([node("m", "Mul", "x", "x")], FirstOps(None, "Mul")),
    "arithmetic with another input": ([placeholder("z", ()), node("m", "Mul", "x", "z")], FirstOps(None, "Mul")),
    "shapes alone": ([node("s", "Shape", "x")], FirstOps(None, None)),
}


@pytest.mark.parametrize(("nodes", "expected"), GRAPHS.values(), ids=GRAPHS)
def test_the_first_ops_tell_whether_a_graph_rescales(nodes, expected):
    graph = Graph([placeholder("x", (None, 4)), *[entry for entry in nodes if isinstance(entry, Node)]])
    assert find_first_ops(graph, "x:0") == expected
