"""Doors of the commands that change and compare models, `edit`, `opt`, `diff`, and of the passes to regions and back.

The mutant decides the steps, so that it can be made again.
"""

from __future__ import annotations

import io
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from random import Random
from zlib import crc32

import heald
from heald import graphdef
from heald.cli.commands import edit as edit_command
from heald.cli.commands import opt as opt_command
from heald.graphs.graph.graph import Graph
from heald_tools import diff as diff_command

from .graph_runs import Lossy, run_graph
from .samples import SINGLE, Sample, write_files

_MOST_EDIT_STEPS = 4
_MODEL, _OTHER, _OUTPUT = "model.pb", "other.pb", "out.pb"
_VALUES = ("0", "1.5", "[1, 2]", "text", "true", "[[1e30]]", "{}", "-1", "null", "[]")
_TYPES = ("float32", "int64", "string", "bool", "half", "nothing")


def edit(sample: Sample, folder: Path) -> None:
    """A GraphDef through `heald edit` with one to four steps, whose result is read."""
    rng, graph = _open_graph(sample, folder)
    steps = [part for _ in range(rng.randint(1, _MOST_EDIT_STEPS)) for part in _step(rng, graph, folder)]
    _run(edit_command.add_arguments, edit_command.edit, [str(folder / _MODEL), "-o", str(folder / _OUTPUT), *steps])
    graphdef.load(folder / _OUTPUT)


def opt(sample: Sample, folder: Path) -> None:
    """A GraphDef through `heald opt` with any graph passes; its result runs."""
    rng, _ = _open_graph(sample, folder)
    passes = rng.choices(sorted(heald.default_host().registries.passes), k=rng.randint(1, _MOST_EDIT_STEPS))
    _run(opt_command.add_arguments, opt_command.opt,
         [str(folder / _MODEL), "-o", str(folder / _OUTPUT), "--passes", ",".join(passes)])
    run_graph(graphdef.load(folder / _OUTPUT))


def diff(sample: Sample, folder: Path) -> None:
    """Two GraphDefs through `heald diff`; equal ones have no difference."""
    write_files(sample, folder)
    paths = [str(folder / name) for name in (_MODEL, _OTHER)]
    for pair in (paths, paths[::-1]):
        _run(diff_command.add_arguments, diff_command.diff, [*pair, "--all"])
        _run(diff_command.add_arguments, diff_command.diff, [*pair, "--text"])
    if _run(diff_command.add_arguments, diff_command.diff, [paths[0], paths[0]]):
        raise Lossy("a model differs from itself")


def regions(sample: Sample, _folder: Path) -> None:
    """A GraphDef whose control flow becomes regions, is printed and read, and becomes functions again, which run."""
    graph = graphdef.loads(sample[SINGLE])
    again = heald.tfg.loads(heald.tfg.dumps(heald.tfg.functional_to_region(graph)), verify=False)
    text = heald.tfg.dumps(again)  # reading gives the functions of regions new names, and one library
    if heald.tfg.dumps(heald.tfg.loads(text, verify=False)) != text:
        raise Lossy("a graph with regions is not what it was when it has been printed and read")
    run_graph(heald.tfg.region_to_functional(again))


def _open_graph(sample: Sample, folder: Path) -> tuple[Random, Graph]:
    write_files({_MODEL: sample[SINGLE]}, folder)
    return Random(crc32(sample[SINGLE])), graphdef.loads(sample[SINGLE])


def _run(add: Callable[[ArgumentParser], None], run: Callable[..., int], arguments: Sequence[str]) -> int:
    """Run a command with arguments that its parser takes. Its output is dropped."""
    parser = ArgumentParser(exit_on_error=False)
    parser.add_argument("--config")
    add(parser)
    with redirect_stdout(io.StringIO()):
        return run(parser.parse_args(arguments))


def _step(rng: Random, graph: Graph, folder: Path) -> tuple[str, str]:
    """An option of `heald edit` with a value about nodes of the graph."""
    names = [*graph.nodes] or ["none"]

    def name() -> str:
        return rng.choice(names) if rng.random() < 0.95 else "none"

    def tensor() -> str:
        return name() + rng.choice(("", "", ":0", ":1", ":99"))

    values: dict[str, Callable[[], str]] = {
        "--rename": lambda: f"{name()}={rng.choice((name(), 'new', 'a/b', ''))}",
        "--remove": name, "--bypass": name, "--rewire": lambda: f"{tensor()}={tensor()}",
        "--set-input": lambda: f"{name()}:{rng.choice((0, 0, 1, 7))}={tensor()}",
        "--const": lambda: f"{name()}={rng.choice(_VALUES)}", "--dtype": lambda: f"{name()}={rng.choice(_TYPES)}",
        "--expose-input": lambda: f"{tensor()}=x", "--expose-output": lambda: f"{tensor()}=y",
        "--keep-outputs": tensor, "--drop-inputs": name, "--drop-outputs": name,
        "--extract": lambda: f"{tensor()},{tensor()}:{tensor()}", "--merge": lambda: f"{folder / _MODEL}:p/",
        "--replace": lambda: f"{name()},{name()}={folder / _MODEL}:q/",
        "--passes": lambda: rng.choice(sorted(heald.default_host().registries.passes))}
    option = rng.choice([*edit_command.STEPS])
    return option, values[option]()
