"""Commands of the program `weft`: the entries that plugins register, and the registry that holds them."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ..errors import PluginError

CORE = "weft"  # the owner of the commands that core brings itself
RESERVED = ("inspect", "explain", "devices", "plugins", "ops", "config", "translate")  # core's commands

AddArguments = Callable[[ArgumentParser], object]
Run = Callable[[Namespace], int]


class Command(NamedTuple):
    """One command: `weft NAME`.

    `help` is its line in `weft --help`. `add_arguments(parser)` declares its options. `run(args)` returns the exit
    status. Both may be "module:function", which is imported when the command is chosen.
    """

    name: str
    help: str
    add_arguments: str | AddArguments
    run: str | Run
    plugin: str = CORE


class Claim(NamedTuple):
    """A command that is not used: its plugin, the reason, and the remedy."""

    plugin: str
    reason: str
    remedy: str


class CommandRegistry:
    """The commands of plugins, by name. A command never replaces another: rivals for one name are all unused."""

    def __init__(self) -> None:
        self._rivals: dict[str, list[Command]] = {}

    def add(self, command: Command) -> None:
        self._rivals.setdefault(command.name, []).append(command)

    def usable(self) -> list[Command]:
        """The commands without a rival, in order of name."""
        return [found[0] for name, found in sorted(self._rivals.items()) if len(found) == 1 and name not in RESERVED]

    def get(self, name: str) -> Command | None:
        """The plugins' command of this name, or None. Raises PluginError when several plugins bring it."""
        found = self._rivals.get(name, [])
        if len(found) > 1:
            raise PluginError(f"command '{name}' is brought by plugins {_listed(found)}: none of them is used",
                              hint=_blocking(found))
        return found[0] if found and name not in RESERVED else None

    def conflicts(self) -> Iterator[Claim]:
        """Every plugin's claim to a name that core or another plugin has too."""
        for name, found in sorted(self._rivals.items()):
            for command in found:
                if name in RESERVED:
                    yield Claim(command.plugin, f"command '{name}' is core's: the plugin's is not used",
                                f"register it as another name than {', '.join(RESERVED)}")
                elif len(found) > 1:
                    rivals = _listed([other for other in found if other is not command])
                    yield Claim(command.plugin, f"command '{name}' is brought by plugin {rivals} too: none is used",
                                _blocking(found))


def _listed(commands: list[Command]) -> str:
    return " and ".join(sorted(command.plugin for command in commands))


def _blocking(commands: list[Command]) -> str:
    return f"set [plugins] block = {' or '.join(sorted(repr([command.plugin]) for command in commands))}"
