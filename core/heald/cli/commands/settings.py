"""heald config: the settings that count here and where each was made, and the files that may make all of them."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ...errors import PluginError
from .arguments import add_plugin

if TYPE_CHECKING:
    from ...runtime.config.config import Config
    from ...runtime.discovery.discovery import Plugins

EPILOG = """\
A setting is taken from the first of: environment HEALD_SECTION__KEY, the file that --config or $HEALD_CONFIG names, the
nearest heald.toml, [tool.heald] in the nearest pyproject.toml, the user's own config file.

heald.toml and pyproject.toml are searched for in the working folder and above it, up to the project's root. They may
have come with a model, so they set harmless things only: placement, kernels, work_queue, work_queues,
passes.disable, allocator.name, plugins.block, and options of plugins that are numbers, booleans or marked by the
plugin. The rest is ignored with a warning until `heald config trust FILE`."""


def add_arguments(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True, prog="heald config")
    show = _action(actions, "show", show_config, "print the settings that count in this folder")
    show.epilog = EPILOG
    show.add_argument("--origin", action="store_true", help="also where each setting was made, and what is ignored")
    show.add_argument("--json", action="store_true", help="print JSON")
    trust = _action(actions, "trust", trust_file, "let a heald.toml or pyproject.toml set everything, until it changes")
    trust.add_argument("file", metavar="FILE")
    untrust = _action(actions, "untrust", untrust_file, "let it set harmless things only")
    untrust.add_argument("file", metavar="FILE")


def _action(actions: Any, name: str, function: Callable[[Namespace], int], about: str) -> ArgumentParser:
    parser: ArgumentParser = actions.add_parser(
        name, help=about, description=f"{about[0].upper()}{about[1:]}.", allow_abbrev=False,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.set_defaults(function=function)
    parser.add_argument("--config", metavar="FILE", help="take settings from this file first")
    add_plugin(parser)
    return parser


def run(args: Namespace) -> int:
    """Run the chosen action."""
    status: int = args.function(args)
    return status


def show_config(args: Namespace) -> int:
    from ...runtime.config.config import load_config
    from ..printing.table import show, show_json

    plugins = _plugins(load_config())
    _check_options(plugins)
    plugins.warn_of_ignored()
    plugins.warn_of_unknown_names()
    rows = [{"key": row.key, "value": row.value, "origin": row.origin, "ignored": False}
            for row in plugins.config.origins(plugins.configs)]
    if args.origin:
        rows += _ignored_rows(plugins)
    if args.json:
        show_json(rows)
        return 0
    texts = [row | {"value": "(ignored)" if row["ignored"] else _text(row["value"])} for row in rows]
    show(texts, ("key", "value", "origin") if args.origin else ("key", "value"), wrap=("value",))
    return 0


def trust_file(args: Namespace) -> int:
    """Trust a file, and print what that lets it set."""
    import os
    from pathlib import Path

    from ...errors import InvalidArgument
    from ...runtime.config.config import Config
    from ...runtime.config.file import parse, read
    from ...runtime.config.search import PROJECT_FILE_NAMES, untrusted_file
    from ...runtime.config.trust import digest, set_trust
    from ...runtime.support.user_files import config_folder
    from ..printing.table import show
    from ..printing.terminal import say

    path = Path(os.path.realpath(args.file))
    if path.name not in PROJECT_FILE_NAMES:
        raise InvalidArgument(f"'{args.file}' is never found by searching: only {' and '.join(PROJECT_FILE_NAMES)} are",
                              hint="name it: --config FILE or HEALD_CONFIG=FILE")
    data = read(path).data
    # A mistake is an error, since it would stop every command, or a plugin, once the file is trusted.
    _check_options(_plugins(Config([parse(path, data)])))
    rows = _ignored_rows(_plugins(Config([parse(path, data, untrusted_file(path))])))
    set_trust(config_folder(os.environ), path, digest(data))
    say(f"{path} is trusted until it changes. Beyond what any found file may set, it sets:")
    texts = [row | {"value": _text(row["value"])} for row in rows]
    show(texts or [{"key": "(nothing)"}], ("key", "value", "origin"), wrap=("value",))
    return 0


def untrust_file(args: Namespace) -> int:
    import os
    from pathlib import Path

    from ...errors import NotFound
    from ...runtime.config.trust import set_trust
    from ...runtime.support.user_files import config_folder
    from ..printing.terminal import say

    if not set_trust(config_folder(os.environ), Path(args.file), None):
        raise NotFound(f"'{args.file}' is not among the trusted config files",
                       hint="heald config show --origin lists the files that count")
    say(f"{args.file} is trusted no longer")
    return 0


def _plugins(config: Config) -> Plugins:
    """The plugins that this config lets load, each with its record: none is an error here."""
    from ...runtime.discovery.discovery import Plugins
    from ...runtime.service.runtime import process_scope

    plugins = Plugins(config)
    plugins.load()
    for file in process_scope.registered:
        with suppress(PluginError):
            plugins.register(file)
    return plugins


def _check_options(plugins: Plugins) -> None:
    """Raise InvalidArgument for the options of plugins that do not fit: an unknown key, another type, a refused value.

    Only the plugin knows its options, so loading found the mistake, and the plugin's record has it.
    """
    from ...errors import InvalidArgument
    from ...runtime.config.config import RefusedOptions, folded_id

    given_ids = {folded_id(row.key) for row in plugins.config.plugin_sections()}
    faults = [record.error for record in plugins.records()
              if folded_id(record.id) in given_ids and isinstance(record.error, InvalidArgument | RefusedOptions)]
    if faults:
        raise InvalidArgument("; ".join(error.message for error in faults), hint=faults[0].hint)


def _ignored_rows(plugins: Plugins) -> list[dict[str, Any]]:
    return [{"key": row.key, "value": row.value, "origin": row.origin, "ignored": True}
            for row in plugins.config.ignored_rows(plugins.configs)]


def _text(value: Any) -> str:
    """As it is written in TOML, nearly: TOML has no text for a setting without a value."""
    return "(not set)" if value is None else json.dumps(value, ensure_ascii=False, default=str)
