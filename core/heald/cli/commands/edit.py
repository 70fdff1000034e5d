"""heald edit: the methods of graph surgery as options, in the order in which they are given."""

from __future__ import annotations

import re
from argparse import Action, ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..printing.progress import ticking
from ..printing.terminal import say
from .arguments import add_listing, add_model, open_graph
from .editing import Editing, add_changes, check_output, frozen

if TYPE_CHECKING:
    from ...graphs.graph.graph import Graph

EPILOG = """\
Steps are done in the order in which they are given. A tensor is NODE or NODE:1, a control edge ^NODE; a name that ends
in / is a scope. --freeze comes before all steps. The summary compares the result with the model."""
MAX_DIFFERENCES = 10  # differences shown without --all
_TENSOR = r"[^,:]+(?::\d+)?"
_EXTRACT = re.compile(rf"({_TENSOR}(?:,{_TENSOR})*):({_TENSOR}(?:,{_TENSOR})*)")


def _rename(on: Editing, text: str) -> Graph:
    return on.rename(*_pair(text, "--rename", "OLD=NEW"))


def _remove(on: Editing, text: str) -> Graph:
    return on.graph.remove(*_names(text))


def _bypass(on: Editing, text: str) -> Graph:
    return on.graph.bypass(*_names(text))


def _rewire(on: Editing, text: str) -> Graph:
    return on.graph.rewire(*_pair(text, "--rewire", "OLD=NEW"))


def _set_input(on: Editing, text: str) -> Graph:
    input_text, tensor = _pair(text, "--set-input", "NODE:INDEX=TENSOR")
    node, _, index = input_text.rpartition(":")
    if not node or not (index.isascii() and index.isdecimal()):
        raise _unreadable(text, "--set-input", "NODE:INDEX=TENSOR")
    return on.graph.set_input(node, int(index), tensor)


def _const(on: Editing, text: str) -> Graph:
    name, value = _pair(text, "--const", "NAME=VALUE")
    return on.graph.set_constant(name, _value(value))


def _dtype(on: Editing, text: str) -> Graph:
    from ...runtime.values.dtypes import named

    name, dtype = _pair(text, "--dtype", "NAME=TYPE")
    return on.graph.set_dtype(name, named(dtype))


def _expose_input(on: Editing, text: str) -> Graph:
    tensor_text, _, name = text.partition("=")
    tensor = on.tensor(tensor_text)
    return on.graph.expose_input(tensor, name or None, dtype=on.dtype(tensor))


def _expose_output(on: Editing, text: str) -> Graph:
    tensor_text, name = _pair(text, "--expose-output", "TENSOR=NAME")
    tensor = on.tensor(tensor_text)
    return on.graph.expose_output(tensor, name, dtype=on.dtype(tensor))


def _keep_outputs(on: Editing, text: str) -> Graph:
    return on.graph.keep_outputs(*map(on.tensor, _names(text)))


def _drop_inputs(on: Editing, text: str) -> Graph:
    return on.graph.drop_inputs(*map(on.tensor, _names(text)))


def _drop_outputs(on: Editing, text: str) -> Graph:
    return on.graph.drop_outputs(*map(on.tensor, _names(text)))


def _extract(on: Editing, text: str) -> Graph:
    sides = _EXTRACT.fullmatch(text)
    if sides is None:
        raise _unreadable(text, "--extract", "INPUT,..:OUTPUT,..")
    inputs, outputs = ([on.tensor(name) for name in side.split(",")] for side in sides.groups())
    types = {tensor: dtype for tensor in inputs if (dtype := on.dtype(tensor)) is not None}
    return on.graph.extract(inputs, outputs, dtypes=types)


def _merge(on: Editing, text: str) -> Graph:
    other, prefix = _other(on, text)
    return on.graph.merge(other, prefix)


def _replace(on: Editing, text: str) -> Graph:
    """The other model's placeholders are the tensors of this graph that have their names."""
    from ...runtime.contract.structural import PLACEHOLDERS

    nodes, file = _pair(text, "--replace", "NODE,..=OTHER[:PREFIX]")
    other, prefix = _other(on, file)
    inputs = {node.name: node.name for node in other if node.op in PLACEHOLDERS and node.name in on.graph}
    return on.graph.replace_subgraph(_names(nodes), other, inputs=inputs, prefix=prefix)


def _other(on: Editing, text: str) -> tuple[Graph, str]:
    """The graph of the file in the option's text OTHER[:PREFIX], and the prefix for the names of its nodes."""
    from pathlib import Path

    path, prefix = text, ""
    if not Path(text).exists() and ":" in text:
        path, _, prefix = text.rpartition(":")
    other = open_graph(Namespace(model=path, format=None, signature=None, tags=None, mmap=True))
    on.state |= {f"{prefix}{name}" for initializer in other.initial_state for name in initializer.resources}
    return other.graph, prefix


def _passes(on: Editing, text: str) -> Graph:
    *_, graph = (on.graph, *(after for _, after in on.graphs_after(_names(text))))
    return graph


