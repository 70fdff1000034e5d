"""The legacy wordpiece tokenizer looks its pieces up in a table of another plugin."""

from __future__ import annotations

from typing import Any

import heald
import numpy as np
import pytest
from heald.api import Graph, Node, dtypes

VOCABULARY = [b"they", b"##'", b"##re", b"the", b"##s", b"want", b"##ed"]
ATTRS = {"suffix_indicator": "##", "max_bytes_per_word": 100, "use_unknown_token": True, "unknown_token": "[UNK]"}


def pieces(words: list[bytes], keys: Any = VOCABULARY, **attrs: Any) -> list[list[Any]]:
    """The outputs of the op over a table of these keys."""
    kind = dtypes.string if isinstance(keys[0], bytes) else dtypes.int64
    content = np.array(keys, object if kind is dtypes.string else np.int64)
    graph = Graph([
        Node("table", "HashTableV2", attrs={"key_dtype": kind, "value_dtype": dtypes.int64}),
        Node("keys", "Const", attrs={"dtype": kind, "value": content}),
        Node("values", "Const", attrs={"dtype": dtypes.int64, "value": np.arange(len(keys))}),
        Node("fill", "InitializeTableV2", ["table", "keys", "values"], attrs={"Tkey": kind, "Tval": dtypes.int64}),
        Node("words", "Placeholder", attrs={"dtype": dtypes.string}),
        Node("op", "WordpieceTokenizeWithOffsets", ["words", "table"], attrs=ATTRS | attrs)])
    with heald.Session(graph) as session:
        session.run([], targets=["fill"])
        found = session.run([f"op:{i}" for i in range(4)], {"words": np.array(words, object)})
        return [x.tolist() for x in found]


@pytest.mark.parametrize(("words", "attrs", "expected"), [
    ([b"they're"], {}, [[b"they", b"##'", b"##re"], [3], [0, 4, 5], [4, 5, 7]]),
    ([b"thexs", b"wanted"], {}, [[b"[UNK]", b"want", b"##ed"], [1, 2], [0, 0, 4], [5, 4, 6]]),
    ([b"thexs"], {"use_unknown_token": False}, [[b"thexs"], [1], [0], [5]]),
    ([b"thexs"], {"split_unknown_characters": True}, [[b"the", b"##[UNK]", b"##s"], [3], [0, 3, 4], [3, 4, 5]]),
    ([b"wanted"], {"max_bytes_per_word": 5}, [[b"[UNK]"], [1], [0], [5]]),
    ([b"the", b"the"], {"output_row_partition_type": "row_splits"}, [[b"the"] * 2, [0, 1, 2], [0, 0], [3, 3]]),
    ([], {}, [[], [], [], []]),
])
def test_a_word_is_cut_into_its_longest_known_pieces(words: Any, attrs: Any, expected: Any) -> None:
    assert pieces(words, **attrs) == expected


def test_a_vocabulary_of_other_types_is_an_error() -> None:
    with pytest.raises(heald.errors.InvalidArgument, match="the vocabulary maps string to int64, given int64"):
        pieces([b"a"], keys=[1, 2])
