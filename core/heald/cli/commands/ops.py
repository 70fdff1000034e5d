"""heald ops: the ops with kernels here, the signature of an op, the ops that a model lacks."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..printing.terminal import say
from .arguments import add_listing, add_loading, open_graph

if TYPE_CHECKING:
    from ...runtime.contract.kernel import KernelDef
    from ...runtime.contract.op import ArgDef, AttrDef, OpDef
    from ...runtime.host.host import Host
    from ...runtime.values.dtypes import DType

MAX_NODE_NAMES = 3  # nodes that are named for an op that a model lacks
# Sets of element types under one word; EPILOG says which.
GROUPS = (
    ("ints", ("int8", "int16", "int32", "int64")), ("uints", ("uint8", "uint16", "uint32", "uint64")),
    ("floats", ("bfloat16", "float16", "float32", "float64")), ("complex", ("complex64", "complex128")),
)
EPILOG = "\n".join([*(f"{name}: {', '.join(types)}" for name, types in GROUPS), "",
                    "tiers, by the graphs that have an op: 1 frozen inference graphs, 2 SavedModels for inference,",
                    "3 training and TensorFlow 1, 4 few others"])


def add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("op", nargs="*", metavar="OP", help="show this op's signature and kernels")
    parser.add_argument("--missing", metavar="MODEL|FOLDER",
                        help="the ops that this model's outputs need and nothing can run; of a folder, those of each "
                             "model below it")
    add_loading(parser)
    parser.add_argument("--all", action="store_true", help="also ops without a kernel")
    parser.add_argument("--tier", nargs="+", type=int, choices=(1, 2, 3, 4), default=[],
                        help="all ops of these tiers, with a kernel or not")
    parser.add_argument("--device", metavar="TYPE", help="kernels of this device type alone, such as CPU")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    add_listing(parser)


def ops(args: Namespace) -> int:
    from ...runtime.service.runtime import runtime
    from ..printing.table import show_json

    host = runtime().host
    if args.missing is not None:
        return _missing(args, host)
    kernels = _kernels(host, args.device)
    if args.op:
        descriptions = [_op_report(host, name, kernels.get(name, [])) for name in args.op]
        if args.json:
            show_json(descriptions)
        else:
            say("\n\n".join(_signature(one) for one in descriptions))
        return 0
    ranks = host.registries.ops.tiers()
    listed = host.registries.ops if args.all or args.tier else sorted(kernels)
    rows = [_row(host, name, kernels.get(name, [])) | {"tier": ranks.get(name)} for name in listed
            if not args.tier or ranks.get(name) in args.tier]
    if args.json:
        show_json(rows)
    else:
        _list(rows, markdown=args.markdown)
    return 0


def _kernels(host: Host, only: str | None) -> dict[str, list[KernelDef]]:
    """The kernels of every device type by op, or of one type, best first within a type. Raises NotFound."""
    from ...errors import NotFound, closest

    types = host.preference()
    if only is not None and only.upper() not in types:
        suggestions = closest(only.upper(), types)
        hint = f"did you mean {suggestions[0]}?" if suggestions else None
        raise NotFound(f"no plugin brings the device type {only}", hint=hint)
    types = types if only is None else [only.upper()]
    kernels_of_op: dict[str, list[KernelDef]] = {}
    for device_type in types:
        host.registries.kernels.load(device_type)
    for kernel in host.registries.kernels.loaded_kernels():
        if kernel.device_type in types:
            kernels_of_op.setdefault(kernel.op, []).append(kernel)
    return kernels_of_op


def _row(host: Host, name: str, kernels: list[KernelDef]) -> dict[str, Any]:
    registry = host.registries.ops
    has_metadata = name in registry and registry.metadata(registry.get(name)) is not None
    return {"op": name, "metadata": has_metadata, "plugin": registry.plugin_of(name),
            "kernels": [_kernel(k) for k in kernels]}


def _kernel(kernel: KernelDef) -> dict[str, Any]:
    types = {attr: None if allowed is None else sorted(d.name for d in allowed)
             for attr, allowed in kernel.dtypes.items()}
    return {"device_type": kernel.device_type, "pack": kernel.pack, "priority": kernel.priority, "dtypes": types,
            "conditional": kernel.when is not None}


def _list(rows: list[dict[str, Any]], *, markdown: bool) -> None:
    from ...runtime.contract.structural import NO_KERNEL
    from ..printing.table import plural, show, show_markdown

    columns = ("op", "tier", "device", "pack", "metadata", "types")
    cells = [{"op": row["op"], "tier": row["tier"], "metadata": row["metadata"], "device": kernel.get("device_type"),
              "pack": kernel.get("pack"), "types": _types(kernel) or ("needs none" if row["op"] in NO_KERNEL else "")}
             for row in rows for kernel in row["kernels"] or [{}]]
    count_with_kernel = sum(bool(row["kernels"]) or row["op"] in NO_KERNEL for row in rows)
    if markdown:
        show_markdown(cells, columns)
    elif cells:
        show(cells, columns, wrap=("types",))
    say(f"\n{plural(len(rows), 'op')}, {count_with_kernel:,} with a kernel")


def _types(kernel: dict[str, Any]) -> str:
    """`T: floats, int32`: an attribute that is not named may be any type."""
    if not kernel:
        return ""
    texts = [f"{attr}: {_types_text(allowed)}" for attr, allowed in kernel["dtypes"].items()] or ["any"]
    return "; ".join([*texts, *(["for some attributes only"] if kernel["conditional"] else [])])


def _types_text(names: list[str] | None) -> str:
    if names is None:
        return "any"
    left, words = list(names), []
    for word, types in GROUPS:
        if set(types) <= set(left):
            words.append(word)
            left = [name for name in left if name not in types]
    return ", ".join([*words, *left])


def _op_report(host: Host, name: str, kernels: list[KernelDef]) -> dict[str, Any]:
    op: OpDef = host.registries.ops.get(name)
    return {
        **_row(host, name, kernels),
        "inputs": [_arg(a) for a in op.inputs],
        "outputs": [_arg(a) for a in op.outputs],
        "attrs": [_attr(a) for a in op.attrs.values()],
        "stateful": op.stateful,
        "deprecated": op.deprecated,
    }


def _arg(arg: ArgDef) -> dict[str, str]:
    kind = arg.dtype.name if arg.dtype is not None else arg.type_attr or arg.type_list_attr or ""
    kind = f"{arg.number_attr} * {kind}" if arg.number_attr is not None else kind
    return {"name": arg.name, "type": f"Ref({kind})" if arg.is_ref else kind}


def _attr(attr: AttrDef) -> dict[str, Any]:
    from ...runtime.contract.op import REQUIRED, attr_text

    description: dict[str, Any] = {"name": attr.name, "type": attr.type}
    if attr.default is not REQUIRED:
        description["default"] = attr_text(attr.default)
    if attr.minimum is not None:
        description["minimum"] = attr.minimum
    if attr.allowed is not None:
        description["allowed"] = [_allowed_text(item) for item in attr.allowed]
    return description


def _allowed_text(item: DType | str) -> str:
    return item if isinstance(item, str) else item.name


def _signature(op: dict[str, Any]) -> str:
    """An op as its documentation would begin."""

    def args(arguments: Iterable[dict[str, str]]) -> str:
        return ", ".join(f"{a['name']}: {a['type']}" for a in arguments)

    lines = [f"{op['op']}({args(op['inputs'])}) -> {args(op['outputs']) or 'nothing'}"]
    for attr in op["attrs"]:
        least = f" >= {attr['minimum']}" if "minimum" in attr else ""
        allowed = f" in {{{_types_text(attr['allowed'])}}}" if "allowed" in attr else ""
        default = f" = {attr['default']}" if "default" in attr else ""
        lines.append(f"  {attr['name']}: {attr['type']}{least}{allowed}{default}")
    lines += [f"  stateful: {'yes' if op['stateful'] else 'no'}; metadata function: {'yes' if op['metadata'] else 'no'}"
              + (f"; an op of plugin {op['plugin']}" if op["plugin"] else "")]
    lines += [f"  deprecated since GraphDef version {op['deprecated']}"] if op["deprecated"] is not None else []
    lines += [f"  kernel: {k['device_type']} {k['pack']}, priority {k['priority']}  {_types(k)}".rstrip()
              for k in op["kernels"]] or [f"  kernel: {_none(op['op'])}"]
    return "\n".join(lines)


def _none(op: str) -> str:
    from ...runtime.contract.structural import NO_KERNEL

    return "needs none, the runtime itself serves it" if op in NO_KERNEL else "none here"


def _missing(args: Namespace, host: Host) -> int:
    from ..printing.table import plural, show, show_json
    from .model_files import is_folder_of_models

    if is_folder_of_models(args.missing):
        return _missing_in_folder(args)
    from .coverage import dependencies, reachable_nodes, rewritten_graph, sinks, unrunnable_nodes

    args.model = args.missing
    opened = open_graph(args, weights=False)
    graph, nodes = rewritten_graph(opened.needed)
    reachable = [*reachable_nodes(dependencies(graph, opened.outputs or sinks(graph, nodes)), nodes, graph, host)]
    rows = [row._asdict() for row in unrunnable_nodes(reachable, host)]
    if args.json:
        show_json(rows)
        return int(bool(rows))
    if not rows:
        say(f"nothing is missing: every op that the outputs of {args.missing} need has a kernel")
        return 0
    cells = [{"op": row["op"], "count": len(row["nodes"]), "reason": row["reason"], "nodes": _first_names(row["nodes"])}
             for row in rows]
    show(cells, ("op", "count", "reason", "nodes"), wrap=("reason", "nodes"))
    lost = sum(len(row["nodes"]) for row in rows)
    say(f"\n{plural(lost, 'node')} of {len(reachable):,} cannot run here")
    return 1


def _missing_in_folder(args: Namespace) -> int:
    """Show the missing ops of the models below a folder. The status is 1 where a model lacks one."""
    from pathlib import Path

    from ..printing.notices import tell_error
    from ..printing.progress import counted
    from ..printing.table import plural, show, show_json
    from .model_files import find_models
    from .model_rows import model_row

    folder = Path(args.missing)
    found = find_models(folder)
    numbers = counted(len(found.models), f"scanning {args.missing}")
    rows = [row for number in numbers if (row := model_row(found.models[number], folder)) is not None]
    for fault in found.faults:
        tell_error(fault)
    if args.json:
        show_json([{key: row[key] for key in ("file", "missing", "extras", "error")} for row in rows])
    else:
        lacks = [{"file": row["file"], **lack} for row in rows for lack in row["missing"]]
        errors = [{"file": row["file"], "reason": row["error"]} for row in rows if row["error"] is not None]
        if lacks or errors:
            show([*lacks, *errors], ("file", "op", "count", "reason"), cut=("file",), wrap=("reason",))
            say()
        count = sum(bool(row["missing"]) for row in rows)
        say(f"{count:,} of {plural(len(rows), 'model')} {'lacks' if count == 1 else 'lack'} ops")
    return int(bool(found.faults) or any(row["missing"] for row in rows))


def _first_names(names: list[str]) -> str:
    more = f" and {len(names) - MAX_NODE_NAMES} more" if len(names) > MAX_NODE_NAMES else ""
    return ", ".join(names[:MAX_NODE_NAMES]) + more
