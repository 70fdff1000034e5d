"""SavedModels: signatures, freezing, checkpoints. `heald.load(folder)` reads one; `read` gives its parts; `save`
writes one."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .checkpoint import Checkpoint as Checkpoint
    from .checkpoint_writer import write_checkpoint as write_checkpoint
    from .saved_model import SavedModel as SavedModel
    from .saved_model import read as read
    from .saved_model_writer import save as save

_EXPORTS = {"Checkpoint": "checkpoint", "SavedModel": "saved_model", "read": "saved_model",
            "save": "saved_model_writer", "write_checkpoint": "checkpoint_writer"}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _EXPORTS:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(import_module(f".{_EXPORTS[name]}", __name__), name)
