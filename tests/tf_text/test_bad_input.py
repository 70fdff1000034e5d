"""Bad input is a typed error, also where TensorFlow Text ends the process or never returns."""

from __future__ import annotations

from typing import Any

import heald
import numpy as np
import pytest
from heald.errors import FailedPrecondition, HealdError, InvalidArgument

from . import recordings


def text(*texts: bytes) -> np.ndarray[Any, Any]:
    return np.array(texts, object)


def execute(op: str, inputs: list[Any], **attrs: Any) -> list[Any]:
    results = heald.execute(op, *inputs, attrs=attrs)
    return [x.numpy() for x in (results if isinstance(results, list | tuple) else [results])]


@pytest.mark.parametrize("pattern", [b"(x*)", b"()", b"(a|)", b"(\\b)"])
def test_a_pattern_that_matches_the_empty_text_is_an_error(pattern: bytes) -> None:
    with pytest.raises(InvalidArgument, match="matches the empty text"):
        execute("RegexSplitWithOffsets", [text(b"ax bx"), np.array(pattern, object), np.array(b"", object)])


def test_a_group_without_part_in_the_match_is_an_error() -> None:
    with pytest.raises(InvalidArgument, match="first group .* has no part"):
        execute("RegexSplitWithOffsets", [text(b"a,b"), np.array(b"(;)|,", object), np.array(b"", object)])


@pytest.mark.parametrize(("op", "inputs", "attrs"), [
    ("WhitespaceTokenizeWithOffsets", [np.int32([97]), np.int64([0, 2])], {}),
    ("WhitespaceTokenizeWithOffsets", [np.int32([97]), np.int64([])], {}),
    ("UnicodeScriptTokenizeWithOffsets", [np.int32([97]), np.int64([1, 1])], {}),
    ("SplitMergeTokenizeWithOffsets", [text(b"a"), np.int32([0]), np.int32([0])], {}),
    ("RougeL", [np.int32([1]), np.int64([0, 2]), np.int32([1]), np.int64([0, 1]), np.float32(0.5)], {}),
    ("TFText>ByteSplitByOffsets", [text(b"a"), np.int32([0]), np.int32([]), np.int64([0, 1])], {}),
    ("MaxSpanningTree", [np.int32([3]), np.zeros((1, 2, 2), np.float32)], {}),
    ("TFText>RoundRobinTrim", [np.int32(3), text(b"a"), text(b"a"), np.int64([0, 1]), np.int64([0, 1, 1])], {"N": 2}),
    ("TFText>Utf8Binarize", [text(b"a")], {"word_length": -1, "bits_per_char": 3, "replacement_char": 1}),
    ("TFText>NgramsStringJoin", [text(b"a")],
     {"width": 0, "axis": -1, "string_separator": "", "RAGGED_RANK": 0}),
    ("NormalizeUTF8", [text(b"a")], {"normalization_form": "NFX"}),
])
def test_operands_that_do_not_fit_are_typed_errors(op: str, inputs: list[Any], attrs: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        execute(op, inputs, **attrs)


@pytest.mark.parametrize("scalar_op", [
    ("TFText>ByteSplitWithOffsets", [np.array(b"ab", object)]),
    ("TFText>WhitespaceTokenizeWithOffsetsV2", [np.array(b"ab", object), np.array(b"", object)]),
])
def test_a_scalar_that_crashes_tensorflow_text_is_an_error(scalar_op: tuple[str, list[Any]]) -> None:
    with pytest.raises(InvalidArgument, match="input 0 must have rank 1"):
        execute(*scalar_op)


@pytest.mark.parametrize("number", [-1, 99])
@pytest.mark.parametrize(("op", "model"), [
    ("TFText>FastWordpieceDetokenize", "wp_0_1"), ("TFText>PhraseDetokenize", "phrase")])
def test_an_id_beyond_the_vocabulary_is_an_error(op: str, model: str, number: int) -> None:
    with pytest.raises(InvalidArgument, match=f"id {number} is none of the vocabulary"):
        execute(op, [np.int32([number]), np.int64([0, 1]), np.frombuffer(recordings.models()[model], np.uint8)])


def test_a_model_without_a_vocabulary_does_not_detokenize() -> None:
    model = np.frombuffer(recordings.models()["phrase_nodet"], np.uint8)
    with pytest.raises(FailedPrecondition, match="support_detokenization"):
        execute("TFText>PhraseDetokenize", [np.int32([1]), np.int64([0, 1]), model])


@pytest.mark.parametrize("library", ["re2", "sentencepiece", "unicodedataplus"])
def test_a_missing_library_is_told_with_its_command(library: str) -> None:
    from heald_tf_text.kernels import regex_split, scripts, sentencepiece_ops

    (entry,) = [x for x in (regex_split.RE2, scripts.UNICODEDATAPLUS, sentencepiece_ops.SENTENCEPIECE)
                if x.module == library]
    absent = entry._replace(module="absent_library")
    assert absent.lack() == f"it needs {entry.name}: pip install {entry.requirement}"


def test_no_model_of_another_kind_is_taken_for_one_of_sentencepiece() -> None:
    from heald.api import Graph, Node, dtypes

    graph = Graph([Node("t", "HashTableV2", attrs={"key_dtype": dtypes.string, "value_dtype": dtypes.int64}),
                   Node("op", "SentencepieceVocabSizeOp", ["t"])])
    with heald.Session(graph) as session, pytest.raises(HealdError, match="not of a model of SentencePiece"):
        session.run("op")
