"""Group claims: shows the placed functions of a step to compilers, and moves the groups that they claim into bodies.

A compiler sees one function at a time, on each device of its type. It sees no node that must run by itself.
"""

# A node must run by itself, so that no compiler sees it, in these cases:
#
#   the runtime serves it             constants, calls of functions, Send and Recv have no kernel
#   its kernel may wait               a queue's result may depend on a node that the group has not run yet
#   it depends on such a node         then the group would wait, and the value may depend on the group
#   a value of its function may die   a group runs whole or not at all, and a dead value kills its consumers alone
#   it opens files                    a config permits that by node
#   it has state                      unless the compiler declares `stateful`

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set

from ...errors import HealdError, PluginError, describe_exception
from ...runtime.contract.compiler import CompilerEntry, PlacedPart
from ...runtime.contract.op_registry import OpRegistry
from ...runtime.contract.placement import Placement
from ...runtime.program.groups import escape, is_groupable, outline, split
from ...runtime.program.host_program import ProgramFunction
from ...runtime.support.fault_place import is_raised_by
from ...runtime.support.records import NamedTuple
from ...runtime.support.remedy import compiler_remedy
from ...runtime.values.tensor import ValueInfo
from ..graph.graph import Graph
from ..graph.rewriting import new_name
from .call_site import CallSite
from .lower import OPS_WITH_DEAD_OUTPUTS
from .resolve import Resolved


class LoweredFunction(NamedTuple):
    """A function of a step: its graph, the nodes that it runs, and the program's function of these.

    `takes_dead`: its arguments may be dead. `sites`: its nodes that call functions.
    """

    graph: Graph
    order: Sequence[Resolved]
    placement: Placement
    sites: Mapping[str, CallSite]
    infer: Callable[[], Mapping[str, tuple[ValueInfo, ...]]]
    takes_dead: bool
    program_function: ProgramFunction


def claim_groups(
    lowered: Mapping[str, LoweredFunction], devices: Sequence[str], compilers: Iterable[CompilerEntry], ops: OpRegistry,
    check: Callable[[], object],
) -> dict[str, ProgramFunction]:
    """Return the functions of a program with the groups that these compilers claim, and the bodies of the groups.

    `devices`: the program's devices by stream. `check`: called before each claim; it raises to end the work.

    Raises PluginError for a compiler that fails, or claims nodes that it may not have or that are no convex group.
    """
    functions = {name: entry.program_function for name, entry in lowered.items()}
    waiting = _waiting_functions(lowered)
    used_names = set(functions)
    for name, entry in lowered.items():
        reasons = _nodes_by_themselves(entry, waiting)
        claimed: dict[str, str] = {}
        count = 0
        for compiler in compilers:
            takes_state = None
            for stream, device in enumerate(devices):
                if device.partition(":")[0] != compiler.device_type:
                    continue
                check()
                takes_state = compiler.permits("stateful") if takes_state is None else takes_state
                refused = {**_refused_nodes(entry, device, ops, takes_state), **reasons, **claimed}
                for nodes in _claimed_groups(compiler, name, entry, functions[name], device, stream, refused):
                    group = f"group{count}"
                    body_name = new_name(f"{name}/{compiler.name}.{group}", used_names)
                    path = escape(functions[name], nodes)
                    if path:
                        raise _fault(compiler, f"claimed a group that is not convex: {' -> '.join(path)}",
                                     "part.split makes convex groups")
                    functions[name], functions[body_name] = outline(functions[name], nodes, compiler.name, group,
                                                                    body_name)
                    claimed |= dict.fromkeys(nodes, f"{compiler.name} claimed it in {group}")
                    count += 1
    return functions


def _claimed_groups(
    compiler: CompilerEntry, name: str, entry: LoweredFunction, function: ProgramFunction, device: str, stream: int,
    refused: Mapping[str, str],
) -> list[frozenset[str]]:
    """Return the groups of nodes that a compiler claims of a function's part on a device."""
    there = {call.node for call in function.kernels if is_groupable(call) and call.stream == stream}
    nodes = {e.node.name: e for e in entry.order if e.node.name in there and e.node.name not in refused}
    if not nodes:
        return []

    def split_nodes(names: Iterable[str]) -> list[tuple[str, ...]]:
        return split(function, nodes.keys() & set(names))

    part = PlacedPart(name, device, entry.graph, nodes, refused, entry.infer, split_nodes)
    implementation = compiler.load()
    try:
        claims = list(implementation.claim(part))
    except (Exception, SystemExit) as error:  # a plugin may raise anything
        module = type(implementation).__module__
        if isinstance(error, HealdError) and is_raised_by(error, module):
            raise error.at(plugin=compiler.plugin)  # noqa: B904 - the same error
        raise _fault(compiler, f"raised {' '.join(describe_exception(error).split())} in claim") from error
    return _checked_claims(compiler, claims, nodes, refused)


