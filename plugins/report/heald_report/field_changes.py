"""The fields of a node that a pass rewrote, before and after, as texts.

A tensor is its type and shape: the page has no weights. A text is cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .node_table import shown_text, without_folders

MOST_VALUE_CHARACTERS = 160
ABSENT = ""

Field = tuple[str, str, str]


def field_changes(before: Any, after: Any) -> list[Field]:
    """Return name, text before and text after of each field that differs."""
    rows: list[Field] = []
    if before.op != after.op:
        rows.append(("op", shown_text(before.op), shown_text(after.op)))
    if before.device != after.device:
        rows.append(("device", shown_text(before.device), shown_text(after.device)))
    if before.inputs != after.inputs or before.controls != after.controls:
        rows.append(("inputs", _cut(_inputs_text(before)), _cut(_inputs_text(after))))
    return [*rows, *_attribute_changes(before.attrs, after.attrs)]


def _attribute_changes(before: Any, after: Any) -> Iterator[Field]:
    if before is after:
        return
    for key in dict.fromkeys((*before, *after)):
        old, new = before.get(key), after.get(key)
        if old is new and (key in before) == (key in after):
            continue
        if not (hasattr(old, "shape") or hasattr(new, "shape")) and old == new and (key in before) == (key in after):
            continue
        texts = [value_text(side[key]) if key in side else ABSENT for side in (before, after)]
        if texts[0] == texts[1]:
            texts[1] = f"{texts[1]}, other elements"
        yield shown_text(str(key)), texts[0], texts[1]


def value_text(value: Any) -> str:
    """Return an attribute's value as text; of a tensor the type and shape alone."""
    if isinstance(value, (list, tuple)):
        return _cut(f"[{', '.join(map(value_text, value[:MOST_VALUE_CHARACTERS]))}]")
    dtype = getattr(value, "dtype", None)
    if dtype is not None:
        return _cut(f"tensor {dtype}{list(getattr(value, 'shape', ()))}")
    if isinstance(value, bytes):
        value = value[:MOST_VALUE_CHARACTERS].decode("utf-8", "replace")
    return _cut(str(getattr(value, "name", value)))


def _inputs_text(node: Any) -> str:
    return ", ".join((*map(str, node.inputs), *(f"^{control}" for control in node.controls)))


def _cut(text: str) -> str:
    text = without_folders(shown_text(text))
    return text if len(text) <= MOST_VALUE_CHARACTERS else f"{text[:MOST_VALUE_CHARACTERS]}…"
