"""Texts of heald against TensorFlow's own, recorded by workers.tfg_oracle, and GraphDefs that survive as text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import heald
import pytest
from builders.random_graphdefs import random_graphdef
from harness.recorded_tfg import DATA, recorded_files
from heald.graphs.graph.graphdef import dumps, loads
from heald.graphs.protobuf.descriptor_pool import message_class
from heald.runtime.values import wire
from hypothesis import given, settings
from hypothesis import strategies as st

RANDOM = recorded_files("random")
NAMES = sorted(name.removesuffix(".tfg") for name in RANDOM if name.endswith(".tfg"))
FILES = sorted(path for path in DATA.rglob("*.pb") if path.name == "graph.pb" or path.parent.name == "graphs")
EXAMPLES = DATA.parents[1] / "examples"
STORED = {name: raw for archive in ("shapes", "passes") for name, raw in recorded_files(archive).items()
          if name.endswith(".pb")}


def message(raw: bytes) -> Any:
    return message_class("GraphDef").FromString(raw)


def survives(raw: bytes) -> bool:
    return dumps(heald.tfg.loads(heald.tfg.dumps(loads(raw)))) == raw


@pytest.mark.parametrize("name", NAMES)
def test_canonical_text_is_that_of_tensorflow(name):
    assert heald.tfg.dumps(loads(RANDOM[f"{name}.pb"]), canonical=True) == RANDOM[f"{name}.tfg"].decode()


@pytest.mark.parametrize("name", [name for name in NAMES if f"{name}.exported.pb" in RANDOM])
def test_canonical_text_is_read_as_tensorflow_exports_it(name):
    assert message(dumps(heald.tfg.loads(RANDOM[f"{name}.tfg"]))) == message(RANDOM[f"{name}.exported.pb"])


@pytest.mark.parametrize("name", NAMES)
def test_random_graphs_survive_as_text_byte_for_byte(name):
    assert survives(RANDOM[f"{name}.pb"])


@pytest.mark.parametrize("path", [*FILES, EXAMPLES / "digits/frozen.pb"], ids=lambda path: "/".join(path.parts[-2:]))
def test_graphs_of_files_survive_as_text_byte_for_byte(path: Path):
    assert survives(path.read_bytes())


@pytest.mark.parametrize("name", sorted(STORED))
def test_networks_and_public_graphs_survive_as_text_byte_for_byte(name):
    assert survives(STORED[name])


UNKNOWN = st.builds(
    lambda number, value: wire.put_integer(number, value) if isinstance(value, int) else wire.put_bytes(number, value),
    st.integers(100, 5000), st.integers(0, 2**64 - 1) | st.binary(max_size=5))


@settings(max_examples=40)
@given(st.integers(10_000, 10**9), st.lists(UNKNOWN, max_size=3), st.randoms(use_true_random=False))
def test_unknown_fields_survive_as_text(seed, unknown, rng):
    graph = random_graphdef(seed, most=6)
    holders = [graph, graph.versions, graph.library, *graph.node, *graph.library.function]
    for raw in unknown:
        rng.choice(holders).MergeFromString(raw)
    assert survives(graph.SerializeToString(deterministic=True))
