"""Errors as texts, and which foreign exception becomes which of them."""

from __future__ import annotations

import errno
import pickle
import warnings

import heald
import pytest
from heald import errors
from heald.errors import (
    LONGEST_TEXT_CHARACTERS,
    HealdWarning,
    Internal,
    InvalidArgument,
    Location,
    NotFound,
    PluginError,
    boundary,
    closest,
    describe_exception,
    of_system,
    printable,
    short_text,
    typed_error,
)
from heald.runtime.support.kernel_errors import as_heald_error, as_plugin_error
from hypothesis import example, given
from hypothesis import strategies as st


@given(st.text())
@example("\x1b[2J\x9b31m\u202e\u2066\u2028\udc80\U000e0041\x00\x7f")
def test_printable_text_has_nothing_that_a_terminal_acts_on(text):
    assert printable(text).isprintable()
    assert printable(text, lines=True).replace("\n", "").isprintable()
    assert printable(text) == text or not text.isprintable()


def test_escapes_are_those_of_repr():
    assert printable("é\x1b\u202e\udc80\n\\x") == r"é\x1b\u202e\udc80\n\x"
    assert printable("a\nb\r", lines=True) == "a\nb\\r"


@given(st.text(), st.integers(64, 300))
def test_shortened_text_keeps_both_ends(text, largest_characters):
    shortened = short_text(text * 20, largest_characters)
    assert len(shortened) <= largest_characters
    assert shortened[:16] == (text * 20)[:16]
    assert shortened[-16:] == (text * 20)[-16:]


@pytest.mark.parametrize("error_arguments", [
    {"message": "m" * 10**6}, {"message": "m", "node": "n" * 10**6}, {"message": "m", "op": "\x1b" * 10**6},
    {"message": "m", "device": "d" * 10**6}, {"message": "m", "location": Location("f" * 10**6)},
    {"message": "m", "hint": "h" * 10**6},
], ids=lambda texts: max(texts, key=lambda key: len(texts[key]) if key != "location" else 9))
def test_an_error_is_at_most_four_kilobytes_of_printable_text(error_arguments):
    error = InvalidArgument(**error_arguments)
    assert len(str(error)) == LONGEST_TEXT_CHARACTERS
    assert str(error).isprintable()
    assert " characters ... " in str(error)
    assert error.message == error_arguments["message"]


@pytest.mark.parametrize("kind", [InvalidArgument, HealdWarning])
def test_an_error_is_one_line_whatever_the_names_in_it_are(kind):
    assert str(kind("two nodes are called 'a\nerror: b\x1b'")) == "two nodes are called 'a\\nerror: b\\x1b'"


def test_the_place_and_the_hint_of_an_error_are_in_its_line():
    error = InvalidArgument("no", node="a\nb", op="c\nd", device="e\nf", hint="did you mean 'g\nh'?",
                            location=Location("i\nj", 1))
    assert str(error) == "i\\nj:1: no (node 'a\\nb', op c\\nd, device e\\nf); did you mean 'g\\nh'?"


@given(st.text())
def test_message_and_hint_are_printable_lines_whenever_they_are_set(text):
    error = InvalidArgument(text, hint=text)
    assert error.hint == error.message
    assert all(line.isprintable() for line in error.message.split("\n"))
    error.message = error.hint = f"\x1b]0;{text}\x07"
    assert error.hint == error.message == printable(f"\x1b]0;{text}\x07", lines=True)


def test_a_warning_is_shown_like_an_error():
    assert str(HealdWarning("\x1b" + "w" * 10**6)).startswith(r"\x1bwww")
    assert len(str(HealdWarning("\x1b" + "w" * 10**6))) == LONGEST_TEXT_CHARACTERS


@pytest.mark.parametrize(("number", "kind"), [
    (errno.ENOENT, errors.NotFound), (errno.ENOTDIR, errors.NotFound), (errno.EACCES, errors.PermissionDenied),
    (errno.EPERM, errors.PermissionDenied), (errno.EROFS, errors.PermissionDenied),
    (errno.EEXIST, errors.AlreadyExists),
    (errno.EISDIR, errors.InvalidArgument), (errno.ENAMETOOLONG, errors.InvalidArgument),
    (errno.ELOOP, errors.InvalidArgument), (errno.ENOSPC, errors.ResourceExhausted),
    (errno.EMFILE, errors.ResourceExhausted), (errno.ENOMEM, errors.ResourceExhausted), (errno.EIO, errors.DataLoss),
    (errno.ETIMEDOUT, errors.DeadlineExceeded), (errno.ENOTSUP, errors.Unknown),
])
def test_an_error_of_the_system_is_typed_and_names_its_file(number, kind):
    error = of_system(OSError(number, "it says no", "some/file"))
    assert type(error) is kind
    assert str(error) == "some/file: it says no"
    assert str(of_system(OSError(number, "it says no"), "other")) == "other: it says no"


@pytest.mark.parametrize(("error", "kind"), [
    (MemoryError(), errors.ResourceExhausted), (RecursionError("deep"), errors.ResourceExhausted),
    (FileNotFoundError(2, "no"), errors.NotFound), (UserWarning("w"), errors.FailedPrecondition),
    (KeyError("k"), Internal), (AssertionError(), Internal),
])
def test_only_a_fault_of_heald_is_internal(error, kind):
    @boundary
    def fail():
        raise error

    with pytest.raises(kind) as raised:
        fail()
    assert type(raised.value) is kind
    assert raised.value.__cause__ is error
    assert type(typed_error(error)) is kind


