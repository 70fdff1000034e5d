"""Each op of the pack gives the recorded answers of tensorflow-text."""

from __future__ import annotations

from collections import Counter

import heald
import pytest
from heald.runtime.support.install import plugin_of_op
from heald_tf_ops.plugin import OPS as TENSORFLOW_OPS
from heald_tf_text.kernels import FAMILIES
from heald_tf_text.metadata import rule_of
from heald_tf_text.plugin import OPS

from . import recordings

SERVED = sorted(op for ops in FAMILIES.values() for op in ops)
WITHOUT_RECORDING = {
    "SentencepieceOp",  # its handle is an input of the recorded ops
    "WordpieceTokenizeWithOffsets",  # a table of another plugin is part of it: test_wordpiece
}


@pytest.mark.parametrize("as_constants", [False, True])
@pytest.mark.parametrize("op", sorted({case["op"] for case in recordings.cases()}))
def test_an_op_gives_the_recorded_answers(op: str, as_constants: bool) -> None:
    for case in (case for case in recordings.cases() if case["op"] == op):
        if "error" in case:
            with pytest.raises(heald.errors.HealdError):
                recordings.run_case(case, as_constants=as_constants)
            continue
        got = recordings.run_case(case, as_constants=as_constants)
        wanted = [recordings.array_of(recorded) for recorded in case["out"]]
        assert all(recordings.is_alike(g, w) for g, w in zip(got, wanted, strict=True)), (case["attrs"], case["in"])


def test_every_served_op_has_recordings() -> None:
    assert set(SERVED) == {case["op"] for case in recordings.cases()} | WITHOUT_RECORDING


def test_the_table_has_every_served_op_and_a_metadata_function_for_each_row() -> None:
    assert set(SERVED) <= set(OPS)
    assert [op for op in OPS if rule_of(op) is None] == []
    assert len(OPS) == 38


def test_the_table_of_distributions_tells_who_brings_these_ops_and_no_others() -> None:
    assert {plugin_of_op(op) for op in OPS} == {"tf_text"}
    assert [op for op in TENSORFLOW_OPS if plugin_of_op(op) == "tf_text"] == []


def test_both_recorded_versions_agree_but_for_known_cases() -> None:
    differences = Counter(case["op"] for case in recordings.cases() if "2.15.0" in case)
    assert set(differences) <= {"FindSourceOffsets", "NormalizeUTF8", "NormalizeUTF8WithOffsetsMap"}
