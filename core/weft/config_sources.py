"""Where settings come from: an argument, environment variables, files; each is a layer."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from .config_schema import Setting, as_setting
from .errors import InvalidArgument, Location, NotFound

PREFIX = "WEFT_"
FILE_VARIABLE = "WEFT_CONFIG"
# How many parts of a variable are keys of ours, in any case; what follows names an entry as it is written.
KEY_DEPTH = {"kernels": 1, "plugin": 3}
USUAL_DEPTH = 2
_USER_FOLDER = {"win32": ("APPDATA", "~/AppData/Roaming"), "darwin": ("", "~/Library/Application Support")}


def gather(argument: object, environ: Mapping[str, str], folder: Path) -> list[Setting]:
    """All layers, the strongest first, for a process with this environment in this folder.

    Raises InvalidArgument and NotFound.
    """
    layers = []
    if isinstance(argument, Mapping):
        layers.append(as_setting(argument, lambda _: "argument"))
    elif isinstance(argument, str | os.PathLike):
        layers.append(from_file(Path(argument), "config="))
    elif argument is not None:
        raise InvalidArgument(f"config= must be a dict, a path or a Config, not {type(argument).__name__}")
    layers += from_environment(environ)
    if environ.get(FILE_VARIABLE):
        layers.append(from_file(Path(environ[FILE_VARIABLE]), f"environment {FILE_VARIABLE}"))
    layers += [from_file(path) for path in _found(environ, folder)]
    return layers


def from_environment(environ: Mapping[str, str]) -> Iterator[Setting]:
    """A layer for each variable `WEFT_SECTION__KEY`; of two that overlap, the one that names more wins."""
    for name in sorted(environ, key=lambda n: (-len(n), n)):
        if not name.startswith(PREFIX) or name == FILE_VARIABLE:
            continue
        path = name.removeprefix(PREFIX).split("__")
        depth = KEY_DEPTH.get(path[0].lower(), USUAL_DEPTH)
        setting = Setting(environ[name], f"environment {name}", is_text=True)
        for part in reversed([*(p.lower() for p in path[:depth]), *path[depth:]]):
            setting = Setting({part: setting}, setting.origin)
        yield setting


def from_file(path: Path, asked_by: str | None = None) -> Setting:
    """A TOML file, or the table [tool.weft] of a pyproject.toml. Raises NotFound and InvalidArgument."""
    import tomllib

    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        raise NotFound(f"config file {path} is not there", hint=asked_by and f"{asked_by} names it") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgument(f"config file {path} cannot be read: {error}") from None
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidArgument(f"not TOML: {error}", location=_location(path, text, str(error))) from None
    prefix = ("tool", "weft") if path.name == "pyproject.toml" else ()
    for key in prefix:
        content = content.get(key, {})
    origin = _lines(path, text, prefix) if content else lambda _: str(path)
    return _anchor(as_setting(content, origin), path.parent)


def _found(environ: Mapping[str, str], folder: Path) -> Iterator[Path]:
    """The files that are read without being named."""
    for name in ("weft.toml", "pyproject.toml"):
        candidates = (parent / name for parent in (folder, *folder.parents))
        yield from [path for path in candidates if path.is_file()][:1]
    variable, fallback = _USER_FOLDER.get(sys.platform, ("XDG_CONFIG_HOME", "~/.config"))
    home = environ.get(variable) or os.path.expanduser(fallback)  # noqa: PTH111 - Path's own raises without a home
    user = Path(home, "weft", "config.toml")
    if user.is_file():
        yield user


def _anchor(layer: Setting, folder: Path) -> Setting:
    """Paths of plugins are meant from the folder of the file that names them."""
    plugins = layer.value.get("plugins") if isinstance(layer.value, dict) else None
    load = plugins.value.get("load") if plugins is not None and isinstance(plugins.value, dict) else None
    if load is not None and isinstance(load.value, list):
        load.value[:] = [str(folder / x) if isinstance(x, str) and is_path(x) else x for x in load.value]
    return layer


def is_path(plugin: str) -> bool:
    """True for the path of a one-file plugin, False for a module's name."""
    return plugin.endswith(".py") or "/" in plugin or "\\" in plugin


def _location(path: Path, text: str, message: str) -> Location:
    found = re.search(r"at line (\d+), column (\d+)", message)
    line, column = (int(found[1]), int(found[2])) if found else (text.count("\n") + 1, None)
    return Location(str(path), line, column)


def _lines(path: Path, text: str, prefix: tuple[str, ...]) -> Callable[[tuple[str, ...]], str]:
    """For a path of keys below `prefix`, the file and line of the statement that gives it."""
    lines = dict(_statements(text))

    def origin(keys: tuple[str, ...]) -> str:
        keys = prefix + keys
        while keys and keys not in lines:
            keys = keys[:-1]
        return f"{path}:{lines[keys]}" if keys else str(path)

    return origin


def _statements(text: str) -> Iterator[tuple[tuple[str, ...], int]]:
    """Each path of keys in a valid TOML text, with its line. tomllib does not tell lines, so it is handed one
    statement at a time: lines are added until they parse."""
    import tomllib

    header: tuple[str, ...] = ()
    statement, start = "", 1
    for number, line in enumerate(text.split("\n"), 1):
        if not statement:
            start = number
        statement += line + "\n"
        if start < number and not any(mark in line for mark in ("]", "}", '"""', "'''")):
            continue  # cannot end a statement of several lines
        try:
            parsed = tomllib.loads(statement)
        except tomllib.TOMLDecodeError:
            continue
        paths = list(_paths(parsed))
        if statement.lstrip().startswith("["):
            header = paths[-1]
            yield header, start
        else:
            yield from ((header + keys, start) for keys in paths)
        statement = ""


def _paths(tree: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for key, value in tree.items():
        yield (key,)
        if isinstance(value, Mapping):
            yield from ((key, *keys) for keys in _paths(value))
