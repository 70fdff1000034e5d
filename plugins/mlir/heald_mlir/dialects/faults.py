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
        location = left.pop()
        if isinstance(location, a.FileLineColLoc):
            return errors.Location(location.file, location.line, location.column)
        if isinstance(location, a.NameLoc):
            left.append(location.child)
        elif isinstance(location, a.FusedLoc):
            left += reversed(location.locations)
        elif isinstance(location, a.CallSiteLoc):
            left += [location.caller, location.callee]
    return errors.Location("-")
