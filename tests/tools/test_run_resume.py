"""heald run over many rows: shards, journals, and runs that go on where they were cut off."""

import json
import re
import tracemalloc
from pathlib import Path

import pytest
from builders.graphs import node, placeholder
from heald_tools.rows import parquet_files, sinks
from heald_tools.rows.journal import Journal, Reached
from heald_tools.rows.output_places import journal_path

ROWS = 40


@pytest.fixture
def twice(saved):
    return saved(placeholder("x", (None, 2)), node("y", "AddV2", "x", "x"))


@pytest.fixture
def data(tmp_path):
    """40 rows; the cells of row 7 and 23 are bad."""
    path = tmp_path / "data.csv"
    lines = [f"{'bad' if i in (7, 23) else i},{i / 3}\n" for i in range(1, ROWS + 1)]
    path.write_text("a,b\n" + "".join(lines), "utf-8")
    return path


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(sinks, "SHARD_ROWS", 8)
    monkeypatch.setattr(sinks, "SAVING", 0.0)


@pytest.fixture
def cut_off(monkeypatch):
    """`cut_off(count)`: from now on a run ends with an error in front of the batch of this number."""
    def cut(count):
        calls = iter(range(count))
        write = sinks.Parts.write

        def write_some(self, table, reached):
            if next(calls, None) is None:
                raise KeyboardInterrupt
            write(self, table, reached)

        monkeypatch.setattr(sinks.Parts, "write", write_some)
        return lambda: monkeypatch.setattr(sinks.Parts, "write", write)

    return cut


def content(path):
    if path.is_dir():
        return {file.name: file.read_bytes() for file in sorted(path.iterdir()) if file.name != "journal.json"}
    return path.read_bytes()


def test_a_run_that_fails_before_its_first_rows_leaves_nothing(command, twice, data, tmp_path):
    (tmp_path / "labels.txt").write_text("one\n")
    run = ("run", twice, "--input", data, "--output", "y.csv")
    assert "no output has a score" in command(*run, "--labels", "labels.txt").err
    assert not (tmp_path / "y.csv.parts").exists()
    assert "38 rows" in command(*run).err
    assert (tmp_path / "y.csv").exists()


@pytest.mark.parametrize("output", ["y.csv", "y.jsonl", "y/", "y/*.jsonl", "y/*.parquet"])
@pytest.mark.parametrize("count", [0, 1, 3, 7])
def test_a_run_that_was_cut_off_resumes_and_its_bytes_are_those_of_a_whole_run(
    command, twice, data, tmp_path, cut_off, output, count
):
    (tmp_path / "whole").mkdir()
    place = output.partition("/")[0]
    whole = command("run", twice, "--input", data, "--batch", "4", "--output", f"{tmp_path}/whole/{output}")
    assert ", 2 left out" in whole.err
    uncut = cut_off(count)
    arguments = "run", twice, "--input", data, "--batch", "4", "--output", f"{tmp_path}/{output}"
    assert "38 rows" not in command(*arguments).err
    uncut()
    done = command(*arguments, "--resume")
    assert done.status == 1
    assert "38 rows in " in done.err
    assert content(tmp_path / place) == content(tmp_path / "whole" / place)
    assert not (tmp_path / f"{place}.parts").exists()


@pytest.mark.parametrize("output", ["y.csv", "y.jsonl", "y/", "y/*.jsonl", "y/*.parquet"])
@pytest.mark.parametrize("count", [0, 1, 3, 7])
def test_a_run_that_is_cut_off_in_the_middle_of_a_write_resumes(
    command, twice, data, tmp_path, monkeypatch, output, count
):
    monkeypatch.setattr(sinks, "SAVING", 1e9)
    monkeypatch.setattr(parquet_files, "GROUP_ROWS", 1)
    (tmp_path / "whole").mkdir()
    command("run", twice, "--input", data, "--batch", "4", "--output", f"{tmp_path}/whole/{output}")
    calls = iter(range(count))
    with monkeypatch.context() as cut:
        make_writer = sinks.make_writer

        def make_torn_writer(suffix, out, nan):
            writer = make_writer(suffix, out, nan)
            write = writer.write

            def write_torn(table):
                write(table)
                if next(calls, None) is None:
                    raise KeyboardInterrupt

            cut.setattr(writer, "write", write_torn, raising=False)
            return writer

        cut.setattr(sinks, "make_writer", make_torn_writer)
        cut.setattr(sinks, "CsvWriter", lambda out, names: make_torn_writer(".csv", out, "null"))
        arguments = "run", twice, "--input", data, "--batch", "4", "--output", f"{tmp_path}/{output}"
        assert "38 rows" not in command(*arguments).err
    assert "38 rows in " in command(*arguments, "--resume").err
    place = output.partition("/")[0]
    assert content(tmp_path / place) == content(tmp_path / "whole" / place)
    assert not [*tmp_path.rglob(".heald-*")]
    assert not (tmp_path / f"{place}.parts").exists()


