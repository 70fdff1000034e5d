"""Diagnostics of texts, and the comments that expect them."""

from __future__ import annotations

import pytest
from heald.errors import InvalidArgument
from heald_mlir.diagnostics import Diagnostic, diagnostic_mismatches, diagnostics_of, expected_diagnostics, split_input
from heald_mlir.lexer import MalformedText
from heald_mlir.parser import parse


def test_a_file_is_split_at_its_marks_and_keeps_its_line_numbers():
    assert split_input("a\n// -----\nb\nc\n// ----- more\n") == [("a\n", 1), ("b\nc\n", 3), ("", 6)]


def test_a_diagnostic_shows_its_line_with_a_caret():
    text = '\n\t"a"() : () -> i32 "'
    with pytest.raises(MalformedText) as raised:
        parse(text, "p.mlir")
    (shown,) = [diagnostic.rendered_text(text) for diagnostic in diagnostics_of(raised.value)]
    assert shown == 'p.mlir:2:21: error: expected \'"\' in string literal\n\t"a"() : () -> i32 "\n\t' + " " * 19 + "^"


@pytest.mark.parametrize(("comment", "line"), [
    ("// expected-error {{bad}}", 2), ("// expected-error@+1 {{bad}}", 3), ("// expected-error @-1 {{bad}}", 1),
    ("// expected-error@above {{bad}}", 1), ("//expected-error @below{{bad}}  ", 3),
    ("// expected-error-re {{b{{[a-z]}}d}}", 2), ("// expected-error@unknown {{bad}}", 0),
])
def test_a_comment_expects_a_diagnostic_on_its_line(comment, line):
    expected = expected_diagnostics(f"\n{comment}\n\n")
    assert diagnostic_mismatches([Diagnostic("error", "f", line, 1, "too bad")], expected) == []


def test_unexpected_and_missing_diagnostics_are_errors():
    expected = expected_diagnostics("// expected-note {{a}}")
    mismatches = diagnostic_mismatches([Diagnostic("error", "f", 1, 1, "a")], expected)
    assert [mismatch.message for mismatch in mismatches] == [
        "unexpected error: a", 'expected note "a" was not produced']


def test_each_comment_stands_for_one_diagnostic():
    expected = expected_diagnostics("// expected-error {{a}}")
    once = Diagnostic("error", "f", 1, 1, "a")
    assert len(diagnostic_mismatches([once, once], expected)) == 1


@pytest.mark.parametrize(("text", "line"), [
    ("// expected-error@below {{a}}\n// expected-note@below {{b}}\nop\n", 3),
    ("op\n// expected-error@above {{a}}\n// expected-note@above {{b}}\n", 1),
])
def test_comments_one_under_another_are_about_the_nearest_line_without_one(text, line):
    found = [Diagnostic("error", "f", line, 1, "a"), Diagnostic("note", "f", line, 1, "b")]
    assert diagnostic_mismatches(found, expected_diagnostics(text)) == []


@pytest.mark.parametrize(("count", "diagnostics", "mismatches"), [
    ("2", 2, 0), ("2", 3, 1), ("2", 1, 1), ("2+", 3, 0), ("2+", 1, 1), ("1", 1, 0), ("0", 0, 0), ("0", 1, 1)])
def test_a_number_is_that_of_the_diagnostics(count, diagnostics, mismatches):
    expected = expected_diagnostics(f"// expected-error {count} {{{{a}}}}")
    assert len(diagnostic_mismatches([Diagnostic("error", "f", 1, 1, "a")] * diagnostics, expected)) == mismatches


def test_a_missing_diagnostic_names_the_text():
    (mismatch,) = diagnostic_mismatches([], expected_diagnostics("\n// expected-error {{a}}"), "p.mlir")
    assert (mismatch.file, mismatch.line) == ("p.mlir", 2)


def test_a_pattern_that_is_no_regular_expression_is_an_error():
    with pytest.raises(InvalidArgument, match="line 1: the pattern .* is no regular expression"):
        expected_diagnostics("// expected-error-re {{a {{(}}}}")
