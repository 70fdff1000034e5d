"""Vocabularies: heald reads and refuses the same files as TensorFlow 2.21."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from heald.errors import InvalidArgument
from heald.runtime.values import dtypes
from heald_saved_model.vocabulary import LINE_NUMBER, WHOLE_LINE, read

S, I, L, F, D = dtypes.string, dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64  # noqa: E741
N, W = LINE_NUMBER, WHOLE_LINE


def attrs(key: int, value: int, **others: Any) -> dict[str, Any]:
    return {"key_index": key, "value_index": value, "vocab_size": -1, "delimiter": "\t", "offset": 0} | others


@pytest.mark.parametrize(("text", "types", "columns", "others", "want"), [
    (b"a\rb\r\nc\r\n", (S, L), (W, N), {}, {b"a\rb": 0, b"c": 1}),
    (b"a\nb", (S, L), (W, N), {}, {b"a": 0, b"b": 1}),
    (b"a\nb\nc\n", (S, L), (W, N), {"vocab_size": 2}, {b"a": 0, b"b": 1}),
    (b"a\nb\n\n", (S, L), (W, N), {"vocab_size": 2}, {b"a": 0, b"b": 1}),
    (b"a\nb\nc\n", (S, L), (W, N), {"offset": 10}, {b"a": 10, b"b": 11, b"c": 12}),
    (b"12\n-7\n", (L, S), (N, W), {}, {0: b"12", 1: b"-7"}),
    (b"12\n-7\n", (L, L), (W, N), {}, {12: 0, -7: 1}),
    (b"5\n6\n", (S, I), (W, W), {}, {b"5": 5, b"6": 6}),
    (b"a\t1\t9\nb\t 2 \nc\t+3", (S, L), (0, 1), {}, {b"a": 1, b"b": 2, b"c": 3}),
    (b"a\tb\n", (S, S), (1, 0), {}, {b"b": b"a"}),
    (b"a  b\n", (S, S), (0, 1), {"delimiter": " "}, {b"a": b""}),
    (b"a\t1.5\nb\t-inf\nc\t 1e3\nd\t1e40\n", (S, F), (0, 1), {}, {b"a": 1.5, b"b": -np.inf, b"c": 1e3, b"d": np.inf}),
    (b"\xff\xfe\na\0b\n", (S, L), (W, N), {}, {b"\xff\xfe": 0, b"a\0b": 1}),
])
def test_lines_give_keys_and_values(text: bytes, types: Any, columns: Any, others: Any, want: dict[Any, Any]) -> None:
    keys, values = read(text, attrs(*columns, **others), *types)
    assert [keys.dtype, values.dtype] == [t.numpy for t in types]
    assert list(zip(keys.tolist(), values.tolist(), strict=True)) == list(want.items())


@pytest.mark.parametrize(("text", "types", "columns", "others", "match"), [
    (b"a\n\nb\n", (S, L), (W, N), {}, "line 1 of the vocabulary is empty"),
    (b"a\nb\n\n", (S, L), (W, N), {}, "line 2 of the vocabulary is empty"),
    (b"", (S, L), (W, N), {}, "is empty"),
    (b"a\n", (S, L), (W, N), {"vocab_size": 0}, "is empty"),
    (b"a\nb\nc\n", (S, L), (W, N), {"vocab_size": 5}, "has 3 lines, not the 5"),
    (b"a\t1\nb\n", (S, L), (0, 1), {}, "line 1 of the vocabulary has 1 fields, 2 are needed"),
    (b"a\t0x1F\n", (S, L), (0, 1), {}, "'0x1F' in line 0 of the vocabulary is no int64"),
    (b"a\t1_0\n", (S, L), (0, 1), {}, "no int64"),
    (b"a\t1_0.5\n", (S, D), (0, 1), {}, "no float64"),
    (b"a\t\n", (S, D), (0, 1), {}, "no float64"),
    (b"a\t99999999999\n", (S, I), (0, 1), {}, "no int32"),
    (b"12\n", (L, S), (W, N), {}, "are int64, not string"),
    (b"a\n", (I, S), (N, W), {}, "are int64, not int32"),
    (b"5\n", (S, F), (W, W), {}, "lines are not read as float32"),
    (b"a\ttrue\n", (S, dtypes.bool_), (0, 1), {}, "fields are not read as bool"),
    (b"a::b\n", (S, S), (0, 1), {"delimiter": "::"}, "must be one character"),
])
def test_a_malformed_vocabulary_is_an_error_with_its_line(
    text: bytes, types: Any, columns: Any, others: Any, match: str
) -> None:
    with pytest.raises(InvalidArgument, match=match):
        read(text, attrs(*columns, **others), *types)
