"""heald run over many rows: the options, and the request that they make."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, BooleanOptionalAction, Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heald.api.cli import inputs_by_name, parse_input, positive

from .step import limit_arguments, load_model, outputs_of, step_after_targets

if TYPE_CHECKING:
    from heald.api import TensorMetadata
    from heald.api.cli import InputText

    from .rows.request import Model, Request
    from .rows.rescaling import FirstOps
    from .step import AnyModel


def add_rows(parser: ArgumentParser) -> None:
    """Add the options for inputs of many rows."""
    from .rows.output_options import add_output_options
    from .rows.picture_arguments import add_preprocessing
    from .rows.sound_arguments import add_sounds

    group = parser.add_argument_group("many rows")
    group.add_argument("--batch", type=positive, metavar="N",
                       help="rows that run together (32, or the model's own number); files of arrays and lines are "
                            "rows, too")
    group.add_argument("--map", action="append", default=[], metavar="INPUT=COLUMN,...",
                       help="the columns that feed an input, side by side (repeatable)")
    group.add_argument("--keep", type=_names, default=[], metavar="COLUMN,...",
                       help="columns of the inputs that the table has, too")
    add_preprocessing(group)
    add_sounds(group)
    group.add_argument("--dry-run", action="store_true",
                       help="tell the first batch's shapes, ranges and columns; run nothing")
    group.add_argument("--contact-sheet", metavar="FILE.png", nargs="?", const="contact-sheet.png",
                       help="with --dry-run: write the first pictures as the model sees them (contact-sheet.png)")
    add_output_options(group)
    group.add_argument("--limit", type=positive, metavar="N", help="most rows")
    group.add_argument("--resume", action="store_true", help="go on where a run with this output was cut off")
    group.add_argument("--nan", choices=("null", "literal"), default="null",
                       help="NaN and infinities in JSON lines: null, or as Python's json writes them")
    group.add_argument("--strict", action="store_true", help="stop at the first row that cannot be read")
    group.add_argument("--delimiter", metavar="C", help="between cells of CSV (by the first line: , ; | or a tab)")
    group.add_argument("--encoding", default="utf-8", metavar="NAME", help="of texts (utf-8)")
    group.add_argument("--header", action=BooleanOptionalAction, default=None,
                       help="whether the first line of CSV has the columns' names (no where a cell is a number)")


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def is_of_rows_run(args: Namespace) -> bool:
    """True where inputs are many rows, or the output is a table."""
    from .rows.output_places import SHARDS, STDOUT, is_of_sounds
    from .rows.sources import is_of_rows

    if args.batch is not None or args.output == STDOUT or args.dry_run or args.contact_sheet is not None:
        return True
    if args.output is not None and (Path(args.output).suffix.lower() in SHARDS or is_of_sounds(args.output)):
        return True
    return any(is_of_rows(given.text) for given in map(parse_input, args.input) if not given.may_be_shape)


def run_rows(args: Namespace) -> int:
    """Run a model over many rows. The status is 1 where a row could not be read."""
    from .engine import with_engine
    from .rows.options import ReadOptions
    from .rows.output_options import output_options_of
    from .rows.output_places import STDOUT, check_output
    from .rows.picture_arguments import preprocessing_of
    from .rows.predict import predict, summary
    from .rows.request import Model, Request
    from .rows.sound_arguments import sound_options_of
    from .rows.sources import is_of_rows, is_picture, is_rows_of_file
    from .served_model import DEFAULT_IN_FLIGHT, is_address, open_served_model, row_errors

    output = args.output or STDOUT
    check_output(output, resume=args.resume, sound_rate=args.sample_rate)
    arguments = [parse_input(text) for text in args.input]
    is_source = is_picture if args.batch is None else is_rows_of_file
    of_rows = [argument for argument in arguments
               if not argument.may_be_shape and (is_of_rows(argument.text) or is_source(argument.text))]
    of_all_rows = [argument for argument in arguments if argument not in of_rows]
    is_served = is_address(args.model)
    model: AnyModel = open_served_model(args) if is_served else load_model(args)
    step, inputs = _step_of_rows(args, model)
    request = Request(
        args.model if is_served else Path(args.model), _sources(of_rows, inputs), _constants(of_all_rows, inputs),
        output, _options_text(args), args.batch, _maps(args.map, inputs), args.keep, args.limit, args.strict,
        args.json, args.nan, args.resume, output_options_of(args),
        preprocessing_of(args)._replace(sound=sound_options_of(args)),
        ReadOptions(0, args.delimiter, args.encoding, args.header))
    rows_model = Model(inputs, tuple(model.outputs), step, _first_ops(model))
    if is_served:
        rows_model = rows_model._replace(in_flight=args.in_flight or DEFAULT_IN_FLIGHT, row_errors=row_errors())
    if args.dry_run or args.contact_sheet is not None:
        return _dry_run(args, rows_model, request)
    with with_engine(args, rows_model) as engine_model:
        tally = predict(engine_model, request)
    sys.stderr.write(summary(tally, output) + "\n")
    return int(tally.bad > 0)


def _first_ops(model: AnyModel) -> Callable[[str], FirstOps] | None:
    """Return a function from an input's name to the first ops behind it; None for a model without a graph."""
    import heald

    from .rows.rescaling import find_first_ops

    if not isinstance(model, heald.Model):
        return None
    return lambda name: find_first_ops(model.graph, model.fed[name])


