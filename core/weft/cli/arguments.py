"""Arguments that several commands share, and what they stand for."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable
from typing import Any

from .progress import ticking


def command(
    commands: Any, name: str, function: Callable[[Namespace], int], about: str, epilog: str = ""
) -> ArgumentParser:
    """A new command: `about` is its line in the list of commands and the head of its own help."""
    parser: ArgumentParser = commands.add_parser(
        name, help=about, description=about[0].upper() + about[1:] + ".", epilog=epilog,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.set_defaults(function=function)
    return parser


def add_model(parser: ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="a frozen GraphDef: .pb or .pbtxt")


def add_device(parser: ArgumentParser) -> None:
    parser.add_argument("--device", metavar="D", help="where nodes go that ask for none, such as CPU:0")


def add_listing(parser: ArgumentParser) -> None:
    """--plugin and --json, which every listing has."""
    parser.add_argument("--plugin", action="append", default=[], metavar="FILE",
                        help="register a one-file plugin, or a module by its name (repeatable)")
    parser.add_argument("--json", action="store_true", help="print JSON")


def register_plugins(args: Namespace) -> None:
    """Register what --plugin names. Raises PluginError for one that cannot be used."""
    if args.plugin:
        from ..runtime import register

        for plugin in args.plugin:
            register(plugin)


def open_graph(args: Namespace) -> Any:
    """The graph in the file MODEL, with the plugins registered before."""
    from ..graphdef import load

    register_plugins(args)
    with ticking(f"loading {args.model}"):
        return load(args.model)
