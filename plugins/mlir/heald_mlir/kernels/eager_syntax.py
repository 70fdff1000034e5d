"""The text of calls of eager ops: `corert.executeop(%handler) "Add"(%a, %b) {axis = 0 : i32} : 1`.

The braces hold the attributes of the op, further braces hold attributes that name functions. The number behind the
colon counts the tensors that the op returns; without it the op returns none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heald.api import errors

from .. import attributes as a
from .. import types as t
from ..dialects.format_elements import uses
from ..ir import Operation
from ..lexer import unescaped_text

if TYPE_CHECKING:
    from ..parser import Parser
    from ..printer import Printer

MAX_RESULTS = 1 << 16  # tensors that a call of an op returns
_CHAIN, _HANDLE = t.OpaqueType("tfrt", "chain"), t.OpaqueType("corert", "tensorhandle")
_HANDLER, _OP = t.OpaqueType("corert", "ophandler"), t.OpaqueType("corert", "op")
_ATTRS, _FUNCTIONS, _NAME = "op_attrs", "op_func_attrs", "op_name"


class CallSyntax:
    """A call whose first operands are of the types `leading`; the chain among them is the first result, too.

    `is_named`: True where an attribute names the op, False where the first operand is the op.
    """

    def __init__(self, leading: tuple[t.Type, ...], is_named: bool) -> None:
        self._leading = leading
        self._is_named = is_named
        self._results = [of for of in leading if of == _CHAIN]

    def parse(self, parser: Parser, name: str) -> Operation:
        """Parse all behind the operation's name. Raises MalformedText."""
        parser.expect("(")
        at, leading = parser.at, uses(parser)
        if len(leading) != len(self._leading):
            raise parser.error(f"'{name}' takes {len(self._leading)} values here, {len(leading)} are given", at)
        parser.expect(")")
        attributes: dict[str, a.Attribute] = {}
        if self._is_named:
            attributes[_NAME] = a.StringAttr(unescaped_text(parser.take("string", "the name of an op")))
        parser.expect("(")
        tensors = uses(parser)
        parser.expect(")")
        attributes[_ATTRS] = self._pairs(parser)
        attributes[_FUNCTIONS] = self._pairs(parser)
        at = parser.at
        count = parser.count("the number of results") if parser.accept(":") else 0
        if count > MAX_RESULTS:
            raise parser.error(f"an op returns at most {MAX_RESULTS} tensors, not {count}", at)
        types = [*self._leading, *[_HANDLE] * len(tensors)]
        operands = [parser.resolve(*use, of) for use, of in zip([*leading, *tensors], types, strict=True)]
        return Operation(name, operands, (*self._results, *[_HANDLE] * count), attributes, [])

    def print(self, printer: Printer, operation: Operation) -> None:
        """Write all behind the operation's name. Raises InvalidArgument for one that is not as it was declared."""
        printed_names = {_ATTRS, _FUNCTIONS, _NAME}
        if not operation.attributes.keys() <= printed_names or (self._is_named and _NAME not in operation.attributes):
            raise errors.InvalidArgument("the operation has other attributes than its syntax prints", op=operation.name,
                                         hint="print its generic form")
        leading = len(self._leading)
        printer.write(f"({printer.operands(operation.operands[:leading])})")
        if self._is_named:
            printer.write(f" {printer.attribute(operation.attributes[_NAME])}")
            printer.write("(")
        else:
            printer.write(" (")
        printer.write(f"{printer.operands(operation.operands[leading:])})")
        functions = _entries(operation, _FUNCTIONS)
        entries = _entries(operation, _ATTRS)
        if functions and not entries:
            printer.write(" {}")
        printer.dictionary(entries)
        printer.dictionary(functions)
        tensors = len(operation.results) - len(self._results)
        if tensors:
            printer.write(f" : {tensors}")

    def _pairs(self, parser: Parser) -> a.Attribute:
        if parser.text != "{" or parser.kind != "punctuation":
            return a.ArrayAttr(())
        return a.ArrayAttr(tuple(a.ArrayAttr((a.StringAttr(key), value)) for key, value in parser.dictionary().items()))


def _entries(operation: Operation, name: str) -> dict[str, a.Attribute]:
    attributes = {}
    for pair in getattr(operation.attributes.get(name), "items", ()):
        key, value = pair.items
        attributes[key.value] = value
    return attributes


CALL = CallSyntax((_HANDLER,), True)
ORDERED_CALL = CallSyntax((_HANDLER, _CHAIN), True)
COMPOSITE_CALL = CallSyntax((_OP,), False)
