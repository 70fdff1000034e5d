"""Config files: TOML that is read within bounds. Each setting gets the line that makes it.

A file may come from a stranger. Its size and depth are bounded before tomllib reads it: tomllib's time and memory grow
with the square of the depth of keys.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ...errors import InvalidArgument, Location, NotFound
from ..support.records import NamedTuple
from .schema import FoundFile, Setting, as_setting

LARGEST_FILE_BYTES = 1 << 18
DEEPEST_NESTING = 32  # levels of brackets, of dots in a key, and of tables in tables

# Compiled when it is first used: the usual pyproject.toml has no table for heald, and is read alone.
_LEXEME = r"""
    (?: "{3} (?: [^"\\] | \\. | "{1,2}(?!") )*+ "{3,5} | '{3} (?: [^'] | '{1,2}(?!') )*+ '{3,5}
      | " (?: [^"\\\n] | \\. )*+ " | '[^'\n]*+' | \#[^\n]*+ )
  | (?P<mark> [\[\]{}=,.\n] )
  | (?P<unclosed> ["'] )
"""
_NESTING = {"[": 1, "{": 1, "]": -1, "}": -1}


class FileContent(NamedTuple):
    """The bytes of a file, and its status at the time of reading."""

    data: bytes
    status: os.stat_result


def read(path: Path, asked_by: str | None = None) -> FileContent:
    """The content of a file. Raises NotFound, and InvalidArgument for a file that is too large or cannot be read."""
    try:
        with path.open("rb") as file:
            content = FileContent(file.read(LARGEST_FILE_BYTES + 1), os.fstat(file.fileno()))
    except FileNotFoundError:
        raise NotFound(f"config file {path} does not exist", hint=asked_by and f"{asked_by} names it") from None
    except (OSError, ValueError) as error:
        raise InvalidArgument(f"config file {path} cannot be read: {error}") from None
    if len(content.data) > LARGEST_FILE_BYTES:
        raise InvalidArgument(f"config file {path} has more than {LARGEST_FILE_BYTES} bytes")
    return content


def parse(path: Path, data: bytes, found_file: FoundFile | None = None) -> Setting:
    """The settings in a TOML file, or in the table [tool.heald] of a pyproject.toml. Raises InvalidArgument."""
    import tomllib

    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"config file {path} cannot be read: {error}") from None
    text = text.replace("\r\n", "\n")
    statements = _statements(path, text)
    try:
        content: Any = tomllib.loads(text)
    except ValueError as error:  # a number of many digits raises no TOMLDecodeError
        raise InvalidArgument(f"not TOML: {error}", location=_location(path, text, str(error))) from None
    prefix = ("tool", "heald") if path.name == "pyproject.toml" else ()
    for key in prefix:
        content = content.get(key, {}) if isinstance(content, Mapping) else {}
    _check(content, str(path))
    origin = _lines(path, statements, prefix) if content else lambda _: str(path)
    return _anchor(as_setting(content, origin, found_file=found_file), path.parent)


def is_path(plugin: str) -> bool:
    """True for the path of a one-file plugin, False for the name of a module."""
    return plugin.endswith(".py") or "/" in plugin or "\\" in plugin


def _anchor(layer: Setting, folder: Path) -> Setting:
    """Make relative paths of plugins absolute: they are relative to the folder of the file that names them."""
    plugins = layer.value.get("plugins") if isinstance(layer.value, dict) else None
    load = plugins.value.get("load") if plugins is not None and isinstance(plugins.value, dict) else None
    if load is not None and isinstance(load.value, list):
        load.value[:] = [str(folder / x) if isinstance(x, str) and is_path(x) else x for x in load.value]
    return layer


def _check(value: Any, path: str, depth: int = 0) -> None:
    """Raise InvalidArgument for tables or lists that are too deep, and for integers beyond TOML's 64 bits."""
    if depth > DEEPEST_NESTING:
        raise InvalidArgument(f"{path}: tables and lists are nested more than {DEEPEST_NESTING} deep")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise InvalidArgument(f"{path}: an integer of {value.bit_length()} bits does not fit into 64 bits")
    for entry in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
        _check(entry, path, depth + 1)


def _location(path: Path, text: str, message: str) -> Location:
    position = re.search(r"at line (\d+), column (\d+)", message)
    line, column = (int(position[1]), int(position[2])) if position else (text.count("\n") + 1, None)
    return Location(str(path), line, column)


def _statements(path: Path, text: str) -> list[tuple[int, str]]:
    """The statements of a TOML text, each with its line; of a text that is not TOML, those before the fault.

    Raises InvalidArgument for brackets or dotted keys that are too deep.
    """
    statements: list[tuple[int, str]] = []
    start, line, depth, dots = 0, 1, 0, 0
    for token in re.finditer(_LEXEME, text, re.VERBOSE | re.DOTALL):
        mark = token["mark"]
        if token["unclosed"]:
            break
        if mark is None:
            continue
        depth += _NESTING.get(mark, 0)
        dots = dots + 1 if mark == "." else 0
        if max(depth, dots) > DEEPEST_NESTING:
            location = Location(str(path), text.count("\n", 0, token.start()) + 1)
            raise InvalidArgument(f"tables and lists are nested more than {DEEPEST_NESTING} deep", location=location)
        if mark == "\n" and depth <= 0:
            statements.append((line, text[start : token.end()]))
            line += text.count("\n", start, token.end())
            start, depth = token.end(), 0
    return [*statements, (line, text[start:])]


def _lines(
    path: Path, statements: list[tuple[int, str]], prefix: tuple[str, ...]
) -> Callable[[tuple[str, ...]], str]:
    """A function from a path of keys below `prefix` to the file and line of the statement that sets it."""
    lines = dict(_keys(statements))

    def origin(keys: tuple[str, ...]) -> str:
        keys = prefix + keys
        while keys and keys not in lines:
            keys = keys[:-1]
        return f"{path}:{lines[keys]}" if keys else str(path)

    return origin


def _keys(statements: list[tuple[int, str]]) -> Iterator[tuple[tuple[str, ...], int]]:
    """Each path of keys in a valid TOML text, with its line. tomllib reports no lines, so it reads one statement at a
    time."""
    import tomllib

    header: tuple[str, ...] = ()
    for line, statement in statements:
        paths = list(_paths(tomllib.loads(statement)))
        if statement.lstrip().startswith("["):
            header = paths[-1]
            yield header, line
        else:
            yield from ((header + keys, line) for keys in paths)


def _paths(tree: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for key, value in tree.items():
        yield (key,)
        if isinstance(value, Mapping):
            yield from ((key, *keys) for keys in _paths(value))
