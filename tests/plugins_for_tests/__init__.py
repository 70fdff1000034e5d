"""Plugins that tests load by path or by module name."""

from pathlib import Path


def plugin(name: str) -> str:
    """The path of a one-file plugin in this folder."""
    return str(Path(__file__).parent / f"plugin_of_{name}.py")
