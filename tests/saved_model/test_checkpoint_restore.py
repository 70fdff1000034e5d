"""Variables of a session get the values of a checkpoint, by the names of their nodes."""

from __future__ import annotations

import os

import heald
import numpy as np
import pytest
from heald.api import Graph, Node
from heald.errors import DataLoss, HealdError, NotFound
from heald.runtime.values import dtypes
from heald_saved_model.checkpoint_restore import restore_variables
from heald_saved_model.checkpoint_writer import write_checkpoint

FLOAT = {"dtype": dtypes.float32}
VALUE = np.float32([1, 2])


def variables() -> Graph:
    """A resource variable, a reference variable, and their reads."""
    return Graph([
        Node("v", "VarHandleOp", attrs={**FLOAT, "shape": (2,), "shared_name": "shared", "container": ""}),
        Node("read", "ReadVariableOp", ["v"], attrs=FLOAT),
        Node("old/w", "VariableV2", attrs={**FLOAT, "shape": (2,), "shared_name": "", "container": ""}),
        Node("copy", "Identity", ["old/w"], attrs={"T": dtypes.float32})])


def test_both_kinds_of_variables_are_restored(tmp_path):
    write_checkpoint(tmp_path / "c", {"v": VALUE, "old/w": -VALUE, "more": VALUE})
    with heald.Session(variables()) as session:
        assert restore_variables(session, tmp_path / "c") == []
        assert [array.tolist() for array in session.run(["read", "copy"])] == [[1, 2], [-1, -2]]


def test_the_newest_checkpoint_of_a_folder_counts(tmp_path):
    for number, age in (("9", 50), ("10", 20), ("8", 90)):
        write_checkpoint(tmp_path / f"model-{number}", {"v": VALUE * int(number)})
        os.utime(tmp_path / f"model-{number}.index", (1e9 - age, 1e9 - age))
    with heald.Session(variables()) as session:
        assert restore_variables(session, tmp_path) == ["old/w"]
        assert session.run("read").tolist() == [10, 20]


@pytest.mark.parametrize(("tensors", "kind"), [
    (None, NotFound), ({"v": np.int32([1, 2])}, HealdError), ({"v": np.float32([1, 2, 3])}, HealdError),
])
def test_a_checkpoint_that_does_not_fit_is_a_typed_error(tmp_path, tensors, kind):
    if tensors is not None:
        write_checkpoint(tmp_path / "c", tensors)
    with heald.Session(variables()) as session:
        for place in (tmp_path, tmp_path / "c"):
            with pytest.raises(kind):
                restore_variables(session, place)


def test_a_damaged_checkpoint_is_data_loss(tmp_path):
    (tmp_path / "c.index").write_bytes(b"no table" * 20)
    with heald.Session(variables()) as session, pytest.raises(DataLoss):
        restore_variables(session, tmp_path / "c")