def test_a_run_that_is_killed_while_it_tidies_up_resumes(command, twice, data, tmp_path, monkeypatch):
    command("run", twice, "--input", data, "--batch", "4", "--output", f"{tmp_path}/whole.csv")
    arguments = "run", twice, "--input", data, "--batch", "4", "--output", f"{tmp_path}/y.csv"
    remove_all = sinks.whole_file.remove_all
    for count in range(5):
        (tmp_path / "y.csv").unlink(missing_ok=True)
        with monkeypatch.context() as cut:

            def remove_some(files, count=count):
                remove_all([*files][:count])
                raise KeyboardInterrupt

            cut.setattr(sinks.whole_file, "remove_all", remove_some)
            command(*arguments)
        assert (tmp_path / "y.csv.parts").exists()
        assert "38 rows in " in command(*arguments, "--resume").err
        assert (tmp_path / "y.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
        assert not (tmp_path / "y.csv.parts").exists()


@pytest.mark.parametrize("output", ["y.csv", "y.jsonl", "y/", "y/*.jsonl"])
def test_rows_do_not_wait_in_memory(tmp_path, monkeypatch, output):
    monkeypatch.setattr(sinks, "SAVING", 1e9)
    monkeypatch.setattr(sinks, "SHARD_ROWS", 1000)
    output = f"{tmp_path}/{output}"
    journal = Journal(journal_path(output), {}, resume=False)
    table = {"file": ["f"] * 10, "text": ["x" * 20_000] * 10}
    with sinks.open_sink(output, journal, json_lines=False, nan="null") as sink:
        tracemalloc.start()
        for count in range(1, 60):
            sink.write(table, Reached(read=10 * count, written=10 * count))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 4_000_000  # of 12 MB that are written


def test_a_folder_gets_shards_and_a_journal(command, twice, data, tmp_path):
    command("run", twice, "--input", data, "--batch", "4", "--output", f"{tmp_path}/out/")
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["journal.json", *(f"part-{i:05}.csv" for i in range(4))]
    assert all(text.startswith(b"file,row,y\n") for text in content(tmp_path / "out").values())
    journal = json.loads((tmp_path / "out" / "journal.json").read_text("utf-8"))
    assert journal["reached"] | {"parts": 0} == {"read": 40, "written": 38, "bad": 2, "columns": ["file", "row", "y"],
                                                 "parts": 0}


def test_a_folder_of_another_run_is_not_overwritten(command, twice, data, tmp_path):
    arguments = "run", twice, "--input", data, "--batch", "4", "--output", f"{tmp_path}/out/"
    command(*arguments)
    assert "is of an earlier run" in command(*arguments).err
    assert re.search("38 rows in .* s, 0 a second, 2 left out", command(*arguments, "--resume").err)


@pytest.mark.parametrize(("change", "expected"), [
    (lambda data, model: data.write_text(data.read_text("utf-8") + "1,2\n", "utf-8"), "inputs changed"),
    (lambda data, model: model.write_bytes(model.read_bytes() + b"\x12\x00"), "model changed"),
])
def test_a_run_with_other_inputs_or_another_model_does_not_resume(command, twice, data, tmp_path, change, expected):
    arguments = "run", twice, "--input", data, "--batch", "4", "--output", f"{tmp_path}/out/"
    command(*arguments)
    assert "options changed" in command(*arguments, "--resume", "--limit", "5").err
    change(data, Path(twice))
    assert expected in command(*arguments, "--resume").err


def test_what_cannot_resume_says_so(command, twice, data, tmp_path):
    assert "is written at the end alone" in command(
        "run", twice, "--input", data, "--output", f"{tmp_path}/y.npz", "--resume").err
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "journal.json").write_text("{}", "utf-8")
    assert "is damaged" in command(
        "run", twice, "--input", data, "--output", f"{tmp_path}/out/", "--resume").err


def test_an_output_of_no_known_format_is_told_before_any_run(command, twice, data, tmp_path):
    done = command("run", twice, "--input", data, "--output", f"{tmp_path}/y.xls")
    assert done.err.startswith(f"error: --output '{tmp_path}/y.xls' is no file of a known format\n  hint: known: .csv,")
