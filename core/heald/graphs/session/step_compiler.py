"""StepCompiler: makes the program of a step from the session's graph, and links it for the shapes of its feeds.

The program has a function for the step itself, and one for each branch, loop body and called function. A function's
body is a graph like the step's own, whose feeds are the function's arguments: passes, placement and lowering treat
both alike.

A body is compiled for its place in the program, with the constants of its call. A function that calls itself, or is
nested deeper than _DEEPEST_SPECIALISED, is compiled once for all its calls; so are nested functions of a step with more
than _MOST_SPECIALISED_FUNCTIONS. Control flow of TensorFlow 1 becomes functions first, before the step's passes.

A step whose kernels open files that `FilePolicy` does not permit is refused here, before it is linked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any

from ...errors import HealdError, InvalidArgument, ResourceExhausted
from ...runtime.contract.device import reaches
from ...runtime.contract.placement import Assignment, Placement
from ...runtime.contract.structural import CONST, CONTROL_FLOW, FRAME_OP, V1_CONTROL_FLOW
from ...runtime.executor.executable import Executable
from ...runtime.executor.step import Step
from ...runtime.host.file_policy import FilePolicy, refusal
from ...runtime.linker.link import NodesDeclined, link
from ...runtime.linker.shared_by_links import SharedByLinks
from ...runtime.program.host_program import ProgramDef, ProgramFunction
from ...runtime.values.attribute_values import Func
from ...runtime.values.dtypes import DType
from ...runtime.values.tensor import TensorMetadata, ValueInfo
from ..compiler.call_site import COND, CallSite, call_site, calls_of_known_branches, labelled_functions
from ..compiler.colocation import with_successors_as_partners
from ..compiler.function_body import FunctionBody, function_body, with_partitioned_calls
from ..compiler.functionalize import functionalize
from ..compiler.group_claims import LoweredFunction, claim_groups
from ..compiler.inline import DEEPEST_NESTED_CALLS, inline
from ..compiler.lower import MAIN, ProgramResources, lower
from ..compiler.pass_manager import NodeFacts
from ..compiler.prune import Tensor, prune
from ..compiler.resolve import Resolved
from ..graph.graph import Graph, Input
from ..graph.rewriting import constant, new_name, node_name_of
from ..graph.traversal import ancestors
from .function_compiler import Environment, FunctionCompiler, StepSignature, needed_part, placeholders_for_feeds
from .graph_placement import PlacedGraph, PlannedGraph

_REWRITTEN = frozenset({*CONTROL_FLOW, *V1_CONTROL_FLOW})
# nested functions that are compiled for their place; deeper ones are compiled once for all places
_DEEPEST_SPECIALISED = 16
# functions of a step; beyond them only calls of the step itself are compiled for their place
_MOST_SPECIALISED_FUNCTIONS = 500
# nested branches with a known condition that are put in the place of their If; deeper ones stay, and are called
_MOST_UNFOLDINGS = 100
_MOST_NODES = 1_000_000  # of all functions of a step


class StepCompiler:
    """Compiles one step of a session.

    Raises the errors of the nodes that the step needs.
    """

    def __init__(self, session_graph: PlacedGraph, signature: StepSignature, env: Environment) -> None:
        """`session_graph` is the session's graph, placed."""
        self._env = env
        self._session_graph = session_graph
        self._ops = env.host.registries.ops
        self._functions: dict[str, FunctionCompiler] = {}
        self._used_names: set[str] = {MAIN}
        self._generic: dict[tuple[str, str, tuple[DType, ...]], str] = {}
        self._nodes = 0
        self._main = self._functions[MAIN] = self._step_function(signature)

    @property
    def skipped_passes(self) -> str:
        """The passes whose graphs cannot run, and why; empty without any."""
        return "; ".join(f"pass '{name}': {why}" for function in self._functions.values()
                         for name, why in function.skipped_passes.items())

    def graphs_by_pass(self, check: Callable[[], object]) -> Iterator[tuple[str, Graph]]:
        """Yield the graph of the step under "", and then the graph after each pass under the pass's name."""
        return self._main.graphs_by_pass(check)

    def program(self, step: Step) -> ProgramDef:
        """Return the program of the step.

        Raises the error of `step` when it ends meanwhile, PermissionDenied for nodes that open files which the config
        does not permit.
        """
        host = self._env.host
        files = step.resources.files or host.files
        pool = ProgramResources()
        done: dict[str, ProgramFunction] = {}
        compilers = host.registries.enabled_compilers()
        lowered: dict[str, LoweredFunction] = {}
        left = [MAIN]
        refused: list[tuple[str, str, frozenset[str]]] = []
        while left:
            name = left.pop()
            if name in done:
                continue
            function = self._functions[name]
            placement = function.place(step.check)  # it may open devices
            pool.host_visible = frozenset(r.name for r in host.devices_in_use() if r.attributes.get("host_visible"))
            pool.reached = frozenset((a.name, b.name) for a, b in permutations(host.devices_in_use(), 2)
                                     if a.device and b.device and reaches(a.device, b.device))
            refused += _forbidden_kernels(function.after_passes.order, placement, files)
            sites = self._call_sites(function)
            signature = function.signature
            done[name] = lower(name, function.after_passes.order, placement, [*signature.fed.items()],
                               signature.fetched, signature.targets, pool, self._ops, sites,
                               gives_chain=function.has_effects,
                               takes_dead=function.takes_dead)
            left += [callee for site in sites.values() for callee in site.functions]
            if compilers:
                planned = function.after_passes
                lowered[name] = LoweredFunction(planned.graph, planned.order, placement, sites, function.facts,
                                                function.takes_dead, done[name])
        if refused:
            raise refusal(refused)
        if compilers:
            done = claim_groups(lowered, pool.devices, compilers, self._ops, step.check)
        self._env.fold.forget()
        return ProgramDef(done, tuple(pool.constants), tuple(pool.devices))

    def link(
        self, program: ProgramDef, feed_metas: Sequence[TensorMetadata], shared: SharedByLinks, step: Step, *,
        waits: bool = True, foreign_feeds: frozenset[int] = frozenset(),
    ) -> tuple[ProgramDef, SharedByLinks, Executable]:
        """Link the program for feeds of this metadata; when kernels decline nodes, lower it again without them.

        `waits`, `foreign_feeds`: as of `link`.

        Return the program that was linked in the end, and the values for its further links.
        """
        while True:
            try:
                executable = link(program, self._env.host, feed_metas, shared=shared, waits=waits, check=step.check,
                                  fuses=self._env.fuses, foreign_feeds=foreign_feeds)
            except NodesDeclined as declined:
                self._decline(declined)
                program, shared = self.program(step), shared.for_renumbered_program()
                continue
            return program, shared, executable

    def rows(self) -> dict[str, Assignment]:
        """Return the placement of the nodes of functions, by node."""
        return {name: row for function in self._functions.values() if function.placed_graph is not self._session_graph
                for name, row in function.placed_graph.placement.items() if name not in self._session_graph.graph}

    def _decline(self, declined: NodesDeclined) -> None:
        for function in self._functions.values():
            graph = function.after_passes.graph
            if any(refusal[0] in graph for refusal in declined.refusals):
                function.placed_graph.decline(declined.refusals, graph)
                return
        self._main.placed_graph.decline(declined.refusals, self._main.after_passes.graph)

    def _step_function(self, signature: StepSignature) -> FunctionCompiler:
        graph, nodes = self._session_graph.graph, self._session_graph.nodes
        planned = PlannedGraph(graph, nodes, prune(nodes, *signature))
        if _REWRITTEN.isdisjoint(entry.op.name for entry in planned.order):
            return FunctionCompiler(MAIN, self._session_graph, signature, planned.order, self._env, {})
        fed, fetched, targets = signature
        kept_names = {node for node, _ in (*fed, *fetched)}.union(targets)
        feeds = placeholders_for_feeds(planned, signature)
        start = with_successors_as_partners(  # its nodes are placed anew, without the partners that it leaves out
            graph.replace(nodes=feeds), needed_part(graph, planned.order, kept_names, feeds))
        inlined = inline(start, self._ops, kept_calls={node for node, _ in fed})
        moved = [_tensor_after_inlining(tensor, inlined.replacements) for tensor in fetched]
        targets = self._targets_after_inlining(start, inlined.graph, moved, targets)
        main = self._function(MAIN, inlined.graph, StepSignature(fed, moved, targets), inlined.enclosing_functions, 0)
        self._check_types_after_inlining(fed, fetched, main)
        return main

    def _check_types_after_inlining(self, fed: Collection[Tensor], fetched: Sequence[Tensor], main: FunctionCompiler,
                                    ) -> None:
        """Raises InvalidArgument for a function that returns another type than the call states."""
        for tensor, moved in zip(fetched, main.signature.fetched, strict=True):
            entry = self._session_graph.nodes[tensor[0]]
            if tensor in fed or tensor == moved or not isinstance(entry, Resolved):
                continue
            stated, returned = entry.output_tensors[tensor[1]].dtype, main.result_type(moved)
            if stated is not returned:
                raise InvalidArgument(f"output {tensor[1]} is stated as {stated.name}, its function returns "
                                      f"{returned.name}, by node '{moved[0]}'", node=tensor[0], op=entry.op.name)

    def _targets_after_inlining(
        self, before: Graph, after: Graph, fetched: Sequence[Tensor], targets: Sequence[str]
    ) -> list[str]:
        """Return the targets of a step, with the stateful nodes whose values its inlined functions do not use.

        All nodes of `before` are needed. A call runs after all its arguments, even the ignored ones.
        """
        stateful = [node.name for node in before if node.name in after and self._ops.get(node.op).stateful]
        if not stateful:
            return [*targets]
        needed = ancestors(after.nodes, (*(node for node, _ in fetched), *targets))
        return [*targets, *(name for name in stateful if name not in needed)]

    def _function(
        self, name: str, graph: Graph, signature: StepSignature, outer_functions: Mapping[str, tuple[str, ...]],
        depth: int, *, has_effects: bool = False,
    ) -> FunctionCompiler:
        """Return the function of a graph without calls of known depth, its control flow in functional form."""
        fed, fetched, targets = signature
        for turn in range(_MOST_UNFOLDINGS + 1):
            graph = functionalize(graph, {*fetched, *targets}, self._ops)
            facts = NodeFacts(graph, {}, fed, self._ops, self._env.fold)
            calls = calls_of_known_branches(graph, facts)
            if not calls or turn == _MOST_UNFOLDINGS:  # a recursion whose condition is constant would not end
                break
            inlined = inline(graph.replace(nodes=calls), self._ops, kept_calls={node for node, _ in fed},
                             outer_functions=outer_functions.get("", ()))
            fetched = [_tensor_after_inlining(tensor, inlined.replacements) for tensor in fetched]
            if name == MAIN:  # the effects of a function are listed
                targets = self._targets_after_inlining(graph, inlined.graph, fetched, targets)
            graph, outer_functions = inlined.graph, {**outer_functions, **inlined.enclosing_functions}
        self._nodes += len(graph)
        if self._nodes > _MOST_NODES:
            raise ResourceExhausted(f"the functions of this step have more than {_MOST_NODES:,} nodes")
        placed = PlacedGraph(with_partitioned_calls(graph), self._env.placers, self._env.host)
        signature = StepSignature(fed, fetched, targets)
        return FunctionCompiler(name, placed, signature, prune(placed.nodes, *signature), self._env, outer_functions,
                                depth, has_effects)

    def _call_sites(self, caller: FunctionCompiler) -> dict[str, CallSite]:
        """Return the calls of a function by node, and compile the functions that they call."""
        calling = [entry for entry in caller.after_passes.order
                   if entry.op.name in CONTROL_FLOW and entry.node.name not in caller.sites]
        if calling:
            facts = caller.facts()
            for entry in calling:
                try:
                    caller.sites[entry.node.name] = self._make_call_site(caller, entry, facts)
                except HealdError as error:
                    raise error.at(node=entry.node.name, op=entry.op.name)  # noqa: B904 - the same error
        return caller.sites

    def _make_call_site(
        self, caller: FunctionCompiler, entry: Resolved, facts: Mapping[str, tuple[ValueInfo, ...]]
    ) -> CallSite:
        node = entry.node.name
        site = call_site(entry, caller.after_passes.graph.functions)
        funcs = labelled_functions(entry)
        outer_functions = caller.outer_functions(node)
        deep = caller.depth >= _DEEPEST_SPECIALISED or len(outer_functions) >= DEEPEST_NESTED_CALLS - 1
        deep = deep or (caller.depth > 0 and len(self._functions) > _MOST_SPECIALISED_FUNCTIONS)
        if deep or any(func.name in outer_functions for _, func in funcs):
            names = [self._generic_function(func, site.types, caller) for _, func in funcs]
            return self._with_functions(site, names)
        library = caller.after_passes.graph
        bodies = [function_body(f"{node}/{label}", func, site.types, library, self._ops, outer_functions)
                  for label, func in funcs]
        inputs = [(entry.inputs[index], entry.input_tensors[index].dtype) for index in site.argument_inputs]
        infos = [facts[name][index] if name in facts else ValueInfo(TensorMetadata(dtype, None))
                 for (name, index), dtype in inputs]
        values = _constants(site, bodies[-1], infos, library)
        site = site._replace(dropped=tuple(values))
        metas = site.argument_metadata(infos, bodies[-1])
        names = []
        for (label, func), body in zip(funcs, bodies, strict=True):
            names.append(new_name(f"{node}/{label}", self._used_names))
            nodes = [constant(body.arguments[site.argument_index(index)], value) for index, value in values.items()]
            filled = {filler.name for filler in nodes}
            fed = {(argument, 0): meta for argument, meta in zip(body.arguments, metas, strict=True)
                   if argument not in filled}
            targets = [] if body.effects is None else [body.effects]
            self._functions[names[-1]] = self._function(
                names[-1], body.graph.replace(nodes=nodes),
                StepSignature(fed, site.program_results(body, label), targets),
                {"": (*outer_functions, func.name), **body.enclosing_functions}, caller.depth + 1,
                has_effects=body.effects is not None)
        return self._with_functions(site, names)

    def _with_functions(self, site: CallSite, names: Sequence[str]) -> CallSite:
        """Return the site with its functions. Raises InvalidArgument for results of other types than the node's."""
        functions = [self._functions[name] for name in names]
        for (label, _), function in zip(labelled_functions(site.entry), functions, strict=True):
            node_types = [dtype for index, dtype in enumerate(site.results) if index not in site.forwarded_inputs]
            function_types = [function.result_type(tensor) for tensor in function.signature.fetched]
            if label != COND and function_types != node_types:
                raise InvalidArgument(f"function '{label}' returns {_types(function_types)}, "
                                      f"the node has {_types(node_types)}")
        has_effects = any(function.has_effects for function in functions)
        for function in functions:
            function.takes_dead |= site.entry.op.name == FRAME_OP
            function.has_effects = has_effects  # then all functions of a call have the same results
        return site._replace(functions=tuple(names), has_effects=has_effects)

    def _generic_function(self, func: Func, types: Sequence[DType], caller: FunctionCompiler) -> str:
        """Return the name of a function that serves all recursive calls of it, and all calls that are nested too
        deep."""
        key = func.name, repr(sorted(func.attrs.items())), tuple(types)
        if key not in self._generic:
            name = self._generic[key] = new_name(func.name, self._used_names)
            body = function_body(node_name_of(name), func, types, caller.after_passes.graph, self._ops)
            fed = {(argument, 0): TensorMetadata(dtype, None)
                   for argument, dtype in zip(body.arguments, types, strict=True)}
            targets = [] if body.effects is None else [body.effects]
            self._functions[name] = self._function(
                name, body.graph, StepSignature(fed, body.results, targets),
                {"": (func.name,), **body.enclosing_functions}, 0,
                has_effects=True)  # some of its calls may need the chain
        return self._generic[key]


