"""heald run over many rows: from tables and arrays to a table."""

import csv
import gzip
import io
import json
import zlib

import numpy as np
import pytest
from builders.graphs import const, node, placeholder
from heald.api import wire
from heald.runtime.values import dtypes
from heald_tools.rows.records import masked_crc32c


@pytest.fixture
def table(tmp_path):
    """`table(text, name)`: a file with this text or these bytes."""
    def write(text, name="data.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_columns_feed_the_inputs_of_their_names_and_rows_keep_their_order(command, priced, table):
    lines = "".join(f"n{i:02},{i}.5\n" for i in range(70))
    done = command("run", priced, "--input", table(f"NAME,price\n{lines}"), "--batch", "16")
    assert done.status == 0
    rows = rows_of(done.out)
    assert [row["same"] for row in rows] == [f"n{i:02}" for i in range(70)]
    assert [float(row["cost"]) for row in rows] == [2 * i + 1.0 for i in range(70)]
    assert [row["row"] for row in rows] == [str(i) for i in range(1, 71)]
    assert "70 rows in " in done.err


def test_columns_of_numbers_stand_side_by_side_in_the_only_input(command, twice, table):
    path = table("id,a,b\nx1,1,2\nx2,3,4\n")
    done = command("run", twice, "--input", path, "--keep", "id", "--json")
    assert [json.loads(line) for line in done.out.splitlines()] == [
        {"file": str(path), "row": 1, "id": "x1", "y": [2.0, 4.0]},
        {"file": str(path), "row": 2, "id": "x2", "y": [6.0, 8.0]}]


def test_a_map_names_the_columns_of_an_input(command, twice, table):
    path = table("a,b,c\n1,2,3\n")
    assert rows_of(command("run", twice, "--input", path, "--map", "x=c,a").out)[0]["y"] == "[6.0, 2.0]"
    assert command("run", twice, "--input", path).err.startswith(
        "error: no column is for input 'x' float32[?,2]; the columns: a, b, c\n  hint: --map x=COLUMN,...")
    assert "there is no column 'd'" in command("run", twice, "--input", path, "--map", "x=d,a").err


def test_a_kept_column_feeds_an_input_of_its_name(command, priced, table):
    done = command("run", priced, "--input", table("name,price\nn,1\n"), "--keep", "name,price")
    assert [(row["name"], row["price"], row["cost"]) for row in rows_of(done.out)] == [("n", "1", "2.0")]


def test_a_kept_column_feeds_an_input_by_a_map(command, twice, table):
    done = command("run", twice, "--input", table("a,b\n1,2\n"), "--keep", "a", "--map", "x=a,b")
    assert [(row["a"], row["y"]) for row in rows_of(done.out)] == [("1", "[2.0, 4.0]")]


def test_blank_lines_are_no_rows_however_many(command, twice, table):
    done = command("run", twice, "--input", table("a,b\n1,2\n" + "\n" * 50 + "3,4\n"), "--batch", "4")
    assert [row["y"] for row in rows_of(done.out)] == ["[2.0, 4.0]", "[6.0, 8.0]"]


@pytest.mark.parametrize(("text", "name", "expected"), [
    ('{"price": 1, "name": "n"}\n{"price": 2}\n', "data.jsonl", "no value for input 'name'"),
    ('{"price": 1, "name": "n"}\n{"price": 2, "name": null}\n', "data.jsonl", "no value for input 'name'"),
    ('{"price": 1, "name": "n"}\n' * 4 + '{"price": 2}\n', "data.jsonl", "no value for input 'name'"),
    ('{"price": 1, "name": "n"}\n' * 4 + '{"name": "m", "price": "x"}\n', "data.jsonl",
     "'x' is no float32 for input 'price'"),
])
def test_a_row_without_a_value_is_told(command, priced, table, text, name, expected):
    path = table(text, name)
    done = command("run", priced, "--input", path, "--batch", "4")
    assert done.status == 1
    assert f"{path}:{text.count(chr(10))}: {expected}; left out" in done.err


@pytest.mark.parametrize(("texts", "options"), [
    (("a,b\n1,2\n", "a,c\n1,2\n", "b,a\n4,3\n"), []),
    (("a,b\n1,2\n", "a\n1\n", "c,b,a\n5,4,3\n"), []),
    (("a,b,k\n1,2,k\n", "a,b\n1,2\n", "a,b,k\n3,4,m\n"), ["--keep", "k"]),
])
@pytest.mark.parametrize("batch", ["1", "4"])
def test_a_file_that_lacks_a_column_of_the_first_is_told(command, twice, tmp_path, texts, options, batch):
    for name, text in zip("abc", texts, strict=True):
        (tmp_path / f"{name}.csv").write_text(text, "utf-8")
    run = ("run", twice, "--input", f"{tmp_path}/*.csv", "--map", "x=a,b", "--batch", batch, *options)
    done = command(*run)
    assert [row["y"] for row in rows_of(done.out)] == ["[2.0, 4.0]", "[6.0, 8.0]"]
    assert done.status == 1
    column = "k" if options else "b"
    text = f"{tmp_path}/b.csv: no column '{column}', which '{tmp_path}/a.csv' has"
    assert done.err.count("left out") == 2
    assert f"warning: {text}; left out\n" in done.err
    assert command(*run, "--strict").err.startswith(f"error: {text}\n")


def test_rows_of_several_files_do_not_go_out_of_step(command, saved, table):
    model = saved(placeholder("a", (None,)), placeholder("b", (None,)), node("y", "AddV2", "a", "b"))
    a, b = table("a,k\n1,k\n2\n3,k\n", "a.csv"), table("b,l\n10\n20,l\n30,l\n", "b.csv")
    done = command("run", model, "--input", f"a={a}", "--input", f"b={b}", "--map", "a=a", "--map", "b=b")
    assert done.err.startswith(f"error: {a}:2: 1 cells, where the file has 2 columns\n  hint: rows of several inputs")
    assert done.out == ""


def test_bad_rows_in_front_lose_no_column(command, twice, table):
    done = command("run", twice, "--input", table("[]\n" * 5 + '{"x": [1, 2]}\n' * 3, "x.jsonl"), "--batch", "4")
    assert len(rows_of(done.out)) == 3


FORMS = {
    "semicolons": ("a;b\n1;2\n", "data.csv"), "tabs": ("a\tb\n1\t2\n", "data.tsv"),
    "a mark": ("\ufeffa,b\r\n1,2\r\n", "data.csv"), "no header": ("1,2\n", "data.csv"),
    "UTF-16": ("a,b\n1,2\n".encode("utf-16"), "data.csv"), "gzip": (gzip.compress(b"a,b\n1,2\n"), "data.csv.gz"),
    "JSON": ('{"a": 1, "b": 2}\n', "data.jsonl"), "a JSON list": ('{"x": [1, 2]}', "x.ndjson"),
}


@pytest.mark.parametrize(("text", "name"), FORMS.values(), ids=FORMS)
def test_tables_are_read_in_their_usual_forms(command, twice, table, text, name):
    assert rows_of(command("run", twice, "--input", table(text, name)).out)[0]["y"] == "[2.0, 4.0]"


def test_a_text_that_looks_like_a_number_stays_as_it_is_for_a_text_input(command, priced, table):
    done = command("run", priced, "--input", table("name,price\n00123,1\n"), "--fetch", "same")
    assert rows_of(done.out)[0]["same"] == "00123"


def test_bad_rows_are_told_by_their_place_and_the_others_go_on(command, twice, table):
    path = table("a,b\n1,2\nx,1\n3\n,5\n6,7\n")
    done = command("run", twice, "--input", path, "--output", path.with_name("y.jsonl"))
    assert done.status == 1
    assert f"warning: {path}:2: 'x' is no float32 for input 'x'; left out" in done.err
    assert f"warning: {path}:3: 1 cells, where the file has 2 columns; left out" in done.err
    assert "3 rows in " in done.err
    assert ", 2 left out" in done.err
    rows = [json.loads(line) for line in path.with_name("y.jsonl").read_text("utf-8").splitlines()]
    assert [(row["row"], row["y"]) for row in rows] == [(1, [2.0, 4.0]), (4, [None, 10.0]), (5, [12.0, 14.0])]
    strict = command("run", twice, "--input", path, "--strict", "--output", path.with_name("z.jsonl"))
    assert strict.err.startswith("error: ")
    assert not path.with_name("z.jsonl").exists()


def test_arrays_are_rows_where_a_batch_is_asked_for(command, twice, tmp_path):
    x = np.arange(14, dtype=np.float32).reshape(7, 2)
    np.save(tmp_path / "x.npy", x)
    command("run", twice, "--input", tmp_path / "x.npy", "--batch", "3", "--output", tmp_path / "y.npz")
    with np.load(tmp_path / "y.npz") as arrays:
        np.testing.assert_array_equal(arrays["y"], x + x)
        assert arrays["row"].tolist() == [*range(1, 8)]


def test_a_pattern_and_a_folder_are_all_their_files_in_the_order_of_their_names(command, twice, tmp_path):
    for name in ("b", "a", ".hidden"):
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / "in" / f"{name}.csv").write_text(f"a,b\n{ord(name[0])},0\n", "utf-8")
    for text in (tmp_path / "in", tmp_path / "in" / "*.csv", f"x={tmp_path}/in"):
        done = command("run", twice, "--input", text)
        assert [row["y"] for row in rows_of(done.out)] == ["[194.0, 0.0]", "[196.0, 0.0]"]
    (tmp_path / "list.txt").write_text("in/b.csv\n", "utf-8")
    assert len(rows_of(command("run", twice, "--input", f"@{tmp_path}/list.txt").out)) == 1
    assert "no file is named like" in command("run", twice, "--input", f"{tmp_path}/*.jsonl").err


