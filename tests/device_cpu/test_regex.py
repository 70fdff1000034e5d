"""Regular expressions: RE2's rules of replacing, and that no pattern takes long."""

import numpy as np
import pytest
from builders.string_arrays import array, scalar
from harness.run_op import run_op
from heald.errors import InvalidArgument
from hypothesis import given, settings
from hypothesis import strategies as st


def replace(x, pattern, rewrite, everywhere=True):
    inputs = [scalar(x), scalar(pattern), scalar(rewrite)]
    return run_op("RegexReplace", inputs, {"replace_global": everywhere})[0][()]


def matches(x, pattern):
    return run_op("RegexFullMatch", [array(x), scalar(pattern)], {})[0].tolist()


def test_a_match_is_of_the_whole_text_and_of_characters():
    assert matches(["é".encode(), b"\xff", b"ab", b"a\n"], b".") == [True, False, False, False]
    assert matches([b"ab"], b"a|ab") == [True]
    assert run_op("StaticRegexFullMatch", [array([b"\xff"])], {"pattern": "\\C"})[0].tolist() == [True]


@pytest.mark.parametrize(("x", "pattern", "rewrite", "want"), [
    (b"abc", b"b*", b"-", b"-a-c-"), ("aéb".encode(), b"", b"-", "-a-é-b-".encode()),
    (b"\xe2\x82b", b"", b"-", b"-\xe2-\x82-b-"), (b"abc", b"(b)", rb"<\1\0>", b"a<bb>c"),
    (b"abc", b"b", rb"\\", b"a\\c"), (b"abc", b"(b)", rb"\2", b"abc"), (b"abc", b"b", rb"x\y", b"axc"),
    (b"b", b"(a)?b", rb"<\1>", b"<>"),
])
def test_replacing_all_follows_re2(x, pattern, rewrite, want):
    assert replace(x, pattern, rewrite) == want
    attrs = {"pattern": pattern.decode(), "rewrite": rewrite.decode(), "replace_global": True}
    assert run_op("StaticRegexReplace", [scalar(x)], attrs)[0][()] == want


def test_replacing_once_takes_the_first_match_and_no_malformed_rewrite():
    assert replace(b"aaa", b"a", b"b", everywhere=False) == b"baa"
    assert replace(b"abc", b"b", rb"x\y", everywhere=False) == b"abc"


@settings(max_examples=60)
@given(st.binary(max_size=12), st.sampled_from([b"", b"a*", b".", b"\\b", b"[a-c]+", b"$"]))
def test_replacing_matches_by_themselves_changes_nothing(x, pattern):
    assert replace(x, pattern, rb"\0") == x


TEXTS = st.text("aA1 _.,-+[]^\\\t\n\v\0xé", max_size=12).map(str.encode) | st.binary(max_size=8)


@settings(max_examples=200)
@given(TEXTS, st.sampled_from([b"", b"-", b"<>", rb"\\", b"\n"]), st.sampled_from([
    b"a", b"<br />", rb"\s", rb"\s+", rb"\W", rb"\.", b"[^a-z ]", b"[^a-z ]+", rb"[\\.,\-\[\]^]", b"[[:punct:]]",
    b"[[:^alpha:]]+", rb"[\s_]", rb"[^\w]+", b" +", b"[+-]", b"\0", b"[\x00-\x1f]", "é".encode(), "[é]".encode(),
    b"[A-Z]", rb"\D"]))
def test_patterns_of_one_class_replace_as_others_do(x, rewrite, pattern):
    """A group of the pattern has no effect on matches, and keeps it from the short cut of such patterns."""
    assert replace(x, pattern, rewrite) == replace(x, b"(" + pattern + b")", rewrite)


def test_a_pattern_that_backtracking_never_ends_ends_at_once():
    assert matches([b"a" * 5000 + b"b"], b"(a*)*(a|aa)*c") == [False]


def test_a_malformed_pattern_is_refused_for_no_strings_too():
    with pytest.raises(InvalidArgument, match="Invalid pattern"):
        matches([], b"(")
    with pytest.raises(InvalidArgument, match="missing"):
        run_op("StaticRegexFullMatch", [np.empty(0, object)], {"pattern": "("})


