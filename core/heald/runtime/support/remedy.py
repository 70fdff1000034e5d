"""Remedies: the user's next step after a fault of a plugin's own code, as a line of its error."""

from __future__ import annotations

NO_FUSION = "[passes] disable = ['fusion']"


def loading_remedy(plugin: str, path: str | None = None) -> str:
    """Return the remedy of a plugin that failed to load. `path`: its file or module when it is not installed."""
    if path is not None:
        return f"'heald plugins --plugin {path} --traceback {plugin}' shows where"
    return f"'heald plugins --traceback {plugin}' shows where, [plugins] block = ['{plugin}'] leaves it out"


def device_remedy(plugin: str) -> str:
    """Return the remedy of a fault in a plugin's scan or device."""
    return f"report it to the authors of plugin {plugin}; [plugins] block = ['{plugin}'] leaves its devices out"


def work_remedy(plugin: str) -> str:
    """Return the remedy of a fault in enqueued work: it comes to light behind a later node than its own."""
    return f"HEALD_DEBUG__SYNCHRONOUS=1 names the node of the fault; {device_remedy(plugin)}"


def compiler_remedy(plugin: str, compiler: str) -> str:
    """Return the remedy of a fault in a plugin's compiler."""
    return f"report it to the authors of plugin {plugin}; [passes] disable = ['{compiler}'] leaves it out"


def kernel_remedy(plugin: str, op: str, *, is_fusion: bool = False, compiler: str = "") -> str:
    """Return the remedy of a fault in a plugin's kernel. A fusion is no op, so no key of [kernels] names it.

    `compiler`: the compiler that made the kernel.
    """
    if compiler:
        return compiler_remedy(plugin, compiler)
    way_out = (f"{NO_FUSION} leaves it out" if is_fusion else f"[kernels] {op} chooses another plugin's kernel")
    return f"report it to the authors of plugin {plugin}; {way_out}"