def _dry_run(args: Namespace, model: Model, request: Request) -> int:
    from heald.api.cli import say, show_json
    from heald.errors import InvalidArgument

    from .rows.contact_sheet import check_file
    from .rows.dry_run import as_json, lines_of, look_at_rows

    if not args.dry_run:
        raise InvalidArgument("--contact-sheet is a part of --dry-run", hint="give both")
    if args.contact_sheet is not None:
        check_file(args.contact_sheet)
    report = look_at_rows(model, request, Path(args.contact_sheet) if args.contact_sheet is not None else None)
    if args.json:
        show_json(as_json(report))
    else:
        say("\n".join(lines_of(report)))
    return int(report.bad > 0)


def _step_of_rows(args: Namespace, model: AnyModel) -> tuple[Callable[..., Sequence[Any]], dict[str, TensorMetadata]]:
    """Return a function from the arrays of the model's inputs to its outputs, and the inputs."""
    import heald

    limits = limit_arguments(args)
    if isinstance(model, heald.Model):
        step = step_after_targets(model, list(model.fetched.values()), dict(model.fed), args.target)
    else:
        step = outputs_of(model)
    return (lambda *arrays: step(*arrays, **limits)), dict(model.inputs)


def _options_text(args: Namespace) -> str:
    """Return the options that decide about the rows, for the journal."""
    from .engine import ENGINE_OPTIONS
    from .served_model import SERVED_OPTIONS

    options = {name: value for name, value in vars(args).items()
               if name not in ("resume", "strict", "model", "run", "command", "timeout", *SERVED_OPTIONS,
                               *ENGINE_OPTIONS)
               and not callable(value)}
    return repr(sorted(options.items()))


def _sources(of_rows: Sequence[InputText], inputs: Mapping[str, TensorMetadata]) -> dict[str | None, str]:
    """Return the text of each source of rows by input; None stands for all inputs of a table's columns.

    Raises InvalidArgument.
    """
    from heald.errors import InvalidArgument

    sources: dict[str | None, str] = {}
    for name, text in of_rows:
        if name is not None and name not in inputs:
            raise InvalidArgument(f"the model has no input '{name}'", hint=f"its inputs: {', '.join(inputs)}")
        if name in sources or (sources and None in (name, *sources)):
            raise InvalidArgument("rows of several sources need the name of the input that each is for",
                                  hint="--input NAME=FILES")
        sources[name] = text
    if not sources:
        raise InvalidArgument("no input is a source of rows",
                              hint="--input NAME='FOLDER/*.npy', a folder, a table such as data.csv, or - for stdin")
    return sources


def _constants(given: Sequence[InputText], inputs: Mapping[str, TensorMetadata]) -> dict[str, Any]:
    """Return the values that are the same for all rows, by input."""
    from heald.errors import InvalidArgument

    from .inputs import read

    texts = inputs_by_name(given, tuple(inputs))
    for name in texts:
        if name not in inputs:
            raise InvalidArgument(f"the model has no input '{name}'", hint=f"its inputs: {', '.join(inputs)}")
    return {name: read(text, inputs[name], name) for name, text in texts.items()}


def _maps(texts: Sequence[str], inputs: Mapping[str, TensorMetadata]) -> dict[str, list[str]]:
    """Return the columns of each input that --map names. Raises InvalidArgument."""
    from heald.errors import InvalidArgument

    maps: dict[str, list[str]] = {}
    for text in texts:
        name, equals, columns = text.partition("=")
        if not equals or name not in inputs:
            raise InvalidArgument(f"--map '{text}' is not INPUT=COLUMN,...", hint=f"the inputs: {', '.join(inputs)}")
        maps[name] = _names(columns)
    return maps
