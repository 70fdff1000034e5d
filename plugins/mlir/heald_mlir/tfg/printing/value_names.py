"""Names of values as MLIR gives them: after the op, `ctl`, or an argument's name, each made unique by one counter."""

from __future__ import annotations

import re
from collections.abc import Iterable

_ALLOWED = re.compile(r"[A-Za-z_.$-][\w$.\-]*", re.ASCII)
_ALLOWED_CHARACTER = re.compile(r"[\w$.\-]", re.ASCII)


class ValueNames:
    """The names of a region. `counter`: the number that the next conflict takes. `outer`: names of outer regions."""

    __slots__ = ("arguments", "counter", "number", "used")

    def __init__(self, counter: int = 0, number: int = 0, outer: Iterable[str] = ()) -> None:
        self.counter = counter
        self.number = number  # of the next value without a name
        self.arguments = 0  # the number of the next argument without a name
        self.used = set(outer)

    def unique_name(self, name: str) -> str:
        """A name that no value of the region has, with its percent sign."""
        used = self.used
        if name in used:
            while True:
                probe = f"{name}_{self.counter}"
                self.counter += 1
                if probe not in used:
                    name = probe
                    break
        used.add(name)
        return f"%{name}"

    def next_argument(self) -> str:
        """The name of an argument of a region."""
        self.arguments += 1
        return self.unique_name(f"arg{self.arguments - 1}")

    def next_numbered(self) -> str:
        """The name of a value that has none."""
        self.number += 1
        return f"%{self.number - 1}"


def identifier(name: str) -> str:
    """A name with the characters that MLIR allows in names of values."""
    if _ALLOWED.fullmatch(name):
        return name
    shown = "".join([char if _ALLOWED_CHARACTER.match(char) else _hexadecimal_text(char) for char in name])
    return shown if _ALLOWED.match(name) or name[:1] == " " else f"_{shown}"


def _hexadecimal_text(char: str) -> str:
    return "_" if char == " " else "".join([f"{byte:02X}" for byte in char.encode("utf-8", "surrogateescape")])
