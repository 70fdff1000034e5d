"""Locations of nodes as the field `experimental_debug_info`, which has the names of original nodes and functions."""

from __future__ import annotations

from collections.abc import Iterator

from heald.api import wire

from ... import attributes as a

_DEBUG_INFO = 6  # field of NodeDef
_NODE_NAMES, _FUNCTION_NAMES = 1, 2  # fields of its message


def debug_info(location: a.Location) -> bytes:
    """The field for a location: named ones alone have names, `node@function`. Nothing for other locations."""
    location = _simplify(location)
    parts = location.locations if isinstance(location, a.FusedLoc) else (location,)
    nodes, functions = [], []
    for part in parts:
        if isinstance(part, a.NameLoc):
            node, _, function = part.name.partition("@")
            nodes.append(wire.put_bytes(_NODE_NAMES, node))
            if function:
                functions.append(wire.put_bytes(_FUNCTION_NAMES, function))
    return wire.put_bytes(_DEBUG_INFO, b"".join([*nodes, *functions])) if nodes else b""


def _simplify(location: a.Location) -> a.Location:
    """A location as MLIR keeps it: fused ones hold each location once, and those of fused ones with like metadata."""
    if not isinstance(location, a.FusedLoc):
        return location
    locations = tuple(dict.fromkeys(_flatten(location)))
    if location.metadata is None and len(locations) < 2:
        return locations[0] if locations else a.UNKNOWN
    return a.FusedLoc(locations, location.metadata)


def _flatten(location: a.FusedLoc) -> Iterator[a.Location]:
    for part in map(_simplify, location.locations):
        if isinstance(part, a.FusedLoc) and part.metadata == location.metadata:
            yield from part.locations
        elif not isinstance(part, a.UnknownLoc):
            yield part
