"""The options of the server: one table, options.tsv. The parser, the checks and the page are made of it.

`here` says how the server treats an option of TensorFlow Serving: it is obeyed; accepted with a line, because it
changes nothing here; or refused with any value but its default. The server's own options have `own`.

TensorFlow Serving takes `--name=value` alone, and a flag also without a value. Hyphens may stand for underscores.
"""

from __future__ import annotations

import os
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Iterator
from functools import cache, partial
from importlib import resources
from typing import Any, NamedTuple

OBEYED, ACCEPTED, REFUSED, OWN = "obeyed", "accepted", "refused", "own"


class Option(NamedTuple):
    """A row of the table. `kind` is bool, int32, int64, float or string."""

    name: str
    kind: str
    default_text: str
    here: str
    meaning: str

    @property
    def default(self) -> Any:
        """The value without the option. A text about the machine, such as "the cores", stands for a number of it."""
        if self.default_text.endswith("the cores"):
            return (4 if self.default_text.startswith("4 times") else 1) * (os.cpu_count() or 1)
        return _PARSERS[self.kind](self.default_text)


def parse_bool(text: str) -> bool:
    """Raises ArgumentTypeError for a text that is neither true nor false."""
    if text.lower() not in ("true", "false", "1", "0"):
        raise ArgumentTypeError(f"'{text}' is neither true nor false; a name after a flag needs =true before it")
    return text.lower() in ("true", "1")


def _parse_integer(text: str, bits: int) -> int:
    try:
        number = int(text)
    except ValueError:
        raise ArgumentTypeError(f"'{text}' is no whole number") from None
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise ArgumentTypeError(f"'{text}' is no number of {bits} bits")
    return number


def _parse_float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ArgumentTypeError(f"'{text}' is no number") from None


_PARSERS: dict[str, Callable[[str], Any]] = {
    "bool": parse_bool, "int32": partial(_parse_integer, bits=32), "int64": partial(_parse_integer, bits=64),
    "float": _parse_float, "string": str}


@cache
def options() -> dict[str, Option]:
    """The rows by name, in the order of the table."""
    lines = resources.files(__package__).joinpath("options.tsv").read_text("utf-8").splitlines()
    rows = (Option(*line.split("\t")) for line in lines[1:])
    return {row.name: row for row in rows}


def add_options(parser: ArgumentParser) -> None:
    """Add every option. An option that is not given is absent from the namespace, so that `given_options` knows it."""
    from argparse import SUPPRESS

    for option in options().values():
        spellings = dict.fromkeys((f"--{option.name}", f"--{option.name.replace('_', '-')}"))
        default = f" ({option.default_text})" if option.default_text else ""
        keywords: dict[str, Any] = {"nargs": "?", "const": True} if option.kind == "bool" else {}
        parser.add_argument(*spellings, dest=option.name, type=_PARSERS[option.kind], default=SUPPRESS,
                            metavar=option.kind.upper(), help=f"{option.meaning}{default}".replace("%", "%%"),
                            **keywords)


def given_options(args: Namespace) -> dict[str, Any]:
    """The values of the options that the command line names."""
    return {name: value for name, value in vars(args).items() if name in options()}


def with_defaults(values: dict[str, Any]) -> dict[str, Any]:
    """The values of all options."""
    return {name: values.get(name, option.default) for name, option in options().items()}


def accepted_lines(values: dict[str, Any]) -> Iterator[str]:
    """A line for each given option that changes nothing here."""
    for name, value in values.items():
        option = options()[name]
        if option.here == ACCEPTED and value != option.default:
            yield f"--{name} is accepted and changes nothing: {option.meaning}"


def check_refused(values: dict[str, Any]) -> None:
    """Raises Unimplemented for a refused option with another value than its default."""
    from heald.errors import Unimplemented

    for name, value in values.items():
        option = options()[name]
        if option.here == REFUSED and value != option.default:
            raise Unimplemented(f"--{name} is not served: {option.meaning}", hint="leave the option out")


def markdown_table(*, of_server: bool) -> str:
    """The rows of TensorFlow Serving's options, or of the server's own, as a table of the page."""
    head = ["| option | default | meaning |", "|---|---|---|"] if of_server else [
        "| option | default | here | meaning |", "|---|---|---|---|"]
    for option in options().values():
        if (option.here == OWN) == of_server:
            default = f"`{option.default_text}`" if option.default_text else ""
            here = "" if of_server else f" {option.here} |"
            head.append(f"| `--{option.name}` | {default} |{here} {option.meaning} |")
    return "\n".join(head)
