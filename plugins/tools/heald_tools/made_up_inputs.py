"""Inputs without a value: arrays that a model runs on, found by its first run.

Numbers are random, and unknown lengths are 1. Strings have several forms, which the model is run on in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

from heald.api import dtypes
from heald.api.cli import inputs_by_name, parse_input
from heald.errors import DataLoss, HealdError, InvalidArgument

from .inputs import made_up_array, read
from .made_up_strings import string_forms
from .step import check_known

if TYPE_CHECKING:
    from .step import AnyModel


class FirstRun(NamedTuple):
    """The first run of a model: the feeds, the results in the order of the outputs, and the seconds."""

    feeds: dict[str, Any]
    results: Sequence[Any]
    seconds: float


def candidate_feeds(input_texts: Sequence[str], model: AnyModel, batch: int = 1) -> Iterator[dict[str, Any]]:
    """Yield arrays for all inputs of the model, those of --input as given. Strings without a value have another form
    each time."""
    from heald.runtime.service import convert_feed

    texts = inputs_by_name([parse_input(text) for text in input_texts], tuple(model.inputs))
    check_known(texts, model)
    feeds = {name: convert_feed(read(texts[name], meta, name), meta, name) if name in texts
             else made_up_array(meta, name, batch, is_text=True) for name, meta in model.inputs.items()}
    strings = [feeds[name] for name, meta in model.inputs.items() if name not in texts and meta.dtype is dtypes.string]
    for form in string_forms(getattr(model, "graph", None)) if strings else [b""]:
        for array in strings:
            array[...] = form
        yield feeds


def run_first(step: Callable[..., Any], candidates: Iterable[dict[str, Any]], **limits: Any) -> FirstRun:
    """Run the model once, on the first feeds that it runs on.

    Raises the error of the first feeds when it runs on none.
    """
    refusal: HealdError | None = None
    for feeds in candidates:
        begun = perf_counter()
        try:
            results = step(*feeds.values(), **limits)
        except (InvalidArgument, DataLoss) as error:
            refusal = refusal or error
        else:
            return FirstRun(feeds, results, perf_counter() - begun)
    assert refusal is not None
    raise refusal
