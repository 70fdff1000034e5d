"""The command line: the choice of a command, and the one place where errors become exit statuses.

Importing it and `heald --version` load nothing but argparse. `heald --help`, and a command that is not core's, load the
light modules of plugins. A command's own module is imported when it is chosen.

`commands/`: The table of commands, and core's commands. `printing/`: Tables, progress and notices.
"""

from __future__ import annotations

import os
import sys
from argparse import REMAINDER, SUPPRESS, ArgumentParser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .. import __version__

if TYPE_CHECKING:
    from ..errors import HealdError
    from ..runtime.contract.command import Command

OK, ERROR, USAGE = 0, 1, 2
INTERRUPTED, UNREAD = 130, 141  # as shells report SIGINT and SIGPIPE

INDENT = 16  # columns before a command's help
DESCRIPTION = "Runs TensorFlow graphs without TensorFlow, on every device that a plugin brings."
EXAMPLES = """\
examples:
  heald inspect model.pb                          what goes in, what comes out, which ops
  heald run model.pb --input image=cat.png        run it once, print the outputs
  heald run model.pb --input x.npy --output y.npz --repeat 20
  heald run saved_model/ --input x.npy            a SavedModel: --signature, --tags
  heald explain model.pb                          where each node runs, and why
  heald devices --check                           which devices work here

Every command has --help; those that print tables have --json."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command in `argv` and return its exit status; wrong usage and --help end in SystemExit."""
    from .printing.standard_streams import drop, standard_streams

    with standard_streams():
        try:
            try:
                return _run(argv)
            finally:
                sys.stdout.flush()
        except BrokenPipeError:
            drop(sys.stdout)
            return UNREAD
        except KeyboardInterrupt:
            return INTERRUPTED
        except OSError as error:  # of the last flush
            from .printing.notices import tell_error

            drop(sys.stdout)
            tell_error(_typed_error(error))
            return ERROR


def _parser() -> ArgumentParser:
    parser = ArgumentParser(
        "heald", usage="heald [-h] [--version] COMMAND ...", description=DESCRIPTION, add_help=False,
        allow_abbrev=False,
    )
    parser.add_argument("-h", "--help", action="store_true", help="show this help message and exit")
    parser.add_argument("--version", action="version", version=f"heald {__version__}", help="show the version and exit")
    parser.add_argument("command", nargs="?", help=SUPPRESS)
    parser.add_argument("arguments", nargs=REMAINDER, help=SUPPRESS)
    return parser


def _run(argv: Sequence[str] | None) -> int:
    parser = _parser()
    arguments = parser.parse_args(argv)
    from .printing.notices import one_line_warnings

    with one_line_warnings():
        if arguments.help or arguments.command is None:
            print(_help(parser), file=sys.stdout if arguments.help else sys.stderr)
            return OK if arguments.help else USAGE
        from .commands import early_arguments

        early = early_arguments(arguments.command, arguments.arguments)
        with _config_file(early.config):
            return _attempt(parser, arguments.command, arguments.arguments, early.plugin)


def _help(parser: ArgumentParser) -> str:
    """The help with every command's line. Plugins that cannot be asked are told on stderr."""
    from shutil import get_terminal_size
    from textwrap import wrap

    from ..errors import printable
    from .commands import COMMANDS, of_plugins
    from .printing.notices import tell_error

    commands = dict(COMMANDS)
    try:
        commands |= {command.name: command for command in of_plugins().usable()}
    except Exception as error:  # noqa: BLE001 - core's commands are listed whatever becomes of plugins
        tell_error(_typed_error(error))
    lines = ["commands:"]
    for name, command in sorted(commands.items()):
        room = max(get_terminal_size().columns - INDENT - 2, INDENT)
        first, *more = wrap(printable(command.help), room)
        lines += [f"    {name:<{INDENT - 5}} {first}", *(" " * INDENT + line for line in more)]
    return "\n".join([parser.format_help(), *lines, "", EXAMPLES])


@contextmanager
def _config_file(path: str | None) -> Iterator[None]:
    """--config stands for $HEALD_CONFIG, which processes started by the command read too."""
    if path is None:
        yield
        return
    from ..runtime.config.sources import FILE_VARIABLE

    before = os.environ.get(FILE_VARIABLE)
    os.environ[FILE_VARIABLE] = path
    try:
        yield
    finally:
        if before is None:
            del os.environ[FILE_VARIABLE]
        else:
            os.environ[FILE_VARIABLE] = before


def _attempt(parser: ArgumentParser, name: str, arguments: Sequence[str], plugins: Sequence[str]) -> int:
    """The error boundary: errors of a command are told on stderr."""
    from . import commands
    from .printing.notices import tell_error

    command = commands.COMMANDS.get(name)
    try:
        if command is None:
            command = commands.of_plugins(plugins).get(name)
        if command is None:
            return _missing(parser, name)
        return commands.run(command, commands.parser_of(command).parse_args(arguments))
    except BrokenPipeError:
        raise
    except Exception as error:  # noqa: BLE001 - the boundary
        _drop_after(error)
        tell_error(_typed_error(error, command))
    return ERROR


def _drop_after(error: Exception) -> None:
    """Drop the buffered output after an error of standard output, so that the error is told once."""
    from .printing.standard_streams import NAME, drop

    if isinstance(error, OSError) and error.filename == NAME:
        drop(sys.stdout)


def _missing(parser: ArgumentParser, name: str) -> int:
    from ..runtime.support.install import COMMANDS
    from .commands import suggestion_for

    remedy = suggestion_for(name)
    if name not in COMMANDS:
        parser.error(remedy)
    print(f"heald {name}: {remedy}", file=sys.stderr)
    return USAGE


def _typed_error(error: Exception, command: Command | None = None) -> HealdError:
    """The error itself, or a typed one with it as the cause; a fault in a plugin's command names the plugin."""
    from ..errors import HealdError, Internal, typed_error
    from ..runtime.contract.command import CORE

    if isinstance(error, HealdError):
        return error
    fault = typed_error(error)
    if isinstance(fault, Internal) and command is not None and command.plugin != CORE:
        fault = _fault_of_plugin(error, command)
    fault.__cause__ = error
    return fault


def _fault_of_plugin(error: Exception, command: Command) -> HealdError:
    """The fault of a plugin's command, with the innermost line of the plugin's own code."""
    from ..errors import PluginError, describe_exception
    from ..runtime.support.fault_place import with_place

    run = command.run
    module = run.partition(":")[0] if isinstance(run, str) else run.__module__
    return PluginError(with_place(describe_exception(error), error, module), plugin=command.plugin,
                       hint=f"this is a fault of plugin {command.plugin}: please report it to its authors")
