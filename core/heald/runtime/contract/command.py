"""Commands of the program `heald`: the entries that plugins register, and the registry that holds them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..support.records import NamedTuple
from .claims import ClaimRegistry

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

CORE = "heald"  # the owner of the commands that core brings itself
# The names of core's commands.
RESERVED = ("inspect", "explain", "devices", "plugins", "ops", "config", "translate", "compile", "edit", "opt")

AddArguments = Callable[["ArgumentParser"], object]
Run = Callable[["Namespace"], int]


class Command(NamedTuple):
    """One command: `heald NAME`.

    `help` is its line in `heald --help`. `add_arguments(parser)` declares its options. `run(args)` returns the exit
    status. Both may be "module:function", which is imported when the command is chosen.
    """

    name: str
    help: str
    add_arguments: str | AddArguments
    run: str | Run
    plugin: str = CORE


class CommandRegistry(ClaimRegistry[Command]):
    """The commands of plugins, by name. A command never replaces another: rivals for one name are all unused."""

    kind, reserved = "command", RESERVED
