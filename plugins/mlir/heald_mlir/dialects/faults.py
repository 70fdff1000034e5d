"""Diagnostics of operations, at their places in the source."""

from __future__ import annotations

from heald.api import errors

from .. import attributes as a
from ..ir import Operation
from ..lexer import MalformedText


def fault(operation: Operation, message: str) -> MalformedText:
    """A diagnostic in MLIR's form: `'name' op message`."""
    error = MalformedText(f"'{operation.name}' op {message}", location_of(operation))
    error.op = operation.name
    return error


def location_of(operation: Operation) -> errors.Location:
    """The place of an operation in a file: the first one that its location has."""
    left: list[a.Location | None] = [operation.location]
    while left:
        found = left.pop()
        if isinstance(found, a.FileLineColLoc):
            return errors.Location(found.file, found.line, found.column)
        if isinstance(found, a.NameLoc):
            left.append(found.child)
        elif isinstance(found, a.FusedLoc):
            left += reversed(found.locations)
        elif isinstance(found, a.CallSiteLoc):
            left += [found.caller, found.callee]
    return errors.Location("-")
