"""Texts and graphs that TensorFlow 2.21 made: `graphs/N.tfg` its import of tests/data/graphs/N.pb, `regions/N.tfg` the
same after its pass functional-to-region, `probes/` graphs with its import and its export."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

DATA = Path(__file__).parents[1] / "data"
GRAPHS = sorted(path.stem for path in (DATA / "graphs").glob("*.pb"))
PROBES = ("argument_names", "attributes", "constants", "declared_attributes", "functions", "generic", "types")


def recorded_text(name: str) -> str:
    with ZipFile(DATA / "tfg" / "recorded.zip") as archive:
        return archive.read(name).decode("utf-8", "surrogateescape")
