"""The verdicts of a case: the device breaks a rule of the contract, or lacks a feature that the case needs."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from .rules import RULES

Array = np.ndarray[Any, Any]
SHOWN_CHARACTERS = 60  # characters of a value in a message


class Broken(AssertionError):
    """The device under test breaks a rule. The message has the expected value, the actual one, and the rule."""

    def __init__(self, what: str, *, expected: object, got: object, rule: str) -> None:
        self.what, self.expected, self.got = what, str(expected), str(got)
        self.rule = f"{rule}: {RULES[rule]}"
        super().__init__(f"{what}\n  expected: {self.expected}\n  came:     {self.got}\n  rule:     {self.rule}")


class NotApplicable(Exception):
    """The device lacks a feature that the case needs. The message names the feature."""


def expect(holds: object, what: str, *, expected: object, got: object, rule: str) -> None:
    """Raise Broken unless the claim holds."""
    if not holds:
        raise Broken(what, expected=expected, got=got, rule=rule)


def fail(what: str, error: BaseException, *, expected: object, rule: str) -> NoReturn:
    """Raise Broken because of an unexpected exception."""
    raise Broken(what, expected=expected, got=f"{type(error).__name__}: {error}", rule=rule) from error


def expect_same_bits(got: Array, want: Array, what: str, rule: str) -> None:
    """Raise Broken if a byte differs. The message has the first element that differs."""
    got_bytes, theirs = _bytes(got), _bytes(want)
    if got_bytes.size == theirs.size and np.array_equal(got_bytes, theirs):
        return
    wrong = np.flatnonzero(got_bytes != theirs)
    element_size = max(want.itemsize, 1)
    first = int(wrong[0]) // element_size
    span = slice(first * element_size, (first + 1) * element_size)
    where = f"element {first} of {want.size} ({want.dtype}); {len(wrong)} of {theirs.size} bytes differ"
    raise Broken(what, expected=f"bytes {theirs[span].tobytes().hex(' ')} in {where}",
                 got=f"bytes {got_bytes[span].tobytes().hex(' ')}", rule=rule)


def expect_close(got: Array, want: Array, tolerance: tuple[float, float], what: str, rule: str) -> None:
    """Raise Broken if types, shapes or an element differ beyond the tolerance (relative, absolute). NaN equals NaN."""
    if got.dtype != want.dtype or got.shape != want.shape:
        raise Broken(what, expected=f"{want.dtype}{list(want.shape)}", got=f"{got.dtype}{list(got.shape)}", rule=rule)
    if want.dtype == object:
        return expect(np.array_equal(got, want), what, expected=short_repr(want), got=short_repr(got), rule=rule)
    if want.dtype.kind not in "fcV":
        return expect_same_bits(np.ascontiguousarray(got), np.ascontiguousarray(want), what, rule)
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    relative, absolute = tolerance
    with np.errstate(all="ignore"):
        got_wide, theirs = got.astype(wide), want.astype(wide)
        wrong = np.argwhere(~np.isclose(got_wide, theirs, relative, absolute, equal_nan=True))
        if len(wrong):
            index = tuple(int(i) for i in wrong[0])
            worst = np.fmax.reduce(np.abs(got_wide - theirs)[tuple(wrong.T)])
            raise Broken(what, expected=f"{theirs[index]!r} at {list(index)} of {want.dtype}{list(want.shape)}, within "
                                        f"rtol {relative:g} and atol {absolute:g}",
                         got=f"{got_wide[index]!r}; {len(wrong)} of {want.size} elements differ, by up to {worst:.3g}",
                         rule=rule)
    return None


def short_repr(value: object) -> str:
    """The repr of a value for a message, at most `SHOWN_CHARACTERS`."""
    text = repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 3]}..."


def _bytes(array: Array) -> Array:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
