"""Comparison: the nodes, functions and versions in which two graphs differ.

Values are compared, not their encodings: a constant is equal to another one with the same type, shape and bits of
elements. Contents of files are compared as views, without copies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ...runtime.values import dtypes
from ...runtime.values.attribute_values import Func
from ...runtime.values.tensor_proto import TensorValue
from .function import Function
from .graph import Graph, Node

_ELEMENTS_AT_A_TIME = 1 << 20  # elements that are compared at a time


class Change(NamedTuple):
    """One difference of two nodes or functions: its field, such as `op` or `attrs.T`, and both values. A value of None
    stands for a missing attribute."""

    field: str
    before: Any
    after: Any


class GraphDifference(NamedTuple):
    """The names of nodes that only one graph has, the changes of the others by name, the same for functions, and both
    versions where they differ. `reordered`: the nodes of both graphs are in another order."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: Mapping[str, tuple[Change, ...]]
    functions_added: tuple[str, ...]
    functions_removed: tuple[str, ...]
    functions_changed: Mapping[str, tuple[Change, ...]]
    versions: tuple[Change, ...]
    reordered: bool

    def __bool__(self) -> bool:
        return any(self)


def compare(before: Graph, after: Graph) -> GraphDifference:
    """Return the differences of two graphs; it is false when there are none.

    Raises FailedPrecondition when the file of a constant has changed, Unimplemented and ResourceExhausted for constants
    that are encoded differently and cannot be read.
    """
    added, removed, changed = _added_removed_changed(before.nodes, after.nodes, _node_changes)
    functions = _added_removed_changed(before.functions, after.functions, _function_changes)
    common = [name for name in before.nodes if name in after.nodes]
    versions = _changes("versions", before.versions, after.versions)
    return GraphDifference(added, removed, changed, *functions, tuple(versions),
                           common != [name for name in after.nodes if name in before.nodes])


def _added_removed_changed(before: Mapping[str, Any], after: Mapping[str, Any], changes: Any) -> tuple[Any, Any, Any]:
    both = {name: tuple(changes(old, after[name])) for name, old in before.items() if name in after}
    return (tuple(name for name in after if name not in before), tuple(name for name in before if name not in after),
            {name: differences for name, differences in both.items() if differences})


def _node_changes(before: Node, after: Node) -> Iterator[Change]:
    if before is after or (before.attrs is after.attrs and before.raw == after.raw):
        return
    for field in ("op", "device", "inputs", "controls", "extra"):
        yield from _changes(field, getattr(before, field), getattr(after, field))
    yield from _attr_changes(before.attrs, after.attrs)


def _function_changes(before: Function, after: Function) -> Iterator[Change]:
    if before is after or before.raw == after.raw:
        return
    for field in ("inputs", "outputs", "ret", "control_ret", "stateful", "arg_attrs"):
        yield from _changes(field, getattr(before, field), getattr(after, field))
    yield from _attr_changes(before.attrs, after.attrs)
    added, removed, changed = _added_removed_changed(before.nodes, after.nodes, _node_changes)
    yield from (Change(f"nodes.{name}", None, after.nodes[name].op) for name in added)
    yield from (Change(f"nodes.{name}", before.nodes[name].op, None) for name in removed)
    for name, node_differences in changed.items():
        yield from (change._replace(field=f"nodes.{name}.{change.field}") for change in node_differences)


def _attr_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Change]:
    for key in dict.fromkeys((*before, *after)):
        if key not in before or key not in after or not _equal(before[key], after[key]):
            yield Change(f"attrs.{key}", before.get(key), after.get(key))


def _changes(field: str, before: Any, after: Any) -> Iterator[Change]:
    if before != after:
        yield Change(field, before, after)


def _equal(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, TensorValue):
        return _equal_tensors(one, other)
    if isinstance(one, Func):
        keys = one.attrs.keys()
        return (one.name == other.name and keys == other.attrs.keys()
                and all(_equal(one.attrs[key], other.attrs[key]) for key in keys))
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(_equal, one, other))
    return bool(one == other or (one != one and other != other))  # NaN equals NaN here


def _equal_tensors(one: TensorValue, other: TensorValue) -> bool:
    """True for equal types, shapes and bits; encodings may differ."""
    if one.dtype is not other.dtype or one.shape != other.shape:
        return False
    if one.raw == other.raw:
        return True
    if one.dtype in (dtypes.resource, dtypes.variant):
        return False
    elements, other_elements = one.array().reshape(-1), other.array().reshape(-1)
    for at in range(0, one.size, _ELEMENTS_AT_A_TIME):
        left, right = elements[at : at + _ELEMENTS_AT_A_TIME], other_elements[at : at + _ELEMENTS_AT_A_TIME]
        if left.tolist() != right.tolist() if one.dtype is dtypes.string else left.tobytes() != right.tobytes():
            return False
    return True
