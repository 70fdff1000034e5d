"""Options as programs of LLVM take them: `-x` and `--x` are the same, `--x=v` and `--x v`, a flag may have a value."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from typing import NoReturn

from heald.api import errors

from .translation import STDIN

_TRUE, _FALSE = ("true", "TRUE", "True", "1", ""), ("false", "FALSE", "False", "0")


class LlvmParser(ArgumentParser):
    """A parser that ends with status 1 for wrong usage, as LLVM's programs do."""

    def __init__(self, program: str) -> None:
        super().__init__(program, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        self.exit(1, f"{self.prog}: {message}\n")

    def parse_arguments(self, arguments: Sequence[str]) -> Namespace:
        return self.parse_args([word for argument in arguments for word in self._words(argument)])

    def _words(self, argument: str) -> list[str]:
        if len(argument) < 2 or argument[0] != "-" or argument == "--":
            return [argument]
        name, equals, value = f"--{argument.lstrip('-')}".partition("=")
        action = self._option_string_actions.get(name)
        if action is None and f"-{name[2:]}" in self._option_string_actions:
            return [f"-{name[2:]}", *([value] if equals else [])]
        if action is None or action.nargs != 0 or not equals:
            return [name + equals + value]
        if value in _FALSE:
            return []
        if value not in _TRUE:
            self.error(f"for the {name} option: '{value}' is invalid value for boolean argument! Try 0 or 1")
        return [name]


def run_filter(
    program: str, add_arguments: Callable[[ArgumentParser], None], function: Callable[[Namespace], int],
    arguments: Sequence[str] | None,
) -> int:
    """Run a program that reads one file and writes another one: stdin and stdout by default."""
    parser = LlvmParser(program)
    add_arguments(parser)
    parser.add_argument("source", nargs="?", default=STDIN, help="the file to read; stdin by default")
    parser.add_argument("-o", dest="output", default=STDIN, metavar="FILE", help="the file to write; stdout by default")
    return run(parser, function, arguments)


def run(parser: LlvmParser, function: Callable[[Namespace], int], arguments: Sequence[str] | None = None) -> int:
    """Run a program and return its exit status: 1, with the error on stderr, for an error."""
    args = parser.parse_arguments(sys.argv[1:] if arguments is None else arguments)
    try:
        return function(args)
    except errors.HealdError as error:
        sys.stderr.write(f"{parser.prog}: error: {error}\n")
        return 1
