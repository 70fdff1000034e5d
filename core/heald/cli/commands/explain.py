"""heald explain: the device of each node of a model, its reason, refusals, and the effects of passes and fusions."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..printing.progress import ticking
from ..printing.terminal import say
from .arguments import add_device, add_listing, add_model, open_graph
from .inputs import GivenShape, add_input_shapes

if TYPE_CHECKING:
    from ...graphs.graph.graph import Graph
    from ...graphs.session.session import Session
    from ...runtime.contract.kernel import FusionRefusal
    from ...runtime.executor.executable import Executable
    from ...runtime.program.compiled_model import CompiledModel
    from ...runtime.program.groups import GroupOutcome
    from ...runtime.program.host_program import ProgramDef
    from ...runtime.values.tensor import TensorMetadata
    from .arguments import Opened
    from .inputs import InputText

MAX_ROWS = 30  # rows that are shown one by one without --all
MAX_REFUSALS = 3  # lines of refusals of one fusion, without --all
COLUMNS = ("op", "requested", "assigned", "kernel", "reason", "choice", "lost", "refused")
WITHOUT_RIVALS = tuple(column for column in COLUMNS if column not in ("choice", "lost"))
EPILOG = """\
A kernel may also decline a node for the shapes it meets. That shows when the shape of every input is known:
  heald explain model.pb --input image:1,224,224,3"""


class ExplainedStep(NamedTuple):
    """The step that runs, as far as it can be known.

    `note`: the reason why it was not linked, or was without passes.
    `algorithms`: node to its kernel's description of its algorithm.
    `calls`: the number of kernel calls by device and pack; empty for a step that cannot be made.
    `did`: a line for each pass and each fusion that changed something, and for each group of a compiler.
    `groups`: node to the group that a compiler claimed it in, with the reason where the compiler declined.
    `changed_by`: node to the pass that removed it or gave it another op.
    `refusals`: the fusions that were not used.
    """

    note: str
    algorithms: Mapping[str, str] = {}
    calls: Mapping[tuple[str, str], int] = {}
    did: Sequence[str] = ()
    changed_by: Mapping[str, str] = {}
    groups: Mapping[str, str] = {}
    refusals: Sequence[FusionRefusal] = ()


def add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = EPILOG
    add_model(parser)
    add_device(parser)
    parser.add_argument("--fetch", action="append", default=[], metavar="NAME",
                        help="only the nodes that this tensor needs (repeatable)")
    add_input_shapes(parser)
    parser.add_argument("--all", action="store_true", help="a row for every node")
    parser.add_argument("--svg", metavar="FILE.svg",
                        help="draw the graph in colours of devices instead, by the command report")
    add_listing(parser)


def explain(args: Namespace) -> int:
    from ..printing.table import show_json
    from .compiled import open_compiled

    if args.svg is not None:
        return _draw(args)
    compiled = open_compiled(args)
    rows, step = _of_graph(args) if compiled is None else _of_compiled(args, compiled)
    if args.json:
        show_json(rows)
    else:
        _tell(rows, step, args.all)
    return 0


def _draw(args: Namespace) -> int:
    """Run the command report, which draws. Raises InvalidArgument for another suffix, and Unimplemented without it."""
    from ...errors import InvalidArgument, Unimplemented
    from ...runtime.support.install import install_hint
    from . import of_plugins, run

    if not args.svg.lower().endswith(".svg"):
        raise InvalidArgument(f"--svg '{args.svg}' is no .svg file", hint="--svg graph.svg")
    report = next((command for command in of_plugins().usable() if command.name == "report"), None)
    if report is None:
        raise Unimplemented("--svg needs the command report, which no plugin in use brings",
                            hint=install_hint("heald-report"))
    return run(report, Namespace(**vars(args) | {"output": args.svg, "input": [], "run_model": False, "title": None,
                                                 "compare": None, "compare_device": None, "dark": False}))


def _of_compiled(args: Namespace, compiled: CompiledModel) -> tuple[list[dict[str, Any]], ExplainedStep]:
    """Return the rows of a compiled model's nodes, and the step that runs."""
    from .compiled import explanation

    rows, outcomes, refusals = explanation(args, compiled)
    groups = _groups_by_node(outcomes)
    refusals_by_node = _refusals_by_node(refusals, {row["node"] for row in rows})
    return ([row | {"group": groups.get(row["node"], ""), "fusion_refusals": refusals_by_node.get(row["node"], [])}
             for row in rows], ExplainedStep("", did=[*map(str, outcomes)], groups=groups, refusals=refusals))


