"""Tables for people and JSON for programs, from the same rows."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ...errors import printable
from .terminal import say

Row = Mapping[str, Any]
MIN_COLUMN_WIDTH = 12  # columns of the terminal that a column keeps when the table is too wide


def show(rows: Sequence[Row], columns: Sequence[str], *, cut: Collection[str] = (), wrap: Collection[str] = ()) -> None:
    """Print rows under these headings; a column that is empty throughout is left out.

    On a terminal that is too narrow the columns in `cut` lose their middle and those in `wrap` take several lines;
    piped output is printed whole.
    """
    columns = [c for c in columns if any(row.get(c) not in (None, "") for row in rows)]
    cells = [[_text(row.get(c)) for c in columns] for row in rows]
    import tabulate

    tabulate.MIN_PADDING = 0  # it would make a column two wider than its heading
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    for index, width in _narrowed_widths(columns, widths, cut, wrap).items():
        for line in cells:
            line[index] = _cut(line[index], width) if columns[index] in cut else _wrap_text(line[index], width)
    right = [all(type(row.get(c)) in (int, float, type(None)) for row in rows) for c in columns]
    say(tabulate.tabulate(cells, headers=columns, tablefmt="simple", disable_numparse=True,
                          colalign=["right" if r else "left" for r in right]))


def show_markdown(rows: Sequence[Row], columns: Sequence[str]) -> None:
    """Print rows under these headings as a table of Markdown."""
    import tabulate

    tabulate.MIN_PADDING = 0
    cells = [[_text(row.get(c)) for c in columns] for row in rows]
    say(tabulate.tabulate(cells, headers=columns, tablefmt="github", disable_numparse=True))


def show_json(value: Any) -> None:
    """Print `value` as JSON; numbers that are not finite are text, as in protobuf's JSON."""
    finite = _finite(value)
    text = json.dumps(finite, indent=2, ensure_ascii=False, default=str)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8", "surrogatepass")
    except UnicodeEncodeError:  # Python's escapes for letters that the terminal lacks are not JSON's
        text = json.dumps(finite, indent=2, default=str)
    say("\n".join(line if line.isprintable() else _escape_line(line) for line in text.split("\n")))


def _escape_line(line: str) -> str:
    """A line of JSON with JSON's escapes for unprintable characters, which only its texts can have."""
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in line)


def byte_text(count: int) -> str:
    """A number of bytes as people read it: `14.4 MB`."""
    size = float(count)
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 999.5:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"


def plural(count: int, noun: str) -> str:
    """`1 node`, `3 nodes`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _narrowed_widths(
    columns: Sequence[str], widths: Sequence[int], cut: Collection[str], wrap: Collection[str]
) -> dict[int, int]:
    """The widths of the columns that must become narrower; the widest columns give first."""
    if not (sys.stdout.isatty() or "COLUMNS" in os.environ):
        return {}
    room = shutil.get_terminal_size().columns - 2 * (len(widths) - 1)
    flexible = {i: widths[i] for i, c in enumerate(columns) if c in cut or c in wrap}
    now = dict(flexible)
    while now and sum(widths) - sum(flexible.values()) + sum(now.values()) > room:
        widest = max(now, key=lambda i: now[i])
        if now[widest] <= MIN_COLUMN_WIDTH:
            break
        now[widest] -= 1
    return {i: width for i, width in now.items() if width < flexible[i]}


def _cut(text: str, width: int) -> str:
    if len(text) <= width:
        return text
    tail = (width - 1) * 2 // 3  # the end of a node's name says more than its scope
    return f"{text[: width - 1 - tail]}…{text[-tail:]}"


def _wrap_text(text: str, width: int) -> str:
    from textwrap import wrap

    return "\n".join(wrap(text, width))


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else f"{value:,}" if isinstance(value, int) else printable(str(value))


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {str(key): _finite(entry) for key, entry in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value
