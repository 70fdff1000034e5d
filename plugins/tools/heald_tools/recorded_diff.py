"""heald diff with recorded results: by heald at another time, by TensorFlow, or by any program.

The results are compared tensor by tensor in the order of the graph, so the first tensor beyond the tolerance is the
place to look. TensorFlow runs in a process of its own and writes a recording, as --record does.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from heald.api.cli import inputs_by_name, parse_input, say, ticking
from heald.errors import HealdError, InvalidArgument

from . import outputs as output_files
from .compare import TOLERANCE, Difference, comparable_tensors, compare
from .fused_diff import compare_fused, in_order
from .made_up_inputs import candidate_feeds, run_first
from .recording import Recording, comparable, read_recording, recorded_arrays
from .step import load_model, outputs_of, with_graph
from .tensorflow_run import Request, run_tensorflow

if TYPE_CHECKING:
    from heald import Model

HEALD, TENSORFLOW = "heald", "tensorflow"


def open_model(args: Namespace) -> Model:
    """Return the model of the arguments. Raises Unimplemented for a compiled model."""
    args.target = []
    return with_graph(args, load_model(args))


def record(args: Namespace) -> int:
    """Write a recording by heald or by TensorFlow. With --all it has every tensor that the outputs need."""
    if Path(args.record).suffix != ".npz":
        raise InvalidArgument(f"--record '{args.record}' is no .npz file", hint="--record expected.npz")
    model = open_model(args)
    if args.by == TENSORFLOW:
        feeds = _made_up_feeds(args, model)
        run_tensorflow(_request(args, model, feeds), args.tensorflow, args.record)
    else:
        with ticking("running heald"):
            feeds, results, _ = run_first(outputs_of(model), candidate_feeds(args.input, model))
            outputs = dict(zip(model.outputs, results, strict=True))
            tensors = _tensors_of(open_model(args), feeds) if args.all else {}  # anew: a run may change state
        output_files.write(args.record, recorded_arrays(feeds, outputs, tensors))
    say(f"wrote {args.record}: the results of {args.by}")
    return 0


def differences_from(args: Namespace) -> list[Difference]:
    """Compare with the recording of --expect, or with a new one by TensorFlow."""
    model = open_model(args)
    if args.expect is not None:
        return _compare(args, model, args.expect)
    with TemporaryDirectory() as folder:
        file = str(Path(folder) / "expected.npz")
        run_tensorflow(_request(args, model, _made_up_feeds(args, model), whole=True), args.tensorflow, file)
        return _compare(args, model, file)


def _compare(args: Namespace, model: Model, file: str) -> list[Difference]:
    recording = read_recording(file, model.fed, model.fetched, model.session.nodes)
    feeds = _recorded_feeds(args, model, recording, file)
    expected = recording.tensors | {_port(model.fetched[name]): array for name, array in recording.outputs.items()}
    tolerance = TOLERANCE if args.tolerance is None else args.tolerance
    if not tolerance >= 0:
        raise InvalidArgument(f"the tolerance must not be negative, as {tolerance} is")
    with ticking(f"running {args.model}"):
        results = model.session.run([*expected], {model.fed[name]: value for name, value in feeds.items()})
    values = dict(zip(expected, results, strict=True))
    tensors = [*_differences(model, values, expected, tolerance)]
    wrong = {difference.tensor for difference in tensors if difference.is_beyond}
    with ticking(f"running {args.model}"):
        groups = compare_fused(
            open_model(args).session, {model.fed[name]: value for name, value in feeds.items()},  # anew: as in `record`
            [*model.fetched.values()], lambda names: [comparable(expected[name]) for name in names], wrong, tolerance,
            known=expected)
        return in_order(tensors, [*groups])


def _differences(
    model: Model, values: Mapping[str, Any], expected: Mapping[str, Any], tolerance: float
) -> Iterator[Difference]:
    """Yield the differences in the order of the graph."""
    entries = {name: entry for entry, name in comparable_tensors(model.session, [*model.fed.values()], [*expected])}
    order = {name: position for position, name in enumerate(entries)}
    rows = {row["node"]: row for row in model.session.placement().table()}
    for name in sorted(expected, key=lambda name: order.get(name, -1)):
        node = name.rpartition(":")[0]
        row = rows.get(node, {})
        result = values[name]
        largest, relative, is_beyond = compare(result, comparable(expected[name]), tolerance)
        yield Difference(name, model.session.graph[node].op, row.get("assigned", ""), row.get("kernel", ""),
                         result.shape, str(result.dtype) if result.dtype != object else "string", largest, relative,
                         is_beyond)


def _recorded_feeds(args: Namespace, model: Model, recording: Recording, file: str) -> dict[str, Any]:
    """The inputs of --input and of the recording. Raises InvalidArgument for an input without a value."""
    from heald.runtime.service import convert_feed

    from .inputs import read
    from .step import check_known

    texts = inputs_by_name([parse_input(text) for text in args.input], tuple(model.inputs))
    check_known(texts, model)
    feeds = {}
    for name, meta in model.inputs.items():
        if name not in texts and name not in recording.inputs:
            raise InvalidArgument(f"'{file}' has no value for input '{name}', {meta}",
                                  hint=f"add an array inputs/{name} to it, or --input {name}=FILE.npy")
        value = read(texts[name], meta, name) if name in texts else comparable(recording.inputs[name])
        if meta.dtype.numpy.kind == "V" and getattr(value, "dtype", None) == "float32":  # bfloat16, as recorded
            value = value.astype(meta.dtype.numpy)
        feeds[name] = convert_feed(value, meta, name)
    return feeds


def _made_up_feeds(args: Namespace, model: Model) -> dict[str, Any]:
    """Inputs that heald runs on; the first ones where it runs on none, since TensorFlow may."""
    try:
        with ticking("running heald"):
            return run_first(outputs_of(model), candidate_feeds(args.input, model)).feeds
    except HealdError:
        return next(candidate_feeds(args.input, model))


def _tensors_of(model: Model, feeds: Mapping[str, Any]) -> dict[str, Any]:
    """Every tensor that the outputs need, by name."""
    fed = {model.fed[name]: value for name, value in feeds.items()}
    names = [name for _, name in comparable_tensors(model.session, [*fed], [*model.fetched.values()])]
    return dict(zip(names, model.session.run(names, fed), strict=True))


def _request(args: Namespace, model: Model, feeds: dict[str, Any], *, whole: bool = False) -> Request:
    """The run that TensorFlow is asked for, of all tensors with --all and for a comparison."""
    is_saved_model = Path(args.model).is_dir()
    wants_tensors = (args.all or whole) and not is_saved_model  # a SavedModel's are in functions, under other names
    fetches = [*model.fetched.values()]
    tensors = ([name for _, name in comparable_tensors(model.session, [*model.fed.values()], fetches)]
               if wants_tensors else [])
    return Request(str(Path(args.model).absolute()), is_saved_model, args.signature, args.tags, feeds,
                   {name: _port(tensor) for name, tensor in model.fed.items()},
                   {name: _port(tensor) for name, tensor in model.fetched.items()}, tensors)


def _port(tensor: str) -> str:
    return tensor if ":" in tensor else f"{tensor}:0"


