"""heald run: outputs as columns, labels from folders, and the accuracy of answers."""

import csv
import io
import json

import numpy as np
import pytest
from builders.graphs import const, node, placeholder
from heald.errors import InvalidArgument
from heald.runtime.values import dtypes
from heald_tools.rows.accuracy import Accuracy
from heald_tools.rows.results import Labels, beside, columns_of_outputs
from PIL import Image

SCORES = np.array([[0.1, 0.7, 0.2], [0.5, 0.2, 0.3]], np.float32)
ABC = Labels(["a", "b", "c"], 2)
DETECTIONS = {
    "detection_boxes": np.array([[[0, 0, .5, .5], [.1, .2, .3, .4], [0, 0, 1, 1]]] * 2, np.float32),
    "detection_scores": np.array([[.3, .9, .6], [.2, .1, .8]], np.float32),
    "detection_classes": np.array([[1, 2, 9], [1, 2, 1]], np.float32),
    "num_detections": np.array([3, 2], np.float32),
}


def lists(table):
    return {name: column.tolist() if hasattr(column, "tolist") else column for name, column in table.items()}


@pytest.mark.parametrize(("outputs", "labels", "expected"), [
    ({"n": np.array([1.5, 2]), "one": np.array([[3], [4]]), "t": np.array([b"x", b"y"], object)}, None,
     {"n": [1.5, 2], "one": [3, 4], "t": [b"x", b"y"]}),
    ({"v": np.array([[1, 2], [3, 4]])}, None, {"v": [[1, 2], [3, 4]]}),
    ({"class": np.array([2, 7])}, ABC, {"class": [2, 7], "class_label": ["c", None]}),
    ({"class": np.array([2, 1]), "s": SCORES.astype(np.float64)}, Labels(ABC.names, 1),
     {"class": [2, 1], "label_1": ["b", "a"], "score_1": [SCORES[0, 1], SCORES[1, 0]]}),
    ({"s": SCORES, "u": SCORES[:, ::-1]}, Labels(ABC.names, 1), {
        "s_label_1": ["b", "a"], "s_score_1": [SCORES[0, 1], SCORES[1, 0]],
        "u_label_1": ["b", "c"], "u_score_1": [SCORES[0, 1], SCORES[1, 0]]}),
], ids=["one value", "lists", "classes", "classes beside scores", "two outputs of scores"])
def test_outputs_become_columns_by_one_rule(outputs, labels, expected):
    assert lists(columns_of_outputs(outputs, labels)) == expected


def test_detections_are_one_column_of_objects_best_first_with_labels_or_a_threshold():
    table = columns_of_outputs(DETECTIONS | {"raw": np.zeros((2, 3))}, None, 0.5)
    assert list(table) == ["detections", "raw"]
    assert table["detections"] == [
        [{"class": 2, "score": 0.9, "box": [0.1, 0.2, 0.3, 0.4]}, {"class": 9, "score": 0.6, "box": [0, 0, 1, 1]}], []]
    labelled = columns_of_outputs(DETECTIONS, Labels(["cat", "dog"], 5))["detections"]
    assert [thing["label"] for thing in labelled[0]] == ["dog", "9"]
    from_zero = columns_of_outputs(DETECTIONS, Labels(["background", "cat", "dog"], 5), 0.1)["detections"]
    assert [[thing["label"] for thing in row] for row in from_zero] == [["dog", "9", "cat"], ["cat", "dog"]]
    assert list(columns_of_outputs(DETECTIONS)) == list(DETECTIONS)


def test_labels_that_fit_no_output_are_an_error():
    with pytest.raises(InvalidArgument, match=r"no output has a score for each of 3 labels: v \[2, 4\]") as raised:
        columns_of_outputs({"v": np.zeros((2, 4), np.float32)}, ABC)
    assert raised.value.hint == "--labels FILE names a class on each line, all classes of the model in order"


def test_an_output_called_as_another_column_gets_another_name():
    assert beside({"file": [1], "output_file": [2]}, {"file": [3], "y": [4]}) == {
        "file": [1], "output_file": [2], "output_output_file": [3], "y": [4]}


