"""The conformance suite runs on the pack, with its recorded cases in the format of the suite."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from heald import graphdef
from heald.api import Graph, Node, dtypes
from heald_conformance import NotApplicable, SettingsError, case, load_settings
from heald_conformance.subject import Subject

from . import recordings

LARGEST_MODEL_BYTES = 6000  # larger models would be most of the time
CASES_OF_AN_OP = 4
CLAIMS = ("a_kernel_agrees_with_tensorflow", "a_kernel_writes_every_element_of_its_outputs")


def is_small(recorded: recordings.Case) -> bool:
    models = [x[2] for x in recorded["in"] if x[0] == "model"]
    return all(len(recordings.models()[name]) < LARGEST_MODEL_BYTES for name in models)


def graph_of(recorded: recordings.Case, arrays: list[Any]) -> Graph:
    """Placeholders i0, i1, ... for the arrays, the other nodes of the case, and the node `op`."""
    fed = iter(range(len(arrays)))
    names = [x if isinstance(x, str) else f"i{next(fed)}" for x in recorded["in"]]
    nodes = [Node(n["name"], n["op"], n["inputs"], attrs=recordings.attributes_of(n["attrs"]))
             for n in recorded.get("nodes", ())]
    nodes += [Node(f"i{i}", "Placeholder", attrs={"dtype": dtypes.of_numpy(x.dtype)}) for i, x in enumerate(arrays)]
    return Graph([*nodes, Node("op", recorded["op"], names, attrs=recordings.attributes_of(recorded["attrs"]))])


def write_recordings(folder: Path) -> None:
    """Write cases with results in the format of `heald_conformance.golden`."""
    blob = bytearray()

    def reference(array: Any) -> list[Any]:
        dtype = dtypes.of_numpy(array.dtype)
        if dtype is dtypes.string:
            return ["string", list(array.shape), [text.decode("latin1") for text in array.ravel()]]
        blob.extend(array.tobytes())
        return [dtype.name, list(array.shape), len(blob) - array.nbytes]

    index: list[dict[str, Any]] = []
    counts: dict[str, int] = {}
    with zipfile.ZipFile(folder / "graphs.zip", "w") as graphs:
        for number, recorded in enumerate(recordings.cases()):
            counts[recorded["op"]] = counts.get(recorded["op"], 0) + is_small(recorded)
            if "out" not in recorded or "feed" in recorded or not is_small(recorded) or (
                    counts[recorded["op"]] > CASES_OF_AN_OP):
                continue
            arrays = [recordings.array_of(x) for x in recorded["in"] if not isinstance(x, str)]
            outputs = [reference(recordings.array_of(x)) for x in recorded["out"]]
            if recorded["op"] == "NormalizeUTF8WithOffsetsMap":
                continue  # its second output is a variant, which no run returns
            index.append({"id": f"{recorded['op']}#{number}", "op": recorded["op"], "attrs": recorded["attrs"],
                          "in": [reference(x) for x in arrays], "out": outputs, "tol": [1e-5, 1e-6], "static": None})
            graphs.writestr(f"{index[-1]['id']}.pb", graphdef.dumps(graph_of(recorded, arrays)))
    (folder / "index.json").write_text(json.dumps({"cases": index}), "utf-8")
    np.savez(folder / "data.npz", blob=np.frombuffer(bytes(blob), np.uint8))


@pytest.fixture(scope="module")
def subject(tmp_path_factory: pytest.TempPathFactory) -> Subject:
    """The pack on CPU:0, with its recordings."""
    folder = tmp_path_factory.mktemp("pack")
    (folder / "recordings").mkdir()
    write_recordings(folder / "recordings")
    (folder / "heald-conformance.toml").write_text('recordings = "recordings"\n', "utf-8")
    return Subject("CPU:0", load_settings(folder / "heald-conformance.toml", pack="tf_text", quick=True))


@pytest.mark.parametrize("claim", CLAIMS)
def test_the_suite_runs_on_the_recorded_cases_of_the_pack(subject: Subject, claim: str) -> None:
    tried = []
    for single in case(f"kernels.{claim}").on(subject):
        try:
            single.run(subject)
        except NotApplicable:
            continue
        tried.append(single.parameter)
    assert len(tried) >= {"a_kernel_agrees_with_tensorflow": 30}.get(claim, 3), tried


@pytest.mark.parametrize("name", ["absent", 3])
def test_a_setting_that_names_no_recordings_is_refused(tmp_path: Path, name: object) -> None:
    file = tmp_path / "heald-conformance.toml"
    file.write_text(f"recordings = {json.dumps(name)}\n", "utf-8")
    with pytest.raises(SettingsError, match="recordings must be a folder with index.json"):
        load_settings(file)
