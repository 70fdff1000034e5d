"""SavedModelSource: one graph of a SavedModel as core loads it, with all signatures that can run together."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from heald.api import Description, Graph, Initializer, LoadOptions, SignatureDef
from heald.errors import FailedPrecondition, HealdError

from .saved_model import SavedModel
from .signature_graph import SignatureGraph, check_runnable, signature_graph

SERVING = "serving_default"  # the default signature


class SavedModelSource:
    """`signatures` share one graph. The first use of either builds the graph and reads its frozen variables."""

    def __init__(self, saved: SavedModel, options: LoadOptions) -> None:
        """Raises NotFound for a missing signature."""
        self.saved, self._options = saved, options
        self._chosen = SERVING if options.signature is None else options.signature
        saved.signature(self._chosen)

    def describe(self) -> Description:
        inputs, outputs = ({name: info.meta for name, info in side.items()}
                           for side in self.saved.signature(self._chosen)[1:])
        return Description("SavedModel", inputs, outputs, self.saved.signatures, self._chosen)

    @property
    def signatures(self) -> Mapping[str, SignatureDef | HealdError]:
        made, errors = self._made
        return {name: errors[name] if name in errors else made.signatures[name] for name in self.saved.signatures}

    def graph(self) -> Graph:
        return self._made[0].graph

    def initial_state(self) -> tuple[Initializer, ...]:
        return self._made[0].initial_state

    @cached_property
    def _made(self) -> tuple[SignatureGraph, dict[str, HealdError]]:
        """The graph of all signatures, and the error of each signature that the graph lacks, by name.

        Raises the error of the chosen signature.
        """
        errors = {name: error for name in self.saved.signatures
                  if (error := _error(self.saved, name)) is not None}
        if self._chosen in errors:
            raise errors[self._chosen]
        names = [name for name in self.saved.signatures if name not in errors]
        try:
            return self._graph(names), errors
        except HealdError as error:
            alone = self._graph([self._chosen])  # errors of other signatures leave the chosen one usable
            errors |= {name: _apart(name, self._chosen, error) for name in names if name != self._chosen}
            return alone, errors

    def _graph(self, names: list[str]) -> SignatureGraph:
        return signature_graph(self.saved, names, self._options.ops, self._options.outputs or ())


def _error(saved: SavedModel, name: str) -> HealdError | None:
    try:
        check_runnable(saved, name)
    except HealdError as error:
        return error
    return None


def _apart(name: str, chosen: str, error: HealdError) -> HealdError:
    return FailedPrecondition(f"signature '{name}' could not be loaded together with '{chosen}': {error}",
                              hint=f"load it by itself: heald.load(path, signature={name!r})")
