"""heald run from Parquet and to Parquet."""

import datetime
import decimal
import gc
import json
import sys

import numpy as np
import pytest
from builders.graphs import node, placeholder
from heald.runtime.values import dtypes
from heald_tools.rows import parquet_files, sinks

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def table(tmp_path):
    """`table(columns, name)`: a Parquet file with these columns."""
    def write(columns, name="data.parquet"):
        path = tmp_path / name
        parquet.write_table(pyarrow.table(columns), path)
        return path

    return write


def lines_of(done):
    return [json.loads(line) for line in done.out.splitlines()]


def test_columns_feed_inputs_by_name_in_any_batches(command, priced, table, monkeypatch):
    monkeypatch.setattr(parquet_files, "READ_ROWS", 8)
    path = table({"name": [f"n{i}" for i in range(50)], "price": [i / 3 for i in range(50)]})
    rows = lines_of(command("run", priced, "--input", path, "--batch", "7", "--json"))
    assert [row["same"] for row in rows] == [f"n{i}" for i in range(50)]
    assert [row["row"] for row in rows] == [*range(1, 51)]
    np.testing.assert_array_equal(np.float32([row["cost"] for row in rows]), np.float32([i / 3 for i in range(50)]) * 2)


PRICES = {
    "floats": [1.0, 2.0], "float32": pyarrow.array([1, 2], pyarrow.float32()), "integers": [1, 2],
    "int8": pyarrow.array([1, 2], pyarrow.int8()), "truth": [True, False], "texts": ["1", "2e0"],
    "decimals": [decimal.Decimal("1.0"), decimal.Decimal("2.0")], "a null": [1.0, None], "an integer null": [1, None],
    "a text null": ["1", None], "categories": pyarrow.array(["1", "2"]).dictionary_encode(),
    "large texts": pyarrow.array(["1", "2"], pyarrow.large_string()),
}


@pytest.mark.parametrize("prices", PRICES.values(), ids=PRICES)
def test_numbers_of_every_type_feed_an_input_of_floats(command, saved, table, prices):
    model = saved(placeholder("price", (None,)), node("cost", "AddV2", "price", "price"))
    rows = lines_of(command("run", model, "--input", table({"price": prices}), "--json"))
    second = {True: 0.0, False: 4.0}[prices == [True, False]] if None not in list(prices) else None
    assert [row["cost"] for row in rows] == [2.0, second]


@pytest.mark.parametrize("kind", [pyarrow.list_(pyarrow.float64()), pyarrow.list_(pyarrow.int32(), 2)])
def test_a_list_of_each_row_feeds_an_input_of_two_dimensions(command, twice, table, kind):
    path = table({"x": pyarrow.array([[1, 2], [3, 4], [5, 6]], kind)})
    rows = lines_of(command("run", twice, "--input", path, "--json"))
    assert [row["y"] for row in rows] == [[2, 4], [6, 8], [10, 12]]


def test_rows_that_fit_no_input_are_told(command, saved, twice, table):
    path = table({"x": [[1.0, 2.0], [3.0], None, [5.0, 6.0]]})
    done = command("run", twice, "--input", path, "--json")
    assert done.status == 1
    assert f"{path}:2: a value of shape [1], where input 'x' takes [2]; left out" in done.err
    texts = saved(placeholder("s", (None,), dtypes.string), node("t", "Identity", "s", T=dtypes.string), name="s.pb")
    done = command("run", texts, "--input", table({"s": ["a", None]}))
    assert f"{path}:2: no value for input 's'; left out" in done.err
    integers = saved(placeholder("i", (None,), dtypes.int32), node("j", "Neg", "i", T=dtypes.int32), name="i.pb")
    done = command("run", integers, "--input", table({"i": [1, None]}))
    assert f"{path}:2: no value for input 'i'; left out" in done.err