def _groups_by_node(outcomes: Iterable[GroupOutcome]) -> dict[str, str]:
    return {node: f"{outcome.compiler}.{outcome.name}" + (f" declined: {outcome.refusal}" if outcome.refusal else "")
            for outcome in outcomes for node in outcome.nodes}


def _refusals_by_node(refusals: Iterable[FusionRefusal], names: Collection[str]) -> dict[str, list[dict[str, Any]]]:
    """The refusals by the node where each stopped, as `--json` prints them.

    A node that a pass made has no row: the first node of the fusion among `names` has the refusal then.
    """
    by_node: dict[str, list[dict[str, Any]]] = {}
    for refusal in refusals:
        row = {"pattern": refusal.pattern, "stopped_at": refusal.node, "reason": refusal.reason,
               "nodes": list(refusal.nodes)}
        by_node.setdefault(next((node for node in (refusal.node, *refusal.nodes) if node in names), ""), []).append(row)
    return by_node


def _of_graph(args: Namespace) -> tuple[list[dict[str, Any]], ExplainedStep]:
    """Return the rows of a graph's nodes, and the step that runs."""
    from ...graphs.session.model import open_session
    from ...runtime.service.runtime import runtime
    from .coverage import dependencies, sinks

    opened = open_graph(args)
    with ticking("placing"):
        session = open_session(opened.needed, runtime(), device=args.device)
        graph = session.graph
        outputs = [opened.tensor(name) for name in args.fetch] or opened.outputs or sinks(graph, session.nodes)
        order = [node.name for node in dependencies(graph, outputs)] if args.fetch else list(graph.nodes)
        step = _link(session, outputs, args.input, opened)
    refusals = _refusals_by_node(step.refusals, session.placement())
    rows = {row["node"]: row | {"how": step.algorithms.get(row["node"], ""),
                                "fusion_refusals": refusals.get(row["node"], []),
                                "passes": step.changed_by.get(row["node"], ""),
                                "group": step.groups.get(row["node"], "")}
            for row in session.placement().table()}
    return [rows[name] for name in order], step


def _link(
    session: Session, outputs: Sequence[str], input_texts: Sequence[InputText], opened: Opened,
) -> ExplainedStep:
    """Link the step for these inputs, so that kernels which decline are known. Without the shapes of all inputs the
    step is only lowered."""
    from ...errors import HealdError
    from ..printing.table import plural

    given_shapes = _given_shapes(session, outputs, input_texts, opened)
    shapes = {name: shape.dims for name, shape in given_shapes.items()}
    feeds = tuple(dict.fromkeys((*_needed_inputs(session, outputs, opened), *shapes)))
    try:
        prepared = session.prepare(outputs, feeds)
    except HealdError as error:
        row = session.placement().get(error.node or "")
        if input_texts and (row is None or row.error is not error):  # the request cannot be met
            raise
        where = f", because of node '{error.node}'" if row else ""
        return ExplainedStep(f"not linked{where}: {error.message}")
    did, changed_by = _passes(session.graphs_by_pass(outputs, feeds))
    metas = dict(zip(feeds, prepared.program.functions["main"].arg_metas, strict=True))
    metas |= _declared_metas(opened, metas)
    names = {} if opened.signature is None else {opened.tensor(name): name for name in opened.signature.inputs}
    fed_shapes = {name: shapes.get(name, meta.dims if meta.is_static else None) for name, meta in metas.items()}
    unknown = [name for name, shape in fed_shapes.items() if shape is None]
    if unknown:
        note = _open_shapes_note({names.get(name, name): metas[name] for name in unknown})
        claims = _claims(prepared.program)
        did += [f"compiler {group.partition('.')[0]} claims {plural(count, 'node')} as {group.partition('.')[2]}"
                for group, count in Counter(claims.values()).items()]
        return ExplainedStep(note, {}, _count_lowered_calls(prepared.program), did, changed_by, claims)
    for name, shape in fed_shapes.items():
        given_shapes.get(name, GivenShape(shape or ())).check(name, metas[name])
    executable = prepared.executable(tuple(shape or () for shape in fed_shapes.values()))
    left_out = f"run without what graph passes would make: {prepared.skipped_passes}" if prepared.skipped_passes else ""
    calls, fusions = _count_linked_calls(executable)
    outcomes = [outcome for linked in executable.with_callees() for outcome in linked.report.groups]
    refusals = [refusal for linked in executable.with_callees() for refusal in linked.report.fusion_refusals]
    return ExplainedStep(left_out, executable.algorithms(), calls, [*did, *fusions, *map(str, outcomes)], changed_by,
                         _groups_by_node(outcomes), refusals)


