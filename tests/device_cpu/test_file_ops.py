"""Ops that read, write and list files: TensorFlow's results where `[files]` permits them, refused by default."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from heald.errors import FailedPrecondition, InvalidArgument, NotFound, PermissionDenied
from heald.graphs.graph.node import Node
from heald.runtime.values import dtypes
from heald_cpu.file_patterns import pattern_expression
from hypothesis import given
from hypothesis import strategies as st

NAMES = ["b1.txt", "b2.txt", ".hid.txt", "c[1].txt", "sub/z.txt", "sub/deep/w.txt", "B3.txt"]


def permit_folder(folder: Path) -> dict[str, Any]:
    return {"files": {"read": [str(folder)], "write": [str(folder)]}}


def strings(values: list[str]) -> Any:
    return np.array([*(os.fsencode(value) for value in values), None], object)[:-1]


def session_of(config: Any) -> heald.Session:
    return heald.Session(graph(
        placeholder("name", None, dtypes.string), placeholder("contents", None, dtypes.string),
        Node("read", "ReadFile", ("name",)), Node("write", "WriteFile", ("name", "contents")),
        Node("match", "MatchingFiles", ("name",)), const("one", 1), node("neg", "Neg", "one"),
        Node("call", "PyFunc", ("name",), attrs={"token": b"t", "Tin": (dtypes.string,), "Tout": (dtypes.string,)}),
    ), config)


def read(session: heald.Session, path: object) -> Any:
    return session.run("read", {"name": os.fsencode(str(path))})


def write(session: heald.Session, path: object, contents: bytes = b"new") -> None:
    session.run([], {"name": os.fsencode(str(path)), "contents": contents}, targets=["write"])


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in NAMES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"q")
    return tmp_path


def test_a_written_file_is_read_byte_for_byte_and_folders_are_made(tmp_path):
    with session_of(permit_folder(tmp_path)) as session:
        for contents in (b"hi\0\xff", b"", b"x" * 100_000, b"short"):
            write(session, tmp_path / "sub" / "deep" / "x.txt", contents)
            assert read(session, tmp_path / "sub" / "deep" / "x.txt").item() == contents


def test_a_path_that_is_no_file_has_tensorflows_code(tree):
    with session_of(permit_folder(tree)) as session:
        with pytest.raises(NotFound, match="none"):
            read(session, tree / "none")
        for act in (read, write):
            with pytest.raises(FailedPrecondition, match="folder"):
                act(session, tree)
            with pytest.raises(FailedPrecondition, match="folder"):
                act(session, tree / "b1.txt" / "x")
        with pytest.raises(InvalidArgument, match="rank 0"):
            session.run("read", {"name": strings([str(tree)])})
        with pytest.raises(InvalidArgument, match="scalar or a vector"):
            session.run("match", {"name": strings([str(tree)]).reshape(1, 1)})


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_refused_and_nothing_waits_for_it(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with session_of(permit_folder(tmp_path)) as session:
        with pytest.raises(FailedPrecondition, match="no regular file"):
            read(session, tmp_path / "pipe")
        with pytest.raises(heald.errors.HealdError):
            write(session, tmp_path / "pipe")


def test_every_node_that_opens_files_is_refused_before_the_run_by_default(tree):
    before = sorted(tree.rglob("*"))
    with session_of(None) as session:
        feeds = {"name": os.fsencode(str(tree / "new")), "contents": b"x"}
        with pytest.raises(PermissionDenied, match=r"(?s)read \(ReadFile\).*match \(MatchingFiles\)|"
                                                   r"match \(MatchingFiles\).*read \(ReadFile\)"):
            session.run(["read", "match"], feeds)
        with pytest.raises(PermissionDenied, match=r"write \(WriteFile\).*allow_ops = \['WriteFile'\]"):
            session.run("neg", feeds, targets=["write"])
        assert session.run("neg") == -1  # a step that needs none of them runs
        with pytest.raises(heald.errors.Unimplemented, match="PyFunc"):
            session.run("call:0", feeds)
    assert sorted(tree.rglob("*")) == before


def test_an_allowed_op_runs_and_the_others_stay_refused(tree):
    with session_of({"files": {"allow_ops": ["ReadFile"]}}) as session:
        assert read(session, tree / "b1.txt").item() == b"q"
        with pytest.raises(PermissionDenied, match="WriteFile"):
            write(session, tree / "new")
        with pytest.raises(PermissionDenied, match="MatchingFiles"):
            session.run(["read", "match"], {"name": os.fsencode(str(tree / "b1.txt"))})
    assert not (tree / "new").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights on Windows")
def test_no_path_or_link_leads_out_of_the_folder(tree):
    (tree / "sub" / "out").symlink_to(tree)
    with session_of(permit_folder(tree / "sub")) as session:
        for path in (tree / "b1.txt", tree / "sub" / ".." / "b1.txt", tree / "sub" / "out" / "b1.txt"):
            for act in (read, write):
                with pytest.raises(PermissionDenied):
                    act(session, path)
        for pattern in (f"{tree}/*", f"{tree}/s*/*", f"{tree}/sub/out/*", f"{tree}/sub/*/b*"):
            with pytest.raises(PermissionDenied):
                session.run("match", {"name": pattern.encode()})
    assert (tree / "b1.txt").read_bytes() == b"q"


@pytest.mark.parametrize(("pattern", "names"), [  # TensorFlow's results
    ("*.txt", [".hid.txt", "B3.txt", "b1.txt", "b2.txt", "c[1].txt"]), ("b?.txt", ["b1.txt", "b2.txt"]),
    ("b[12].txt", ["b1.txt", "b2.txt"]), ("b[!1].txt", ["b2.txt"]), ("b[^1].txt", ["b2.txt"]),
    ("*", [".hid.txt", "B3.txt", "b1.txt", "b2.txt", "c[1].txt", "sub"]), ("*/*", ["sub/deep", "sub/z.txt"]),
    ("*/*.txt", ["sub/z.txt"]), ("**/*.txt", ["sub/z.txt"]), ("nope*", []), ("b1.txt", ["b1.txt"]), ("nope", []),
    (r"c\[1\].txt", ["c[1].txt"]), (".h*", [".hid.txt"]), ("sub", ["sub"]), ("sub/", ["sub/"]), ("su*/", ["sub"]),
    ("sub//z.txt", ["sub//z.txt"]), ("./b1.txt", ["./b1.txt"]), ("{b1,b2}.txt", []), ("[", []),
    ("b[1-2].txt", ["b1.txt", "b2.txt"]), ("sub/../b1.txt", ["sub/../b1.txt"]), ("s*/../b*.txt", []),
    ("b[]1].txt", ["b1.txt"]), ("zz/*", []), ("/b*.txt", []),
])
@pytest.mark.skipif(sys.platform == "win32", reason="a backslash separates folders there")
def test_patterns_match_as_in_tensorflow(tree, pattern, names):
    with session_of(permit_folder(tree)) as session:
        matched = session.run("match", {"name": f"{tree}/{pattern}".encode()})
    assert [os.fsdecode(path) for path in matched] == [f"{tree}/{name}" for name in names]


def test_several_patterns_give_a_sorted_list_with_repetitions(tree, monkeypatch):
    monkeypatch.chdir(tree)
    with session_of(permit_folder(tree)) as session:
        matching = session.run("match", {"name": strings([f"{tree}/b?.txt", f"{tree}/*1.txt"])})
        assert matching.tolist() == [os.fsencode(tree / name) for name in ("b1.txt", "b1.txt", "b2.txt")]
        for relative in ("b*.txt", "./b*.txt"):
            assert session.run("match", {"name": strings([relative])}).tolist() == [b"./b1.txt", b"./b2.txt"]
        assert session.run("match", {"name": b"sub/*"}).tolist() == [b"sub/deep", b"sub/z.txt"]
        assert session.run("match", {"name": strings([])}).shape == (0,)


@given(st.text("ab*?[]!-\\", max_size=8), st.text("ab]-", max_size=6))
def test_a_pattern_matches_as_characters_one_after_the_other_say(pattern, name):
    assert bool(pattern_expression(pattern.encode()).fullmatch(name.encode())) == matched_slowly(pattern, name)


def matched_slowly(pattern: str, name: str) -> bool:
    """The meaning of a pattern, one element at a time."""
    if not pattern:
        return not name
    if pattern[0] == "*":
        return matched_slowly(pattern[1:], name) or bool(name and matched_slowly(pattern, name[1:]))
    if not name:
        return False
    if pattern[0] == "?":
        return matched_slowly(pattern[1:], name[1:])
    if pattern[0] == "\\" and len(pattern) > 1:
        return name[0] == pattern[1] and matched_slowly(pattern[2:], name[1:])
    negated = pattern[:2] == "[!"
    end = pattern.find("]", 2 + negated)
    if pattern[0] == "[" and end > 0:
        inside, members = pattern[1 + negated:end], ""
        while inside:
            inside = inside[1:] if inside[0] == "\\" and len(inside) > 1 else inside
            low, inside = inside[0], inside[1:]
            high = low
            if inside[:1] == "-" and len(inside) > 1:
                inside = inside[2:] if inside[1] == "\\" and len(inside) > 2 else inside[1:]
                high, inside = inside[0], inside[1:]
            members += "".join(map(chr, range(ord(low), ord(high) + 1)))
        return (name[0] in members) != negated and matched_slowly(pattern[end + 1:], name[1:])
    return name[0] == pattern[0] and matched_slowly(pattern[1:], name[1:])


def test_a_pattern_of_many_stars_takes_no_time():
    assert pattern_expression(b"*a" * 40 + b"b").fullmatch(b"a" * 250) is None
