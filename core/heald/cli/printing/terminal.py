"""Text on stdout: no character of a model, a file's name or a result acts on the terminal.

Commands print through `say`, which escapes control characters.
"""

from __future__ import annotations

from ...errors import printable


def say(text: str = "") -> None:
    """Print a line, or several, with escapes for unprintable characters."""
    print(printable(text, lines=True))
