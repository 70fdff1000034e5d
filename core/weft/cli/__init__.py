"""The command line: the tree of commands, and the one place where errors become exit statuses.

Importing it, `weft --version` and `weft --help` load nothing but argparse: a command imports what it needs when
it runs.
"""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper

from .. import __version__
from . import bench, diff, explain, inspect, listing, ops, run, settings, translate

OK, ERROR, USAGE = 0, 1, 2
INTERRUPTED, UNREAD = 130, 141  # as shells report SIGINT and SIGPIPE

COMMAND = "COMMAND".ljust(11)  # argparse takes the width of the names' column from it, and forgets their indent
DESCRIPTION = "Runs TensorFlow graphs without TensorFlow, on every device that a plugin brings."
EXAMPLES = """\
examples:
  weft inspect model.pb                          what goes in, what comes out, which ops
  weft run model.pb --input image=cat.png        run it once, print the outputs
  weft run model.pb --input x.npy --output y.npz --repeat 20
  weft run saved_model/ --input x.npy            a SavedModel: --signature, --tags
  weft explain model.pb                          where each node runs, and why
  weft devices --check                           which devices work here

Every command has --help; those that print tables have --json."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command in `argv` and return its exit status; wrong usage and --help end in SystemExit."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names may have letters that the terminal lacks
    try:
        try:
            return _run(argv)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # the interpreter flushes stdout once more at exit: let that go nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return UNREAD
    except KeyboardInterrupt:
        return INTERRUPTED


def _parser() -> ArgumentParser:
    parser = ArgumentParser(
        "weft", usage="weft [-h] [--version] COMMAND ...", description=DESCRIPTION, epilog=EXAMPLES,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"weft {__version__}")
    commands = parser.add_subparsers(title="commands", metavar=COMMAND, prog="weft")
    for module in (run, inspect, explain, diff, bench, listing, ops, settings, translate):
        module.add(commands)
    return parser


def _run(argv: Sequence[str] | None) -> int:
    parser = _parser()
    args = parser.parse_args(argv)
    if "function" not in args:
        parser.print_help(sys.stderr)
        return USAGE
    from .notices import one_line_warnings

    with one_line_warnings(), _config_file(args.config):
        return _attempt(args)


@contextmanager
def _config_file(path: str | None) -> Iterator[None]:
    """--config stands for $WEFT_CONFIG, which processes started by the command read too."""
    if path is None:
        yield
        return
    from ..config.sources import FILE_VARIABLE

    before = os.environ.get(FILE_VARIABLE)
    os.environ[FILE_VARIABLE] = path
    try:
        yield
    finally:
        if before is None:
            del os.environ[FILE_VARIABLE]
        else:
            os.environ[FILE_VARIABLE] = before


def _attempt(args: Namespace) -> int:
    """The error boundary: whatever a command raises is told on stderr."""
    from ..errors import WeftError, unexpected
    from .notices import tell_error

    try:
        status: int = args.function(args)
        return status
    except BrokenPipeError:
        raise
    except WeftError as error:
        tell_error(error)
    except Exception as error:  # noqa: BLE001 - the boundary
        fault = unexpected(error)
        fault.__cause__ = error
        tell_error(fault)
    return ERROR
