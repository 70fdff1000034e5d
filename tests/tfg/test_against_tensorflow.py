"""Text, parsing and passes against TensorFlow's own, recorded."""

from __future__ import annotations

import heald
import pytest
from google.protobuf import text_format
from heald.graphs.protobuf import message_class
from tfg.recorded import DATA, GRAPHS, PROBES, recorded_text


def message(raw):
    return message_class("GraphDef").FromString(raw)


@pytest.mark.parametrize("name", GRAPHS)
def test_a_graph_prints_as_tensorflow_prints_it(name):
    graph = heald.graphdef.load(DATA / "graphs" / f"{name}.pb")
    assert heald.tfg.dumps(graph, canonical=True) == recorded_text(f"graphs/{name}.tfg")


@pytest.mark.parametrize("name", GRAPHS)
def test_a_graph_returns_byte_for_byte(name):
    path = DATA / "graphs" / f"{name}.pb"
    text = heald.tfg.dumps(heald.graphdef.load(path))
    assert heald.graphdef.dumps(heald.tfg.loads(text)) == path.read_bytes()


@pytest.mark.parametrize("name", GRAPHS)
def test_tensorflows_text_is_printed_again_as_it_was(name):
    text = recorded_text(f"graphs/{name}.tfg")
    graph = heald.tfg.loads(text)
    assert heald.tfg.dumps(graph) == text
    assert heald.tfg.dumps(graph, canonical=True) == text


@pytest.mark.parametrize("name", GRAPHS)
def test_regions_print_as_those_of_tensorflow(name):
    graph = heald.graphdef.load(DATA / "graphs" / f"{name}.pb")
    text = recorded_text(f"regions/{name}.tfg")
    assert heald.tfg.dumps(heald.tfg.functional_to_region(graph), canonical=True) == text
    assert heald.tfg.dumps(heald.tfg.loads(text), canonical=True) == text


@pytest.mark.parametrize("name", PROBES)
def test_every_kind_of_value_prints_as_tensorflow_prints_it(name):
    graph = heald.graphdef.loads(recorded_text(f"probes/{name}.pbtxt"), text=True)
    assert heald.tfg.dumps(graph, canonical=True) == recorded_text(f"probes/{name}.tfg")


@pytest.mark.parametrize("name", PROBES)
def test_every_kind_of_value_is_exported_as_tensorflow_exports_it(name):
    exported = heald.graphdef.dumps(heald.tfg.loads(recorded_text(f"probes/{name}.tfg")))
    expected = text_format.Parse(recorded_text(f"probes/{name}.exported.pbtxt"), message_class("GraphDef")())
    assert message(exported) == expected


@pytest.mark.parametrize("name", PROBES)
def test_every_kind_of_value_returns_byte_for_byte(name):
    graph = heald.graphdef.loads(recorded_text(f"probes/{name}.pbtxt"), text=True)
    assert heald.graphdef.dumps(heald.tfg.loads(heald.tfg.dumps(graph))) == heald.graphdef.dumps(graph)


def test_every_kind_of_region_is_read_and_printed():
    text = recorded_text("regions.tfg")
    assert heald.tfg.dumps(heald.tfg.loads(text)) == text
    with_regions = heald.tfg.functional_to_region(heald.tfg.loads(recorded_text("functional.tfg")))
    assert heald.tfg.dumps(with_regions).replace(", output_shapes = []", "") == text


def test_the_passes_of_regions_are_idempotent():
    graph = heald.tfg.loads(recorded_text("functional.tfg"))
    regions = heald.tfg.functional_to_region(graph)
    assert heald.tfg.functional_to_region(regions) is regions
    functional = heald.tfg.region_to_functional(regions)
    assert heald.tfg.region_to_functional(functional) is functional
    assert "Region" not in heald.tfg.dumps(functional, canonical=True)


def test_a_graph_with_regions_runs_as_its_functional_form():
    graph = heald.graphdef.load(DATA / "graphs" / "v2_case.pb")
    regions = heald.tfg.loads(heald.tfg.dumps(heald.tfg.functional_to_region(graph)))
    for index in range(4):
        feeds = {"i:0": index, "x:0": [1.0, 2.0]}
        expected = heald.Session(graph).run("y:0", feeds)
        assert heald.Session(regions).run("y:0", feeds).tolist() == expected.tolist()