def test_kept_columns_of_any_type_are_values_of_json(command, twice, table):
    path = table({
        "x": [[1.0, 2.0]] * 2, "s": ["é", None], "i": [7, None], "f": pyarrow.array([0.1, None], pyarrow.float32()),
        "t": [datetime.datetime(2020, 1, 2, 3, 4)] * 2, "d": [decimal.Decimal("1.10")] * 2, "b": [b"\xff", b"a"],
        "l": [[1], [2, 3]], "n": pyarrow.nulls(2), "o": [True, False], "m": [{"k": 1}] * 2})
    done = command("run", twice, "--input", path, "--keep", "s,i,f,t,d,b,l,n,o", "--json")
    rows = [{key: value for key, value in row.items() if key not in ("file", "row", "y")} for row in lines_of(done)]
    same = {"t": "2020-01-02 03:04:00.000000", "d": "1.10", "n": None}
    assert rows == [{"s": "é", "i": 7, "f": 0.1, "b": "\\xff", "l": [1], "o": True, **same},
                    {"s": None, "i": None, "f": None, "b": "a", "l": [2, 3], "o": False, **same}]
    assert f"'{path}': the columns m have several values for each row; left out" in done.err


@pytest.mark.parametrize("damage", [
    lambda data: data[:-1], lambda data: data[:40], lambda data: b"", lambda data: b"x" * 99,
    lambda data: data[:20] + b"\xff" * 40 + data[60:]])
def test_a_damaged_file_is_told(command, twice, table, damage):
    path = table({"x": [[1.0, 2.0]] * 50})
    path.write_bytes(damage(path.read_bytes()))
    done = command("run", twice, "--input", path)
    assert done.status == 1
    assert done.err.startswith(f"error: '{path}' is no Parquet file that pyarrow can read: ")


def test_two_columns_of_one_name_are_told(command, twice, tmp_path):
    path = tmp_path / "data.parquet"
    parquet.write_table(pyarrow.table([pyarrow.array([1.0])] * 2, names=["a", "a"]), path)
    assert f"error: '{path}': two columns are called 'a'" in command("run", twice, "--input", path).err


def test_outputs_become_columns_of_their_types(command, saved, table, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_files, "GROUP_ROWS", 6)
    model = saved(placeholder("x", (None, 2)), node("y", "AddV2", "x", "x"),
                  placeholder("s", (None,), dtypes.string), node("t", "Identity", "s", T=dtypes.string))
    path = table({"x": [[i / 3, 1.0] for i in range(20)], "s": [f"é{i}" for i in range(20)], "id": [*range(19), None]})
    output = tmp_path / "out.parquet"
    assert command("run", model, "--input", path, "--batch", "4", "--keep", "id", "--output", output).status == 0
    rows = parquet.read_table(output)
    assert {field.name: str(field.type) for field in rows.schema} == {
        "file": "string", "row": "int64", "id": "int64", "y": "fixed_size_list<element: float>[2]", "t": "string"}
    assert rows["id"].to_pylist() == [*range(19), None]
    assert rows["t"].to_pylist() == [f"é{i}" for i in range(20)]
    np.testing.assert_array_equal(np.float32(rows["y"].to_pylist())[:, 0], np.float32([i / 3 for i in range(20)]) * 2)
    assert parquet.ParquetFile(output).num_row_groups == 3


def test_what_parquet_writes_it_reads(command, twice, table, tmp_path):
    path = table({"x": [[1.0, 2.0], [3.0, 4.0]]})
    command("run", twice, "--input", path, "--output", tmp_path / "y.parquet")
    done = command("run", twice, "--input", tmp_path / "y.parquet", "--map", "x=y", "--json")
    assert [row["y"] for row in lines_of(done)] == [[4, 8], [12, 16]]


