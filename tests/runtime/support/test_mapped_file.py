"""Bytes of files: large files are mapped, and a change of a mapped file is a typed error."""

from __future__ import annotations

import gc
import io
import os
import pickle
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders.graphs import const, graph
from heald import graphdef
from heald.errors import DataLoss, FailedPrecondition, HealdError, InvalidArgument, ResourceExhausted
from heald.graphs.graph.graph import Function, Graph
from heald.runtime.support import mapped_file
from heald.runtime.support.mapped_file import (
    MAPPED_FROM_BYTES,
    VIEWED_FROM_BYTES,
    MappedFile,
    check_unchanged,
    contents,
    file_behind,
    lasting_bytes,
)

OPEN = Path("/proc/self/fd")
LARGE = MAPPED_FROM_BYTES + 1
YESTERDAY = 10**18  # nanoseconds: later writes have another time in any case


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file that is mapped."""
    path = tmp_path / "large"
    path.write_bytes(b"w" * LARGE)
    os.utime(path, ns=(YESTERDAY, YESTERDAY))
    return path


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A GraphDef with a constant of 2 MB and one of 8 bytes."""
    path = tmp_path / "model.pb"
    graphdef.dump(graph(const("large", np.arange(1 << 19)), const("small", [1, 2])), path)
    os.utime(path, ns=(YESTERDAY, YESTERDAY))
    return path


def truncate(path: Path) -> None:
    os.truncate(path, 100)


def overwrite(path: Path) -> None:
    with path.open("r+b") as opened:
        opened.seek(path.stat().st_size - 10)
        opened.write(b"changed")


def append(path: Path) -> None:
    with path.open("ab") as opened:
        opened.write(b"more")


def test_a_large_file_is_mapped_and_a_smaller_one_read(file: Path) -> None:
    assert isinstance(contents(file).obj, MappedFile)
    truncate(file)
    assert contents(file).obj == b"w" * 100


def test_a_large_file_is_read_where_it_may_not_be_mapped(file: Path) -> None:
    assert contents(file, mapped=False).obj == b"w" * LARGE


@pytest.mark.parametrize("change", [truncate, overwrite, append])
def test_a_change_in_place_is_told_with_the_file_and_the_way_out(change: Callable[[Path], None], file: Path) -> None:
    view = contents(file)
    check_unchanged((view,))
    change(file)
    with pytest.raises(FailedPrecondition, match=r"large: .*after it was loaded.*; load it again;.*mmap=False"):
        check_unchanged((view,))


def test_a_change_is_told_under_whatever_name_the_file_has_by_then(file: Path) -> None:
    view = contents(file)
    overwrite(file.rename(file.with_name("renamed")))
    with pytest.raises(FailedPrecondition, match="modification time"):
        check_unchanged((view,))


def test_a_replaced_file_keeps_its_content(file: Path) -> None:
    view = contents(file)
    other = file.with_name("other")
    other.write_bytes(b"new")
    other.replace(file)
    check_unchanged((view,))
    assert view == b"w" * LARGE


def test_a_removed_file_keeps_its_content(file: Path) -> None:
    view = contents(file)
    file.unlink()
    check_unchanged((view,))
    assert view == b"w" * LARGE


def test_views_and_arrays_know_their_file(file: Path) -> None:
    view = contents(file)
    array = np.frombuffer(view[:80], np.float32).reshape(4, 5)[1:].T
    assert file_behind(view[5:]) is file_behind(array) is view.obj
    assert file_behind(array.copy()) is file_behind(b"") is file_behind(memoryview(b"")) is None


def test_a_map_closes_its_descriptor_with_its_last_view(file: Path) -> None:
    before = set(OPEN.iterdir())
    view = contents(file)[10:]
    assert len(set(OPEN.iterdir()) - before) == 2  # mmap has one of its own
    del view
    gc.collect()
    assert set(OPEN.iterdir()) <= before


def test_few_bytes_are_copied_and_many_viewed(file: Path) -> None:
    view = contents(file)
    assert lasting_bytes(view, 1, VIEWED_FROM_BYTES) == b"w" * (VIEWED_FROM_BYTES - 1)
    assert file_behind(lasting_bytes(view, 1, VIEWED_FROM_BYTES)) is None
    assert file_behind(lasting_bytes(view, 0, VIEWED_FROM_BYTES)) is view.obj


def test_a_pipe_is_refused_without_waiting_for_its_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidArgument, match="not a regular file"):
        mapped_file.read(tmp_path / "pipe")


@pytest.mark.parametrize(("change", "came"), [(truncate, "100 were read"), (append, f"{LARGE + 1} were read")])
def test_a_file_that_changes_while_it_is_read_is_data_loss(
    change: Callable[[Path], None], came: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class ChangedWhileRead(io.FileIO):
        def read(self, size: int | None = -1) -> Any:
            change(file)
            return super().read(size)

    monkeypatch.setattr(mapped_file, "open", ChangedWhileRead, raising=False)
    with pytest.raises(DataLoss, match=f"had {LARGE} bytes, {came}"):
        mapped_file.read(file)


def test_a_file_beyond_memory_is_a_typed_error(file: Path) -> None:
    os.truncate(file, 1 << 42)
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (1 << 41, before[1]))
    try:
        with pytest.raises(ResourceExhausted, match="mmap=True"):
            mapped_file.read(file)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


USES: list[Callable[[Graph], object]] = [
    graphdef.dumps, pickle.dumps, lambda g: g["large"].attrs["value"].array(), lambda g: g["large"].attrs["value"].raw,
    lambda g: g["large"].raw, lambda g: graphdef.dumps(g.replace(without=["small"])),
]


@pytest.mark.parametrize("use", range(len(USES)))
def test_a_graph_of_a_changed_file_says_so_wherever_the_file_is_looked_at(use: int, model: Path) -> None:
    loaded_graph = graphdef.load(model)
    USES[use](loaded_graph)
    overwrite(model)
    with pytest.raises(FailedPrecondition, match="model.pb"):
        USES[use](loaded_graph)


def test_small_constants_need_no_file_any_more(model: Path) -> None:
    loaded_graph = graphdef.load(model)
    truncate(model)
    assert loaded_graph["small"].attrs["value"].array().tolist() == [1, 2]
    assert b"small" in loaded_graph["small"].raw


def test_a_graph_that_was_read_whole_outlives_any_change(model: Path) -> None:
    before = model.read_bytes()
    loaded_graph = graphdef.load(model, mmap=False)
    truncate(model)
    assert graphdef.dumps(loaded_graph) == before
    assert loaded_graph["large"].attrs["value"].array()[-1] == (1 << 19) - 1


def test_a_mapped_graph_may_be_written_over_its_own_file(model: Path) -> None:
    before, loaded_graph = model.read_bytes(), graphdef.load(model)
    graphdef.dump(loaded_graph, model)
    assert model.read_bytes() == before == graphdef.dumps(loaded_graph)


def test_a_function_with_a_large_constant_says_that_its_file_changed(tmp_path: Path) -> None:
    path = tmp_path / "f.pb"
    graphdef.dump(Graph(functions=[Function("f", nodes=[const("large", np.arange(1 << 19))])]), path)
    os.utime(path, ns=(YESTERDAY, YESTERDAY))
    function = graphdef.load(path).functions["f"]
    assert len(function.raw) > 1 << 20
    overwrite(path)
    with pytest.raises(HealdError, match="f.pb"):
        _ = function.raw
