"""Random texts of the TF Graph IR: valid modules in many spellings, half of them with one planted error.

`random_text(seed)` returns the same text for the same seed. A text knows its error and the changes of its spelling, so
that a comparison counts its verdicts by kind. A planted error is an attempt: the reference may accept the text.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from builders.tfg_errors import ERRORS
from builders.tfg_forms import FORMS, LAYOUTS, ORDERS, Change
from builders.tfg_modules import random_module

SHARE_OF_ERRORS = 0.55
_ATTEMPTS = 8  # to find a change that a text has a place for


class RandomText(NamedTuple):
    """A text. `error`: the name of the planted error, "" without one; `changes`: the names of its other spellings."""

    source: str
    error: str
    changes: tuple[str, ...]


def random_text(seed: int) -> RandomText:
    """The text of a seed. Errors are planted before the layout changes, so that they stand in any layout."""
    rng = Random(f"text {seed}")  # noqa: S311 - no secrets: the seed makes the text
    source, error, changes = random_module(rng), "", []
    source = _changed(rng, source, FORMS, rng.choice((0, 0, 1, 1, 2, 4)), changes)
    source = _changed(rng, source, ORDERS, rng.choice((0, 0, 0, 1)), changes)
    if rng.random() < SHARE_OF_ERRORS:
        error, source = _planted(rng, source)
    source = _changed(rng, source, LAYOUTS, rng.choice((0, 0, 1, 1, 2)), changes)
    return RandomText(source, error, tuple(changes))


def _changed(rng: Random, source: str, kinds: tuple[Change, ...], count: int, changes: list[str]) -> str:
    for change in rng.sample(kinds, count):
        text = change(rng, source)
        if text is not None and text != source:
            changes.append(change.__name__)
            source = text
    return source


def _planted(rng: Random, source: str) -> tuple[str, str]:
    """The name of an error, and the text with it."""
    for _ in range(_ATTEMPTS):
        name = rng.choice([*ERRORS])
        text = ERRORS[name](rng, source)
        if text is not None and text != source:
            return name, text
    return "", source