def test_a_model_with_a_batch_of_its_own_gets_full_batches(command, saved, tmp_path):
    model = saved(placeholder("x", (4, 2)), node("y", "AddV2", "x", "x"))
    x = np.arange(12, dtype=np.float32).reshape(6, 2)
    np.save(tmp_path / "x.npy", x)
    command("run", model, "--input", tmp_path / "x.npy", "--batch", "4", "--output", tmp_path / "y.npz")
    with np.load(tmp_path / "y.npz") as arrays:
        np.testing.assert_array_equal(arrays["y"], x + x)
    assert "the model's own batch is 4" in command("run", model, "--input", tmp_path / "x.npy", "--batch", "8").err


def test_a_model_without_a_batch_takes_one_row_at_a_time(command, saved, table):
    model = saved(placeholder("price", ()), node("cost", "AddV2", "price", "price"))
    done = command("run", model, "--input", table("price\n1\n2\n"))
    assert [row["cost"] for row in rows_of(done.out)] == ["2.0", "4.0"]


def test_an_input_may_be_the_same_for_all_rows(command, saved, table):
    model = saved(placeholder("x", (None,)), placeholder("factor", ()), node("y", "Mul", "x", "factor"))
    path = table("x\n1\n2\n")
    done = command("run", model, "--input", f"x={path}", "--input", "factor=3")
    assert [row["y"] for row in rows_of(done.out)] == ["3.0", "6.0"]