def test_detections_reach_all_formats(command, saved, tmp_path):
    model = saved(placeholder("x", (None, 1)), *(const(name, value) for name, value in {
        "boxes": DETECTIONS["detection_boxes"], "scores": DETECTIONS["detection_scores"]}.items()),
        node("detection_boxes", "Identity", "boxes"), node("detection_scores", "Identity", "scores"))
    np.save(tmp_path / "x.npy", np.zeros((2, 1), np.float32))
    run = ("run", model, "--input", "x.npy", "--batch", "2", "--threshold", "0.7")
    things = [[{"score": 0.9, "box": [0.1, 0.2, 0.3, 0.4]}], [{"score": 0.8, "box": [0.0, 0.0, 1.0, 1.0]}]]
    assert [json.loads(row["detections"]) for row in csv.DictReader(io.StringIO(command(*run).out))] == things
    assert [json.loads(line)["detections"] for line in command(*run, "--json").out.splitlines()] == things
    assert command(*run, "--output", "y.npz").status == 0
    with np.load("y.npz") as arrays:
        assert [json.loads(text) for text in arrays["detections"].astype(str)] == things
    assert "argument --threshold: '2' is no number from 0 to 1" in command(*run, "--threshold", "2").err


def test_a_model_of_one_row_at_a_time_follows_the_same_rule(command, saved, tmp_path):
    model = saved(placeholder("x", (None, None, 3)), const("axes", [0, 1], np.int32),
                  node("sum", "Sum", "x", "axes", Tidx=dtypes.int32), const("tenth", 0.1),
                  node("y", "Mul", "sum", "tenth"))
    (tmp_path / "p").mkdir()
    for name, size in (("a", (2, 1)), ("b", (1, 1))):
        Image.new("RGB", size, 7).save(tmp_path / "p" / f"{name}.png")
    (tmp_path / "abc.txt").write_text("a\nb\nc\n")
    done = command("run", model, "--input", "p", "--labels", "abc.txt", "--top", "1")
    assert done.out == "file,label_1,score_1\np/a.png,a,1.4\np/b.png,a,0.7\n"


def test_rows_of_several_shapes_are_lists_and_no_npz(command, saved, tmp_path):
    model = saved(placeholder("x", (None, None, 3), dtypes.uint8), node("y", "Shape", "x", T=dtypes.uint8,
                                                                        out_type=dtypes.int32),
                  node("z", "Identity", "x", T=dtypes.uint8))
    (tmp_path / "p").mkdir()
    for name, size in (("a", (2, 1)), ("b", (1, 1))):
        Image.new("RGB", size, 7).save(tmp_path / "p" / f"{name}.png")
    done = command("run", model, "--input", "p", "--json")
    assert [json.loads(line)["z"] for line in done.out.splitlines()] == [[[[7, 0, 0]] * 2], [[[7, 0, 0]]]]
    done = command("run", model, "--input", "p", "--output", "y.npz")
    assert done.err.startswith("error: column 'z' has rows of several shapes, which an .npz file cannot hold\n")


@pytest.fixture
def photos(tmp_path):
    """Pictures whose red, green or blue is their class, in folders; one is wrong, one has no folder."""
    colors = {"b/1.png": (0, 0, 9), "b/2.png": (9, 1, 0), "g/deep/1.png": (0, 9, 0), "r/1.png": (9, 0, 0)}
    for name, color in colors.items():
        path = tmp_path / "photos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (1, 1), color).save(path)
    return tmp_path / "photos"


@pytest.fixture
def of_colors(saved):
    """The scores of a picture of one pixel are its blue, green and red."""
    return saved(placeholder("x", (None, 1, 1, 3)), const("axes", [1, 2], np.int32), const("one", 1),
                 node("ranged", "Mul", "x", "one"), node("rgb", "Sum", "ranged", "axes", Tidx=dtypes.int32),
                 const("last", [1], np.int32),
                 node("scores", "ReverseV2", "rgb", "last", Tidx=dtypes.int32))


