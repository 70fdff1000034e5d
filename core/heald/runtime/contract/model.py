"""Models: the results of `heald.load` for files of every format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from ..values.tensor import TensorMetadata
from .placement import Placement


class LoadedSignature(Protocol):
    """One signature of a loaded file. `inputs` and `outputs` map names to metadata, in the order that calls use."""

    inputs: dict[str, TensorMetadata]
    outputs: dict[str, TensorMetadata]

    def __call__(self, *arrays: Any, **named: Any) -> Any:
        """Outputs for these inputs, in order or by name (or one dict by name): the array, or several in a dict.

        Raises InvalidArgument when inputs are missing, unknown or do not fit.
        """


class LoadedModel(LoadedSignature, Protocol):
    """A loaded file: its chosen signature, and in `signatures` all of the file, over the same state."""

    @property
    def signatures(self) -> Mapping[str, LoadedSignature]:
        """The signatures by name."""

    @property
    def session(self) -> Any:
        """The session of a graph, a `heald.Session`. Raises Unimplemented for a compiled model, which has none."""

    def placement(self) -> Placement:
        """The device of each node, and the reason."""
