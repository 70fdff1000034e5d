"""The phases in which TensorFlow finds the faults of a text: it parses, verifies, and exports.

A fault of an earlier phase comes first, wherever it stands. A reader raises the first fault that it finds;
`fault_order` reads a refused text again and lets the faults of later phases wait.
"""

from __future__ import annotations

from ...lexer import Lexer, MalformedText


class ExportFault(MalformedText):
    """A fault of a verified text: no GraphDef holds it."""


class FaultReporter(Lexer):
    """A reader that raises the faults of all phases as it finds them."""

    def report(self, fault: MalformedText) -> None:
        """Raise a fault of the verifier."""
        raise fault

    def report_export(self, message: str, at: int, hint: str | None = None) -> None:
        """Raise a fault of the exporter."""
        raise ExportFault(message, self.location(at), (), hint)
