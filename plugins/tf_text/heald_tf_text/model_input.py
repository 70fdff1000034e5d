"""Models that are inputs of ops: parsed once for a constant, and once for each other model that a run brings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import numpy as np
from heald.api import Bind, errors

from .rows import Array, rows, strings


class Vocabulary(Protocol):
    """A model. `detokenizes`: its maker asked for the way back."""

    @property
    def detokenizes(self) -> bool: ...


T = TypeVar("T")
V = TypeVar("V", bound=Vocabulary)


def model_of(b: Bind, index: int, parse: Callable[[Any], T]) -> Callable[[Any], T]:
    """Return the function from the input's array to the parsed model. The last model is kept, with its bytes."""
    constant = b.inputs[index].value
    if constant is not None:
        model = b.prepared("model", lambda: parse(constant))
        return lambda _: model
    last: list[tuple[Any, T]] = []

    def parse_once(array: Any) -> T:
        if not last or not np.array_equal(last[-1][0], array):
            last[:] = [(array.copy(), parse(array))]
        return last[-1][1]

    return parse_once


def detokenizer(parse: Callable[[Any], V], text_of: Callable[[list[int], V], bytes]) -> Callable[[Bind], Any]:
    """Return the kernel from rows of ids to a text for each row. `text_of`: the text of a row's ids."""

    def detokenize(b: Bind) -> Callable[..., Any]:
        model_from = model_of(b, 2, parse)

        def run(ids: Array, row_splits: Array, model_bytes: Array) -> Array:
            model = model_from(model_bytes)
            if not model.detokenizes:
                raise errors.FailedPrecondition("Detokenize function is only enabled when support_detokenization is "
                                                "true in the config flatbuffer")
            return strings([text_of(row, model) for row in rows(ids, row_splits)])

        return run

    return detokenize
