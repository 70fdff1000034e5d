"""The public contract of commands, re-exports only: options, tables, errors and progress as core's commands have them.

A command is registered by the hook `heald_commands` (docs/commands.md). Every name is imported when it is first used.
"""

from typing import TYPE_CHECKING

from ..runtime.support.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from ..cli.commands.arguments import (
        Opened,
        add_device,
        add_json,
        add_loading,
        add_model,
        add_plugin,
        open_graph,
        positive,
    )
    from ..cli.commands.graph_changes import change_rows, compare_models, tell_changes
    from ..cli.commands.inputs import GivenShape, InputText, add_input, inputs_by_name, parse_input
    from ..cli.commands.model_files import ModelFile, ModelFiles, find_models
    from ..cli.commands.model_rows import model_row
    from ..cli.printing.notices import tell_error
    from ..cli.printing.progress import counted, lasting, ticking
    from ..cli.printing.table import byte_text, plural, show, show_json, show_markdown
    from ..cli.printing.terminal import say

__all__ = ["GivenShape", "InputText", "ModelFile", "ModelFiles", "Opened", "add_device", "add_input", "add_json",
           "add_loading", "add_model", "add_plugin", "byte_text", "change_rows", "compare_models", "counted",
           "find_models",
           "inputs_by_name", "lasting", "model_row", "open_graph", "parse_input", "plural", "positive", "say", "show",
           "show_json", "show_markdown", "tell_changes", "tell_error", "ticking"]

__getattr__ = lazy_exports(__name__, {
    "heald.cli.commands.arguments": (
        "Opened", "add_device", "add_json", "add_loading", "add_model", "add_plugin", "open_graph", "positive"),
    "heald.cli.commands.graph_changes": ("change_rows", "compare_models", "tell_changes"),
    "heald.cli.commands.inputs": ("GivenShape", "InputText", "add_input", "inputs_by_name", "parse_input"),
    "heald.cli.commands.model_files": ("ModelFile", "ModelFiles", "find_models"),
    "heald.cli.commands.model_rows": ("model_row",),
    "heald.cli.printing.notices": ("tell_error",),
    "heald.cli.printing.progress": ("counted", "lasting", "ticking"),
    "heald.cli.printing.table": ("byte_text", "plural", "show", "show_json", "show_markdown"),
    "heald.cli.printing.terminal": ("say",),
})


def __dir__() -> list[str]:
    return __all__
