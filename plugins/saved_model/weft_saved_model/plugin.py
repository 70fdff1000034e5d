"""The plugin registers the loader of SavedModels, the pass "freeze", and the kernels that save and restore.

Every start of weft imports this module, so the module is light.
"""

from typing import Any

from weft.api import hookimpl

WEFT_API = (1, 1)


@hookimpl
def weft_loaders(registry: Any) -> None:
    registry.add("saved_model", "weft_saved_model.loader:LOADER")


@hookimpl
def weft_kernels(registry: Any) -> None:
    registry.kernels("CPU", "weft_saved_model.file_kernels:register_kernels")


@hookimpl
def weft_passes(registry: Any) -> None:
    registry.add("freeze", "weft_saved_model.freeze:freeze", stage="pre_placement", before=("references",),
                 about="makes constants of variables that the graph only reads", preserves="names and values")
