"""Records TensorFlow's constant folding, remapper and lifted functions on random graphs, for tests/tfg/test_rewrites.

    PYTHONPATH=tests python -m workers.record_rewrites --oracle PROGRAM

PROGRAM is that of `tfg_oracle`. Its passes must include `graph-to-func|FEEDS|FETCHES|CONTROLS` and `remapper-mkl`, the
remapper with the rows of oneDNN.
"""

from __future__ import annotations

import argparse
import io
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from builders.graphs import graph
from builders.random_foldable_graphs import random_foldable_graph
from builders.random_layers import random_layers
from heald.graphs.graph import graphdef
from heald.graphs.graph.graph import Node
from workers.tfg_oracle import DATA, Job, run

RECORDED = DATA / "tfg/rewrites.tar.xz"
GRAPHS = 300
SHAPES = "graph:toposort,shape-inference"
Make = Callable[[int], tuple[list[Node], list[str]]]


def folding(fetches: Sequence[str]) -> str:
    return f"{SHAPES},graph-to-func||{';'.join(fetches)}|,func:constant-folding,func-to-graph"


def lifting(fetches: Sequence[str]) -> str:
    return f"graph-to-func|x;y|{';'.join(fetches)}|"


KINDS: dict[str, tuple[Make, str, Callable[[Sequence[str]], str]]] = {
    "folded": (random_foldable_graph, "import", folding), "lifted": (random_foldable_graph, "roundtrip", lifting),
    "remapped": (random_layers, "import", lambda _: f"{SHAPES},remapper-mkl")}


def record(program: str) -> None:
    with tarfile.open(RECORDED, "w:xz") as archive, tempfile.TemporaryDirectory() as name:
        for kind, (make, mode, passes) in KINDS.items():
            jobs = []
            for seed in range(GRAPHS):
                nodes, fetches = make(seed)
                source = Path(name) / f"{kind}{seed}.pb"
                data = graphdef.dumps(graph(*nodes))
                source.write_bytes(data)
                jobs.append(Job(mode, source, source.with_suffix(".out"), passes(fetches)))
                if kind != "lifted":
                    _add(archive, f"{kind}/{seed}.pb", data)
                    _add(archive, f"{kind}/{seed}.fetches", "\n".join(fetches).encode())
            for seed, text in enumerate(run(program, jobs)):
                assert text is not None, (kind, seed)
                _add(archive, f"{kind}/{seed}.txt", text.encode())


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    archive.addfile(entry, io.BytesIO(data))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--oracle", required=True)
    record(parser.parse_args().oracle)
