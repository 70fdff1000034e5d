"""The recorder of TensorFlow's cases: its archive returns the given cases. The tests need no TensorFlow."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from heald import errors, graphdef
from heald_conformance import golden
from heald_conformance.golden import Case
from workers.record_cases import Archive, Call, call_of, differences, record

WITHOUT_GRAPH = {"Const#0086123c.pb"}


class Answers:
    """A TensorFlow whose answers are known."""

    def __init__(self, eager: Any, shapes: Any) -> None:
        self._of = {"eager": eager, "shapes": shapes}

    def answer(self, op: object, attrs: object, inputs: object, device: str) -> Any:
        return self._of[device]


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Archive:
    """A copy of the recorded cases, which `cases()` reads from now on."""
    shutil.copytree(golden.FOLDER, tmp_path / "golden")
    monkeypatch.setattr(golden, "FOLDER", tmp_path / "golden")
    return Archive(tmp_path / "golden")


def read_again(archive: Archive) -> dict[str, list[Case]]:
    archive.write()
    golden.graph_archive.cache_clear()
    try:
        recorded = golden.cases.__wrapped__()
        graphs = {f"{case.id}.pb" for of_op in recorded.values() for case in of_op} - WITHOUT_GRAPH
        archives = map(golden.graph_archive, golden.case_folders())
        assert sorted(graphs) == sorted(name for graphs_of_folder in archives for name in graphs_of_folder.namelist())
        return recorded
    finally:
        golden.graph_archive.cache_clear()


def content(x: np.ndarray[Any, Any]) -> object:
    return x.tolist() if x.dtype == object else x.tobytes()


def test_a_case_is_read_as_it_was_recorded_and_the_others_stay(archive: Archive) -> None:
    before = {case.id: case for of_op in golden.cases().values() for case in of_op}
    output = np.asarray([1, 2], ml_dtypes.bfloat16)
    call = Call("Sqrt", [np.asarray([1, 4], ml_dtypes.bfloat16)], note="whole roots")
    name = archive.add(record(call, Answers([output], [[2]])))  # type: ignore[arg-type]
    recorded = {case.id: case for of_op in read_again(archive).values() for case in of_op}
    case = recorded.pop(name)
    assert recorded.keys() == before.keys()
    assert [x.tolist() for x in case.inputs] == [[1, 4]]
    assert case.outputs is not None
    assert (case.outputs[0].tolist(), case.outputs[0].dtype) == ([1, 2], output.dtype)
    assert (case.attrs, case.tolerance, case.static, case.code) == ({"T": "bfloat16"}, (1e-2, 1e-2), [[2]], None)
    for other in recorded.values():
        for x, y in zip(other.inputs, before[other.id].inputs, strict=True):
            assert content(x) == content(y)


def test_a_new_case_changes_one_line_of_the_index(archive: Archive) -> None:
    before = (golden.FOLDER / "index.json").read_text("utf-8").splitlines()
    archive.add(record(Call("Neg", [np.float32([1])]), Answers([np.float32([-1])], [[1]])))  # type: ignore[arg-type]
    archive.write()
    after = (golden.FOLDER / "index.json").read_text("utf-8").splitlines()
    assert len(after) == len(before) + 1
    assert [line.rstrip(",") for line in after[:-2]] == [line.rstrip(",") for line in before[:-1]]


def test_a_family_of_its_own_changes_no_other_file(archive: Archive) -> None:
    before = {file: file.read_bytes() for file in golden.FOLDER.rglob("*") if file.is_file()}
    family = Archive(golden.FOLDER / "roots")
    output = np.float32([1, 2])
    name = family.add(record(Call("Sqrt", [np.float32([1, 4])]), Answers([output], [[2]])))  # type: ignore[arg-type]
    case = next(case for case in read_again(family)["Sqrt"] if case.id == name)
    assert case.outputs is not None
    assert (case.outputs[0].tolist(), case.graph().nodes["op"].op) == ([1, 2], "Sqrt")
    assert {file: file.read_bytes() for file in before} == before
    assert golden.graph_archive(golden.FOLDER / "roots").namelist() == [f"{name}.pb"]
    golden.graph_archive.cache_clear()


def test_the_same_call_is_recorded_once(archive: Archive) -> None:
    call = Call("Neg", [np.float32([1])])
    first, second = (archive.add(record(call, Answers([np.float32([x])], [[1]]))) for x in (3, -1))  # type: ignore[arg-type]
    assert first == second
    (case,) = [recorded_case for recorded_case in read_again(archive)["Neg"] if recorded_case.id == first]
    assert case.outputs is not None
    assert case.outputs[0].tolist() == [-1]


def test_an_error_is_recorded_with_its_code_and_without_tensorflows_places(archive: Archive) -> None:
    message = "{{function_node __wrapped__AddV2_device_/job:x}} Incompatible shapes: [2] vs. [3] [Op:AddV2] name: "
    refused = (3, "Dimensions must be equal, but are 2 and 3 for '{{node op}} = AddV2[T=DT_FLOAT](a, b)'")
    name = archive.add(record(Call("AddV2", [np.float32([1, 2]), np.float32([1, 2, 3])]),
                              Answers((3, message), refused)))  # type: ignore[arg-type]
    (case,) = [recorded_case for recorded_case in read_again(archive)["AddV2"] if recorded_case.id == name]
    assert (case.code, case.message) == (3, "Incompatible shapes: [2] vs. [3]")
    assert case.static == {"error": "Dimensions must be equal, but are 2 and 3"}


def test_lists_and_texts_are_recorded(archive: Archive) -> None:
    call = Call("StringJoin", [[np.array([b"a", b"\xff"], object), np.array([b"b", b"c"], object)]], {"separator": "-"})
    name = archive.add(record(call, Answers([np.array([b"a-b", b"\xff-c"], object)], [[2]])))  # type: ignore[arg-type]
    (case,) = [recorded_case for recorded_case in read_again(archive)["StringJoin"] if recorded_case.id == name]
    assert [x.tolist() for x in case.inputs] == [[b"a", b"\xff"], [b"b", b"c"]]
    assert case.attrs == {"N": 2, "separator": "-"}
    assert call_of(case).inputs[0][1].tolist() == [b"b", b"c"]
    nodes = graphdef.loads(graphdef.dumps(case.graph())).nodes
    assert [node.name for node in nodes.values()] == ["i0", "i1", "op"]


@pytest.mark.parametrize("op", ["AddV2", "Conv2D", "Equal", "ConcatV2", "Split", "TopKV2"])
def test_a_recorded_case_asked_again_differs_only_where_tensorflow_does(op: str) -> None:
    for case in golden.cases()[op]:
        static = [None if x == "?" else x for x in case.static] if isinstance(case.static, list) else (3, "refused")
        eager = (case.code, "refused") if case.outputs is None else case.outputs
        assert [*differences(case, record(call_of(case), Answers(eager, static)))] == []  # type: ignore[arg-type]
        assert [*differences(case, record(call_of(case), Answers((99, "another"), static)))]  # type: ignore[arg-type]


@pytest.mark.parametrize("answer", [None, (None, "no such attribute")])
def test_a_call_without_an_answer_is_an_error(answer: Any) -> None:
    with pytest.raises(errors.InvalidArgument, match="TensorFlow gives no answer"):
        record(Call("Neg", [np.float32([1])]), Answers(answer, None))  # type: ignore[arg-type]
