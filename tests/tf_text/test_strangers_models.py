"""Models are a stranger's bytes: a damaged one is a typed error or another answer, never a crash."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import heald
import numpy as np
import pytest
from heald.errors import HealdError, InvalidArgument
from heald_tf_text.double_array import DoubleArray
from heald_tf_text.kernels.sentencepiece_ops import Options, SentencePieceModel
from heald_tf_text.sentencepiece_model import check_charsmap, is_closed

from . import recordings

MUTANTS = 25  # of each op and model
WITH_MODELS = sorted({case["op"] for case in recordings.cases() if any(x[0] == "model" for x in case["in"])})


def mutants(model: bytes, seed: str) -> list[bytes]:
    """Copies of a model with changed bytes, mostly near its start, where its tables are; and shorter ones."""
    rng = random.Random(seed)  # noqa: S311 - test data
    made = [b"", model[:3], model[:40], model[: len(model) // 2]]
    for _ in range(MUTANTS):
        changed = bytearray(model)
        for _ in range(rng.randrange(1, 5)):
            changed[rng.randrange(min(len(model), rng.choice((64, 600, 1 << 20))))] = rng.choice((0, 1, 127, 255))
        made.append(bytes(changed))
    return made


def error_of(call: Callable[[], Any]) -> HealdError | None:
    """The typed error of a call, or None. An Internal error is a fault of the pack."""
    try:
        call()
    except HealdError as error:
        return error
    return None


@pytest.mark.parametrize("op", WITH_MODELS)
def test_a_damaged_flatbuffer_is_a_typed_error_or_another_answer(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = next(case for case in recordings.cases() if case["op"] == op and "out" in case)
    name = next(x[2] for x in case["in"] if x[0] == "model")
    model = recordings.models()[name]
    outcomes = []
    for mutant in mutants(model, op):
        monkeypatch.setitem(recordings.models(), name, mutant)
        outcomes.append(error_of(partial(recordings.run_case, case)))
    assert not [error for error in outcomes if isinstance(error, heald.errors.Internal)]
    assert any(outcomes)


def test_a_damaged_sentencepiece_model_is_a_typed_error_or_loads() -> None:
    model = recordings.models()["sp_byte"]
    options = Options(0, 1.0, add_bos=True, add_eos=True, reverse=False)

    def encode(mutant: bytes) -> None:
        list(SentencePieceModel(mutant).encodings(b"hello", options, returns_nbest=False))

    outcomes = [error_of(partial(encode, mutant)) for mutant in mutants(model, "sentencepiece")]
    assert not [error for error in outcomes if isinstance(error, heald.errors.Internal)]
    assert any(outcomes)


@pytest.mark.parametrize(("bytes_of_model", "message"), [
    (b"", "0 unknown pieces"), (b"abc", "damaged"), (b"\x0a\x05\x0a\x01a\x18\x02" * 2, "damaged|unknown pieces"),
    (b"\x0a\x05\x0a\x01a\x18\x02\x12\x02\x18\x09", "the type 9; known: unigram"),
])
def test_bytes_that_are_no_model_say_so(bytes_of_model: bytes, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        SentencePieceModel(bytes_of_model)


def test_a_request_that_the_library_refuses_is_a_typed_error() -> None:
    model = SentencePieceModel(recordings.models()["sp_byte"])
    options = Options(100_000, 1.0, add_bos=False, add_eos=False, reverse=False)
    with pytest.raises(InvalidArgument, match="SentencePiece refuses to nbest encode"):
        list(model.encodings(b"hello", options, returns_nbest=True))


def test_a_map_of_characters_that_leads_out_of_its_trie_is_refused() -> None:
    size = (1024).to_bytes(4, "little")
    check_charsmap(size + bytes(1024) + b"a\0")
    for units, texts in ((b"\xff\xff\xff\x7f" + bytes(1020), b"a\0"), (bytes(1024), b"a"), (bytes(100), b"a\0")):
        with pytest.raises(InvalidArgument, match="map of characters"):
            check_charsmap(size + units + texts)


def test_a_value_beyond_the_texts_is_refused() -> None:
    units = np.zeros(256, np.int64)
    units[0] = 1 << 8  # a leaf: its value is unit 0 itself, 256
    assert not is_closed(units, 100)
    assert is_closed(units, 257)


def test_a_walk_beyond_the_trie_finds_nothing() -> None:
    trie: Any = DoubleArray(np.array([0x7FFFFFFF, 5], np.uint32))
    assert [trie.child(0, 97), trie.longest(b"abc"), trie.value(1), trie.longest(b"a", 0, 77)] == [None] * 4
    assert DoubleArray(np.empty(0, np.uint32)).longest(b"abc") is None
