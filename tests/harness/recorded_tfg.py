"""TensorFlow's recorded results on graphs: archives in tests/data/tfg, which tests/workers makes."""

from __future__ import annotations

import tarfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

DATA = Path(__file__).parents[1] / "data"


@cache
def recorded_files(archive: str) -> Mapping[str, bytes]:
    """The files of `random` (texts and exports of random graphs), `passes`, `regions` or `shapes`."""
    with tarfile.open(DATA / f"tfg/{archive}.tar.xz") as opened:
        return {member.name: opened.extractfile(member).read() for member in opened}  # type: ignore[union-attr]
