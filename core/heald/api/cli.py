"""The public contract of commands, re-exports only: options, tables, errors and progress as core's commands have them.

A command is registered by the hook `heald_commands` (docs/commands.md). Every name is imported when it is first used.
"""

from typing import TYPE_CHECKING

from ..support.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from ..cli.arguments import Opened, add_device, add_json, add_loading, add_model, open_graph, positive
    from ..cli.graph_changes import change_rows, compare_models, tell_changes
    from ..cli.notices import tell_error
    from ..cli.progress import counted, lasting, ticking
    from ..cli.table import byte_text, plural, show, show_json, show_markdown
    from ..cli.terminal import say

__all__ = ["Opened", "add_device", "add_json", "add_loading", "add_model", "byte_text", "change_rows",
           "compare_models", "counted", "lasting", "open_graph", "plural", "positive", "say", "show", "show_json",
           "show_markdown", "tell_changes", "tell_error", "ticking"]

__getattr__ = lazy_exports(__name__, {
    "heald.cli.arguments": ("Opened", "add_device", "add_json", "add_loading", "add_model", "open_graph", "positive"),
    "heald.cli.graph_changes": ("change_rows", "compare_models", "tell_changes"),
    "heald.cli.notices": ("tell_error",),
    "heald.cli.progress": ("counted", "lasting", "ticking"),
    "heald.cli.table": ("byte_text", "plural", "show", "show_json", "show_markdown"),
    "heald.cli.terminal": ("say",),
})


def __dir__() -> list[str]:
    return __all__
