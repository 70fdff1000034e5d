"""Reports on a compiled model: its file as data, and the placement of its nodes."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..printing.progress import ticking
from ..printing.terminal import say

if TYPE_CHECKING:
    from ...runtime.contract.kernel import FusionRefusal
    from ...runtime.program.compiled_model import CompiledModel
    from ...runtime.program.groups import GroupOutcome


def open_compiled(args: Namespace) -> CompiledModel | None:
    """Return the model or program in the BEF file MODEL; None for another file. Raises as `heald.bef.load`."""
    from ...runtime.program.bef import file as bef
    from ...runtime.support.file_path import file_path

    file = file_path(args.model)
    if args.format != "bef" and (args.format is not None or not bef.is_bef(file)):
        return None
    with ticking(f"loading {args.model}"):
        return bef.load(file, mmap=args.mmap)


def compiled_report(model: CompiledModel) -> dict[str, Any]:
    """Return a compiled model as data: functions, devices, plugins, constants, packed arrays."""
    entries = {entry.function: entry.signature for entry in model.entries}
    functions, needs = [], dict[str, dict[str, Any]]()
    for name, function in model.program.functions.items():
        inputs = map(str, function.arg_types)
        if name in entries:  # the names of others' arguments are the compiler's
            inputs = map(" ".join, zip(function.arg_names, inputs, strict=True))
        functions.append({
            "function": name, "signature": entries.get(name, ""), "inputs": ", ".join(inputs),
            "results": len(function.results), "calls": len(function.kernels),
            "shapes": "these" if function.is_compiled else "any" if name in entries else ""})
    for requirement in model.requirements:
        row = needs.setdefault(requirement.plugin, {
            "plugin": requirement.plugin, "distribution": requirement.distribution, "version": requirement.version,
            "for": []})
        row["for"].append(requirement.use)
    stored = {id(one.value): one.value for one in model.prepared}
    return {
        "format": f"BEF, made from {model.form}" if model.form else "BEF", "signature": model.chosen_signature,
        "functions": functions, "devices": [*model.program.requires], "needs": [*needs.values()],
        "constants": len(model.program.constants),
        "packed": {"count": len(stored), "bytes": sum(array.nbytes for array in stored.values()),
                   "by": sorted({one.fingerprint for one in model.prepared})},
    }


def inspect_compiled(args: Namespace, model: CompiledModel) -> int:
    from pathlib import Path

    from ...errors import InvalidArgument
    from ..printing.table import byte_text, plural, show, show_json

    if args.passes or args.client or args.partitions:
        raise InvalidArgument(f"'{args.model}' is compiled: it has no graph that these views show",
                              hint="inspect the model that it was compiled from")
    report = {"file": args.model, "bytes": Path(args.model).stat().st_size, **compiled_report(model)}
    kernels = Counter(call.code for function in model.program.functions.values() for call in function.kernels)
    report["kernels"] = [{"kernel": code, "calls": count} for code, count in kernels.most_common()]
    if args.json:
        show_json(report)
        return 0
    say(f"{args.model}: {report['format']}, {byte_text(report['bytes'])}, {plural(report['constants'], 'constant')}, "
        f"{plural(report['packed']['count'], 'packed array')} of {byte_text(report['packed']['bytes'])}")
    tell_functions(report)
    if report["needs"]:
        say("\nplugins that it needs")
        show([row | {"for": ", ".join(row["for"])} for row in report["needs"]],
             ("plugin", "distribution", "version", "for"))
    say("\nkernels")
    show(report["kernels"], ("kernel", "calls"))
    return 0


def tell_functions(report: dict[str, Any]) -> None:
    from ..printing.table import show

    say(f"\nfunctions, on {', '.join(report['devices']) or 'the host'}")
    show(report["functions"], ("function", "signature", "inputs", "results", "calls", "shapes"),
         cut=("function", "inputs"))


def explanation(args: Namespace, model: CompiledModel) -> tuple[
        list[dict[str, str]], Sequence[GroupOutcome], Sequence[FusionRefusal]]:
    """Return the rows of `heald explain` for the chosen signature, the fates of groups that compilers claimed, and the
    fusions that were not used.

    Raises InvalidArgument for a program without entries and for options that need a graph.
    """
    from ...errors import InvalidArgument
    from ...runtime.service.load import loaded_model
    from ...runtime.support.file_path import file_path

    if args.fetch or args.input:
        raise InvalidArgument(f"'{args.model}' is compiled: its outputs and shapes are those of its functions",
                              hint="explain the model that it was compiled from")
    with ticking("linking"):
        loaded = loaded_model(model, file_path(args.model), None, args.device, args.signature)
        algorithms = loaded.algorithms()
        rows = [row | {"how": algorithms.get(row["node"], "")} for row in loaded.placement().table()]
        return rows, loaded.groups(), loaded.fusion_refusals()
