"""Graph passes: functions from Graph to Graph that plugins register under a name, with their stage and order.

`heald.api` has the functions that make new nodes; they are in `graph/rewriting.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from ...errors import PluginError
from ..support.records import NamedTuple
from ..values.tensor import ValueInfo

if TYPE_CHECKING:
    from .loader import Initializer

FUSION = "fusion"  # the linker's own fusion, no plugin's pass; `[passes] disable` switches it off like one
PRE_PLACEMENT, GRAPH, ON_REQUEST = "pre_placement", "graph", "on_request"
# "pre_placement": once per session, over its whole graph. "graph": once per step, over the part that the step needs.
# "on_request": in no session, only where a user names the pass (heald opt --passes).
STAGES = (PRE_PLACEMENT, GRAPH, ON_REQUEST)


class PassContext(NamedTuple):
    """The facts that a pass receives besides the graph.

    `kept`: The names of the nodes that are fed, fetched or run. They must stay in the graph under their name and return
        the same values. A fed node returns its feed, not the result of its op. A node that is fed and never computed is
        a Placeholder in the graph.
    `resolve(node)`: The node as a Resolved, with its op and all attributes as kernels see them. None where the node
        does not fit its op.
    `infer(graph)`: By node name, a ValueInfo for each output, as known before the run. Elements are known where they
        depend on constants alone and take little more memory than these. Nodes that do not fit their op are left out.
    `initial_state`: In the stage "pre_placement", the initializers of the session's state. One whose target a pass
        removes never runs. A pass lets errors of `values()` through: they are the file's.
    `ops`: The op table; `ops.get(name)` is the OpDef of an op, and raises NotFound for an unknown one.
    `feeds`, `fetches`: On request, the tensors that a user names, in order, as text. Their nodes are in `kept`.
    `entry`: On request, the function that a user names, or None.

    In the stage "pre_placement" `kept` is empty, for any node may be fed, fetched or run later: a pass keeps the names
    of the nodes that it replaces, and their outputs' values.
    """

    kept: frozenset[str]
    resolve: Callable[[Any], Any]
    infer: Callable[[Any], Mapping[str, tuple[ValueInfo, ...]]]
    initial_state: tuple[Initializer, ...] = ()
    ops: Any = None
    feeds: tuple[str, ...] = ()
    fetches: tuple[str, ...] = ()
    entry: str | None = None


class GraphPass(NamedTuple):
    """A registered pass: `function(graph, context) -> graph`, or "module:function", imported at its first run. `after`
    and `before` are names of passes.

    `about`: Its effect, in a line.
    `preserves`: The properties of a graph that it leaves alone, in a line.
    `repeats`: Empty for an idempotent pass, else the reason why a second run may change more.
    """

    name: str
    function: str | Callable[[Any, PassContext], Any]
    stage: str
    after: tuple[str, ...]
    before: tuple[str, ...]
    plugin: str
    about: str = ""
    preserves: str = ""
    repeats: str = ""


def ordered_passes(passes: Collection[GraphPass], stage: str) -> list[GraphPass]:
    """The passes of a stage, each after the passes that it names in `after` and before those in `before`. Passes that
    are free in that order are sorted by name, never by registration.

    Raises PluginError for a cycle.
    """
    from graphlib import CycleError, TopologicalSorter  # compiled files have no passes

    passes_by_name = {p.name: p for p in sorted(passes, key=lambda p: p.name) if p.stage == stage}
    sorter: TopologicalSorter[str] = TopologicalSorter(dict.fromkeys(passes_by_name, ()))
    for name, entry in passes_by_name.items():
        sorter.add(name, *(other for other in entry.after if other in passes_by_name))
        for other in entry.before:
            if other in passes_by_name:
                sorter.add(other, name)
    try:
        sorter.prepare()
    except CycleError as error:
        raise PluginError(f"the order of passes is a cycle: {' -> '.join(error.args[1])}",
                          hint="change `after` or `before` of one of them") from None
    order: list[GraphPass] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        order += [passes_by_name[name] for name in ready]
        sorter.done(*ready)
    return order
