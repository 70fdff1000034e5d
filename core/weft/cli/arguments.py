"""Arguments that several commands share, and what they stand for."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from .progress import ticking

if TYPE_CHECKING:
    from ..graph.graph import Graph
    from ..saved_model.signature import Signature


def add_model(parser: ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="a frozen GraphDef (.pb, .pbtxt), or the folder of a SavedModel")
    add_loading(parser)


def add_loading(parser: ArgumentParser) -> None:
    """--signature, --tags and --no-mmap, which say how a model is loaded."""
    parser.add_argument("--signature", metavar="NAME", help="of a SavedModel: the signature (serving_default)")
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
    """A graph; of a SavedModel the graph of a signature, and the signatures that there are."""

    graph: Graph
    signature: Signature | None = None
    signatures: Mapping[str, Signature] = MappingProxyType({})

    def tensor(self, name: str) -> str:
        """What the graph calls an input or output that the signature calls `name`."""
        sides = (self.signature.inputs, self.signature.outputs) if self.signature is not None else ()
        return next((side[name].tensor.removesuffix(":0") for side in sides if name in side), name)

    @property
    def outputs(self) -> list[str]:
        """The tensors that the signature gives."""
        return [] if self.signature is None else [place.tensor for place in self.signature.outputs.values()]

    @property
    def initializers(self) -> tuple[str, ...]:
        """The nodes to run before anything else."""
        return () if self.signature is None else self.signature.initializers


def open_graph(args: Namespace) -> Opened:
    """The graph in the file or folder MODEL.

    Raises NotFound, DataLoss, and InvalidArgument for a file with --signature or --tags.
    """
    from pathlib import Path

    from ..errors import InvalidArgument
    from ..graph.graphdef import load
    from ..session.model import open_signature

    with ticking(f"loading {args.model}"):
        if not Path(args.model).is_dir():
            if args.signature is not None or args.tags is not None:
                raise InvalidArgument(f"'{args.model}' is no SavedModel's folder: it has no signatures and no tags")
            return Opened(load(args.model, mmap=args.mmap))
        saved, graph, signature = open_signature(Path(args.model), args.signature, args.tags, mmap=args.mmap)
        return Opened(graph, signature, saved.signatures)
