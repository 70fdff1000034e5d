"""heald run: one step of a model from the shell, or many, timed."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

from heald.api.cli import add_json, counted, positive, say, ticking

from .engine import add_engine
from .run_rows import add_rows
from .served_model import add_served
from .step import add_step, limit_arguments, load_model, seconds, step_of

if TYPE_CHECKING:
    from .step import AnyModel

    _FirstRun = tuple[Callable[..., Sequence[Any]], list[Any], Sequence[Any], float]

_OF_MODELS = ("device", "input", "fetch", "target", "output", "repeat", "signature", "tags", "json", "made_up")


def add_arguments(parser: ArgumentParser) -> None:
    add_step(parser)
    parser.add_argument("function", nargs="?", metavar="FUNCTION",
                        help="of a host program (.mlir, .bef): the function to run; all without arguments by default")
    parser.add_argument("--output", metavar="FILE|DIR",
                        help="save the outputs: all in one .npz or .json, or an .npy each in a folder; of many rows "
                             "a table (.csv, .jsonl, .parquet, .npz, - for standard output)")
    parser.add_argument("--repeat", type=positive, default=0, metavar="N", help="after the first run, time N more")
    parser.add_argument("--made-up", action="store_true",
                        help="make up the inputs that are not given, as heald bench does")
    parser.add_argument("--timeout", type=seconds, metavar="S",
                        help="end each run after S seconds, with an error; the first one links")
    add_rows(parser)
    add_served(parser)
    add_engine(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    from pathlib import Path

    from .engine import check_engine
    from .outputs import check_place
    from .run_rows import is_of_rows_run, run_rows
    from .served_model import check_local, is_address, open_served_model

    is_served = is_address(args.model)
    if not is_served:
        check_local(args)
    check_engine(args, is_served=is_served, is_of_rows=is_of_rows_run(args))
    if not is_served and _is_program(args):
        import heald

        _check_program(args)
        status: int = heald.mlir.run_program(args.model, args.function, args.timeout)
        return status
    if args.function is not None and not is_served:
        from heald.errors import InvalidArgument

        raise InvalidArgument(f"'{args.model}' is a model: it has no function '{args.function}' to run alone",
                              hint="--signature names a signature of a model")
    if is_of_rows_run(args):
        _check_made_up(args, True, "many rows are given")
        return run_rows(args)
    _check_made_up(args, args.target, "--target is given")
    if args.output is not None:
        check_place(args.output)
    model: AnyModel = open_served_model(args) if is_served else load_model(args)
    limits = limit_arguments(args)
    name = Path(args.model).name
    if args.made_up:
        step, values, results, first_seconds = _run_made_up(args, model, limits)
    else:
        step, values = step_of(args, model)
        start = perf_counter()
        with ticking(f"running {name}"):
            results = step(*values, **limits)
        first_seconds = perf_counter() - start
    times = [first_seconds]
    for _ in counted(args.repeat, f"running {name}"):
        start = perf_counter()
        step(*values, **limits)
        times.append(perf_counter() - start)
    _tell(args, dict(zip(model.outputs, results, strict=True)), times)
    return 0


def _check_made_up(args: Namespace, refused: object, reason: str) -> None:
    """Raises InvalidArgument for --made-up in a run that it is not for."""
    from heald.errors import InvalidArgument

    if args.made_up and refused:
        raise InvalidArgument(f"--made-up is for one run of the model's outputs, and {reason}",
                              hint="leave one of them out")


def _run_made_up(args: Namespace, model: AnyModel, limits: dict[str, Any]) -> _FirstRun:
    """Run the model once with made-up inputs. Returns the step, the feeds, the results, and the seconds."""
    from .made_up_inputs import candidate_feeds, run_first
    from .step import outputs_of

    step = outputs_of(model)
    with ticking(f"running {args.model}"):
        feeds, results, first_seconds = run_first(step, candidate_feeds(args.input, model), **limits)
    return step, [*feeds.values()], results, first_seconds


def _is_program(args: Namespace) -> bool:
    """Return True for a file of a host program. Without heald-mlir no file is one."""
    import heald
    from heald.errors import NotFound

    try:
        is_program: bool = args.format in (None, "bef", "mlir") and heald.mlir.is_program(args.model)
    except NotFound:  # of heald-mlir, or of the file, which the loader tells
        return False
    return is_program


def _check_program(args: Namespace) -> None:
    """Raises InvalidArgument for an option of models: a program has its own devices, arguments and results."""
    model_options = [name for name in _OF_MODELS if getattr(args, name) not in (None, [], 0, False)]
    if model_options:
        from heald.errors import InvalidArgument

        option = model_options[0].replace("_", "-")
        raise InvalidArgument(f"--{option} is for models, and '{args.model}' is a host program",
                              hint="leave it out; the program itself names devices and arguments")


def _tell(args: Namespace, outputs: dict[str, Any], times: list[float]) -> None:
    from heald.api.cli import show_json

    from . import summary
    from .outputs import write

    written = write(args.output, outputs) if args.output is not None else {}
    if args.json:
        described = {name: summary.as_json(array) for name, array in outputs.items()}
        for name, file in written.items():
            described[name].pop("left_out", None)
            described[name]["file"] = file
        show_json({"outputs": described, "times": _times(times)})
        return
    if not outputs:
        say(f"ran {', '.join(args.target)}")
    for file in dict.fromkeys(written.values()):
        heads = [summary.head(name, array) for name, array in outputs.items() if written[name] == file]
        say(f"wrote {file}: {', '.join(heads)}")
    for name, array in outputs.items():
        if name not in written:
            say("\n".join(summary.lines(name, array)))
    if len(times) > 1:
        statistics = _times(times)
        say(f"first run {statistics['first_ms']:.3f} ms, which links; then {statistics['runs']} runs: "
            f"min {statistics['min_ms']:.3f}  median {statistics['median_ms']:.3f}  "
            f"max {statistics['max_ms']:.3f} ms")


def _times(times: list[float]) -> dict[str, float]:
    from statistics import median

    first, *more = (1000 * t for t in times)
    if not more:
        return {"first_ms": first}
    return {"first_ms": first, "runs": len(more), "min_ms": min(more), "median_ms": median(more), "max_ms": max(more)}