def test_a_folder_gets_shards_of_parquet_that_resume(command, twice, table, tmp_path, monkeypatch):
    monkeypatch.setattr(sinks, "SHARD_ROWS", 8)
    path = table({"x": [[float(i), 1.0] for i in range(30)]})
    arguments = "run", twice, "--input", path, "--batch", "4", "--output"
    command(*arguments, f"{tmp_path}/whole/*.parquet")
    write, calls = sinks.Parts.write, iter(range(3))

    def write_some(self, rows, reached):
        if next(calls, None) is None:
            raise KeyboardInterrupt
        write(self, rows, reached)

    with monkeypatch.context() as patch:
        patch.setattr(sinks.Parts, "write", write_some)
        command(*arguments, f"{tmp_path}/out/*.parquet")
    assert command(*arguments, f"{tmp_path}/out/*.parquet", "--resume").status == 0
    parts = {place: {file.name: file.read_bytes() for file in (tmp_path / place).glob("*.parquet")}
             for place in ("whole", "out")}
    assert sorted(parts["out"]) == [f"part-{i:05}.parquet" for i in range(4)]
    assert parts["out"] == parts["whole"]


def test_a_table_of_bad_rows_alone_is_a_whole_file(command, saved, table, tmp_path):
    model = saved(placeholder("i", (None,), dtypes.int32), node("j", "Neg", "i", T=dtypes.int32))
    output = tmp_path / "y.parquet"
    assert command("run", model, "--input", table({"i": pyarrow.nulls(3)}), "--output", output).status == 1
    assert parquet.read_table(output).num_rows == 0


def test_values_of_a_kept_column_may_differ_in_type(command, twice, tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_text("".join(json.dumps({"x": [1, 2], "k": value}) + "\n" for value in (None, 1, 2.5, "a")), "utf-8")
    output = tmp_path / "y.parquet"
    assert command("run", twice, "--input", path, "--keep", "k", "--output", output).status == 0
    assert parquet.read_table(output)["k"].to_pylist() == [None, "1", "2.5", "a"]
    done = command("run", twice, "--input", path, "--keep", "k", "--batch", "1", "--output", tmp_path / "z.parquet")
    assert done.err.startswith("error: a column of Parquet has one type: ")
    assert "hint: --output x.jsonl takes any value in any row" in done.err


def test_parquet_without_pyarrow_says_how_to_get_it(command, twice, table, tmp_path, monkeypatch):
    path = table({"x": [[1.0, 2.0]]})
    from heald.runtime.support import install

    install.is_importable.cache_clear()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert command("run", twice, "--input", path).err.startswith(
        f"error: reading '{path}' needs pyarrow\n  hint: pip install pyarrow\n")
    output = tmp_path / "y.parquet"
    assert command("run", twice, "--input", path, "--output", output).err.startswith(
        f"error: writing '{output}' needs pyarrow\n  hint: pip install pyarrow\n")
    install.is_importable.cache_clear()


def test_a_table_that_fails_in_the_middle_leaves_no_file(command, twice, table, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_files, "GROUP_ROWS", 1)
    path = table({"x": [[1.0, 2.0], [3.0]]})
    done = command("run", twice, "--input", path, "--batch", "1", "--strict", "--output", tmp_path / "y.parquet")
    assert done.err.startswith(f"error: {path}:2: a value of shape [1]")
    gc.collect()  # an open writer would tell that its file is closed
    assert [file.name for file in tmp_path.iterdir() if "y.parquet" in file.name or "heald" in file.name] == []


def test_wide_rows_do_not_wait_for_a_whole_group(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_files, "GROUP_BYTES", 100_000)
    with (tmp_path / "y.parquet").open("wb") as out:
        writer = parquet_files.ParquetWriter(out)
        for _ in range(9):
            writer.write({"y": np.zeros((10, 1000), np.float32)})
        writer.close()
    file = parquet.ParquetFile(tmp_path / "y.parquet")
    assert [file.metadata.row_group(index).num_rows for index in range(file.num_row_groups)] == [30, 30, 30]
