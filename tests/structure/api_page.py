"""Writes docs/api.md: the names of heald.api, each with the first sentence of its documentation.

    python tests/structure/api_page.py

A class or function is documented by its docstring, another name by the comment behind its definition. A test compares
the page with this output.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from heald import api

PAGE = Path(__file__).parents[2] / "docs" / "api.md"
HEAD = """\
# Names of heald.api

`from heald.api import NAME` is the only import of heald that a plugin needs. A minor version of the contract
(`HEALD_API`) adds names, and removes none. [plugins.md](plugins.md) shows their use, [commands.md](commands.md) has the
names of `heald.api.cli`. `help(heald.api.NAME)` prints the whole documentation. `make tables` writes this page.

| name | content | defined in |
|---|---|---|
"""


def documentation(name: str) -> str:
    """The first sentence of a name's documentation on one line; empty where it has none."""
    value = getattr(api, name)
    if isinstance(value, ModuleType) or getattr(value, "__name__", "") == name:
        return _sentence(_own_docstring(value))
    source = Path(str(_module(name).__file__)).read_text("utf-8")
    match = re.search(rf"^{name}\b[^\n#]*  # ([^\n]*)$", source, re.MULTILINE)
    return match[1] if match is not None else ""


def _own_docstring(value: Any) -> str:
    """The docstring in the source; NamedTuples and dataclasses without one get a signature from Python."""
    text = inspect.cleandoc(value.__doc__ or "")
    return "" if text.startswith(f"{getattr(value, '__name__', '')}(") else text


def _sentence(text: str) -> str:
    paragraph = " ".join(text.partition("\n\n")[0].split())
    return re.split(r"(?<=[.!?]) (?=[A-Z`])", paragraph)[0].rstrip(".:")


def _module(name: str) -> ModuleType:
    value = getattr(api, name)
    return value if isinstance(value, ModuleType) else importlib.import_module(_modules()[name])


@cache
def _modules() -> dict[str, str]:
    """By public name the module that has it, as the imports for type checkers tell."""
    tree = ast.parse(inspect.getsource(api))
    return {alias.name: f"heald.{statement.module}" for statement in ast.walk(tree)
            if isinstance(statement, ast.ImportFrom) and statement.level == 2 and statement.module is not None
            for alias in statement.names}


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def page() -> str:
    rows = (f"| `{name}` | {_cell(documentation(name))} | `{_module(name).__name__}` |\n"
            for name in sorted(api.__all__, key=str.lower))
    return HEAD + "".join(rows)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
