"""Trees and statements as C: operators by their precedence, with the fewest parentheses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from heald.api import DType

from .element_types import load, number_tree, store
from .statements import (
    Array,
    Assign,
    Barrier,
    Body,
    Define,
    Exit,
    Indented,
    Layout,
    Loop,
    SameLine,
    Statement,
    Store,
    When,
)
from .statements import Step as LoopStep
from .tree import OFFSET, Number, Tree, fold

_ROWS = ("?", "||", "&&", "|", "^", "&", "== !=", "< <= > >=", "<< >>", "+ -", "* / %")  # the loosest first
LEVELS = {operator: level for level, row in enumerate(_ROWS, 1) for operator in row.split()}
CHOICE, RELATION, PREFIX, PRIMARY = LEVELS["?"], LEVELS["<"], 12, 13


class Text(NamedTuple):
    """An expression, and the level of its outermost operator."""

    text: str
    level: int = PRIMARY

    def at_least(self, level: int) -> str:
        return self.text if self.level >= level else f"({self.text})"


class CText:
    """A reader of trees."""

    def word(self, name: str) -> Text:
        return Text(name)

    def number(self, number: Number) -> Text:
        return Text(spell_number(number))

    def prefix(self, operator: str, operand: Text) -> Text:
        return Text(operator + operand.at_least(PREFIX), PREFIX)

    def operation(self, operator: str, left: Text, right: Text) -> Text:
        level = LEVELS[operator]
        least = RELATION + 1 if operator in ("==", "!=") else level  # a reader need not know which of both goes first
        return Text(f"{left.at_least(least)} {operator} {right.at_least(max(least, level + 1))}", level)

    def choice(self, condition: Text, result: Text, otherwise: Text) -> Text:
        above = CHOICE + 1
        return Text(f"{condition.at_least(above)} ? {result.at_least(above)} : {otherwise.text}", CHOICE)

    def conversion(self, type_name: str, operand: Text) -> Text:
        return Text(f"({type_of(type_name)}){operand.at_least(PREFIX)}", PREFIX)

    def call(self, function: str, arguments: Sequence[Text]) -> Text:
        return Text(f"{function}({', '.join(argument.text for argument in arguments)})")

    def element(self, array: Text, index: Text) -> Text:
        return Text(f"{array.at_least(PRIMARY)}[{index.text}]")

    def load(self, dtype: DType, buffer: str, index: Text) -> Text:
        return Text(load(dtype, buffer, index.text))

    def group(self, operand: Text) -> Text:
        return Text(f"({operand.text})")


C_TEXT = CText()


def type_of(name: str) -> str:
    return "i64" if name == OFFSET else name


def spell_number(number: Number) -> str:
    value = number.value
    if not number.hexadecimal:
        return f"{value}{number.suffix}"
    return (hex(value) if isinstance(value, int) else value.hex()) + number.suffix


def expression(tree: Tree) -> str:
    return fold(tree, C_TEXT).text


def literal(value: float | int | bool, dtype: DType) -> str:
    """The C literal of a number, rounded to the type in registers."""
    return expression(number_tree(value, dtype))


def write_lines(body: Body) -> list[str]:
    """Statements as lines of C."""
    return [line for statement in body for line in _lines(statement)]


def _lines(statement: Statement) -> list[str]:
    match statement:
        case Loop(layout=layout):
            return [*["UNROLL"] * statement.unroll, *_enclose(_loop_head(statement), statement.body, layout)]
        case When(condition, body, layout):
            return _enclose(f"if ({expression(condition)})", body, layout)
        case Indented(body):
            return [f"  {line}" for line in write_lines(body)]
        case SameLine(body):
            return [" ".join(write_lines(body))]
        case str():
            return [statement]
    return [_simple_line(statement)]


def _simple_line(statement: Statement) -> str:
    match statement:
        case Define(type_name, values, constant):
            variables = ", ".join(f"{name} = {expression(value)}" for name, value in values.items())
            return f"{'const ' * constant}{type_of(type_name)} {variables};"
        case Array(type_name, name, length, is_shared):
            return f"{'LOCAL ' * is_shared}{type_name} {name}[{length}];"
        case Assign(variable, value, operator):
            return f"{expression(variable)} {operator}= {expression(value)};"
        case Store(dtype, buffer, index, value):
            return store(dtype, buffer, expression(index), expression(value))
        case Exit():
            return "return;"
        case Barrier():
            return "BARRIER;"
    raise TypeError(f"{type(statement).__name__} is no statement")


def _loop_head(loop: Loop) -> str:
    starts = ", ".join(f"{step.name} = {expression(step.start)}" for step in loop.steps)
    return f"for ({loop.type_name} {starts}; {expression(loop.condition)}; {', '.join(map(_change, loop.steps))})"


def _change(step: LoopStep) -> str:
    by = expression(step.by)
    return f"{step.name}++" if (step.operator, by) == ("+", "1") else f"{step.name} {step.operator}= {by}"


def _enclose(head: str, body: Body, layout: Layout) -> list[str]:
    lines = write_lines(body)
    match layout:
        case "behind":
            return [f"{head} {' '.join(lines)}"]
        case "braces":
            return [f"{head} {{ {' '.join(lines)} }}"]
        case "below":
            return [head, *lines]
    indent = "  " if layout == "indented" else ""
    return [f"{head} {{", *(indent + line for line in lines), "}"]