def _needed_inputs(session: Session, outputs: Sequence[str], opened: Opened) -> tuple[str, ...]:
    """Return the inputs of the signature that the outputs need, and the placeholders that no such input hides."""
    from ...graphs.session.model import declared_inputs, find_inputs

    declared = [] if opened.signature is None else [opened.tensor(name) for name in opened.signature.inputs]
    needed = declared_inputs(session, outputs, declared)
    return (*needed, *find_inputs(session, outputs, needed))


def _open_shapes_note(metas: Mapping[str, TensorMetadata]) -> str:
    """Return the reason why a step was not linked: the inputs whose shapes are open, and an example for the first."""
    import shlex

    name, meta = next(iter(metas.items()))
    example = ",".join(str(dim or 1) for dim in meta.shape or (None,))
    return (f"not linked, since shapes are open: {', '.join(f'{name} {meta}' for name, meta in metas.items())}; "
            f"give them: --input {shlex.quote(name)}:{example}")


def _declared_metas(opened: Opened, metas: Mapping[str, TensorMetadata]) -> dict[str, TensorMetadata]:
    """Return the metadata of the signature's inputs by tensor, where the graph knows less of the shape."""
    if opened.signature is None:
        return {}
    declared = {opened.tensor(name): info.meta for name, info in opened.signature.inputs.items()}
    return {name: meta for name, meta in declared.items() if name in metas and metas[name].rank is None}


def _claims(program: ProgramDef) -> dict[str, str]:
    """Return by node the group that a compiler claimed it in, in a program that is not linked."""
    from ...runtime.program.host_program import GROUP

    calls = [call for function in program.functions.values() for call in function.kernels if call.code == GROUP]
    return {member.node: f"{call.attrs['compiler']}.{call.attrs['group']}"
            for call in calls for member in program.functions[call.functions[0]].kernels}


def _given_shapes(
    session: Session, outputs: Sequence[str], input_texts: Sequence[InputText], opened: Opened,
) -> dict[str, GivenShape]:
    """The last shape of each tensor that --input names."""
    from ...graphs.session.model import find_inputs
    from .inputs import shapes_by_name

    if not input_texts:
        return {}
    declared = {} if opened.signature is None else {name: info.meta for name, info in opened.signature.inputs.items()}
    inputs = declared or dict.fromkeys(find_inputs(session, outputs))
    return {opened.tensor(name): shapes[-1] for name, shapes in shapes_by_name(input_texts, inputs).items()}


def _passes(stages: Iterable[tuple[str, Graph]]) -> tuple[list[str], dict[str, str]]:
    """Return a line for each pass that changed the graph, and the passes that removed nodes or gave them another op."""
    from ..printing.table import plural

    did: list[str] = []
    changed_by: dict[str, str] = {}
    before: Graph | None = None
    for name, after in stages:
        if before is not None and after is not before:
            removed = [node for node in before.nodes if node not in after]
            added = [node.name for node in after if node.name not in before]
            changed = [node.name for node in after if node.name in before and before[node.name] is not node]
            changed_by.update(dict.fromkeys(removed, f"removed by {name}"))
            changed_by.update({node: f"{after[node].op} by {name}" for node in changed
                               if before[node].op != after[node].op})
            counts = [f"{what} {plural(len(nodes), 'node')}" for what, nodes in
                      (("removed", removed), ("made", added), ("changed", changed)) if nodes]
            did += [f"pass {name} {', '.join(counts)}"] if counts else []
        before = after
    return did, changed_by


