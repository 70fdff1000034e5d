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


def test_a_pattern_that_is_no_regular_expression_is_an_error():
    with pytest.raises(InvalidArgument, match="line 1: the pattern .* is no regular expression"):
        expected_diagnostics("// expected-error-re {{a {{(}}}}")
