"""Arguments that several commands share, and the objects that they name."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..printing.progress import ticking

if TYPE_CHECKING:
    from ...graphs.graph.graph import Graph
    from ...runtime.contract.loader import Initializer, SignatureDef


def add_model(parser: ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL",
                        help="a frozen GraphDef (.pb, .pbtxt), the folder of a SavedModel, an archive or a folder of "
                             "versions with one, a checkpoint with its .meta, a compiled model (.bef)")
    add_loading(parser)


def add_loading(parser: ArgumentParser) -> None:
    """--format, --signature, --tags and --no-mmap, which say how a model is loaded."""
    parser.add_argument("--format", metavar="NAME", help="the loader: graphdef, saved_model, bef, ... (by the file)")
    parser.add_argument("--signature", metavar="NAME", help="of a SavedModel: signature or function (serving_default)")
    parser.add_argument("--tags", type=_tags, metavar="TAG,...", help="of a SavedModel: the tags of its graph (serve)")
    parser.add_argument("--no-mmap", dest="mmap", action="store_false",
                        help="read the model's files whole: later changes of them have no effect")


def positive(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or int(text) < 1:
        raise ArgumentTypeError(f"'{text}' is no whole number from 1 on, such as 10")
    return int(text)


def _tags(text: str) -> tuple[str, ...]:
    return tuple(tag.strip() for tag in text.split(",") if tag.strip())


def add_device(parser: ArgumentParser) -> None:
    parser.add_argument("--device", metavar="D", help="where nodes go that ask for none, such as CPU:0")


def add_plugin(parser: ArgumentParser) -> None:
    parser.add_argument("--plugin", action="append", default=[], metavar="FILE",
                        help="register a one-file plugin, or a module by its name (repeatable)")


def add_json(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_listing(parser: ArgumentParser) -> None:
    """--plugin and --json, which core's listings have."""
    add_plugin(parser)
    add_json(parser)


class Opened(NamedTuple):
    """The graph of a file; where the file declares signatures, the chosen one and all of them; the state that a session
    begins with; the format's name for readers."""

    graph: Graph
    form: str
    signature: SignatureDef | None
    signatures: Mapping[str, SignatureDef]
    initial_state: Sequence[Initializer]

    def tensor(self, name: str) -> str:
        """Return the graph's name of an input or output that the signature calls `name`."""
        sides = (self.signature.inputs, self.signature.outputs) if self.signature is not None else ()
        return next((side[name].tensor.removesuffix(":0") for side in sides if name in side), name)

    @property
    def outputs(self) -> list[str]:
        """The tensors that the signature gives."""
        return [] if self.signature is None else [info.tensor for info in self.signature.outputs.values()]

    @property
    def needed(self) -> Graph:
        """The part that the signature needs of the graph after the passes before placement. The file's graph where
        there is no signature."""
        from ...graphs.graph.rewriting import pruned
        from ...graphs.session.pre_placement import run_pre_placement_passes
        from ...runtime.service.runtime import runtime

        if self.signature is None:
            return self.graph
        *_, (_, graph) = run_pre_placement_passes(self.graph, self.initial_state, runtime())
        return pruned(graph, self._nodes(self.signature))

    def _nodes(self, signature: SignatureDef) -> list[str]:
        sides = (*signature.inputs.values(), *signature.outputs.values())
        return [info.tensor.partition(":")[0] for info in sides]


def open_graph(args: Namespace, *, weights: bool = True) -> Opened:
    """The graph in the file or folder MODEL, by its loader. `weights=False` does without weights that are missing.

    Raises NotFound, DataLoss, and InvalidArgument for a file without signatures with --signature or --tags.
    """
    from ...graphs.session.graph_reader import read_verified_graph
    from ...graphs.session.signature_check import check_chosen_signature
    from ...runtime.contract.loader import LoadOptions
    from ...runtime.service.loading import open_file
    from ...runtime.service.runtime import runtime
    from ...runtime.support.file_path import file_path

    with ticking(f"loading {args.model}"):
        registries = runtime().host.registries
        options = LoadOptions(registries.ops, args.signature, args.tags, mmap=args.mmap,
                              weights=weights)
        opened = open_file(file_path(args.model), options, registries, args.format)
        description = opened.description
        graph = read_verified_graph(opened)
        signature = check_chosen_signature(graph, opened, registries.ops)
        return Opened(graph, description.form, signature, description.signatures, opened.initial_state())
