"""Entry points: the distributions on sys.path that announce plugins, read from their dist-info folders.

The rules are importlib.metadata's, whose import alone takes ten times as long as this whole scan. Of several
distributions of one name the first on sys.path counts. A test compares both on folders of every form. Zip archives
are not searched: an application that is packed into one names its plugins in `[plugins] load`. The working folder is
not searched either, unless it is a site-packages folder: its files may have come with a model.

Each runtime scans sys.path anew, so that a package that was installed meanwhile counts. A folder of metadata is read
again only when its files have changed: a process with many configs makes many runtimes.
"""

from __future__ import annotations

import operator
import os
import re
import sys
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from ..support.install import CORE, normalized_name
from ..support.records import NamedTuple
from ..support.working_folder import is_working_folder

ENTRY_POINT_GROUP = "heald.plugins"
_FILES = ("entry_points.txt", "METADATA", "PKG-INFO", "requires.txt")


class Distribution(NamedTuple):
    name: str
    version: str
    requires: tuple[str, ...]  # lines of Requires-Dist
    plugins: dict[str, str]  # plugin id -> "package.module"


def plugin_distributions(only: Collection[str] | None = None) -> list[Distribution]:
    """The distributions that announce plugins, in order of sys.path. `only`: the names of those to look at."""
    only_names = None if only is None else set(map(normalized_name, only))
    distributions: dict[str, Distribution | None] = {}
    for entry, folder in _metadata_folders():
        named = folder if "." in folder else os.path.basename(entry)  # noqa: PTH119 - EGG-INFO of NAME.egg
        name = normalized_name(named.rpartition(".")[0].partition("-")[0])
        if name not in distributions and (only_names is None or name in only_names):
            distributions[name] = _reread_if_changed(os.path.join(entry, folder))  # noqa: PTH118 - a Path is slow
    return [distribution for distribution in distributions.values() if distribution is not None]


def unmet_requirement(distribution: Distribution, core_version: str) -> str | None:
    """The requirement on heald-core that this version does not meet, or None.

    Release numbers are compared. Markers other than `extra` are not evaluated: the installer has done so.
    """
    running = _release(core_version)
    for line in distribution.requires:
        requirement, _, marker = line.partition(";")
        match = re.fullmatch(r"\s*([A-Za-z0-9._-]+)\s*(?:\[.*\])?\s*\(?([^()]*)\)?\s*", requirement)
        if match is None or normalized_name(match[1]) != CORE or "extra" in marker:
            continue
        for clause in filter(None, match[2].split(",")):
            if not _meets(running, clause.strip()):
                return f"{CORE}{match[2].strip()}"
    return None


def asks_newer_core(requirement: str, core_version: str) -> bool:
    """True when an unmet requirement asks for a newer heald-core."""
    lowest = re.search(r"(>=?|[=~]==?)\s*([\d.]+)", requirement)
    return lowest is not None and _release(core_version) < _release(lowest[2])


def _metadata_folders() -> Iterator[tuple[str, str]]:
    """Yield the entries of sys.path with the names of the folders of metadata in them."""
    for entry in sys.path:
        if is_working_folder(entry):
            continue
        try:
            names = os.listdir(entry)  # noqa: PTH208 - a Path for each of a thousand files is slow
        except OSError:
            continue  # the folder is missing, or is an archive
        infos = [name for name in names if name[-5:].lower() == "-info"]
        yield from ((entry, name) for name in sorted(infos) if name.lower().endswith((".dist-info", ".egg-info")))
        if entry.lower().endswith(".egg"):
            yield from ((entry, name) for name in infos if name.lower() == "egg-info")


_FileState = tuple[int, ...] | None  # None for a file that is missing
_distributions: dict[str, tuple[list[_FileState], Distribution | None]] = {}  # by folder of metadata


def _reread_if_changed(folder: str) -> Distribution | None:
    """The distribution of a folder of metadata, as it was read before unless a file of it has changed."""
    cache_entry = _distributions.get(folder)
    if cache_entry is not None:
        states, distribution = cache_entry
        if states == _file_states(folder, is_plugin=distribution is not None):
            return distribution
    states = _file_states(folder, is_plugin=True)  # before the files are read: a later change shows
    distribution = _distribution(Path(folder))
    _distributions[folder] = (states if distribution is not None else states[:1], distribution)
    return distribution


def _file_states(folder: str, *, is_plugin: bool) -> list[_FileState]:
    """Identity, size and time of the files that are read: of the entry points alone where no plugin is announced."""
    return [_file_state(f"{folder}{os.sep}{name}") for name in (_FILES if is_plugin else _FILES[:1])]


def _file_state(path: str) -> _FileState:
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _distribution(folder: Path) -> Distribution | None:
    plugins = _entry_points(_text(folder / "entry_points.txt"))
    if not plugins:
        return None
    head = (_text(folder / "METADATA") or _text(folder / "PKG-INFO")).partition("\n\n")[0]
    headers = re.findall(r"^(Name|Version|Requires-Dist):[ \t]*(.*?)[ \t\r]*$", head, re.MULTILINE)
    fields = dict(headers)
    requires = tuple(value for key, value in headers if key == "Requires-Dist")
    if not requires:  # an .egg-info has a file instead, with its extras in sections behind the others
        requires = tuple(filter(None, _text(folder / "requires.txt").partition("[")[0].splitlines()))
    name, _, version = folder.stem.partition("-")
    return Distribution(fields.get("Name", name), fields.get("Version", version), requires, plugins)


def _entry_points(text: str) -> dict[str, str]:
    """The entries of the group `heald.plugins`: `id = package.module`."""
    group, entries = "", {}
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            group = line.strip("[]")
        elif group == ENTRY_POINT_GROUP and "=" in line and not line.startswith("#"):
            name, _, target = line.partition("=")
            entries[name.strip()] = target.partition("[")[0].strip()
    return entries


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", errors="replace")
    except OSError:
        return ""


_COMPARE: dict[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {
    ">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt, "==": operator.eq,
    "===": operator.eq, "!=": operator.ne, "~=": operator.ge,
}


def _release(version: str) -> tuple[int, ...]:
    """The numbers of a version, without its suffix; empty for a version without numbers."""
    match = re.match(r"\s*v?(?:\d+!)?(\d+(?:\.\d+)*)", version)
    return tuple(int(part) for part in match[1].split(".")) if match is not None else ()


def _meets(running: tuple[int, ...], clause: str) -> bool:
    """True when the running version meets one clause such as `>=0.1`, `==0.1.*` or `~=0.1.2`. An unreadable clause
    counts as met."""
    sign, version = re.fullmatch(r"([<>=!~]*)(.*)", clause).groups()  # type: ignore[union-attr]
    required = _release(version)
    if not required or sign not in _COMPARE:
        return True
    length = len(required) if version.endswith(".*") else max(len(running), len(required))
    have = (running + (0,) * length)[:length]
    if sign == "~=" and have[: len(required) - 1] != required[:-1]:
        return False
    return _COMPARE[sign](have, required + (0,) * (length - len(required)))
