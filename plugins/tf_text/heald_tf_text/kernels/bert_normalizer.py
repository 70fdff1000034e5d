"""The kernel of BERT's fast normaliser: a trie from characters to replacements in a pool of text.

A value of the trie has the length of the replacement in bits 0 to 5 and its offset in the pool in the bits above. The
character 0 can be no key of the trie, so the model has its value apart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from heald.api import Bind, Kernels

from ..double_array import DoubleArray
from ..flat_model import root_table
from ..model_input import model_of
from ..rows import Array, splits, strings
from ..utf8 import characters

LENGTH_BITS = 6
OFFSET_MASK = 0xFFFFFF
IS_REPLACED = 1 << 30


class NormalizerModel(NamedTuple):
    trie: DoubleArray
    value_of_zero: int
    pool: bytes


def parse_model(model: Array) -> NormalizerModel:
    table = root_table(model)
    return NormalizerModel(DoubleArray(table.vector(1)), table.number(2), table.text(3))


def normalize(b: Bind) -> Callable[..., Any]:
    model_from = model_of(b, 1, parse_model)
    has_offsets = b.attrs["get_offsets"]

    def run(texts: Array, model_bytes: Array) -> tuple[Array, ...]:
        model = model_from(model_bytes)
        replacements: dict[bytes, bytes] = {}
        rows = [[(part, replacement_of(part, model, replacements)) for part in characters(text)] for text in texts]
        results = strings([b"".join(result for _, result in row) for row in rows])
        if not has_offsets:
            return results, np.empty(0, np.int64), np.zeros(len(texts) + 1, np.int64)
        offsets = [_offsets(row) for row in rows]
        return results, np.array([o for row in offsets for o in row], np.int64), splits(map(len, offsets))

    return run


def replacement_of(part: bytes, model: NormalizerModel, replacements: dict[bytes, bytes]) -> bytes:
    """The text in the place of a character; `replacements` keeps it."""
    if part not in replacements:
        replacements[part] = _replacement(part, model)
    return replacements[part]


def _replacement(part: bytes, model: NormalizerModel) -> bytes:
    if part == b"\0":
        value: int | None = model.value_of_zero
    else:
        value = next((value for end, value in model.trie.prefixes(part) if end == len(part)), None)
    if value is None or not value & IS_REPLACED:
        return part
    start = value >> LENGTH_BITS & OFFSET_MASK
    return model.pool[start : start + (value & (1 << LENGTH_BITS) - 1)]


def _offsets(row: list[tuple[bytes, bytes]]) -> list[int]:
    """The offset in the source of each byte of the result, and of both ends."""
    offsets: list[int] = []
    at = 0
    for part, result in row:
        if part == result:
            offsets += range(at, at + len(part))
        else:
            offsets += [at] * len(result)
        at += len(part)
    return [*offsets, at]


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("FastBertNormalize", allocates=True)(normalize)
