"""Exported tokenizers run end to end and give the recorded answers."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import heald
import numpy as np
import pytest

DATA = Path(__file__).parent / "data"


@pytest.mark.parametrize("name", ["bert", "fast_bert", "sentencepiece"])
def test_an_exported_tokenizer_gives_the_recorded_answers(name: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(DATA / "saved_models.zip") as archive:
        archive.extractall(tmp_path)
    recorded = json.loads((tmp_path / "answers.json").read_text("utf-8"))
    texts = np.array([text.encode() for text in recorded["texts"]], object)
    answers = heald.load(tmp_path / name)(texts)
    for output, want in recorded["answers"][name].items():
        got = answers[output].tolist()
        assert (got if not isinstance(want, list) or not isinstance(want[0], str)
                else [text.decode("latin1") for text in got]) == want, output