def _checked_claims(
    compiler: CompilerEntry, claims: Sequence[object], nodes: Collection[str], refused: Mapping[str, str]
) -> list[frozenset[str]]:
    """Return the claims as sets. Raises PluginError for claims that are no disjoint groups of these nodes."""
    claimed_names: set[str] = set()
    groups: list[frozenset[str]] = []
    for claim in claims:
        if isinstance(claim, str) or not isinstance(claim, Collection) or not claim:
            raise _fault(compiler, f"returned {claim!r:.60} as a group, expected names of nodes",
                         "claim returns a list of lists of names")
        for node in claim:
            if not isinstance(node, str) or node not in nodes:
                why = refused.get(node) if isinstance(node, str) else None
                raise _fault(compiler, f"claimed {node!r:.60}, which it may not have: "
                                       f"{why or 'the part has no such node'}", "claim names of part.nodes alone")
            if node in claimed_names:
                raise _fault(compiler, f"claimed the node '{node}' twice", "groups have no common nodes")
            claimed_names.add(node)
        groups.append(frozenset(claim))
    return groups


def _refused_nodes(entry: LoweredFunction, device: str, ops: OpRegistry, takes_state: bool) -> dict[str, str]:
    """Return the nodes whose op or device keeps them from a compiler, with the reasons."""
    refused: dict[str, str] = {}
    for resolved in entry.order:
        name, row = resolved.node.name, entry.placement.get(resolved.node.name)
        if row is None or row.kernel is None or name in entry.sites:
            refused[name] = "the runtime itself serves it"
        elif row.device != device:
            refused[name] = f"it is on {row.device}"
        elif not takes_state and ops.get(resolved.op.name).stateful:
            refused[name] = f"{resolved.op.name} has state, and the compiler does not declare `stateful`"
    return refused


def _nodes_by_themselves(entry: LoweredFunction, waiting: Set[str]) -> dict[str, str]:
    """Return the nodes that no compiler may have, with the reasons."""
    if entry.takes_dead or any(resolved.op.name in OPS_WITH_DEAD_OUTPUTS for resolved in entry.order):
        return {resolved.node.name: "values of its function may be dead" for resolved in entry.order}
    reasons: dict[str, str] = {}
    behind: set[str] = set()
    for resolved in entry.order:
        name, row = resolved.node.name, entry.placement.get(resolved.node.name)
        kernel = None if row is None else row.kernel
        site = entry.sites.get(name)
        if (kernel is not None and (kernel.asynchronous or kernel.nonstrict)) or (
                site is not None and not waiting.isdisjoint(site.functions)):
            reasons[name] = "it may wait"
            behind.add(name)
        elif not behind.isdisjoint((*resolved.node.controls, *(source for source, _ in resolved.inputs))):
            reasons[name] = "it depends on a node that may wait"
            behind.add(name)
        elif kernel is not None and kernel.files:
            reasons[name] = "it opens files"
    return reasons


def _waiting_functions(lowered: Mapping[str, LoweredFunction]) -> set[str]:
    """Return the functions that may wait for something outside: for other nodes of the step, or other steps."""
    waiting = {name for name, entry in lowered.items() if _may_wait(entry)}
    while True:
        more = {name for name, entry in lowered.items() if name not in waiting
                and any(not waiting.isdisjoint(site.functions) for site in entry.sites.values())}
        if not more:
            return waiting
        waiting |= more


def _may_wait(entry: LoweredFunction) -> bool:
    rows = (entry.placement.get(resolved.node.name) for resolved in entry.order)
    kernels = [row.kernel for row in rows if row is not None and row.kernel is not None]
    return (any(kernel.asynchronous or kernel.nonstrict for kernel in kernels)
            or any(resolved.op.name in OPS_WITH_DEAD_OUTPUTS for resolved in entry.order))


def _fault(compiler: CompilerEntry, what: str, hint: str | None = None) -> PluginError:
    remedy = compiler_remedy(compiler.plugin, compiler.name)
    return PluginError(f"{compiler} {what}", plugin=compiler.plugin, hint=f"{hint}; {remedy}" if hint else remedy)