class _Step(NamedTuple):
    metavar: str
    help: str
    run: Callable[[Editing, str], Graph]


STEPS = {  # by option
    "--rename": _Step("OLD=NEW", "rename a node, or a scope: net/=body/", _rename),
    "--remove": _Step("NODE,..", "remove nodes that no other node needs", _remove),
    "--bypass": _Step("NODE,..", "remove nodes of one input, which their consumers then read", _bypass),
    "--rewire": _Step("OLD=NEW", "let the consumers of a tensor read another one", _rewire),
    "--set-input": _Step("NODE:INDEX=TENSOR", "change one input", _set_input),
    "--const": _Step("NAME=VALUE", "change a constant, or make a placeholder one: JSON, text or a .npy file", _const),
    "--dtype": _Step("NAME=TYPE", "convert a constant, or change the type of a placeholder", _dtype),
    "--expose-input": _Step("TENSOR[=NAME]", "put a placeholder in the place of a tensor", _expose_input),
    "--expose-output": _Step("TENSOR=NAME", "name a tensor by an Identity", _expose_output),
    "--keep-outputs": _Step("TENSOR,..", "cut off all nodes that these tensors do not need", _keep_outputs),
    "--drop-inputs": _Step("NODE,..", "remove placeholders that no node needs, or that have a default", _drop_inputs),
    "--drop-outputs": _Step("NODE,..", "remove outputs, and the nodes that only they need", _drop_outputs),
    "--extract": _Step("INPUT,..:OUTPUT,..", "cut out the sub-model between tensors", _extract),
    "--merge": _Step("OTHER[:PREFIX]", "add the nodes of another model, with a prefix to their names", _merge),
    "--replace": _Step("NODE,..=OTHER[:PREFIX]", "put another model in the place of nodes; its placeholders are "
                       "tensors of this one by name", _replace),
    "--passes": _Step("PASS,..", "run graph passes, in this order", _passes),
}


class _Append(Action):
    """Appends an option and its value to the steps, in the order of the command line."""

    def __call__(self, _: ArgumentParser, namespace: Namespace, values: Any, option: str | None = None) -> None:
        namespace.steps = [*namespace.steps, (option, values)]


def add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = EPILOG
    add_model(parser)
    parser.add_argument("-o", "--output", required=True, metavar="OUT", help="the file to write: .pb or .pbtxt")
    add_changes(parser)
    parser.set_defaults(steps=[])
    for option, step in STEPS.items():
        parser.add_argument(option, action=_Append, dest="steps", metavar=step.metavar, help=step.help)
    parser.add_argument("--all", action="store_true", help="a row for every difference")
    add_listing(parser)


def edit(args: Namespace) -> int:
    from pathlib import Path

    from ...graphs.graph.comparison import compare
    from ...graphs.graph.graphdef import dump
    from ...runtime.service.runtime import runtime
    from ..printing.table import byte_text, plural, show_json
    from .graph_changes import change_rows, tell_changes
    from .translate import is_text

    text = is_text(args.output)
    check_output(Path(args.output), args.force)
    opened = open_graph(args)
    on = Editing(opened, frozen(opened) if args.freeze else opened.graph, runtime())
    with ticking(f"editing {args.model}"):
        for option, value in args.steps:
            on.graph = STEPS[option].run(on, value)
        on.check_state()
        rows = change_rows(compare(opened.graph, on.graph), opened.graph, on.graph)
        dump(on.graph, args.output, text=text)
    size = Path(args.output).stat().st_size
    if args.json:
        show_json({"file": args.output, "bytes": size, "nodes": len(on.graph), "changes": rows})
        return 0
    tell_changes(rows, few=len(rows) if args.all else MAX_DIFFERENCES)
    say(f"wrote {args.output}: {plural(len(on.graph), 'node')}, {byte_text(size)}")
    return 0


def _names(text: str) -> Sequence[str]:
    return [name for name in text.split(",") if name]


def _pair(text: str, option: str, form: str) -> tuple[str, str]:
    left, equals, right = text.partition("=")
    if not equals or not (left or option == "--rename"):
        raise _unreadable(text, option, form)
    return left, right


def _unreadable(text: str, option: str, form: str) -> Exception:
    from ...errors import InvalidArgument

    return InvalidArgument(f"'{text}' after {option} is no {form}", hint="heald edit --help has the forms of all steps")


def _value(text: str) -> Any:
    """The value in a .npy file, else JSON, else the text itself."""
    import json

    if text.endswith(".npy"):
        return _array(text)
    try:
        return json.loads(text)
    except ValueError:
        return text


def _array(path: str) -> Any:
    import numpy as np

    from ...errors import InvalidArgument, NotFound

    try:
        return np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise NotFound(f"the file '{path}' does not exist") from None
    except (OSError, ValueError, EOFError) as error:
        raise InvalidArgument(f"'{path}' cannot be read as an array: {error}",
                              hint="numpy.save writes such files") from None
