"""Joined calls: adjacent attached calls of a frame run as one call, where the kernels' plugin can join them.

A small kernel's work takes less than its call from Python. The plugin makes one native call of several. The joined call
takes the place of the first, and the other calls do nothing: indices in a flat list stay the same. Runs with a deadline
or a trace go on making each call. An error of a joined call is reported at its first node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from operator import itemgetter

from ..support.plugin_guard import plugin_guard
from .calls.frame_calls import FrameCall, nothing
from .frame import Frame


def join_adjacent_calls(frame: Frame) -> None:
    """Replace calls that have the same `join` (see Attachable), and stand side by side, by joined ones."""
    calls = list(frame.calls)
    joined: list[FrameCall] = []
    for join, group in groupby(((getattr(call, "join", None), call) for call in calls), key=itemgetter(0)):
        adjacent = [call for _, call in group]
        joined += adjacent if join is None or len(adjacent) == 1 else _join(join, adjacent)
    if joined != calls:
        frame.calls, frame.unreplayed = joined, calls


def _join(join: Callable[[Sequence[FrameCall]], Sequence[FrameCall | None]], adjacent: Sequence[FrameCall]
          ) -> list[FrameCall]:
    """Raises PluginError when the plugin's `join` fails, or returns another number of calls."""
    with plugin_guard("'join' of attached calls"):
        joined = [nothing if call is None else call for call in join(adjacent)]
        if len(joined) != len(adjacent):
            raise ValueError(f"it returned {len(joined)} calls in the place of {len(adjacent)}")
    return joined
