"""Records the shapes that TensorFlow infers for each node of the tests' graphs and of networks, for tests/tfg.

    PYTHONPATH=tests python -m workers.record_shapes --oracle PROGRAM [NETWORK.pb ...]

`workers.tfg_oracle` describes PROGRAM. Networks are recorded without weights: large constants become splats, which have
the same shapes. FILE.shapes has a line for each node: its name, a tab, and the shapes of its outputs: `*`, `()`
or `2x?`.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import heald
from heald.graphs.graph.graph import Graph, Node
from heald.graphs.protobuf.descriptor_pool import message_class
from heald.runtime.values.dtypes import float32
from heald.runtime.values.tensor_proto import TensorValue
from workers.tfg_oracle import DATA, Job, pack, run

SHAPES = DATA / "tfg/shapes.tar.xz"
MOST_ELEMENTS = 64  # of constants that are kept: shapes depend on small ones
_NODE = re.compile(r'^    \S.* name\("((?:[^"\\]|\\.)*)"\)(?:.* : ([^}]*)$|.*$)')
_SHAPE = re.compile(r"\*x|(?:(?:\d+|\?)x)*")


def shapes_of(text: str) -> Iterator[tuple[str, list[str]]]:
    """Names and shapes of the outputs of each node in the graph of a text; a shape is `*`, `` or `2x?`."""
    for line in text.partition("\n  }\n")[0].splitlines():
        match = _NODE.match(line)
        if match is None:
            continue
        name, types = match.groups()
        results = types.rpartition(" -> ")[2] if types and " -> " in types else ""
        yield name, [shape.rstrip("x") for shape in _outer(results)]


def _outer(types: str) -> Iterator[str]:
    """The shapes of the tensors in a list of types, without those within other types."""
    depth, before = 0, ""
    for part in re.split(r"([<>])", types):
        if before == "<" and depth == 1:
            yield _SHAPE.match(part).group()  # type: ignore[union-attr]
        depth += (part == "<") - (part == ">")
        before = part


def without_weights(graph: Graph) -> Graph:
    """The graph with a splat of the same shape in the place of each large constant."""
    return graph.replace(nodes=[_splat(node) for node in graph if _is_large(node.attrs.get("value"))])


def _is_large(value: object) -> bool:
    return isinstance(value, TensorValue) and value.dtype is float32 and value.size > MOST_ELEMENTS


def _splat(node: Node) -> Node:
    proto: Any = message_class("TensorProto")(dtype=float32.number, float_val=[1.0])
    for size in node.attrs["value"].shape:
        proto.tensor_shape.dim.add(size=size)
    raw = proto.SerializeToString()
    return node.replace(attrs={"value": TensorValue.read(raw, 0, len(raw))})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", type=Path, metavar="NETWORK.pb")
    parser.add_argument("--oracle", required=True, metavar="PROGRAM")
    args = parser.parse_args()
    networks = {path.stem: heald.graphdef.dumps(without_weights(heald.graphdef.load(path))) for path in args.networks}
    programs = {path.parent.name: path.read_bytes() for path in sorted(DATA.glob("programs/*/graph.pb"))}
    files = {f"{name}.pb": raw for name, raw in networks.items()}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for name, raw in (networks | programs).items():
            (folder / f"{name}.pb").write_bytes(raw)
            job = Job("import", folder / f"{name}.pb", folder / f"{name}.tfg", "graph:toposort,shape-inference")
            (text,) = run(args.oracle, [job])
            if text is not None:
                lines = (f"{node}\t{' '.join(shape or '()' for shape in shapes)}\n" for node, shapes in shapes_of(text))
                files[f"{name}.shapes"] = "".join(lines).encode()
    pack(SHAPES, files)


if __name__ == "__main__":
    main()
