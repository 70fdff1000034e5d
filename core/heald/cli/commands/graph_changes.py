"""The differences of two graphs as rows: for tables, for lines of text, and for JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...runtime.values.dtypes import DType
from ...runtime.values.tensor_proto import TensorValue
from ..printing.terminal import say

if TYPE_CHECKING:
    from argparse import Namespace

    from ...graphs.graph.comparison import Change, GraphDifference
    from ...graphs.graph.graph import Graph

COLUMNS = ("change", "kind", "name", "field", "before", "after")
DIFFERENT = 1  # exit status
_MAX_ROWS = 40  # differences shown without --all
_SHOWN_ELEMENTS = 6  # of a constant that are shown
_MAX_VALUE_CHARACTERS = 200  # characters of any other value
_COMPARED_ELEMENTS = 1 << 20  # elements that are compared at a time
_SIGNS = {"added": "+", "removed": "-", "changed": "~", "reordered": "~"}


def change_rows(difference: GraphDifference, before: Graph, after: Graph) -> list[dict[str, str]]:
    """Return a row for each added, removed and changed node and function, and for each version that differs.

    `found` is the comparison of both graphs.
    """
    rows = [
        *(_row("removed", "node", name, before=_node(before, name)) for name in difference.removed),
        *(_row("added", "node", name, after=_node(after, name)) for name in difference.added),
        *_change_rows("node", difference.changed),
        *(_row("removed", "function", name) for name in difference.functions_removed),
        *(_row("added", "function", name) for name in difference.functions_added),
        *_change_rows("function", difference.functions_changed),
        *_change_rows("graph", {"": difference.versions}),
    ]
    return [*rows, _row("reordered", "graph", "", "order of nodes")] if difference.reordered else rows


def tell_changes(rows: Sequence[Mapping[str, str]], *, few: int, text: bool = False) -> None:
    """Print a table of the first rows of `change_rows`, or a line each, and how many nodes and functions differ."""
    from ..printing.table import show

    shown = rows[:few]
    if text:
        for row in shown:
            say(_line(row))
    elif shown:
        show(shown, COLUMNS, cut=("name", "before", "after"))
        say()
    more = f"; {len(rows) - len(shown):,} more with --all" if len(shown) < len(rows) else ""
    say(f"{_counts(rows) or 'no difference'}{more}")


def compare_models(args: Namespace) -> int:
    """Show the differences of the models `args.model` and `args.other`. Returns 1 where they differ, else 0.

    `args` has the options of `add_loading`, and `all`, `text` and `json`. Raises as `open_graph`.
    """
    from argparse import Namespace

    from ...graphs.graph.comparison import compare
    from ..printing.progress import ticking
    from ..printing.table import show_json
    from .arguments import open_graph

    before, after = (open_graph(Namespace(**vars(args) | {"model": path})).graph for path in (args.model, args.other))
    with ticking("comparing"):
        difference = compare(before, after)
        rows = change_rows(difference, before, after)
    if args.json:
        show_json(rows)
    else:
        tell_changes(rows, few=len(rows) if args.all else _MAX_ROWS, text=args.text)
    return DIFFERENT if difference else 0


def _counts(rows: Sequence[Mapping[str, str]]) -> str:
    from ..printing.table import plural

    names: dict[tuple[str, str], set[str]] = {}
    for row in rows:
        names.setdefault((row["kind"], row["change"]), set()).add(row["name"])
    return ", ".join("nodes reordered" if change == "reordered" else
                     "versions changed" if kind == "graph" else f"{plural(len(changed_names), kind)} {change}"
                     for (kind, change), changed_names in names.items())


def _row(change: str, kind: str, name: str, field: str = "", before: str = "", after: str = "") -> dict[str, str]:
    return {"change": change, "kind": kind, "name": name, "field": field, "before": before, "after": after}


def _change_rows(kind: str, changed: Mapping[str, Sequence[Change]]) -> Iterator[dict[str, str]]:
    for name, changes in changed.items():
        for change in changes:
            before, after = _texts(change)
            yield _row("changed", kind, name, change.field.removeprefix("attrs."), before, after)


def _line(row: Mapping[str, str]) -> str:
    words = " ".join(word for word in (_SIGNS[row["change"]], row["kind"], row["name"], row["field"]) if word)
    if row["change"] == "changed":
        return f"{words}: {row['before'] or 'nothing'} -> {row['after'] or 'nothing'}"
    value = row["before"] or row["after"]
    return f"{words}: {value}" if value else words


def _node(graph: Graph, name: str) -> str:
    node = graph.nodes[name]
    inputs = ", ".join((*map(str, node.inputs), *(f"^{control}" for control in node.controls)))
    value = node.attrs.get("value")
    return f"{node.op} {_tensor(value)}" if isinstance(value, TensorValue) else f"{node.op}({inputs})"


def _texts(change: Change) -> tuple[str, str]:
    """Both values of a change. Constants of one type and shape are shown at their first element that differs."""
    one, other = change.before, change.after
    if isinstance(one, TensorValue) and isinstance(other, TensorValue) and one.size > _SHOWN_ELEMENTS:
        at = _first_difference(one, other)
        if at is not None:
            return _tensor(one, at), _tensor(other, at)
    return _text(one), _text(other)


def _first_difference(one: TensorValue, other: TensorValue) -> int | None:
    """The index of the first element, in C order, whose bits differ. None where types or shapes differ, and for values
    that have no elements in the file."""
    import numpy as np

    if one.dtype is not other.dtype or one.shape != other.shape or one.dtype.name in ("resource", "variant"):
        return None
    one_flat, theirs = one.array().reshape(-1), other.array().reshape(-1)
    for start in range(0, one.size, _COMPARED_ELEMENTS):
        left, right = (np.ascontiguousarray(side[start : start + _COMPARED_ELEMENTS]) for side in (one_flat, theirs))
        if left.dtype != object:
            left, right = (side.view(np.uint8).reshape(len(side), -1) for side in (left, right))
        unequal = left != right
        differing = np.flatnonzero(unequal if unequal.ndim == 1 else unequal.any(axis=1))
        if differing.size:
            return start + int(differing[0])
    return None


def _tensor(value: TensorValue, at: int | None = None) -> str:
    """A constant as text: its type and shape, and its elements where they are few. `at`: the index of the only element
    to show."""
    import numpy as np

    shape = ",".join(map(str, value.shape))
    head = f"{value.dtype.name}[{shape}]"
    if value.dtype.name in ("resource", "variant") or (at is None and value.size > _SHOWN_ELEMENTS):
        return head
    if at is None:
        return f"{head} {value.array().tolist()}"
    where = ",".join(map(str, np.unravel_index(at, value.shape)))
    return f"{head} [{where}]={value.array().reshape(-1)[at]}"


def _text(value: Any) -> str:
    if isinstance(value, TensorValue):
        return _tensor(value)
    if isinstance(value, DType):
        return value.name
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, tuple) and type(value) is tuple:
        text = f"({', '.join(map(_text, value))})"
    else:
        text = "" if value is None else str(value)
    return text if len(text) <= _MAX_VALUE_CHARACTERS else f"{text[: _MAX_VALUE_CHARACTERS - 1]}…"
