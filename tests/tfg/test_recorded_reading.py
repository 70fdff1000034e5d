"""Texts of the TF Graph IR in many spellings and with many errors, against TensorFlow's recorded answers."""

from __future__ import annotations

import heald
import pytest
from harness.recorded_reading import recorded_texts
from heald.graphs.graph.graphdef import dumps
from heald.graphs.protobuf.descriptor_pool import message_class
from heald_mlir.lexer import MalformedText

TEXTS = recorded_texts()
FAMILIES = sorted({text.family for text in TEXTS})


def graph_def(raw):
    return message_class("GraphDef").FromString(raw)


def of_family(family, *, accepted):
    return [text for text in TEXTS if text.family == family and text.accepted == accepted]


@pytest.mark.parametrize("family", [family for family in FAMILIES if of_family(family, accepted=True)])
def test_a_text_that_tensorflow_accepts_is_its_graph(family):
    for text in of_family(family, accepted=True):
        graph = heald.tfg.loads(text.source)
        assert not text.graph or graph_def(dumps(graph)) == graph_def(text.graph), text.source


@pytest.mark.parametrize("family", [family for family in FAMILIES if of_family(family, accepted=False)])
def test_a_text_that_tensorflow_refuses_is_an_error_with_its_place(family):
    for text in of_family(family, accepted=False):
        with pytest.raises(MalformedText) as caught:
            heald.tfg.loads(text.source)
        location = caught.value.location
        assert location.line >= 1, text.source
        assert location.column >= 1, text.source
        if text.agreement:
            assert caught.value.message == text.words, text.source
        if text.agreement == "place" and text.line:
            assert (location.line, location.column) == (text.line, text.column), text.source


def test_a_third_of_the_texts_is_refused():
    assert len(TEXTS) > 500
    assert sum(not text.accepted for text in TEXTS) > 0.3 * len(TEXTS)
