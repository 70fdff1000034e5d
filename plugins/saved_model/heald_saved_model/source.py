"""SavedModelSource: one graph of a SavedModel as core loads it, with all signatures that can run together."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from heald.api import Description, Graph, Initializer, LoadOptions, SignatureDef
from heald.errors import FailedPrecondition, HealdError

from .object_functions import CALL, is_further_trace
from .saved_model import SavedModel
from .signature_graph import SignatureGraph, check_runnable, signature_graph

SERVING = "serving_default"  # the default signature; CALL comes next


class SavedModelSource:
    """`signatures` share one graph. The first use of either builds the graph and reads its frozen variables.

    A model that declares no signatures has the functions of its object graph in their place. A further trace of a
    function, which may be for training, is left out unless it is chosen.
    """

    def __init__(self, saved: SavedModel, options: LoadOptions) -> None:
        """Raises NotFound for a missing signature, and the error of a chosen function that cannot be called."""
        self.saved, self._options = saved, options
        self._declared = [*saved.signatures]
        if options.signature is not None and options.signature not in saved.signatures:
            saved.add_function_signatures([name for name in saved.functions if name == options.signature])
        elif not saved.signatures:
            saved.add_function_signatures(saved.functions)
        self._chosen_name = _chosen_name(saved) if options.signature is None else options.signature
        if self._chosen_name in saved.function_errors:
            raise saved.function_errors[self._chosen_name]
        if self._chosen_name is not None:
            saved.signature(self._chosen_name)

    def describe(self) -> Description:
        if self._chosen_name is None:
            return Description("SavedModel", signatures=self.saved.signatures)
        chosen = self.saved.signature(self._chosen_name)
        inputs, outputs = ({name: info.meta for name, info in side.items()} for side in (chosen.inputs, chosen.outputs))
        return Description("SavedModel", inputs, outputs, self.saved.signatures, self._chosen_name)

    @property
    def signatures(self) -> Mapping[str, SignatureDef | HealdError]:
        built, errors = self._built
        return {name: errors[name] if name in errors else built.signatures[name] for name in self._names}

    def graph(self) -> Graph:
        return self._built[0].graph

    def initial_state(self) -> tuple[Initializer, ...]:
        return self._built[0].initial_state

    @property
    def readable_folders(self) -> tuple[Path, ...]:
        """The model's own assets."""
        assets = self.saved.folder / "assets"
        return (assets,) if assets.is_dir() else ()

    @property
    def _names(self) -> list[str]:
        """The signatures that share the graph."""
        return [name for name in self.saved.signatures if name == self._chosen_name or not is_further_trace(name)
                or name in self._declared]

    @cached_property
    def _built(self) -> tuple[SignatureGraph, dict[str, HealdError]]:
        """The graph of all signatures, and the error of each signature that the graph lacks, by name.

        Raises the error of the chosen signature.
        """
        errors = {name: error for name in self._names if (error := _error(self.saved, name)) is not None}
        if self._chosen_name in errors:
            raise errors[self._chosen_name]
        names = [name for name in self._names if name not in errors]
        try:
            return self._graph(names), errors
        except HealdError as error:
            if self._chosen_name is None:
                raise
            alone = self._graph([self._chosen_name])  # errors of other signatures leave the chosen one usable
            errors |= {name: _error_of_other_signature(name, self._chosen_name, error)
                       for name in names if name != self._chosen_name}
            return alone, errors

    def _graph(self, names: list[str]) -> SignatureGraph:
        return signature_graph(self.saved, names, self._options.ops, self._options.outputs or ())


def _chosen_name(saved: SavedModel) -> str | None:
    """Return the signature of a caller that names none, or None where several may be meant."""
    if SERVING in saved.signatures:
        return SERVING
    if CALL in saved.signatures:
        return CALL
    names = [name for name in saved.signatures if not is_further_trace(name)]
    return names[0] if len(names) == 1 else None


def _error(saved: SavedModel, name: str) -> HealdError | None:
    try:
        check_runnable(saved, name)
    except HealdError as error:
        return error
    return None


def _error_of_other_signature(name: str, chosen_name: str, error: HealdError) -> HealdError:
    return FailedPrecondition(f"signature '{name}' could not be loaded together with '{chosen_name}': {error}",
                              hint=f"load it by itself: heald.load(path, signature={name!r})")
