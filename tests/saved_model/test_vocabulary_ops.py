"""Tables that a step fills from a text file: TensorFlow's results where `[files]` permits it, refused by default."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import heald
import pytest
from heald.api import Graph, Node, ShapeAttr, dtypes
from heald.errors import FailedPrecondition, InvalidArgument, NotFound, PermissionDenied

S, L, F = dtypes.string, dtypes.int64, dtypes.float32
LINE, NUMBER = -2, -1


def session_of(
    folder: Path | None, maker: str = "HashTableV2", key: Any = S, value: Any = L, **attrs: Any
) -> heald.Session:
    version = maker[len(maker.removesuffix("V2")):]
    fill = {"key_index": LINE, "value_index": NUMBER} | attrs
    nodes = [Node("file", "Placeholder", attrs={"dtype": S, "shape": ShapeAttr(())}),
             Node("t", maker, attrs={"key_dtype": key, "value_dtype": value}),
             Node("fill", f"InitializeTableFromTextFile{version}", ("t", "file"), attrs=fill),
             Node("all", f"LookupTableExport{version}", ("t",), attrs={"Tkeys": key, "Tvalues": value})]
    return heald.Session(Graph(nodes), None if folder is None else {"files": {"read": [str(folder)]}})


def fill(session: heald.Session, path: object) -> dict[Any, Any]:
    session.run([], {"file": str(path).encode()}, targets=["fill"])
    return dict(zip(*(side.tolist() for side in session.run(["all:0", "all:1"])), strict=True))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {"abc": b"a\nb\nc\n", "no_end": b"a\nb", "windows": b"a\r\nb\r\n", "pairs": b"a\t1\nb\t2\n",
                       "twice": b"a\nb\na\n", "hole": b"a\n\nb\n"}.items():
        (tmp_path / name).write_bytes(text)
    return tmp_path


@pytest.mark.parametrize("maker", ["HashTableV2", "HashTable"])
@pytest.mark.parametrize(("file", "value", "attrs", "content"), [  # TensorFlow's results
    ("abc", L, {}, {b"a": 0, b"b": 1, b"c": 2}), ("abc", L, {"offset": 5}, {b"a": 5, b"b": 6, b"c": 7}),
    ("abc", L, {"vocab_size": 2}, {b"a": 0, b"b": 1}), ("no_end", L, {}, {b"a": 0, b"b": 1}),
    ("windows", L, {}, {b"a": 0, b"b": 1}), ("pairs", L, {"key_index": 0, "value_index": 1}, {b"a": 1, b"b": 2}),
    ("pairs", F, {"key_index": 0, "value_index": 1}, {b"a": 1.0, b"b": 2.0}),
    ("twice", S, {"value_index": LINE}, {b"a": b"a", b"b": b"b"}),
])
def test_a_table_is_filled_from_the_lines_of_a_file(folder, maker, file, value, attrs, content):
    with session_of(folder, maker, value=value, **attrs) as session:
        assert fill(session, folder / file) == content


def test_a_second_file_changes_nothing(folder):
    with session_of(folder) as session:
        first = fill(session, folder / "abc")
        assert fill(session, folder / "no_end") == first
        with pytest.raises(NotFound):
            fill(session, folder / "none")


@pytest.mark.parametrize(("file", "error", "text", "attrs"), [
    ("none", NotFound, "none", {}), (".", FailedPrecondition, "folder", {}),
    ("twice", FailedPrecondition, "different value for same key", {}), ("hole", InvalidArgument, "line 1", {}),
    ("abc", InvalidArgument, "3 lines", {"vocab_size": 9}), ("abc", InvalidArgument, "fields", {"value_index": 3}),
])
def test_a_malformed_vocabulary_has_tensorflows_code_and_names_the_file(folder, file, error, text, attrs):
    with session_of(folder, **attrs) as session:
        with pytest.raises(error, match=text) as caught:
            fill(session, folder / file)
        assert caught.value.node == "fill"


def test_a_table_that_is_no_constant_one_is_refused(folder):
    with session_of(folder, "MutableHashTableV2") as session, pytest.raises(InvalidArgument, match="MutableTable"):
        fill(session, folder / "abc")


def test_a_file_for_a_table_is_refused_by_default(folder):
    with session_of(None) as session, pytest.raises(PermissionDenied, match=r"fill \(InitializeTableFromTextFileV2\)"):
        fill(session, folder / "abc")
    with session_of(folder) as session, pytest.raises(PermissionDenied):
        fill(session, folder / ".." / "elsewhere")
