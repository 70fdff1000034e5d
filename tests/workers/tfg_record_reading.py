"""Records TensorFlow's answers to random texts of the TF Graph IR for `tests/tfg/test_recorded_reading.py`.

Each planted error and each change of spelling gets a few small texts. Allowed differences are left out. Texts on which
heald does not agree with TensorFlow yet are left out, too, and counted by family.
"""

from __future__ import annotations

from collections import Counter
from itertools import count

from builders.random_tfg_texts import RandomText, random_text
from harness.recorded_reading import FILE, RecordedText, write_recorded_texts
from tqdm import tqdm
from workers.tfg_reading import ALLOWED, Answer, Oracle, kind_of_difference, read_with_heald

RECORDED_TEXTS = 600
LARGEST_SHARE_OF_FAMILY = 9
LARGEST_TEXT_CHARACTERS = 1_800
FIRST_SEED = 1_000_000  # a comparison begins elsewhere
LARGEST_NUMBER_OF_SEEDS = 20_000
_AGREEING = {"equal": "place", "other place": "words", "other words": ""}


def record_reading(oracle: Oracle) -> None:
    """Write the file, and print the families whose texts were left out."""
    families: Counter[str] = Counter()
    disagreements: Counter[str] = Counter()
    texts: list[RecordedText] = []
    for seed in tqdm(count(FIRST_SEED), total=LARGEST_NUMBER_OF_SEEDS):
        if len(texts) == RECORDED_TEXTS or seed == FIRST_SEED + LARGEST_NUMBER_OF_SEEDS:
            break
        text = random_text(seed)
        family = RecordedText(text.source, text.error, text.changes, False).family
        if families[family] == LARGEST_SHARE_OF_FAMILY or len(text.source) > LARGEST_TEXT_CHARACTERS:
            continue
        theirs = oracle.read(text.source)
        if theirs is None:
            continue
        kind = kind_of_difference(text.source, theirs, ours := read_with_heald(text.source))
        if kind.startswith(ALLOWED):
            continue
        if theirs.accepted == ours.accepted and (kind in _AGREEING):
            families[family] += 1
            texts.append(_recorded(text, theirs, _AGREEING[kind]))
        else:
            disagreements[family] += 1
    write_recorded_texts(texts)
    accepted = sum(text.accepted for text in texts)
    print(f"{FILE}: {len(texts)} texts of {len(families)} families, {accepted} accepted, "
          f"{FILE.stat().st_size:,} bytes")
    print(f"left out: {disagreements.total()} texts; {disagreements.most_common()}")


def _recorded(text: RandomText, theirs: Answer, agreement: str) -> RecordedText:
    graph = theirs.graph.SerializeToString(deterministic=True) if theirs.graph is not None else b""
    return RecordedText(text.source, text.error, text.changes, theirs.accepted, graph, theirs.words, *theirs.place,
                        "" if theirs.accepted else agreement)
