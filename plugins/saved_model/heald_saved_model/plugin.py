"""The plugin registers the loaders of SavedModels and checkpoints, the pass "freeze", kernels that save and restore.

Every start of heald imports this module, so the module is light.
"""

from typing import Any

from heald.api import hookimpl

HEALD_API = (1, 1)


@hookimpl
def heald_loaders(registry: Any) -> None:
    registry.add("saved_model", "heald_saved_model.loader:LOADER")
    registry.add("checkpoint", "heald_saved_model.loader:META_GRAPHS")


@hookimpl
def heald_kernels(registry: Any) -> None:
    registry.kernels("CPU", "heald_saved_model.file_kernels:register_kernels")


@hookimpl
def heald_passes(registry: Any) -> None:
    registry.add("freeze", "heald_saved_model.freeze:freeze", stage="pre_placement", before=("references",),
                 about="makes constants of variables that the graph only reads", preserves="names and values")
