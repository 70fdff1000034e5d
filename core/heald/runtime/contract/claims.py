"""Claims: entries that plugins register by name, where no entry replaces another.

Two claims to one name are an error for the user of the name, and a `conflict` in the records of both plugins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Generic, Protocol, TypeVar

from ...errors import PluginError
from ..support.records import NamedTuple


class ClaimedEntry(Protocol):
    """One entry: its name, and the id of its plugin."""

    @property
    def name(self) -> str: ...

    @property
    def plugin(self) -> str: ...


E = TypeVar("E", bound=ClaimedEntry)


class Claim(NamedTuple):
    """An entry that is not used: its plugin, the reason, and the remedy."""

    plugin: str
    reason: str
    remedy: str


class ClaimRegistry(Generic[E]):
    """The entries of plugins, by name. Rivals for one name are all unused, and so is an entry of a reserved name.

    `kind`: The word for an entry in errors.
    `reserved`: The names that are core's own.
    """

    kind: str
    reserved: tuple[str, ...]

    def __init__(self) -> None:
        self._rivals: dict[str, list[E]] = {}

    def add(self, entry: E) -> None:
        self._rivals.setdefault(entry.name, []).append(entry)

    def usable(self) -> list[E]:
        """The entries without a rival, in order of name."""
        return [entries[0] for name, entries in sorted(self._rivals.items())
                if len(entries) == 1 and name not in self.reserved]

    def get(self, name: str) -> E | None:
        """The plugins' entry of this name, or None. Raises PluginError when several plugins bring it."""
        entries = self._rivals.get(name, [])
        if len(entries) > 1:
            raise PluginError(f"{self.kind} '{name}' is brought by plugins {_plugin_list(entries)}: none of them "
                              "is used", hint=_blocking_hint(entries))
        return entries[0] if entries and name not in self.reserved else None

    def conflicts(self) -> Iterator[Claim]:
        """Every plugin's claim to a name that core or another plugin has too."""
        for name, entries in sorted(self._rivals.items()):
            for entry in entries:
                if name in self.reserved:
                    yield Claim(entry.plugin, f"{self.kind} '{name}' is core's: the plugin's is not used",
                                f"register it as another name than {', '.join(self.reserved)}")
                elif len(entries) > 1:
                    rivals = _plugin_list([other for other in entries if other is not entry])
                    yield Claim(entry.plugin, f"{self.kind} '{name}' is brought by plugin {rivals} too: none is used",
                                _blocking_hint(entries))


def _plugin_list(entries: Sequence[ClaimedEntry]) -> str:
    return " and ".join(sorted(entry.plugin for entry in entries))


def _blocking_hint(entries: Sequence[ClaimedEntry]) -> str:
    return f"set [plugins] block = {' or '.join(sorted(repr([entry.plugin]) for entry in entries))}"