def _constants(site: CallSite, body: FunctionBody, infos: Sequence[ValueInfo], graph: Graph) -> dict[int, Any]:
    """Return the arguments that have the same known value in every call, by index. `body` is a loop's body."""
    constants: dict[int, Any] = {}
    for index, info in enumerate(infos):
        if info.is_known and site.is_constant(body, index):
            source = graph.nodes.get(site.entry.inputs[index + site.leading][0])
            constants[index] = source.attrs["value"] if source is not None and source.op == CONST else info.value
    return constants


def _forbidden_kernels(
    order: Sequence[Resolved], placement: Placement, files: FilePolicy
) -> Iterator[tuple[str, str, frozenset[str]]]:
    """Yield node, op and accesses of the kernels that may not open files."""
    for entry in order:
        row = placement.get(entry.node.name)
        kernel = None if row is None else row.kernel
        if kernel is not None and kernel.files and not files.permits(kernel.op, kernel.files):
            yield entry.node.name, kernel.op, kernel.files


def _types(types: Sequence[DType]) -> str:
    return f"({', '.join(dtype.name for dtype in types)})"


def _tensor_after_inlining(tensor: Tensor, replacements: Mapping[Input, Input]) -> Tensor:
    """Return the tensor that stands for this one after inlining."""
    replacement = replacements.get(Input(tensor[0], None, tensor[1]))
    return tensor if replacement is None else (replacement.node, replacement.index)
