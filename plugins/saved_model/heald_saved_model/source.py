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
        self._chosen_name = SERVING if options.signature is None else options.signature
        saved.signature(self._chosen_name)

    def describe(self) -> Description:
        inputs, outputs = ({name: info.meta for name, info in side.items()}
                           for side in self.saved.signature(self._chosen_name)[1:])
        return Description("SavedModel", inputs, outputs, self.saved.signatures, self._chosen_name)

    @property
    def signatures(self) -> Mapping[str, SignatureDef | HealdError]:
        built, errors = self._built
        return {name: errors[name] if name in errors else built.signatures[name] for name in self.saved.signatures}

    def graph(self) -> Graph:
        return self._built[0].graph

    def initial_state(self) -> tuple[Initializer, ...]:
        return self._built[0].initial_state

    @cached_property
    def _built(self) -> tuple[SignatureGraph, dict[str, HealdError]]:
        """The graph of all signatures, and the error of each signature that the graph lacks, by name.

        Raises the error of the chosen signature.
        """
        errors = {name: error for name in self.saved.signatures
                  if (error := _error(self.saved, name)) is not None}
        if self._chosen_name in errors:
            raise errors[self._chosen_name]
        names = [name for name in self.saved.signatures if name not in errors]
        try:
            return self._graph(names), errors
        except HealdError as error:
            alone = self._graph([self._chosen_name])  # errors of other signatures leave the chosen one usable
            errors |= {name: _error_of_other_signature(name, self._chosen_name, error)
                       for name in names if name != self._chosen_name}
            return alone, errors

    def _graph(self, names: list[str]) -> SignatureGraph:
        return signature_graph(self.saved, names, self._options.ops, self._options.outputs or ())


def _error(saved: SavedModel, name: str) -> HealdError | None:
    try:
        check_runnable(saved, name)
    except HealdError as error:
        return error
    return None


def _error_of_other_signature(name: str, chosen_name: str, error: HealdError) -> HealdError:
    return FailedPrecondition(f"signature '{name}' could not be loaded together with '{chosen_name}': {error}",
                              hint=f"load it by itself: heald.load(path, signature={name!r})")
