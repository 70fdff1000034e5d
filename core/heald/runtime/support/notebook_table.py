"""Tables and pictures for notebooks: HTML that `_repr_html_` returns.

Every cell is escaped, and long tables are cut.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape
from itertools import islice

from ...errors import printable

MOST_ROWS = 200
MOST_CHARACTERS = 300  # of a cell
HUES = (212, 28, 272, 150, 340, 186, 52, 100)  # of coloured cells, translucent: pages are light or dark


def notebook_table(title: str, rows: Sequence[Mapping[str, str]], columns: Sequence[str], coloured: str = "") -> str:
    """Return a title and a table of these rows. Equal texts in the column `coloured` have one colour.

    A column that is empty throughout is left out.
    """
    columns = [column for column in columns if any(row.get(column) for row in rows)]
    texts = dict.fromkeys(row.get(coloured) for row in rows)
    hues = {text: HUES[index % len(HUES)] for index, text in enumerate(texts)}
    lines = ["<tr>" + "".join(f"<th>{escape(column)}</th>" for column in columns) + "</tr>"]
    for row in islice(rows, MOST_ROWS):
        cells = [_cell(row.get(column, ""), hues[row.get(coloured)] if column == coloured else None)
                 for column in columns]
        lines.append(f"<tr>{''.join(cells)}</tr>")
    more = f"<p>and {len(rows) - MOST_ROWS} more rows</p>" if len(rows) > MOST_ROWS else ""
    return f"<p><b>{escape(_shown_text(title))}</b></p><table>{''.join(lines)}</table>{more}"


def notebook_picture(png: bytes) -> str:
    """Return a picture in the page itself, enlarged without a blur."""
    return ('<img alt="the tensor as a picture" style="image-rendering:pixelated;min-width:8rem" '
            f'src="data:image/png;base64,{b64encode(png).decode()}">')


def _cell(text: str, hue: int | None) -> str:
    style = "text-align:left" + (f";background:hsl({hue} 70% 50% / .22)" if hue is not None and text else "")
    return f'<td style="{style}">{escape(_shown_text(text))}</td>'


def _shown_text(text: str) -> str:
    text = printable(text)
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…"
