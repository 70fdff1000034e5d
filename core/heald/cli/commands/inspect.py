"""heald inspect: the content of a model file, also of one that heald cannot run."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..printing.terminal import say
from .arguments import Opened, add_listing, add_model, open_graph

if TYPE_CHECKING:
    from pathlib import Path

    from ...errors import HealdError
    from ...graphs.compiler.resolve import Resolved
    from ...graphs.graph.graph import Graph
    from ...graphs.session.session import Session
    from ...runtime.contract.loader import SignatureDef, TensorInfo
    from ...runtime.host.host import Host
    from ...runtime.values.tensor import ValueInfo

LISTED_CONSTANTS = 5  # constants that are listed
LISTED_LEFT_OUT = 3  # nodes for each reason why they are no outputs


def add_arguments(parser: ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument("--passes", action="store_true", help="the effect of each graph pass")
    parser.add_argument("--client", action="store_true", help="the graph that a step runs, with feeds and fetches")
    parser.add_argument("--convention", choices=("call_frame", "rendezvous"), default="call_frame",
                        help="of --client: the nodes of feeds and fetches (call_frame)")
    parser.add_argument("--partitions", action="store_true", help="that graph by device, with Send and Recv")
    parser.add_argument("--fetch", action="append", default=[], metavar="NAME",
                        help="a tensor that the step of these views returns (the model's outputs; repeatable)")
    parser.add_argument("--feed", action="append", default=[], metavar="NAME",
                        help="a tensor that it is fed besides the needed placeholders (repeatable)")
    add_listing(parser)


def inspect(args: Namespace) -> int:
    from pathlib import Path

    from ...runtime.service.runtime import runtime
    from ..printing.table import show_json
    from .compiled import inspect_compiled, open_compiled
    from .coverage import rewritten_graph

    _check(args)
    compiled = open_compiled(args)
    if compiled is not None:
        return inspect_compiled(args, compiled)
    opened = open_graph(args, weights=False)
    graph = opened.needed
    host = runtime().host
    runnable, nodes = rewritten_graph(graph)
    report = {
        "file": args.model,
        "format": opened.form,
        "bytes": _size(Path(args.model)),
        "nodes": len(graph),
        "versions": {"producer": graph.versions.producer, "min_consumer": graph.versions.min_consumer,
                     "bad_consumers": graph.versions.bad_consumers},
        "signatures": {name: str(signature) for name, signature in opened.signatures.items()},
        **(inferred_rows(graph, runnable, nodes, host) if opened.signature is None
           else declared_rows(graph, opened.signature)),
        "ops": _ops(graph, runnable, nodes, host),
        "constants": _constants(graph),
        "functions": _functions(graph),
    }
    if args.passes or args.client or args.partitions:
        report |= _of_step(opened, args)
    if args.json:
        show_json(report)
    else:
        _tell(report)
    return 0


def _check(args: Namespace) -> None:
    """Raises InvalidArgument for options of views that are not asked for."""
    from ...errors import InvalidArgument

    if (args.fetch or args.feed) and not (args.passes or args.client or args.partitions):
        raise InvalidArgument("--fetch and --feed name the tensors of a step, and no view of a step is asked for",
                              hint="add --client, --partitions or --passes")
    if args.convention != "call_frame" and not args.client:
        raise InvalidArgument("--convention is for --client, which is not given", hint="add --client")


def _of_step(opened: Opened, args: Namespace) -> dict[str, Any]:
    """The views of a step that are asked for."""
    from ...graphs.session.model import find_inputs, find_outputs
    from ...graphs.session.session import Session
    from .graphs import client, partitions

    step_report: dict[str, Any] = {}
    with Session(opened.graph, initial_state=opened.initial_state, target="local") as session:
        fetches = [opened.tensor(name) for name in args.fetch] or opened.outputs or list(find_outputs(session))
        fed = [opened.tensor(name) for name in args.feed]
        named = {name.removesuffix(":0") for name in fed}
        feeds = [*fed, *(name for name in find_inputs(session, fetches) if name not in named)]
        if args.passes:
            step_report |= _passes(opened, session, fetches, feeds)
        if args.client:
            step_report["client"] = client(session.client_graph(fetches, feeds, convention=args.convention))
        if args.partitions:
            step_report["partitions"] = partitions(session.partitions(fetches, feeds))
    return step_report


def _passes(opened: Opened, session: Session, fetches: list[str], feeds: list[str]) -> dict[str, Any]:
    from ...graphs.session.pre_placement import run_pre_placement_passes
    from ...runtime.service.runtime import runtime
    from .passes import left_out, passes

    first = passes(run_pre_placement_passes(opened.graph, opened.initial_state, runtime()))
    return {"passes_before_placement": first, "passes": passes(session.graphs_by_pass(fetches, feeds)),
            "passes_left_out": left_out(session, feeds, fetches)}


def _size(path: Path) -> int:
    """Bytes of a file, of the files in a folder, or of a checkpoint's files, whose names begin with the path's."""
    if not path.exists():
        return sum(file.stat().st_size for file in path.parent.iterdir() if file.name.startswith(f"{path.name}."))
    files = [f for f in path.rglob("*") if f.is_file() and not f.is_symlink()] if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files)


def declared_rows(graph: Graph, signature: SignatureDef) -> dict[str, Any]:
    """Rows of inputs and of outputs, as a signature declares them."""
    def rows(side: Mapping[str, TensorInfo]) -> list[dict[str, Any]]:
        return [{"name": name, "op": graph[info.tensor.partition(":")[0]].op, "dtype": info.meta.dtype.name,
                 "shape": info.meta.shape} for name, info in side.items()]

    return {"inputs": rows(signature.inputs), "outputs": rows(signature.outputs)}


def inferred_rows(
    file_graph: Graph, graph: Graph, nodes: Mapping[str, Resolved | HealdError], host: Host
) -> dict[str, Any]:
    """Rows of inputs and of outputs, and the reasons why other nodes without consumers are no outputs."""
    from ...graphs.compiler.default_outputs import default_outputs
    from ...graphs.compiler.needed_feeds import needed_feeds
    from ..printing.signature import infer_types
    from .coverage import dependencies

    outputs, left_out = default_outputs(graph.nodes, nodes)
    order = dependencies(graph, outputs)
    infos = infer_types(order, nodes, host.registries.ops, graph.versions.producer)
    rows: dict[str, list[dict[str, Any]]] = {"inputs": [], "outputs": []}
    for feed in needed_feeds(graph.nodes, nodes, outputs, host):
        node, _, index = feed.partition(":")
        rows["inputs"].append(_tensor(feed, infos.get((node, int(index or 0))), graph[node].op))
    for name in outputs:
        infos_of_node: list[ValueInfo | None] = [info for (node, _), info in infos.items() if node == name] or [None]
        names = [name] if len(infos_of_node) == 1 else [f"{name}:{i}" for i in range(len(infos_of_node))]
        rows["outputs"] += [_tensor(n, info, graph[name].op) for n, info in zip(names, infos_of_node, strict=True)]
    rows["left_out"] = [{"name": name, "op": file_graph[name].op, "reason": reason}
                        for name, reason in left_out.items() if name in file_graph]
    return rows


def _tensor(name: str, info: ValueInfo | None, op: str) -> dict[str, Any]:
    """A row: the shape as a list with None where it is not known, None as a whole where not even the rank is."""
    if info is None:
        return {"name": name, "op": op, "dtype": "?", "shape": None}
    return {"name": name, "op": op, "dtype": info.dtype.name, "shape": info.shape}


def _ops(
    graph: Graph, runnable: Graph, nodes: Mapping[str, Resolved | HealdError], host: Host
) -> list[dict[str, Any]]:
    """Rows of the graph's ops. A node lacks a kernel if its namesake in the graph that runs does."""
    from .coverage import unrunnable_nodes

    listed = ((node, nodes[node.name]) for node in runnable)
    lacking = Counter(graph[name].op for row in unrunnable_nodes(listed, host) for name in row.nodes if name in graph)
    counts = Counter(node.op for node in graph)
    return [{"op": op, "nodes": count, "without_kernel": lacking[op]}
            for op, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]


