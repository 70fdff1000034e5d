"""The commands of `heald`: core's in a table, the plugins' from their registry, and a parser for each.

`arguments`: Options that several commands have, and the graph that they open. `inputs`: The grammar of --input.
`inspect`, `explain`, `compile`, `translate`, `edit`, `opt`, `ops`: The commands of these names.
`listing`, `settings`: `heald devices` and `heald plugins`; `heald config`.
`passes`, `graphs`: The parts of `heald inspect` about passes, and about the graph that a step runs.
`compiled`: reports on a compiled model.
`model_files`, `model_rows`: The models below a folder, and the row of each.
`coverage`: The nodes that kernels can run. `placed_graph`: A graph with its placement.
`editing`: A model between two files. `graph_changes`: Differences as rows.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress

from ...errors import PluginError, closest, display_text
from ...runtime.contract.command import CORE, Command, CommandRegistry
from ...runtime.contract.device import load_callable
from ...runtime.support import install
from ...runtime.support.plugin_guard import plugin_guard
from .arguments import add_plugin

# By name: the help, and the functions in the module of this package.
COMMANDS = {name: Command(name, about, f"{__package__}.{module}:{arguments}", f"{__package__}.{module}:{run}")
            for name, about, module, arguments, run in (
    ("inspect", "show what a model contains: inputs, outputs, ops, constants", "inspect", "add_arguments", "inspect"),
    ("explain", "show where each node runs, and why", "explain", "add_arguments", "explain"),
    ("devices", "list the devices, or check each of them", "listing", "add_device_arguments", "devices"),
    ("plugins", "list the plugins, and what became of each", "listing", "add_plugin_arguments", "plugins"),
    ("ops", "list the ops that have kernels, or what a model lacks", "ops", "add_arguments", "ops"),
    ("config", "show the settings and where each was made, or trust a file", "settings", "add_arguments", "run"),
    ("translate", "write a graph in another form", "translate", "add_arguments", "translate"),
    ("edit", "change a graph by the names of its nodes, and write it", "edit", "add_arguments", "edit"),
    ("opt", "run graph passes over a model, or rewrite the text of a host program", "opt", "add_arguments", "opt"),
    ("compile", "compile a model into a file that starts at once", "compile", "add_arguments", "run"),
)}


def early_arguments(name: str, arguments: Sequence[str]) -> Namespace:
    """The values of --config and --plugin, which decide which commands there are."""
    parser = ArgumentParser(f"heald {name}", add_help=False, allow_abbrev=False)
    parser.add_argument("--config")
    add_plugin(parser)
    return parser.parse_known_args(arguments)[0]


def register_plugins(files: Sequence[str]) -> None:
    """Register the values of --plugin. Raises PluginError for one that cannot be used."""
    if files:
        from ...runtime.service.runtime import register

        for file in files:
            register(file)


def of_plugins(files: Sequence[str] = ()) -> CommandRegistry:
    """The plugins' commands, after `files` are registered. Raises PluginError for one that cannot be used."""
    from ...runtime.service.runtime import runtime

    register_plugins(files)
    return runtime().plugins.registries.commands


def parser_of(command: Command) -> ArgumentParser:
    """The command's own parser. Raises PluginError when the plugin's part of it fails."""
    parser = ArgumentParser(
        f"heald {command.name}", description=f"{command.help[0].upper()}{command.help[1:]}.", allow_abbrev=False,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("--config", metavar="FILE", help="take settings from this file first")
    if command.plugin != CORE:
        add_plugin(parser)
    with _plugin_guard(command):
        load_callable(command.add_arguments)(parser)
    return parser


def run(command: Command, args: Namespace) -> int:
    """Run the command and return its exit status. Raises the errors of the command, PluginError for a status that is
    no int."""
    if command.plugin == CORE:  # else the plugins are registered: one of them may bring the command
        _register_for(command, vars(args).get("plugin", ()))
    with _plugin_guard(command):
        function = load_callable(command.run)
    status = function(args)
    if not isinstance(status, int):
        raise PluginError(f"command '{command.name}' of plugin {command.plugin} returned {status!r}, not a status",
                          hint="return 0 when it did what it was asked to, else 1")
    return status


def _register_for(command: Command, files: Sequence[str]) -> None:
    """Register the values of --plugin. `heald plugins` lists failed ones; for other commands they are errors."""
    if command.name != "plugins":
        register_plugins(files)
        return
    for file in files:
        with suppress(PluginError):
            register_plugins([file])


def suggestion_for(name: str) -> str:
    """The remedy for a name that no usable command has. Raises PluginError when its plugin cannot be used."""
    from ...runtime.service.runtime import runtime

    if name not in install.COMMANDS:
        suggestions = closest(name, [*COMMANDS, *install.COMMANDS, *(c.name for c in of_plugins().usable())])
        remedy = f"did you mean {suggestions[0]}?" if suggestions else "heald --help lists them"
        return f"no command is called '{display_text(name)}'; {remedy}"
    distribution = install.COMMANDS[name]
    for record in runtime().plugins.records():
        if record.id == install.DISTRIBUTIONS[distribution].plugin:
            raise record.failure()
    return f"not installed: {install.install_hint(distribution)}"


def _plugin_guard(command: Command) -> AbstractContextManager[None]:
    """Code of a plugin fails with the plugin's name."""
    if command.plugin == CORE:
        return nullcontext()
    return plugin_guard(f"command '{command.name}' of plugin {command.plugin}")
