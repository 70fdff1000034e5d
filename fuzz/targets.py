"""Targets: for each format its seeds, its edits with their weights, its vocabulary, and its door into heald.

A mutant is a function of the target, a seed and its number alone, so that any can be made again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatch
from functools import cache
from random import Random
from typing import NamedTuple

from . import (
    archives,
    bef_edits,
    bundles,
    command_doors,
    doors,
    forest_edits,
    mlir_edits,
    protobuf,
    raw,
    seeds,
    serve_doors,
    tokens,
)
from .raw import Words
from .samples import SINGLE, Sample

Edit = Callable[[Random, Sample, Sample, Words], Sample]
_NESTED = 0.2  # the share of mutants that begin with an earlier mutant
_DEEPEST = 4


class Target(NamedTuple):
    """`edits`: edits of whole samples, with weights. `is_folder`: a sample has several files. `finish`: the last
    step of making a mutant, such as repairing checksums."""

    pools: Callable[[], Sequence[seeds.Pool]]
    edits: Sequence[tuple[float, Edit]]
    door: doors.Door
    words: Callable[[], Words] = tuple
    is_folder: bool = False
    finish: Callable[[Random, Sample], Sample] = lambda _, sample: sample


def of(edit: raw.Edit, pattern: str = SINGLE) -> Edit:
    """An edit of one file's bytes; the file's path matches the pattern."""

    def edit_file(rng: Random, sample: Sample, other: Sample, words: Words) -> Sample:
        names, theirs = ([name for name in files if fnmatch(name, pattern)] for files in (sample, other))
        name = rng.choice(names)
        return {**sample, name: edit(rng, sample[name], other[rng.choice(theirs)], words)}

    return edit_file


TARGETS = {
    "graphdef": Target(seeds.graph_pools, ((9, of(protobuf.edit)), (1, of(raw.edit))), doors.graph, seeds.op_names),
    "graphdef_text": Target(seeds.graphdef_text_pools, ((9, of(tokens.edit)), (1, of(raw.edit))), doors.text,
                            seeds.op_names),
    "saved_model": Target(seeds.saved_model_pools, ((9, of(protobuf.edit, "saved_model.pb")),
                                                    (1, of(raw.edit, "saved_model.pb"))),
                          doors.saved_model, seeds.op_names, is_folder=True),
    "saved_model_writer": Target(seeds.saved_model_pools, ((1, of(protobuf.edit, "saved_model.pb")),),
                                 doors.saved_again, seeds.op_names, is_folder=True),
    "session_writer": Target(seeds.graph_pools, ((1, of(protobuf.edit)),), doors.saved_session, seeds.op_names),
    "edit": Target(seeds.graph_pools, ((1, of(protobuf.edit)),), command_doors.edit, seeds.op_names),
    "opt": Target(seeds.graph_pools, ((1, of(protobuf.edit)),), command_doors.opt, seeds.op_names),
    "diff": Target(seeds.graph_pair_pools, ((1, of(protobuf.edit, "*.pb")),), command_doors.diff,
                   seeds.op_names, is_folder=True),
    "regions": Target(seeds.control_flow_pools, ((1, of(protobuf.edit)),), command_doors.regions, seeds.op_names),
    "checkpoint_index": Target(seeds.checkpoint_pools, ((1, bundles.index_edit),), doors.checkpoint, is_folder=True,
                               finish=bundles.finish),
    "checkpoint_data": Target(seeds.checkpoint_pools, ((1, bundles.data_edit),), doors.checkpoint, is_folder=True,
                              finish=bundles.finish),
    "bef": Target(seeds.program_pools, ((28, of(bef_edits.edit_repaired)), (7, of(bef_edits.edit_lying)),
                                        (3, of(bef_edits.edit_section)), (2, of(raw.edit))),
                  doors.program, seeds.program_words),
    "mlir": Target(seeds.program_text_pools, ((19, of(mlir_edits.edit)), (1, of(raw.edit))), doors.program_text,
                   seeds.program_text_words),
    "tfg": Target(seeds.tfg_text_pools, ((19, of(mlir_edits.edit)), (1, of(raw.edit))), doors.graph_text,
                  seeds.graph_text_words),
    "decision_forest": Target(seeds.forest_pools, ((5, of(protobuf.edit, "*.pb")),
                                                   (4, of(forest_edits.edit, "*nodes*")), (1, of(raw.edit, "*[!z]"))),
                              doors.decision_forest, is_folder=True),
    "npz": Target(seeds.archive_pools, ((1, of(archives.edit)),), doors.arrays, lambda: archives.WORDS),
    "config": Target(seeds.config_pools, ((9, of(tokens.edit, "*.toml")), (1, of(raw.edit, "*.toml"))), doors.config,
                     lambda: seeds.CONFIG_WORDS, is_folder=True),
    "plugin_metadata": Target(seeds.distribution_pools, ((9, of(tokens.edit, "*-info/*")),
                                                         (1, of(raw.edit, "*-info/*"))),
                              doors.distribution, is_folder=True),
    "serve_config": Target(seeds.serve_config_pools, ((9, of(tokens.edit, "*")), (1, of(raw.edit, "*"))),
                           serve_doors.configs, lambda: seeds.SERVE_WORDS, is_folder=True),
    "rest_body": Target(seeds.rest_body_pools, ((9, of(tokens.edit)), (1, of(raw.edit))), serve_doors.rest_body,
                        lambda: seeds.SERVE_WORDS),
    "v2_body": Target(seeds.binary_body_pools, ((6, of(tokens.edit, "body")), (3, of(raw.edit, "body")),
                                                (1, of(raw.edit, "length"))),
                      serve_doors.binary_body, lambda: seeds.SERVE_WORDS, is_folder=True,
                      finish=serve_doors.repair_length),
    "warmup": Target(seeds.warmup_pools, ((9, of(protobuf.edit, "log.pb")), (1, of(raw.edit, "records"))),
                     serve_doors.warmup, is_folder=True),
}


def mutant(name: str, seed: int, number: int) -> Sample:
    """The mutant of this number."""
    return _mutant(name, seed, number, 0)


def _mutant(name: str, seed: int, number: int, depth: int) -> Sample:
    target = TARGETS[name]
    rng = Random(f"{name} {seed} {number}")
    if number and depth < _DEEPEST and rng.random() < _NESTED:
        sample = _mutant(name, seed, rng.randrange(number), depth + 1)
    else:
        sample = _seed(rng, name)
    weights, edits = zip(*target.edits, strict=True)
    edit = rng.choices(edits, weights)[0]  # the same in all rounds: most mutants are to pass the parser
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        sample = edit(rng, sample, _seed(rng, name), _words(name))
    return target.finish(rng, sample)


def _seed(rng: Random, name: str) -> Sample:
    pools = TARGETS[name].pools()
    return rng.choice(rng.choices(pools, [pool.share for pool in pools])[0].samples)


@cache
def _words(name: str) -> Words:
    return TARGETS[name].words()
