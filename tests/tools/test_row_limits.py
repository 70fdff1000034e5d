"""The limits of input files: each ends its file or row with a typed error that names it."""

import gzip
import re
import zipfile
import zlib
from pathlib import Path

import pytest
from builders.graphs import node, placeholder
from heald.runtime.values import dtypes
from heald_tools.rows import records, sounds, tables, text_files

MOST_PIXELS = 89_478_485
ZEROS = b"0" * (80 << 20)


@pytest.fixture
def twice(saved):
    return saved(placeholder("x", (None, 2)), node("y", "AddV2", "x", "x"))


@pytest.fixture
def same(saved):
    return saved(placeholder("text", (None,), dtypes.string), node("y", "Identity", "text", T=dtypes.string))


@pytest.fixture
def file(tmp_path):
    def write(data, name):
        path = tmp_path / name
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return path

    return write


@pytest.mark.parametrize(("name", "pack"), [
    ("data.csv.gz", lambda: gzip.compress(b"a,b\n" + ZEROS, 9)), ("data.jsonl.gz", lambda: gzip.compress(ZEROS, 9)),
    ("lines.txt.gz", lambda: gzip.compress(ZEROS, 9)),
    ("x.tfrecord.gz", lambda: gzip.compress(_head(78 << 20) + ZEROS, 9)),
    ("x.tfrecord", lambda: zlib.compress(_head(78 << 20) + ZEROS, 9)),
])
def test_a_packed_file_unpacks_to_a_thousand_times_its_size(command, twice, file, monkeypatch, name, pack):
    path = file(pack(), name)
    monkeypatch.setattr(text_files, "LONGEST_LINE", 1 << 28)
    monkeypatch.setattr(tables, "LONGEST_LINE", 1 << 28)
    done = command("run", twice, "--input", path, "--batch", "2")
    assert done.status == 1
    assert done.err == (f"error: '{path}' unpacks to more than 1,000 times its size\n"
                        "  hint: unpack it first, if it is meant so\n")


def _head(length):
    head = length.to_bytes(8, "little")
    return head + records.masked_crc32c(head).to_bytes(4, "little")


def test_an_array_of_an_archive_is_no_larger_than_deflate_makes_it(command, twice, tmp_path):
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", b"0" * 1000)
    data = bytearray(path.read_bytes())
    place = data.rindex(b"PK\x01\x02")
    data[place + 24:place + 28] = (1 << 30).to_bytes(4, "little")  # the size that it says it has
    path.write_bytes(data)
    done = command("run", twice, "--input", path, "--batch", "2")
    assert done.err == f"error: '{path}':x: 11 bytes cannot become the 1073741824 that it says it has\n"


@pytest.mark.parametrize("name", ["data.jsonl", "data.txt", "data.csv"])
def test_a_line_has_a_longest_length(command, same, file, monkeypatch, name):
    monkeypatch.setattr(text_files, "LONGEST_LINE", 1000)
    is_json = name == "data.jsonl"
    path = file('{"text": "a"}\n{"text": "' + "x" * 1000 if is_json else "text\n" + "x" * 1001 + "\n", name)
    done = command("run", same, "--input", path, "--batch", "2")
    assert done.err == f"error: '{path}', line 2: more than 1,000 characters\n"
    path = file('{"text": "a"}\n' if is_json else "text\n" + "x" * 999 + "\n", name)
    assert command("run", same, "--input", path, "--batch", "2").status == 0


def test_a_cell_of_several_lines_has_a_longest_length(command, same, file, monkeypatch):
    monkeypatch.setattr(tables, "LONGEST_LINE", 1000)
    path = file('text,b\n"' + "xxxx\n" * 300 + '",1\n', "data.csv")
    done = command("run", same, "--input", path)
    assert done.err.startswith(f"error: '{path}', row 1: field larger than field limit (1000)\n")


@pytest.mark.parametrize(("text", "is_deep"), [
    ("[" * 65 + "]" * 65, True), ('{"a":' * 65 + "1" + "}" * 65, True), ('{"a":[' * 50_000, True),
    ('{"text": "' + "[" * 1000 + '"}', False),
    (r'{"text": "\"' + "[" * 100 + r'\\"}', False), ('{"text": "a", "b": ' + "[" * 60 + "]" * 60 + "}", False),
])
def test_json_has_a_largest_depth(command, same, file, text, is_deep):
    path = file('{"text": "a"}\n' + text + "\n", "data.jsonl")
    done = command("run", same, "--input", path)
    told = f"warning: {path}:2: more than 64 nested lists and objects; left out" in done.err
    assert (told, done.status) == (is_deep, int(is_deep))


def test_a_record_has_a_largest_size(command, same, file, monkeypatch):
    monkeypatch.setattr(records, "LARGEST_RECORD", 100)
    path = file(_head(101) + b"x" * 101, "x.tfrecord")
    done = command("run", same, "--input", path)
    assert done.err == f"error: '{path}': record 1 has 101 bytes, more than 100\n"


def test_the_page_has_the_limits():
    text = (Path(__file__).parents[2] / "docs" / "rows.md").read_text("utf-8")
    for limit in (text_files.LARGEST_RATIO, 1032, text_files.LONGEST_LINE,
                  tables.DEEPEST_JSON, records.LARGEST_RECORD, MOST_PIXELS, sounds.MOST_SAMPLES):
        assert re.search(rf"\| .*\b{limit:,}\b.* \|\n", text)
