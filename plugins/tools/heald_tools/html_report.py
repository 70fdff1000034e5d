"""Reports as one HTML file: tables and lines of text, every cell escaped, without scripts and without other files.

The colours follow the reader's system, light or dark. A wide table scrolls by itself, so that the page keeps its width.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from heald.errors import InvalidArgument, printable
from heald.runtime.support import whole_file

Row = Mapping[str, Any]
_STYLE = """\
:root { color-scheme: light dark; --text: #1a1c20; --faint: #5c626d; --page: #ffffff; --line: #d9dce2; --head: #f3f4f7;
  --good: #0b6b34; --bad: #a61b1b; }
@media (prefers-color-scheme: dark) { :root { --text: #e4e6ea; --faint: #9aa1ad; --page: #15171b; --line: #33373f;
  --head: #1f2228; --good: #6fd39a; --bad: #ff9a9a; } }
body { margin: 2rem auto; max-width: 100rem; padding: 0 1.5rem; background: var(--page); color: var(--text);
  font: 15px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.4rem; margin: 0 0 .3rem; }
h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
p { color: var(--faint); margin: .2rem 0; overflow-wrap: anywhere; }
.table { overflow-x: auto; margin-top: 1rem; }
table { border-collapse: collapse; min-width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: .35rem .7rem; border-bottom: 1px solid var(--line);
  white-space: pre-line; }
td { max-width: 24rem; overflow-wrap: break-word; }
th { position: sticky; top: 0; background: var(--head); font-weight: 600; white-space: nowrap; }
.number { text-align: right; white-space: nowrap; }
.good { color: var(--good); } .bad { color: var(--bad); }
"""


def check_report_file(option: str, name: str | None, suffix: str) -> None:
    """Raise InvalidArgument for the file of a report that has another suffix: it may be a model in the wrong place."""
    if name is not None and Path(name).suffix.lower() != suffix:
        raise InvalidArgument(f"{option} '{name}' is no {suffix} file", hint=f"{option} report{suffix}")


def write_page(name: str | os.PathLike[str], title: str, parts: Sequence[str]) -> None:
    """Write a page of these parts of HTML. Raises the errors of `whole_file.write_whole`."""
    head = (f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{_text(title)}</title>\n'
            f'<meta name="viewport" content="width=device-width">\n<style>\n{_STYLE}</style>\n</head>\n<body>\n')
    body = "\n".join([f"<h1>{_text(title)}</h1>", *parts])
    whole_file.write_whole(Path(name), [f"{head}{body}\n</body>\n</html>\n".encode("utf-8", "replace")])


def paragraph(text: str) -> str:
    return f"<p>{_text(text)}</p>"


def heading(text: str) -> str:
    return f"<h2>{_text(text)}</h2>"


def table(rows: Sequence[Row], columns: Sequence[str], marked: Collection[str] = ()) -> str:
    """Return a table of rows. A column that is empty throughout is left out. "yes" and "no" have colours in the columns
    `marked`."""
    columns = [column for column in columns if any(row.get(column) not in (None, "") for row in rows)]
    lines = ["<tr>" + "".join(f"<th{_class(rows, column)}>{_text(column)}</th>" for column in columns) + "</tr>"]
    lines += ["<tr>" + "".join(_cell(row.get(column), column in marked) for column in columns) + "</tr>"
              for row in rows]
    return '<div class="table"><table>\n' + "\n".join(lines) + "\n</table></div>"


def _cell(value: Any, is_marked: bool) -> str:
    name = "number" if _is_number(value) else {"yes": "good", "no": "bad"}.get(value, "") if is_marked else ""
    attribute = f' class="{name}"' if name else ""
    return f"<td{attribute}>{_text(value)}</td>"


def _class(rows: Sequence[Row], column: str) -> str:
    values = [row.get(column) for row in rows]
    return ' class="number"' if all(value is None or _is_number(value) for value in values) else ""


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _text(value: Any) -> str:
    if value is None:
        return ""
    text = f"{value:,}" if type(value) is int else f"{value:,.3f}" if type(value) is float else str(value)
    return escape(printable(text, lines=True))
