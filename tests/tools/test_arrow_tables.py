"""CSV by pyarrow: the rows, faults and errors of Python's reader, for any file."""

import csv
import gzip
import sys
from itertools import islice

import numpy as np
import pytest
from builders.graphs import node, placeholder
from heald.errors import HealdError
from heald.runtime.values import dtypes
from heald_tools.rows import arrow_tables, sinks, text_column
from heald_tools.rows.cell_values import array_of_numbers
from heald_tools.rows.feed import batches_of
from heald_tools.rows.options import ReadOptions
from heald_tools.rows.tables import read_csv
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

pytest.importorskip("pyarrow")

CELLS = st.sampled_from(["", "a", "1", "-2.5", "1e3", "nan", " x ", "é", "\U0001f40d", '"', '""', '"q"', '"a,b"',
                         '"a""b"', '"x\ny"', '"x\r\ny"', '"\n"', 'in"side', '"out"side', "\x00", "\t", ";", "\ufeff",
                         "'", "\\"])
ENDS = st.sampled_from(["\n", "\n", "\n", "\r\n", "\r", "\n\n", ""])
ROWS = st.lists(st.tuples(st.lists(CELLS, min_size=1, max_size=4), ENDS), max_size=12)
REGULAR = st.lists(st.tuples(st.lists(st.sampled_from(["", "a", "1.5", '"a,b"', '"x\ny"', '"a""b"', '""']),
                                      min_size=2, max_size=2), st.just("\n")), max_size=30)


def rows_of(path, options):
    """The batches of a file, and the error that ends it."""
    batches = []
    try:
        for batch in batches_of(read_csv(path, options), 3):
            index = {name: list(values) for name, values in batch.index.items()}
            batches.append((index, {name: list(values) for name, values in batch.columns.items()}, list(batch.faults)))
    except HealdError as error:
        return batches, type(error)
    return batches, None


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr(arrow_tables, "CHUNK", 24)
    monkeypatch.setattr(arrow_tables, "LARGEST_CHUNK", 100)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS | REGULAR, header=st.sampled_from([None, True, False]), size=st.integers(1, 5))
@example(rows=[(["a", "b"], "\n"), (["1", "2"], "\n"), (["3"], "\n"), (["4", "5"], "")], header=True, size=2)
@example(rows=[(["a"], "\n"), (['"1'], "\n"), (['2"'], "\n")], header=True, size=2)
def test_pyarrow_and_python_read_the_same_rows(tmp_path, monkeypatch, small_chunks, rows, header, size):
    path = tmp_path / "data.csv"
    path.write_bytes("".join(",".join(cells) + end for cells, end in rows).encode())
    options = ReadOptions(size, header=header)
    monkeypatch.setattr(arrow_tables, "SMALLEST_FILE", 1 << 40)
    by_python = rows_of(path, options)
    monkeypatch.setattr(arrow_tables, "SMALLEST_FILE", 0)
    by_pyarrow = rows_of(path, options)
    assert by_pyarrow[1] == by_python[1]
    if by_python[1] is None:
        assert by_pyarrow == by_python


NUMBERS = ["", "0", "-0", "+5", "1_000", " 1 ", "٣", "infinity", "-inf", "NaN", "nan(1)", "0x10", "1e400", "1.", ".",
           "1e5 ", "0.1000000000000000055511151231257827021181583404541015625", "9007199254740993", "300", "-1",
           "5\x00", "true"]


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16, np.int8, np.int32, np.int64, np.uint8, bool])
@given(texts=st.lists(st.sampled_from(NUMBERS) | st.floats().map(str) | st.integers().map(str), min_size=1, max_size=4))
def test_pyarrow_and_python_read_the_same_numbers(kind, texts):
    import pyarrow

    numbers = text_column.TextColumn(pyarrow.array(texts)).numbers(kind)
    if numbers is not None:
        np.testing.assert_array_equal(numbers, array_of_numbers(texts, kind))
        assert numbers.dtype == kind


def test_pyarrow_reads_the_usual_numbers_itself():
    import pyarrow

    for kind, texts in ((np.float32, ["", "1.5", "-2e3", "nan"]), (np.int32, ["7", "-12", "007"])):
        assert text_column.TextColumn(pyarrow.array(texts)).numbers(kind) is not None


@pytest.fixture
def priced(saved):
    return saved(placeholder("price", (None,)), node("cost", "AddV2", "price", "price"),
                 placeholder("name", (None,), dtypes.string), node("same", "Identity", "name", T=dtypes.string))


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A file of several chunks, with quotes, line ends in cells, a short row, a bad number and a packed copy."""
    monkeypatch.setattr(arrow_tables, "CHUNK", 400)
    monkeypatch.setattr(arrow_tables, "SMALLEST_FILE", 0)
    lines = [f'"n, {i}",{i / 7}\n' for i in range(200)]
    lines[20], lines[90], lines[150] = "short\n", '"two\nlines",\n', "bad,x\n"
    text = "name,price\n" + "".join(lines)
    (tmp_path / "data.csv").write_text(text, "utf-8")
    (tmp_path / "data.csv.gz").write_bytes(gzip.compress(text.encode()))
    return tmp_path / "data.csv"


def hide_pyarrow(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.csv", None)


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_table_has_the_same_bytes_and_faults_with_pyarrow_and_without(command, priced, table, monkeypatch, suffix):
    arguments = "run", priced, "--input", f"{table}{suffix}", "--batch", "16", "--keep", "name,price"
    by_pyarrow = command(*arguments)
    assert len(list(csv.reader(by_pyarrow.out.splitlines(keepends=True)))) == 199
    assert ", 2 left out" in by_pyarrow.err
    hide_pyarrow(monkeypatch)
    by_python = command(*arguments)
    assert (by_python.out, by_python.err.splitlines()[:-1]) == (by_pyarrow.out, by_pyarrow.err.splitlines()[:-1])


@pytest.mark.parametrize("count", [1, 3, 10])
def test_a_run_with_pyarrow_resumes_without_it(command, priced, table, monkeypatch, count):
    monkeypatch.setattr(sinks, "SAVING", 0.0)
    output = table.with_name("y.csv")
    arguments = "run", priced, "--input", table, "--batch", "8", "--output", output
    command(*arguments)
    whole = output.read_bytes()
    output.unlink()
    write, calls = sinks.Parts.write, iter(range(count))

    def write_some(self, rows, reached):
        if next(calls, None) is None:
            raise KeyboardInterrupt
        write(self, rows, reached)

    with monkeypatch.context() as patch:
        patch.setattr(sinks.Parts, "write", write_some)
        command(*arguments)
    assert not output.exists()
    hide_pyarrow(monkeypatch)
    assert command(*arguments, "--resume").status == 1
    assert output.read_bytes() == whole


def test_a_stray_quote_sends_the_rest_of_a_file_to_python_alone(table):
    text = table.read_text("utf-8").replace('"n, 100"', 'n" 100')
    with (table.with_name("stray.csv")).open("w+b") as file:
        file.write(text.encode())
        file.seek(0)
        chunks = arrow_tables.Chunks(file, b"", ",")
        count = sum(map(len, chunks))
        assert 0 < count <= text.index('n" 100')
        assert chunks.remainder == text.encode()[count:count + len(chunks.remainder)]


def test_memory_holds_a_few_pieces_of_a_long_file(table, monkeypatch):
    opened = []
    monkeypatch.setattr(arrow_tables, "columns_of_chunk", lambda chunk, width, delimiter: opened.append(len(chunk)))
    list(islice(batches_of(read_csv(table, ReadOptions(4)), 4), 2))
    assert len(opened) <= 1
