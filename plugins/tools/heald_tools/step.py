"""The step that a command's arguments name: its model, feeds, fetches and device."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from heald.api.cli import add_device, add_input, add_model, inputs_by_name, parse_input, ticking

if TYPE_CHECKING:
    from heald import Model
    from heald.api import TensorMetadata
    from heald.runtime.service import LoadedCompiledModel

    from .served_model import ServedModel

    AnyModel = Model | LoadedCompiledModel | ServedModel

EPILOG = """\
inputs:
  x=3  x=true  x='[[1, 2], [3, 4]]'   a number or a JSON list
  x='some text'                       for a string tensor
  x='"data.txt"'                      the text itself, which is the name of a file
                                      or folder
  x:1,224,224,3  x:2,8:float32        made up, of this shape and type
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


def seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not number >= 0:  # `not >=` also catches NaN
        raise ArgumentTypeError(f"'{text}' is no number of seconds from 0 on, such as 2.5")
    return number


def finite_seconds(text: str) -> float:
    number = seconds(text)
    if number == float("inf"):
        raise ArgumentTypeError(f"'{text}' has no end: write a number of seconds, such as 2.5")
    return number


def positive_seconds(text: str) -> float:
    number = seconds(text)
    if not 0 < number < float("inf"):
        raise ArgumentTypeError(f"'{text}' is no number of seconds above 0, such as 2.5")
    return number


def add_step(parser: ArgumentParser) -> None:
    """Add the arguments that say which step of which model runs, and on which device."""
    parser.epilog = EPILOG
    add_model(parser)
    add_input(parser)
    parser.add_argument("--fetch", action="append", default=[], metavar="NAME",
                        help="a tensor to compute instead of the model's outputs (repeatable)")
    parser.add_argument("--target", action="append", default=[], metavar="NAME",
                        help="a node to run for its effect, before the outputs; alone, nothing is fetched (repeatable)")
    add_device(parser)


def limit_arguments(args: Namespace) -> dict[str, Any]:
    """The keyword arguments of a limited run; none without a limit."""
    import heald

    return {} if args.timeout is None else {"options": heald.RunOptions(timeout=args.timeout)}


def step_of(args: Namespace, model: AnyModel) -> tuple[Callable[..., Sequence[Any]], list[Any]]:
    """Return a function from feeds to outputs, and the feeds that the arguments give."""
    import heald

    if isinstance(model, heald.Model):
        fetches, tensors, values = names_and_feeds(args, model)
        return step_after_targets(model, fetches, tensors, args.target), values
    from .inputs import read

    texts = inputs_by_name([parse_input(text) for text in args.input], tuple(model.inputs))
    check_known(texts, model)
    _check_missing(model.inputs, texts)
    return outputs_of(model), [read(texts[name], meta, name) for name, meta in model.inputs.items()]


def step_after_targets(
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

    from .inputs import read

    names = {tensor.removesuffix(":0"): name for name, tensor in model.fed.items()}
    inputs = find_inputs(model.session, [*model.fetched.values(), *args.target])
    needed = _types(args, model, [names.get(node, node) for node in inputs])
    texts = inputs_by_name([parse_input(text) for text in args.input], tuple(needed))
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
