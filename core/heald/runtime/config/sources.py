"""Sources of settings: an argument, environment variables, files. Each is a layer."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from ...errors import InvalidArgument, closest
from .schema import Setting, as_setting
from .search import Search

VARIABLE_PREFIX = "HEALD_"
PLUGIN_VARIABLE_PREFIX = "HEALD_EXT_"  # the prefix of plugins' own variables, which heald never reads
FILE_VARIABLE = "HEALD_CONFIG"
SECTIONS = ("plugins", "plugin", "placement", "kernels", "allocator", "limits", "files", "work_queue", "work_queues",
            "passes", "eager", "cluster", "debug")
# The number of parts of a variable that are keys of heald, in any case; later parts name an entry as written.
LOWERCASE_PARTS = {"kernels": 1, "plugin": 3, "work_queues": 3}
USUAL_LOWERCASE_PARTS = 2


def gather_layers(argument: object, environ: Mapping[str, str], folder: Path) -> tuple[list[Setting], list[str]]:
    """All layers, the strongest first, for a process with this environment in this folder, and a warning for each file
    and variable that is left out.

    Raises InvalidArgument and NotFound.
    """
    named: list[Path] = []
    layers: list[Setting] = []
    if isinstance(argument, Mapping):
        layers.append(as_setting(argument, lambda _: "argument"))
    elif isinstance(argument, str | os.PathLike):
        named.append(Path(argument))
        layers.append(from_file(named[-1], "config="))
    elif argument is not None:
        raise InvalidArgument(f"config= must be a dict, a path or a Config, not {type(argument).__name__}")
    strangers = list(unknown_variables(environ))
    layers += from_environment(environ)
    if environ.get(FILE_VARIABLE):
        named.append(Path(environ[FILE_VARIABLE]))
        layers.append(from_file(named[-1], f"environment {FILE_VARIABLE} or --config"))
    search = Search(environ)
    layers += search.layers(folder, named)
    return layers, [*strangers, *search.left_out]


def from_environment(environ: Mapping[str, str]) -> Iterator[Setting]:
    """A layer for each variable `HEALD_SECTION__KEY`. Of two that overlap, the one with the longer name wins."""
    for name in sorted(environ, key=lambda n: (-len(n), n)):
        if not _is_own(name) or _is_stranger(name):
            continue
        path = name.removeprefix(VARIABLE_PREFIX).split("__")
        depth = LOWERCASE_PARTS.get(path[0].lower(), USUAL_LOWERCASE_PARTS)
        setting = Setting(environ[name], f"environment {name}", is_text=True)
        for part in reversed([*(p.lower() for p in path[:depth]), *path[depth:]]):
            setting = Setting({part: setting}, setting.origin)
        yield setting


def unknown_variables(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield a warning for each variable that begins like heald's own and is no setting."""
    for name in sorted(environ):
        if _is_own(name) and _is_stranger(name):
            variables = [FILE_VARIABLE, *(f"{VARIABLE_PREFIX}{section.upper()}__KEY" for section in SECTIONS)]
            similar_names = closest(name, variables, limit=1)
            meant = f"did you mean {similar_names[0]}? " if similar_names else ""
            yield (f"environment variable {name} is no setting of heald; {meant}names that begin with "
                   f"{PLUGIN_VARIABLE_PREFIX} are free for plugins")


def _is_own(name: str) -> bool:
    """True for a variable that belongs neither to plugins nor to the named file."""
    return name.startswith(VARIABLE_PREFIX) and not name.startswith(PLUGIN_VARIABLE_PREFIX) and name != FILE_VARIABLE


def _is_stranger(name: str) -> bool:
    """True for a variable of one part that is no section: HEALD_SECTION__KEY has two."""
    part = name.removeprefix(VARIABLE_PREFIX)
    return "__" not in part and part.lower() not in SECTIONS


def from_file(path: Path, asked_by: str | None = None) -> Setting:
    """The settings of a file that the user has named. Raises NotFound and InvalidArgument."""
    from .file import parse, read

    return parse(path, read(path, asked_by).data)
