"""Text, parsing and passes against TensorFlow's own, recorded."""

from __future__ import annotations

import pytest
import weft
from google.protobuf import text_format
from tfg.recorded import DATA, GRAPHS, PROBES, recorded
from weft.protobuf import message_class


def message(raw):
    return message_class("GraphDef").FromString(raw)


@pytest.mark.parametrize("name", GRAPHS)
def test_a_graph_prints_as_tensorflow_prints_it(name):
    graph = weft.graphdef.load(DATA / "graphs" / f"{name}.pb")
    assert weft.tfg.dumps(graph, canonical=True) == recorded(f"graphs/{name}.tfg")


@pytest.mark.parametrize("name", GRAPHS)
def test_a_graph_returns_byte_for_byte(name):
    path = DATA / "graphs" / f"{name}.pb"
    text = weft.tfg.dumps(weft.graphdef.load(path))
    assert weft.graphdef.dumps(weft.tfg.loads(text)) == path.read_bytes()


@pytest.mark.parametrize("name", GRAPHS)
def test_tensorflows_text_is_printed_again_as_it_was(name):
    text = recorded(f"graphs/{name}.tfg")
    graph = weft.tfg.loads(text)
    assert weft.tfg.dumps(graph) == text
    assert weft.tfg.dumps(graph, canonical=True) == text


@pytest.mark.parametrize("name", GRAPHS)
def test_regions_print_as_those_of_tensorflow(name):
    graph = weft.graphdef.load(DATA / "graphs" / f"{name}.pb")
    text = recorded(f"regions/{name}.tfg")
    assert weft.tfg.dumps(weft.tfg.functional_to_region(graph), canonical=True) == text
    assert weft.tfg.dumps(weft.tfg.loads(text), canonical=True) == text


@pytest.mark.parametrize("name", PROBES)
def test_every_kind_of_value_prints_as_tensorflow_prints_it(name):
    graph = weft.graphdef.loads(recorded(f"probes/{name}.pbtxt"), text=True)
    assert weft.tfg.dumps(graph, canonical=True) == recorded(f"probes/{name}.tfg")


@pytest.mark.parametrize("name", PROBES)
def test_every_kind_of_value_is_exported_as_tensorflow_exports_it(name):
    exported = weft.graphdef.dumps(weft.tfg.loads(recorded(f"probes/{name}.tfg")))
    expected = text_format.Parse(recorded(f"probes/{name}.exported.pbtxt"), message_class("GraphDef")())
    assert message(exported) == expected


@pytest.mark.parametrize("name", PROBES)
def test_every_kind_of_value_returns_byte_for_byte(name):
    graph = weft.graphdef.loads(recorded(f"probes/{name}.pbtxt"), text=True)
    assert weft.graphdef.dumps(weft.tfg.loads(weft.tfg.dumps(graph))) == weft.graphdef.dumps(graph)


def test_every_kind_of_region_is_read_and_printed():
    text = recorded("regions.tfg")
    assert weft.tfg.dumps(weft.tfg.loads(text)) == text
    made = weft.tfg.functional_to_region(weft.tfg.loads(recorded("functional.tfg")))
    assert weft.tfg.dumps(made).replace(", output_shapes = []", "") == text


def test_the_passes_of_regions_are_idempotent():
    graph = weft.tfg.loads(recorded("functional.tfg"))
    regions = weft.tfg.functional_to_region(graph)
    assert weft.tfg.functional_to_region(regions) is regions
    functional = weft.tfg.region_to_functional(regions)
    assert weft.tfg.region_to_functional(functional) is functional
    assert "Region" not in weft.tfg.dumps(functional, canonical=True)


def test_a_graph_with_regions_runs_as_its_functional_form():
    graph = weft.graphdef.load(DATA / "graphs" / "v2_case.pb")
    regions = weft.tfg.loads(weft.tfg.dumps(weft.tfg.functional_to_region(graph)))
    for index in range(4):
        feeds = {"i:0": index, "x:0": [1.0, 2.0]}
        expected = weft.Session(graph).run("y:0", feeds)
        assert weft.Session(regions).run("y:0", feeds).tolist() == expected.tolist()
