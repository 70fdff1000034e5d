"""A loader of a third party: a file "scale 3" is a model that multiplies by 3.

    heald run model.scale --plugin examples/scale_loader.py --input x='[1, 2]'
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from heald.api import (
    Description,
    Graph,
    Initializer,
    LoaderRegistrar,
    LoadOptions,
    Node,
    SignatureDef,
    TensorMetadata,
    constant,
    dtypes,
    errors,
    hookimpl,
)

HEALD_API = (1, 4)
FLOAT = dtypes.float32
VECTOR = TensorMetadata(FLOAT, (None,))
FIRST_WORD = b"scale "


@hookimpl
def heald_loaders(registry: LoaderRegistrar) -> None:
    registry.add("scale", ScaleLoader())


class ScaleSource:
    """One opened file. The number is read with the graph, and not before."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.signatures: dict[str, SignatureDef | errors.HealdError] = {}

    def describe(self) -> Description:
        return Description("scale", {"x": VECTOR}, {"y": VECTOR})

    def graph(self) -> Graph:
        try:
            number = np.float32(self._path.read_text("utf-8").split()[1])
        except (ValueError, IndexError) as error:  # a text that is not UTF-8 is a ValueError
            raise errors.DataLoss(f"'{self._path.name}' has no number after its first word: {error}") from None
        return Graph([Node("x", "Placeholder", attrs={"dtype": FLOAT}), constant("number", number),
                      Node("y", "Mul", ["x", "number"], attrs={"T": FLOAT})])

    def initial_state(self) -> Sequence[Initializer]:
        return ()


class ScaleLoader:
    def recognise(self, _path: Path, head: bytes) -> bool:
        return head.startswith(FIRST_WORD)

    def open(self, path: Path, _options: LoadOptions) -> ScaleSource:
        return ScaleSource(path)