def test_arguments_that_fit_no_parameters_are_the_callers_fault_and_the_hint_has_the_parameters():
    @boundary
    def scale(x: int, *, factor: int = 2) -> int:
        return x * factor

    class Scaler:
        @boundary
        def __init__(self, factor):
            self.factor = factor

    for call, expected in ((lambda: scale(1, 2), r"takes 1 positional argument.*call it as .*scale\(x, \*, factor=2\)"),
                           (lambda: scale(1, by=2), "unexpected keyword argument 'by'"),
                           (scale, "missing 1 required positional argument: 'x'"),
                           (Scaler, r"call it as .*Scaler\(factor\)"),
                           (lambda: heald.load("m", {}), r"call it as load\(path, \*, inputs=None"),
                           (lambda: heald.Session(1, 2, 3), r"call it as Session\(graph, ")):
        with pytest.raises(errors.InvalidArgument, match=expected):
            call()
    with pytest.raises(Internal, match="TypeError"):
        scale(None, factor=[])


def test_a_warning_that_is_to_be_an_error_is_no_fault_of_heald():
    @boundary
    def warn():
        warnings.warn("careful", HealdWarning, stacklevel=2)

    with (warnings.catch_warnings(action="error"),
          pytest.raises(errors.FailedPrecondition, match="HealdWarning: careful")):
        warn()


def test_a_typed_error_passes_a_boundary_as_it_is():
    error = PluginError("mine")

    @boundary
    def fail():
        raise error

    with pytest.raises(PluginError) as raised:
        fail()
    assert raised.value is error


def test_an_exception_without_a_text_is_told_by_its_class():
    class Silent(Exception):
        def __str__(self):
            raise KeyError

    assert describe_exception(Silent()) == "Silent"
    assert describe_exception(KeyError()) == "KeyError"
    assert describe_exception(ValueError("v")) == "ValueError: v"


def test_names_are_compared_only_where_that_is_quick():
    calls = []

    def names():
        for i in range(10**9):
            calls.append(i)
            yield f"name{i}"

    assert closest("name12", names())[0] == "name12"
    assert len(calls) <= errors.LARGEST_CANDIDATE_COUNT
    assert closest("n" * 10**6, ["n" * 10**6]) == []
    assert closest("name", ["n" * 10**6, "nam"]) == ["nam"]


@pytest.mark.parametrize(("error", "kind"), [
    (MemoryError(), errors.ResourceExhausted), (RecursionError(), errors.ResourceExhausted),
    (FileNotFoundError(2, "no", "f"), errors.NotFound), (OSError(errno.ENOSPC, "full"), errors.ResourceExhausted),
    (TimeoutError(), errors.DeadlineExceeded), (ValueError("v"), errors.InvalidArgument),
    (ZeroDivisionError(), errors.InvalidArgument), (KeyError("k"), errors.Unknown), (SystemExit(), errors.Unknown),
])
def test_an_exception_of_a_users_function_is_typed_and_no_fault_of_heald(error, kind):
    typed = as_heald_error(error, "kernel k")
    assert type(typed) is kind
    assert typed.__cause__ is error
    assert str(typed).startswith(f"kernel k failed with {type(error).__name__}")


@pytest.mark.parametrize(("error", "kind"), [
    (ValueError("v"), errors.PluginError), (TypeError("t"), errors.PluginError), (KeyError("k"), errors.PluginError),
    (FileNotFoundError(2, "no", "f"), errors.PluginError), (TimeoutError(), errors.PluginError),
    (NotImplementedError(), errors.PluginError), (SystemExit(), errors.PluginError),
    (MemoryError(), errors.ResourceExhausted), (RecursionError(), errors.ResourceExhausted),
])
def test_an_exception_of_a_plugin_is_never_a_mistake_of_the_user(error, kind):
    typed = as_plugin_error(error, "kernel k")
    assert type(typed) is kind
    assert not isinstance(typed, ValueError)
    assert typed.__cause__ is error
    meant = errors.InvalidArgument("the plugin raises it on purpose")
    assert as_plugin_error(meant, "kernel k") is meant


def test_a_hint_that_a_function_makes_is_made_once_when_it_is_read():
    made_hints = []
    error = NotFound("no op is called 'Nog'", hint=lambda: made_hints.append(1) or "did you mean Neg?")
    assert error.at(node="n").message == "no op is called 'Nog'"
    assert not made_hints
    assert [str(error), error.hint] == ["no op is called 'Nog' (node 'n'); did you mean Neg?", "did you mean Neg?"]
    assert made_hints == [1]


def test_an_error_is_pickled_with_its_hint():
    pickled = pickle.dumps(NotFound("no op is called 'Nog'", op="Nog", hint=lambda: "did you mean Neg?"))
    error = pickle.loads(pickled)  # noqa: S301 - the bytes are the test's own
    assert (error.message, error.op, error.hint) == ("no op is called 'Nog'", "Nog", "did you mean Neg?")


@pytest.mark.parametrize(("text", "name", "is_named"), [
    ("no node is called 'y'", "'y'", True), ("input 'y' must be float32, but 'x:0' is int32", "'y'", False),
    ("attribute 'T' is bool", "'T'", False), ("op Mul takes 2 inputs", "Mul", True), ("op MulNoNan", "Mul", False),
    ("device CPU:0 is lost", "CPU:0", True), ("device CPU:01 is lost", "CPU:0", False),
    ("output 'y' and node 'y' differ", "'y'", True), ("", "x", False), ("the simplest", "sim", False),
])
def test_a_text_names_a_place_by_whole_words_and_not_as_an_argument(text, name, is_named):
    assert errors.mentions(text, name) is is_named
