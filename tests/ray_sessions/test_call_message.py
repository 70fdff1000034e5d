"""Call messages return their arguments, carry small buffers in one value, and refuse damaged bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from heald.errors import DataLoss
from heald_ray.call_message import (
    LARGEST_PIECES_BYTES,
    LARGEST_SMALL_BYTES,
    PIECE_BYTES,
    pack_call,
    unpack_call,
)


def comparable(value: Any) -> Any:
    """Return the value with lists and bytes in the place of tuples and arrays."""
    if isinstance(value, np.ndarray):
        return value.tobytes()
    if isinstance(value, list | tuple):
        return [comparable(element) for element in value]
    return {key: comparable(element) for key, element in value.items()} if isinstance(value, dict) else value


def array_of(size: int) -> np.ndarray:
    return (np.arange(size) % 251).astype(np.uint8)


SMALL, MIDDLE = array_of(LARGEST_SMALL_BYTES), array_of(2 * PIECE_BYTES + 1)
LARGE = array_of(LARGEST_PIECES_BYTES + 1)


@pytest.mark.parametrize(("arguments", "values"), [
    ([], 1), (None, 1), (["run", 3, True, None, 1.5, "ä\n"], 1), ([b"", b"ab", b"\0\xff"], 1),
    (["deliver", 7, ["a;b", "c"], [b"{}", np.uint8([1, 2, 3]), np.uint8([])]], 1),
    ([True, {"CPU:0": b"graph", "no buffer": ["device", "", None]}], 1),
    (("a", (1, (b"x", "y"))), 1), ([SMALL, SMALL], 1), ([LARGE], 2), ([MIDDLE], 4),
    ([MIDDLE[:2 * PIECE_BYTES], b"x"], 3), ([array_of(LARGEST_SMALL_BYTES + 1)], 2), ([LARGE[:-1], MIDDLE], 1 + 17 + 1),
    ([b"x", LARGE, b"y", [LARGE.tobytes(), b"z", MIDDLE], MIDDLE.tobytes()], 9),
])
def test_a_call_returns_its_arguments(arguments, values):
    message = pack_call(arguments)
    assert len(message) == values
    assert all(type(value) is bytes or value is LARGE or value is MIDDLE for value in message)
    assert comparable(unpack_call(message)) == comparable(arguments)
    assert comparable(unpack_call(pack_call(arguments, pieces=False))) == comparable(arguments)


def test_a_result_has_no_pieces():
    assert [len(part) for part in pack_call([MIDDLE, MIDDLE], pieces=False)[1:]] == [len(MIDDLE)] * 2


def test_a_large_buffer_is_neither_copied_nor_changed():
    message = pack_call([b"x", LARGE])
    assert message[1] is LARGE
    assert unpack_call(message)[1] is LARGE


@pytest.mark.parametrize("count", [4, 5000, 100_000])
def test_a_copied_buffer_has_aligned_memory(count):
    array = np.frombuffer(unpack_call(pack_call([b"x", np.arange(float(count)).view(np.uint8)]))[1], np.float64)
    assert array.flags.aligned
    assert array.tolist() == [*range(count)]


@pytest.mark.parametrize("damaged", [
    [], [b""], [b"\1"], [b"\2\0\0\0{}"], [b"\4\0\0\0[][]x"], [b"\5\0\0\0[3][]"], [b"\x08\0\0\0[null][]"],
    [b"\x05\0\0\0[][1"], [b"\x11\0\0\0" + b'[]{"\\u0000buffer":0}'], [b"\2\0\0\0\xff\xff"], [None], ["text"], [3],
    [pack_call([b"x" * 9])[0][:-1]], pack_call([MIDDLE])[:-1], [*pack_call([MIDDLE]), b"x"], pack_call([LARGE])[:1],
    [pack_call([MIDDLE])[0], b"x", b"y", b"z"], [b"\6\0\0\0[-1][]"], [b"\x07\0\0\0[[-1]][]"], [b"\6\0\0\0[[]][]"],
])
def test_damaged_bytes_are_data_loss(damaged):
    with pytest.raises(DataLoss, match="a call between processes is damaged"):
        unpack_call(damaged)


@pytest.mark.parametrize("value", [object(), {1, 2}, 1j])
def test_a_call_of_another_type_is_a_mistake_of_heald(value):
    with pytest.raises(TypeError):
        pack_call([value])