def test_files_of_two_inputs_go_side_by_side(command, saved, table):
    model = saved(placeholder("a", (None,)), placeholder("b", (None,)), node("y", "Sub", "a", "b"))
    a, b = table("v\n5\n6\n", "a.csv"), table("v\n1\n3\n", "b.csv")
    arguments = "run", model, "--input", f"a={a}", "--input", f"b={b}"
    assert [row["y"] for row in rows_of(command(*arguments).out)] == ["4.0", "3.0"]
    table("v\n1\n", "b.csv")
    assert "the inputs have different numbers of rows" in command(*arguments).err


def test_labels_make_columns_of_the_best_classes(command, twice, table):
    labels = table("cat\ndog\n\n", "labels.txt")
    done = command("run", twice, "--input", table("a,b\n1,2\n5,3\n"), "--labels", labels, "--top", "1")
    assert [(row["label_1"], row["score_1"]) for row in rows_of(done.out)] == [("dog", "4.0"), ("cat", "10.0")]
    assert "y" not in rows_of(done.out)[0]
    table("cat\n", "labels.txt")
    done = command("run", twice, "--input", table("a,b\n1,2\n"), "--labels", labels)
    assert done.err.splitlines()[0] == "error: no output has a score for each of 1 labels: y [1, 2]"


def test_an_array_of_an_archive_is_named_by_its_key(command, twice, tmp_path):
    np.savez(tmp_path / "in.npz", a=np.zeros((3, 2), np.float32), b=np.ones((2, 2), np.float32))
    done = command("run", twice, "--input", f"{tmp_path}/in.npz:b", "--batch", "8")
    assert [row["y"] for row in rows_of(done.out)] == ["[2.0, 2.0]"] * 2
    assert "has no array 'c'" in command("run", twice, "--input", f"{tmp_path}/in.npz:c", "--batch", "8").err


def test_a_limit_ends_after_so_many_rows(command, twice, table):
    path = table("a,b\n" + "1,2\n" * 50)
    assert len(rows_of(command("run", twice, "--input", path, "--limit", "7", "--batch", "4").out)) == 7


def test_values_that_json_lacks_are_null_and_numbers_keep_their_precision(command, twice, table):
    done = command("run", twice, "--input", table("a,b\n0.1,inf\n"), "--json")
    row = json.loads(done.out)
    assert row["y"] == [float(str(np.float32(0.1) * 2)), None]


