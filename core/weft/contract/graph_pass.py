"""Passes: functions from graph to graph that plugins bring under a name, each saying when it wants to run.

What they make new nodes with is in `rewriting`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple

from ..errors import PluginError
from ..values.tensor import ValueInfo

FUSION = "fusion"  # no plugin's, but what the linker does: it can be switched off like a pass
STAGES = ("graph",)  # after pruning, before shapes are inferred


class PassContext(NamedTuple):
    """What a pass knows beside the graph.

    `kept`: the nodes that are fed, fetched or run; they stay, by name, and give what they gave. What a fed one gives is
    not what its op would compute; one that is fed and not computed as well is a Placeholder in the graph.
    `resolve(node)`: the node with its op and all attributes, as kernels see them; None where it does not fit its op.
    `infer(graph)`: by node what is known of its outputs before the run, with the elements of what needs constants alone
    and does not take much more memory than they; nodes that do not fit their op are left out.
    """

    kept: frozenset[str]
    resolve: Callable[[Any], Any]
    infer: Callable[[Any], Mapping[str, tuple[ValueInfo, ...]]]


class GraphPass(NamedTuple):
    """`function(graph, context) -> graph`, or "module:function". `after`, `before`: names of passes."""

    name: str
    function: str | Callable[[Any, PassContext], Any]
    stage: str
    after: tuple[str, ...]
    before: tuple[str, ...]
    plugin: str


def in_order(passes: Collection[GraphPass], stage: str) -> list[GraphPass]:
    """The passes of a stage, each after those it names; otherwise by name, never by order of registration."""
    chosen = {p.name: p for p in sorted(passes, key=lambda p: p.name) if p.stage == stage}
    sorter: TopologicalSorter[str] = TopologicalSorter(dict.fromkeys(chosen, ()))
    for name, entry in chosen.items():
        sorter.add(name, *(other for other in entry.after if other in chosen))
        for other in entry.before:
            if other in chosen:
                sorter.add(other, name)
    try:
        sorter.prepare()
    except CycleError as error:
        raise PluginError(f"passes want to run before each other: {' -> '.join(error.args[1])}") from None
    order: list[GraphPass] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        order += [chosen[name] for name in ready]
        sorter.done(*ready)
    return order