def test_folders_name_the_classes_and_the_accuracy_is_told(command, of_colors, photos):
    done = command("run", of_colors, "--input", photos, "--labels-from-folders", "--top", "2")
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert list(rows[0]) == ["file", "label", "label_1", "score_1", "label_2", "score_2"]
    assert [(row["label"], row["label_1"]) for row in rows] == [("b", "b"), ("b", "r"), ("g", "g"), ("r", "r")]
    assert done.err.startswith("""\
accuracy of 'scores': 75.0% of 4 rows; among the best 2: 75.0%
  folder  b  g  r
  b       1  0  1
  g       0  1  0
  r       0  0  1
4 rows in """)


def test_labels_order_the_classes_and_folders_of_a_pattern_are_the_files_own(command, of_colors, photos, tmp_path):
    (tmp_path / "labels.txt").write_text("b\ng\nred\n")
    (tmp_path / "photos" / "0.png").write_bytes((photos / "b" / "1.png").read_bytes())
    run = ("run", of_colors, "--labels-from-folders", "--labels", tmp_path / "labels.txt", "--input")
    done = command(*run, photos)
    assert "warning: folders that are no label are not counted: r\n" in done.err
    assert "accuracy of 'scores': 66.7% of 3 rows\n" in done.err
    assert "2 rows are not counted: their folders are no class\n" in done.err
    assert [row["label"] for row in csv.DictReader(io.StringIO(done.out))] == ["", "b", "b", "g", "r"]
    assert "accuracy of 'scores': 50.0% of 2 rows" in command(*run, f"{photos}/**/[12].png").err  # g/deep is `deep`


def test_folders_that_fit_no_answer_are_an_error(command, of_colors, photos, tmp_path):
    run = ("run", of_colors, "--labels-from-folders")
    (tmp_path / "labels.txt").write_text("x\ny\nz\n")
    assert command(*run, "--input", photos, "--labels", "labels.txt").err == (
        "error: --labels-from-folders: no folder is called as a label: b, g, r\n  hint: the labels: x, y, z, ...\n")
    assert command(*run, "--input", photos / "b").err == (
        f"error: --labels-from-folders: '{photos}/b' has no folders\n"
        "  hint: the class is the folder's name, as in photos/cat/1.jpg\n")
    done = command(*run, "--input", f"{photos}/[bg]/*.png", "--limit", "1")
    assert "1 rows in" not in done.err
    assert done.err.startswith("error: no output has answers among 1 classes: scores [1, 3]\n  hint: --labels FILE")
    np.save(tmp_path / "x.npy", np.zeros((2, 1, 1, 3), np.float32))
    assert command(*run, "--input", "x.npy", "--batch", "2").err.startswith(
        "error: --labels-from-folders: the rows of 'x.npy' have no folders of their own\n")


@pytest.mark.parametrize(("array", "share"), [
    (np.array([0, 1, 1]), "66.7%"), (np.array([[0], [1], [5]]), "66.7%"),
    (np.array([b"no", b"yes", b"yes"], object), "66.7%"), (np.array([0.2, 0.6, 0.4]), "100.0%"),
    (np.array([[-3.0], [0.2], [-1.0]]), "100.0%"), (np.array([[.9, .1], [.9, .1], [.9, .1]]), "66.7%"),
], ids=["indices", "an index that is no class", "texts", "probabilities", "logits", "scores"])
def test_an_answer_is_scores_an_index_a_text_or_one_number_of_two_classes(array, share):
    accuracy = Accuracy(["no", "yes"], 1)
    accuracy.add(["no", "yes", "no"], {"y": array})
    assert accuracy.lines()[0] == f"accuracy of 'y': {share} of 3 rows"


def test_the_most_frequent_mistakes_stand_for_a_large_table():
    names = [f"c{index:02}" for index in range(30)]
    accuracy = Accuracy(names, 5)
    answers = [1, 1, *range(1, 30)]
    accuracy.add(["c00", "c00", *names[:29]], {"y": np.array(answers)})
    lines = accuracy.lines()
    assert lines[1] == "  3 of 'c00' answered as 'c01'"
    assert (len(lines), lines[-1]) == (12, "  19 other mistakes")
