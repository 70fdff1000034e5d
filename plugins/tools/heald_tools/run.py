"""heald run: one step of a model from the shell, or many, timed."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, ArgumentTypeError, BooleanOptionalAction, Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

from heald.api.cli import add_device, add_json, add_model, counted, positive, say, ticking

if TYPE_CHECKING:
    from heald import Model
    from heald.api import TensorMetadata
    from heald.runtime.service import LoadedCompiledModel

    from .inputs import Given

    AnyModel = Model | LoadedCompiledModel

_OF_MODELS = ("device", "input", "fetch", "target", "output", "repeat", "signature", "tags", "json")
EPILOG = """\
inputs:
  x=3  x=true  x='[[1, 2], [3, 4]]'   a number or a JSON list
  x='some text'                       for a string tensor
  x='"data.txt"'                      the text itself, which is the name of a file
                                      or folder
  x=data.npy  x=data.npz:key          NumPy files; without a key the array of the
                                      input's name, or the only one there is
  x=data.txt  x=data.json             numbers between white space (for a string
                                      tensor the lines); JSON
  x=cat.png  x=cat.jpg                pixels, with Pillow installed (for a string
                                      tensor the file's bytes)
  x='photos/**/*.jpg'  x=photos/      many rows, run in batches: a pattern, a folder,
  x=@files.txt  data.csv  data.jsonl  a list of files, a table, or standard input (-).
  x=-                                 The columns of a table feed inputs by name.
Numbers, lists, text, lines and pixels get the dimensions of length 1 that
they lack: x=33 for an input of shape [?,1] is [[33]].
Without NAME= it is for the model's only input."""


def add_arguments(parser: ArgumentParser) -> None:
    add_step(parser)
    parser.add_argument("function", nargs="?", metavar="FUNCTION",
                        help="of a host program (.mlir, .bef): the function to run; all without arguments by default")
    parser.add_argument("--output", metavar="FILE|DIR",
                        help="save the outputs: all in one .npz, or an .npy each in a folder; of many rows a table "
                             "(.csv, .jsonl, .npz, - for standard output)")
    parser.add_argument("--repeat", type=positive, default=0, metavar="N", help="after the first run, time N more")
    parser.add_argument("--timeout", type=seconds, metavar="S",
                        help="end each run after S seconds, with an error; the first one links")
    add_rows(parser)
    add_json(parser)


def add_rows(parser: ArgumentParser) -> None:
    """Add the options for inputs of many rows."""
    from .rows.picture_arguments import add_preprocessing

    group = parser.add_argument_group("many rows")
    group.add_argument("--batch", type=positive, metavar="N",
                       help="rows that run together (32, or the model's own number); files of arrays and lines are "
                            "rows, too")
    group.add_argument("--map", action="append", default=[], metavar="INPUT=COLUMN,...",
                       help="the columns that feed an input, side by side (repeatable)")
    group.add_argument("--keep", type=_names, default=[], metavar="COLUMN,...",
                       help="columns of the inputs that the table has, too")
    add_preprocessing(group)
    group.add_argument("--labels", metavar="FILE", help="the names of classes, one a line: the best become columns")
    group.add_argument("--top", type=positive, default=5, metavar="N", help="labels of a row (5)")
    group.add_argument("--limit", type=positive, metavar="N", help="most rows")
    group.add_argument("--strict", action="store_true", help="stop at the first row that cannot be read")
    group.add_argument("--delimiter", metavar="C", help="between cells of CSV (by the first line: , ; | or a tab)")
    group.add_argument("--encoding", default="utf-8", metavar="NAME", help="of texts (utf-8)")
    group.add_argument("--header", action=BooleanOptionalAction, default=None,
                       help="whether the first line of CSV has the columns' names (no where a cell is a number)")


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not number >= 0:  # `not >=` also catches NaN
        raise ArgumentTypeError(f"'{text}' is no number of seconds from 0 on, such as 2.5")
    return number


def add_step(parser: ArgumentParser) -> None:
    """Add the arguments that say which step of which model runs, and on which device."""
    parser.epilog = EPILOG
    add_model(parser)
    parser.add_argument("--input", action="append", default=[], metavar="NAME=VALUE|FILE",
                        help="feed an input, or any other tensor (repeatable)")
    parser.add_argument("--fetch", action="append", default=[], metavar="NAME",
                        help="a tensor to compute instead of the model's outputs (repeatable)")
    parser.add_argument("--target", action="append", default=[], metavar="NAME",
                        help="a node to run for its effect, before the outputs; alone, nothing is fetched (repeatable)")
    add_device(parser)


def run(args: Namespace) -> int:
    from pathlib import Path

    from .outputs import check_place

    if _is_program(args):
        import heald

        _check_program(args)
        status: int = heald.mlir.run_program(args.model, args.function, args.timeout)
        return status
    if args.function is not None:
        from heald.errors import InvalidArgument

        raise InvalidArgument(f"'{args.model}' is a model: it has no function '{args.function}' to run alone",
                              hint="--signature names a signature of a model")
    if _is_of_rows(args):
        return _run_rows(args)
    if args.output is not None:
        check_place(args.output)
    model = load_model(args)
    step, values = step_of(args, model)
    limits = _limit_arguments(args)
    name = Path(args.model).name
    start = perf_counter()
    with ticking(f"running {name}"):
        results = step(*values, **limits)
    times = [perf_counter() - start]
    for _ in counted(args.repeat, f"running {name}"):
        start = perf_counter()
        step(*values, **limits)
        times.append(perf_counter() - start)
    _tell(args, dict(zip(model.outputs, results, strict=True)), times)
    return 0


def _is_of_rows(args: Namespace) -> bool:
    """True where inputs are many rows, or the output is a table."""
    from pathlib import Path

    from .inputs import parse
    from .rows.sources import is_of_rows
    from .rows.writers import STDOUT

    if args.batch is not None or args.output == STDOUT:
        return True
    if args.output is not None and Path(args.output).suffix.lower() in (".csv", ".jsonl"):
        return True
    return any(is_of_rows(parse(text).text) for text in args.input)


def _run_rows(args: Namespace) -> int:
    """Run a model over many rows. The status is 1 where a row could not be read."""
    import sys

    from .inputs import parse
    from .rows.labels import read_labels
    from .rows.options import ReadOptions
    from .rows.picture_arguments import preprocessing_of
    from .rows.predict import Model, Request, predict, summary
    from .rows.sources import is_of_rows, is_picture, is_rows_of_file
    from .rows.writers import STDOUT, check_output

    output = args.output or STDOUT
    check_output(output)
    arguments = [parse(text) for text in args.input]
    is_source = is_picture if args.batch is None else is_rows_of_file
    of_rows = [argument for argument in arguments if is_of_rows(argument.text) or is_source(argument.text)]
    of_all_rows = [argument for argument in arguments if argument not in of_rows]
    model = load_model(args)
    step, inputs = _step_of_rows(args, model)
    request = Request(
        _sources(of_rows, inputs), _constants(of_all_rows, inputs), output, args.batch,
        _maps(args.map, inputs), args.keep, args.limit, args.strict, args.json, read_labels(args.labels, args.top),
        preprocessing_of(args), ReadOptions(0, args.delimiter, args.encoding, args.header))
    tally = predict(Model(inputs, tuple(model.outputs), step), request)
    sys.stderr.write(summary(tally, output) + "\n")
    return int(tally.bad > 0)


def _step_of_rows(args: Namespace, model: AnyModel) -> tuple[Callable[..., Sequence[Any]], dict[str, TensorMetadata]]:
    """Return a function from the arrays of the model's inputs to its outputs, and the inputs."""
    import heald

    limits = _limit_arguments(args)
    if isinstance(model, heald.Model):
        step = _step_after_targets(model, list(model.fetched.values()), dict(model.fed), args.target)
    else:
        step = outputs_of(model)
    return (lambda *arrays: step(*arrays, **limits)), dict(model.inputs)


def _sources(of_rows: Sequence[Given], inputs: Mapping[str, TensorMetadata]) -> dict[str | None, str]:
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


def _constants(given: Sequence[Given], inputs: Mapping[str, TensorMetadata]) -> dict[str, Any]:
    """Return the values that are the same for all rows, by input."""
    from heald.errors import InvalidArgument

    from .inputs import read, texts_by_input

    texts = texts_by_input(given, tuple(inputs))
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


def _limit_arguments(args: Namespace) -> dict[str, Any]:
    """The keyword arguments of a limited run; none without a limit."""
    import heald

    return {} if args.timeout is None else {"options": heald.RunOptions(timeout=args.timeout)}


def _is_program(args: Namespace) -> bool:
    """Return True for a file of a host program. Without heald-mlir no file is one."""
    import heald
    from heald.errors import Unavailable

    try:
        is_program: bool = args.format in (None, "bef", "mlir") and heald.mlir.is_program(args.model)
    except Unavailable:
        return False
    return is_program


def _check_program(args: Namespace) -> None:
    """Raises InvalidArgument for an option of models: a program has its own devices, arguments and results."""
    model_options = [name for name in _OF_MODELS if getattr(args, name) not in (None, [], 0, False)]
    if model_options:
        from heald.errors import InvalidArgument

        raise InvalidArgument(f"--{model_options[0]} is for models, and '{args.model}' is a host program",
                              hint="leave it out; the program itself names devices and arguments")


def step_of(args: Namespace, model: AnyModel) -> tuple[Callable[..., Sequence[Any]], list[Any]]:
    """Return a function from feeds to outputs, and the feeds that the arguments give."""
    import heald

    if isinstance(model, heald.Model):
        fetches, tensors, values = names_and_feeds(args, model)
        return _step_after_targets(model, fetches, tensors, args.target), values
    from .inputs import parse, read, texts_by_input

    texts = texts_by_input([parse(text) for text in args.input], tuple(model.inputs))
    check_known(texts, model)
    _check_missing(model.inputs, texts)
    return outputs_of(model), [read(texts[name], meta, name) for name, meta in model.inputs.items()]


def _step_after_targets(
    model: Model, fetches: list[str], tensors: dict[str, str], targets: list[str]
) -> Callable[..., Sequence[Any]]:
    """Return a function that runs the targets and then fetches: outputs may need the targets' effects."""
    if not (targets and fetches):
        step: Callable[..., Sequence[Any]] = model.session.make_callable(fetches, tensors, targets)
        return step
    act, fetch = model.session.make_callable([], tensors, targets), model.session.make_callable(fetches, tensors)

    def act_and_fetch(*arrays: Any, **limits: Any) -> Sequence[Any]:
        act(*arrays, **limits)
        results: Sequence[Any] = fetch(*arrays, **limits)
        return results

    return act_and_fetch


def outputs_of(model: AnyModel) -> Callable[..., Sequence[Any]]:
    """Return a function from the arrays of all inputs to the arrays of all outputs, in order."""
    import heald

    if isinstance(model, heald.Model):
        step: Callable[..., Sequence[Any]] = model.session.make_callable(
            list(model.fetched.values()), model.fed)
        return step

    def call(*arrays: Any, **limits: Any) -> Sequence[Any]:
        results = model(*arrays, **limits)
        return list(results.values()) if len(model.outputs) != 1 else [results]

    return call


def with_graph(args: Namespace, model: AnyModel) -> Model:
    """Return the model. Raises Unimplemented for a compiled model, which has no graph."""
    import heald
    from heald.errors import Unimplemented

    if not isinstance(model, heald.Model):
        raise Unimplemented(f"'{args.model}' is a compiled model, and this needs a graph",
                            hint="name the file that it was compiled from")
    return model


def check_known(texts: Iterable[str], model: AnyModel) -> None:
    """Raises InvalidArgument for a name that is no input of the model."""
    unknown = sorted(set(texts) - model.inputs.keys())
    if unknown:
        from heald.errors import InvalidArgument

        raise InvalidArgument(f"the model has no input '{unknown[0]}'", hint=f"its inputs: {', '.join(model.inputs)}")


def load_model(args: Namespace) -> AnyModel:
    """Return the model that the arguments of `add_step` name."""
    import heald

    outputs = args.fetch or ([] if args.target else None)
    with ticking(f"loading {args.model}"):
        model: Any = heald.load(args.model, outputs=outputs, device=args.device, signature=args.signature,
                                tags=args.tags, format=args.format, mmap=args.mmap)
    return cast("AnyModel", model)


def names_and_feeds(args: Namespace, model: Model) -> tuple[list[str], dict[str, str], list[Any]]:
    """Return the tensors to fetch, the tensors to feed by their names in the arguments, and their values.

    Raises InvalidArgument with every missing input.
    """
    from heald.graphs.session import find_inputs

    from .inputs import parse, read, texts_by_input

    names = {tensor.removesuffix(":0"): name for name, tensor in model.fed.items()}
    inputs = find_inputs(model.session, [*model.fetched.values(), *args.target])
    needed = _types(args, model, [names.get(node, node) for node in inputs])
    texts = texts_by_input([parse(text) for text in args.input], tuple(needed))
    _check_missing(needed, texts)
    types = _types(args, model, tuple(texts))
    values = [read(text, types[name], name) for name, text in texts.items()]
    return list(model.fetched.values()), {name: model.fed.get(name, name) for name in texts}, values


def _types(args: Namespace, model: Model, feeds: Sequence[str]) -> dict[str, TensorMetadata]:
    """Return the metadata of these tensors as feeds. Raises the errors of preparing a step with these feeds."""
    tensors = [model.fed.get(name, name) for name in feeds]
    prepared = model.session.prepare(list(model.fetched.values()), tensors, args.target)
    return dict(zip(feeds, prepared.program.functions["main"].arg_metas, strict=True))


def _check_missing(needed: Mapping[str, TensorMetadata], fed: Iterable[str]) -> None:
    fed_names = {name.removesuffix(":0") for name in fed}
    missing = [name for name in needed if name not in fed_names]
    if not missing or fed_names - needed.keys():
        return  # the feeds include inner tensors: the session knows which inputs these spare
    from heald.errors import InvalidArgument

    named = ", ".join(f"{name} {needed[name]}" for name in missing)
    example = " ".join(f"--input {shlex.quote(name)}=FILE.npy" for name in missing[:2])
    raise InvalidArgument(f"the model needs {'an input' if len(missing) == 1 else 'inputs'}: {named}", hint=example)


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
