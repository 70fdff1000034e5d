"""Trees as C: operators by their precedence, with the fewest parentheses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from heald.api import DType

from .element_types import load, number_tree
from .tree import Number, Tree, fold

_ROWS = ("?", "||", "&&", "|", "^", "&", "== !=", "< <= > >=", "<< >>", "+ -", "* / %")  # the loosest first
LEVELS = {operator: level for level, row in enumerate(_ROWS, 1) for operator in row.split()}
CHOICE, RELATION, PREFIX, PRIMARY = LEVELS["?"], LEVELS["<"], 12, 13


class Text(NamedTuple):
    """An expression, and the level of its outermost operator."""

    text: str
    level: int = PRIMARY

    def at_least(self, level: int) -> str:
        return self.text if self.level >= level else f"({self.text})"


class CText(NamedTuple):
    """A reader of trees. `words`: the texts of operands and types that have other names."""

    words: Mapping[str, str]

    def word(self, name: str) -> Text:
        return Text(self.words.get(name, name))

    def number(self, number: Number) -> Text:
        return Text(spell_number(number))

    def prefix(self, operator: str, operand: Text) -> Text:
        return Text(operator + operand.at_least(PREFIX), PREFIX)

    def operation(self, operator: str, left: Text, right: Text) -> Text:
        level = LEVELS[operator]
        least = RELATION + 1 if operator in ("==", "!=") else level  # a reader need not know which of both goes first
        return Text(f"{left.at_least(least)} {operator} {right.at_least(max(least, level + 1))}", level)

    def choice(self, condition: Text, chosen: Text, otherwise: Text) -> Text:
        above = CHOICE + 1
        return Text(f"{condition.at_least(above)} ? {chosen.at_least(above)} : {otherwise.text}", CHOICE)

    def conversion(self, type_name: str, operand: Text) -> Text:
        return Text(f"({self.words.get(type_name, type_name)}){operand.at_least(PREFIX)}", PREFIX)

    def call(self, function: str, arguments: Sequence[Text]) -> Text:
        return Text(f"{function}({', '.join(argument.text for argument in arguments)})")

    def element(self, array: Text, index: Text) -> Text:
        return Text(f"{array.at_least(PRIMARY)}[{index.text}]")

    def load(self, dtype: DType, buffer: str, index: Text) -> Text:
        return Text(load(dtype, buffer, index.text))

    def group(self, operand: Text) -> Text:
        return Text(f"({operand.text})")


def spell_number(number: Number) -> str:
    value = number.value
    if not number.hexadecimal:
        return f"{value}{number.suffix}"
    return (hex(value) if isinstance(value, int) else value.hex()) + number.suffix


def expression(tree: Tree, words: Mapping[str, str]) -> str:
    return fold(tree, CText(words)).text


def literal(value: float | int | bool, dtype: DType) -> str:
    """The C literal of a number, rounded to the type in registers."""
    return expression(number_tree(value, dtype), {})