@pytest.mark.parametrize(("text", "expected"), [
    ("", "is empty"), ("a,a\n1,2\n", "two columns are called 'a'"), ('a,b\n"1,2\n', "unexpected end of data"),
    ('"a\n', "first row: unexpected end of data"), (b"a,b\n\xff,1\n", "no text in utf-8"),
    (b"\x1f\x8bxxxxxxxx", "is damaged"),
])
def test_files_that_cannot_be_read_are_told(command, twice, table, text, expected):
    done = command("run", twice, "--input", table(text))
    assert done.err.startswith("error: ")
    assert expected in done.err
    assert done.status == 1


@pytest.mark.parametrize(("option", "value", "expected"), [
    ("--delimiter", "ab", "'ab' is not one character"), ("--delimiter", '"', "is not one character"),
    ("--encoding", "klingon", "'klingon' is no encoding"), ("--encoding", "base64", "'base64' is no encoding"),
])
def test_an_option_that_reads_no_text_is_told(command, twice, table, option, value, expected):
    done = command("run", twice, "--input", table("a,b\n1,2\n"), option, value)
    assert done.err.startswith("error: ")
    assert expected in done.err


def test_a_packed_file_may_not_unpack_without_bound(command, twice, table):
    packed = gzip.compress(b"a,b\n" + b"1,2\n" * 5 + b"0" * (200 << 20), 9)
    done = command("run", twice, "--input", table(packed, "data.csv.gz"))
    assert "error: " in done.err


def test_an_output_without_rows_is_told(command, saved, table):
    model = saved(placeholder("x", (None, 2)), const("c", np.float32([1, 2, 3])), node("y", "Identity", "c"),
                  node("z", "Neg", "x"))
    done = command("run", model, "--input", table("a,b\n1,2\n"), "--fetch", "y", "--fetch", "z")
    assert "has no row for each of 1 inputs" in done.err


def record(data):
    head = len(data).to_bytes(8, "little")
    return b"".join((head, masked_crc32c(head).to_bytes(4, "little"), data, masked_crc32c(data).to_bytes(4, "little")))


def example(**features):
    """A tf.Example; a feature is a list of bytes, floats or integers."""
    def values(items):
        if isinstance(items[0], bytes):
            return wire.put_bytes(1, b"".join(wire.put_bytes(1, item) for item in items))
        if isinstance(items[0], float):
            return wire.put_bytes(2, wire.put_bytes(1, b"".join(map(wire.pack_float, items))))
        return wire.put_bytes(3, wire.put_bytes(1, b"".join(map(wire.put_varint, items))))

    entries = (wire.put_bytes(1, name) + wire.put_bytes(2, values(items)) for name, items in features.items())
    return wire.put_bytes(1, b"".join(wire.put_bytes(1, entry) for entry in entries))


EXAMPLES = [example(x=[1.5, 2.5], name=[b"a"], n=[-3]), example(x=[0.5, 4.0], name=[b"b"], n=[7, 8])]


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zlib.compress])
def test_the_features_of_records_feed_the_inputs_of_their_names(command, twice, table, pack):
    path = table(pack(b"".join(map(record, EXAMPLES))), "data.tfrecord")
    rows = rows_of(command("run", twice, "--input", path, "--keep", "name,n").out)
    assert [(row["y"], row["name"], row["n"]) for row in rows] == [
        ("[3.0, 5.0]", "a", "-3"), ("[1.0, 8.0]", "b", "[7, 8]")]


def test_whole_records_feed_an_input_of_texts(command, saved, table):
    model = saved(placeholder("serialized", (None,), dtypes.string),
                  node("y", "Identity", "serialized", T=dtypes.string))
    path = table(record(b"one") + record(b"two"), "data.tfrecords")
    assert [row["y"] for row in rows_of(command("run", model, "--input", path).out)] == ["one", "two"]
    table(b"".join(map(record, EXAMPLES)), "data.tfrecords")
    assert len(rows_of(command("run", model, "--input", path).out)) == 2


@pytest.mark.parametrize(("damage", "expected"), [
    (lambda data: data[:-1], "is cut off in record 2"), (lambda data: data[:40], "is cut off"),
    (lambda data: b"no records at all", "is no TFRecord file"),
    (lambda data: data[:-8] + b"x" + data[-7:], "record 2 is damaged, its checksum does not fit"),
])
def test_a_damaged_file_of_records_is_told(command, twice, table, damage, expected):
    path = table(damage(b"".join(map(record, EXAMPLES))), "data.tfrecord")
    done = command("run", twice, "--input", path)
    assert expected in done.err
    assert done.status == 1
