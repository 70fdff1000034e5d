"""TensorFlow's recorded answers to texts of the TF Graph IR: `reading.jsonl.xz`, one JSON object a line."""

from __future__ import annotations

import base64
import json
import lzma
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).parents[1] / "data/tfg/reading.jsonl.xz"


class RecordedText(NamedTuple):
    """A text with TensorFlow's answer. `graph`: the bytes of the GraphDef of an accepted text without regions.

    `agreement`: "words" or "place" where heald's error agreed with `words`, or with `line` and `column` as well.
    """

    source: str
    error: str
    changes: Sequence[str]
    accepted: bool
    graph: bytes = b""
    words: str = ""
    line: int = 0
    column: int = 0
    agreement: str = ""

    @property
    def family(self) -> str:
        return self.error or ("valid: " + (self.changes[0] if self.changes else "as printed"))


@cache
def recorded_texts() -> Sequence[RecordedText]:
    with lzma.open(FILE, "rt", encoding="ascii") as lines:
        return [RecordedText(**fields | {"graph": base64.b64decode(fields["graph"])})
                for fields in map(json.loads, lines)]


def write_recorded_texts(texts: Iterable[RecordedText]) -> None:
    lines = [json.dumps(text._asdict() | {"graph": base64.b64encode(text.graph).decode()}) for text in texts]
    FILE.write_bytes(lzma.compress("".join(f"{line}\n" for line in lines).encode("ascii"), preset=9))