def _constants(graph: Graph) -> dict[str, Any]:
    from ...graphs.graph.graph import TensorValue
    from ...runtime.contract.structural import CONST
    from ...runtime.values.tensor import TensorMetadata

    values = {n.name: v for n in graph if n.op == CONST and isinstance(v := n.attrs.get("value"), TensorValue)}
    sizes = {name: value.nbytes or len(value.raw) for name, value in values.items()}
    largest = sorted(sizes, key=lambda name: -sizes[name])[:LISTED_CONSTANTS]
    rows = [{"name": name, "type": str(TensorMetadata(values[name].dtype, values[name].shape)), "bytes": sizes[name]}
            for name in largest]
    return {"count": len(values), "bytes": sum(sizes.values()), "largest": rows}


def _functions(graph: Graph) -> list[dict[str, Any]]:
    return [{"function": f.name, "nodes": len(f.nodes), "inputs": len(f.inputs), "outputs": len(f.outputs)}
            for f in graph.functions.values()]


def _tell(report: dict[str, Any]) -> None:
    from ..printing.table import byte_text, plural

    versions, constants = report["versions"], report["constants"]
    form = f"{report['format']}, with a graph" if report["signatures"] else report["format"]
    say(f"{report['file']}: {form} of version {versions['producer']}, {byte_text(report['bytes'])}, "
        f"{plural(report['nodes'], 'node')}")
    if report["signatures"]:
        _section("signatures", [{"name": name, "takes and gives": text} for name, text in report["signatures"].items()],
                 ("name", "takes and gives"))
    for title, columns in (("inputs", ("name", "dtype", "shape")), ("outputs", ("name", "dtype", "shape", "op"))):
        _section(title, [row | {"shape": _shape(row)} for row in report[title]], columns)
    if report.get("left_out"):
        _tell_left_out(report["left_out"])
    marks = [row | {"kernel": _mark(row)} for row in report["ops"]]
    lacking = sum(bool(row["without_kernel"]) for row in marks)
    _section(plural(len(marks), "op") + (f", {lacking} without a kernel here" if lacking else ""), marks,
             ("op", "nodes", "kernel"))
    total = f"{plural(constants['count'], 'constant')}, {byte_text(constants['bytes'])}"
    largest = [row | {"bytes": byte_text(row["bytes"])} for row in constants["largest"]]
    total += "; the largest" if len(largest) < constants["count"] else ""
    _section(total, largest, ("name", "type", "bytes"))
    if report["functions"]:
        _section(plural(len(report["functions"]), "function"), report["functions"],
                 ("function", "nodes", "inputs", "outputs"))
    if "passes" in report:
        from .passes import tell

        tell(report["passes_before_placement"], report["passes"], report["passes_left_out"])
    if "client" in report:
        from .graphs import tell_client

        tell_client(report["client"])
    if "partitions" in report:
        from .graphs import tell_partitions

        tell_partitions(report["partitions"])


def _tell_left_out(rows: Sequence[dict[str, Any]]) -> None:
    """Show the first nodes of each reason."""
    by_reason: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_reason.setdefault(row["reason"], []).append(row)
    shown = [row for group in by_reason.values() for row in group[:LISTED_LEFT_OUT]]
    title = f"{len(rows):,} nodes are no outputs" if len(rows) > 1 else "1 node is no output"
    _section(title + (f"; {LISTED_LEFT_OUT} of each reason" if len(shown) < len(rows) else ""), shown,
             ("name", "op", "reason"))


def _section(title: str, rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> None:
    from ..printing.table import show

    say(f"\n{title}{'' if rows else ': none'}")
    if rows:
        show(rows, columns, cut=("name", "function"))


def _shape(row: dict[str, Any]) -> str:
    from ...runtime.values.tensor import shape_text

    return "?" if row["dtype"] == "?" else shape_text(row["shape"])


def _mark(row: dict[str, Any]) -> str:
    if not row["without_kernel"]:
        return ""
    return "missing" if row["without_kernel"] == row["nodes"] else f"missing for {row['without_kernel']}"