def _count_lowered_calls(program: ProgramDef) -> Counter[tuple[str, str]]:
    """Count the kernel calls of a program and its functions by device and pack."""
    from ...runtime.program.host_program import RUNTIME_CODES

    return Counter((program.requires[call.stream], call.pack) for function in program.functions.values()
                   for call in function.kernels if call.code not in RUNTIME_CODES)


def _count_linked_calls(executable: Executable) -> tuple[Counter[tuple[str, str]], list[str]]:
    """Count the kernel calls of a linked program by device and pack. Return a line for each fused kernel, too."""
    from ...runtime.program.host_program import RUNTIME_CODES
    from ..printing.table import plural

    calls: Counter[tuple[str, str]] = Counter()
    fused: dict[str, list[int]] = {}
    for linked_function in executable.with_callees():
        for bound in linked_function.layout.calls:
            if bound.call.code not in RUNTIME_CODES and bound.kernel is not None:
                calls[linked_function.device_name(bound), bound.kernel.pack] += 1
            if bound.call.fused and not (bound.kernel is not None and bound.kernel.compiler):
                fused.setdefault(bound.call.code, []).append(len(bound.call.fused))
    return calls, [f"fusion {code} does {sum(counts)} nodes in {plural(len(counts), 'call')}"
                   for code, counts in fused.items()]


def _tell(rows: list[dict[str, Any]], step: ExplainedStep, every: bool) -> None:
    from ..printing.table import plural, show

    if step.calls:
        say(f"{plural(len(rows), 'node')}, which run as {plural(sum(step.calls.values()), 'kernel call')}:")
        counted = Counter(step.calls)
    else:
        say(f"{plural(len(rows), 'node')}:")
        counted = Counter((r["assigned"], r["kernel"].partition(".")[0]) for r in rows)
    for (assigned, pack), count in counted.most_common():
        say(f"  {count:6,}  {_placement_text(assigned, pack)}")
    for line in (*step.did, *_refusal_lines(step.refusals, every), *([step.note] if step.note else [])):
        say(line)
    say()
    rows = [row | {"kernel": row["kernel"].partition(".")[0], "reason": _brief(row)} for row in rows]
    columns = COLUMNS if any(row["lost"] for row in rows) else WITHOUT_RIVALS
    if every or len(rows) <= MAX_ROWS:
        optional_columns = [column for column in ("passes", "group", "fused", "how")
                            if any(row.get(column) for row in rows)]
        show(rows, ("node", *columns, *optional_columns), cut=("node",), wrap=("reason", "choice", "lost", "refused"))
        return
    groups = Counter(tuple(row[c] for c in columns) for row in rows)
    show([{"nodes": count, **dict(zip(columns, group, strict=True))} for group, count in groups.most_common()],
         ("nodes", *columns), wrap=("reason", "choice", "lost", "refused"))
    say("\n--all shows every node")


def _refusal_lines(refusals: Sequence[FusionRefusal], every: bool) -> list[str]:
    """A line for each fusion that was not used; without --all for the first ones of each pattern."""
    if every:
        return [str(refusal) for refusal in refusals]
    by_pattern: dict[str, list[FusionRefusal]] = {}
    for refusal in refusals:
        by_pattern.setdefault(refusal.pattern, []).append(refusal)
    lines = []
    for pattern, of_pattern in by_pattern.items():
        lines += [str(refusal) for refusal in of_pattern[:MAX_REFUSALS]]
        left = len(of_pattern) - MAX_REFUSALS
        lines += [f"fusion {pattern} stopped {left} times more; --all shows every one"] if left > 0 else []
    return lines


def _brief(row: dict[str, str]) -> str:
    """The reason without what stands in the column `refused` beside it."""
    head, _, tail = row["reason"].partition(": ")
    return head if tail and tail in row["refused"] else row["reason"]


def _placement_text(assigned: str, pack: str) -> str:
    if assigned == "-":
        return "nowhere"
    return f"{assigned}, kernels of {pack}" if pack else "by the runtime itself: they need no kernel"
