"""heald tfg verify --expect: texts with comments that expect errors, as MLIR's -verify-diagnostics reads them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs/tfg.md"
GRAPH = "tfg.graph #tf_type.version<producer = 1, min_consumer = 0> {\n"
BAD = f"{GRAPH}  %a, %ctl = NoOp(%b) name(\"a\") : () -> ()\n}}\n"


@pytest.fixture
def verify(command, tmp_path):
    """Verify a text, and return the status and the lines of stderr that have a place."""
    def run(text, *arguments):
        (tmp_path / "t.tfg").write_text(text)
        done = command("tfg", "verify", "--expect", "t.tfg", *arguments)
        return done.status, [line for line in done.err.splitlines() if line.startswith("t.tfg:")]
    return run


def message_of(verify, text):
    """The message of the only error of a text, and its line."""
    status, (line,) = verify(text)
    assert status == 1
    match = re.fullmatch(r"t\.tfg:(\d+):\d+: error: unexpected error: (.*)", line)
    assert match
    return int(match[1]), match[2]


def test_an_unexpected_error_is_told_with_file_and_line(verify):
    line, message = message_of(verify, BAD)
    assert line == 2
    assert message


@pytest.mark.parametrize("comment", [
    "// expected-error@+1 {{MESSAGE}}", "// expected-error @+1 {{MESSAGE}}", "// expected-error@below {{MESSAGE}}",
    "// expected-error @+1 1 {{MESSAGE}}", "// expected-error@+1 1+ {{MESSAGE}}",
    "// expected-error-re@below {{{{.+}}}}", "// expected-error@+2 {{MESSAGE}}\n",
])
def test_an_expected_error_is_no_fault(verify, comment):
    _, message = message_of(verify, BAD)
    text = BAD.replace("  %a", f"  {comment.replace('MESSAGE', message)}\n  %a")
    assert verify(text) == (0, [])


@pytest.mark.parametrize("comment", ["// expected-error@above {{MESSAGE}}", "// expected-error@-1 {{MESSAGE}}"])
def test_a_comment_below_expects_the_error_of_the_line_above(verify, comment):
    _, message = message_of(verify, BAD)
    assert verify(BAD.replace("}\n", f"{comment.replace('MESSAGE', message)}\n}}\n", 1)) == (0, [])


@pytest.mark.parametrize(("comment", "missing"), [
    ("// expected-error {{no such error}}", 'expected error "no such error" was not produced'),
    ("// expected-note@+1 {{MESSAGE}}", 'expected note "MESSAGE" was not produced'),
    ("// expected-warning@unknown {{MESSAGE}}", 'expected warning "MESSAGE" was not produced'),
    ("// expected-remark@+1 {{MESSAGE}}", 'expected remark "MESSAGE" was not produced'),
    ("// expected-error@+1 2 {{MESSAGE}}", 'expected error "MESSAGE" was not produced 2 times, but 1'),
])
def test_a_missing_diagnostic_is_told_with_the_line_of_its_comment(verify, comment, missing):
    _, message = message_of(verify, BAD)
    comment, missing = (text.replace("MESSAGE", message) for text in (comment, missing))
    status, lines = verify(BAD.replace("  %a", f"  {comment}\n  %a"))
    assert status == 1
    assert f"t.tfg:2:1: error: {missing}" in lines


def test_each_piece_is_read_on_its_own_and_keeps_the_lines_of_the_file(verify):
    _, message = message_of(verify, BAD)
    good = f"{GRAPH}}}\n"
    assert verify(f"{good}// -----\n{good}") == (0, [])
    status, (line,) = verify(f"{good}// -----\n{BAD}// -----\n{good}")
    assert (status, line) == (1, f"t.tfg:5:{line.split(':')[2]}: error: unexpected error: {message}")


def test_several_files_are_verified_and_rows_are_json(command, tmp_path):
    for name in ("a.tfg", "b.tfg"):
        (tmp_path / name).write_text(BAD)
    done = command("tfg", "verify", "--expect", "a.tfg", "b.tfg", "--json")
    assert done.status == 1
    assert [(row["file"], row["line"]) for row in json.loads(done.out)] == [("a.tfg", 2), ("b.tfg", 2)]


def test_expected_errors_are_told_in_a_line(command, tmp_path):
    (tmp_path / "a.tfg").write_text(f"{GRAPH}}}\n")
    assert command("tfg", "verify", "--expect", "a.tfg").out == "1 text: every error is an expected one\n"


@pytest.mark.parametrize(("arguments", "said"), [
    (("--expect", "absent.tfg"), "absent.tfg"), (("--expect", "pattern.tfg"), "pattern.tfg: line 1: the pattern"),
    (("--expect", "bytes.tfg"), "bytes.tfg"), (("pattern.tfg", "bytes.tfg"), "one model is verified at a time"),
])
def test_bad_arguments_are_typed_errors(command, tmp_path, arguments, said):
    (tmp_path / "pattern.tfg").write_text("// expected-error-re {{a {{(}}}}\n")
    (tmp_path / "bytes.tfg").write_bytes(b"\xff\x00\xfe")
    done = command("tfg", "verify", *arguments)
    assert done.status == 1
    assert said in done.err


def test_the_example_of_the_page_is_as_it_says(command, tmp_path):
    example = re.search(r"```mlir\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert example
    (tmp_path / "errors.tfg").write_text(example[1])
    assert command("tfg", "verify", "--expect", "errors.tfg").status == 0
