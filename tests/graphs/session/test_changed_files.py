"""Models whose files change under them: a typed error or the old answers, never a dead process or another answer."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from heald import graphdef
from heald.errors import FailedPrecondition
from heald.runtime.support import mapped_file

DATA = Path(__file__).parents[2] / "data" / "saved_models"
YESTERDAY = 10**18  # nanoseconds
SIZE = 1 << 19
IMAGE = np.ones((1, 8, 8, 1), np.float32)
CHILD = """
import os, sys
import numpy as np, heald
from heald.errors import FailedPrecondition
path, moment, mapped = sys.argv[1:]
model = heald.load(path, mmap=mapped == "mapped")
if moment == "new shape":
    model(np.ones((1, 1), "f4"))
os.truncate(path, 4096)
try:
    print(model(np.ones((2, 1), "f4")).shape)
except FailedPrecondition as error:
    print(error)
"""


def save(path: Path, factor: float = 1) -> Path:
    """A model that adds 2 MB of numbers to its input, which need no packing: runs read the file."""
    weights = (np.arange(SIZE) * factor).astype(np.float32)
    graphdef.dump(graph(placeholder("x", (None, 1)), const("w", weights), node("y", "AddV2", "x", "w")), path)
    os.utime(path, ns=(YESTERDAY, YESTERDAY))
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return save(tmp_path / "model.pb")


@pytest.mark.parametrize(("moment", "mapped", "said"), [
    ("first call", "mapped", "changed in place after it was loaded: it had 2"),
    ("new shape", "mapped", "changed in place after it was loaded: it had 2"),
    ("first call", "read", f"(2, {SIZE})"),
])
def test_truncation_ends_no_process(moment: str, mapped: str, said: str, file: Path) -> None:
    """In a process of its own, which a signal may end."""
    child = subprocess.run([sys.executable, "-c", CHILD, file, moment, mapped], capture_output=True, text=True,
                           check=False)
    assert child.returncode == 0, child.stderr
    assert said in child.stdout


def test_overwritten_weights_are_an_error_of_the_first_call_and_of_new_shapes(file: Path) -> None:
    model, waiting = heald.load(file), heald.load(file)
    model([[1]])
    with file.open("r+b") as opened:
        opened.seek(SIZE)
        opened.write(b"\x7f" * 1000)
    for call, feed in ((waiting, [[1]]), (model, [[1], [2]])):
        with pytest.raises(FailedPrecondition, match="model.pb: .*load it again"):
            call(feed)


def test_a_file_replaced_by_rename_changes_no_answer(file: Path) -> None:
    model, waiting = heald.load(file), heald.load(file)
    before = model([[1]])
    save(file.with_name("new.pb"), factor=2).replace(file)
    np.testing.assert_array_equal(waiting([[1]]), before)
    np.testing.assert_array_equal(model([[1], [1]])[1], before[0])
    assert heald.load(file)([[1]])[0, 2] == 5


def test_a_model_read_whole_needs_no_file(file: Path) -> None:
    model = heald.load(file, mmap=False)
    os.truncate(file, 0)
    assert model([[1]])[0, -1] == SIZE


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A SavedModel, all of whose files are mapped, however small they are."""
    monkeypatch.setattr(mapped_file, "MAPPED_FROM_BYTES", 1)
    monkeypatch.setattr(mapped_file, "VIEWED_FROM_BYTES", 1)
    copy = shutil.copytree(DATA / "keras" / "model", tmp_path / "model")
    os.utime(shard(copy), ns=(YESTERDAY, YESTERDAY))
    return copy


def shard(folder: Path) -> Path:
    return folder / "variables" / "variables.data-00000-of-00001"


def test_variables_of_a_mapped_shard_are_checked(folder: Path) -> None:
    model = heald.load(folder)
    with shard(folder).open("r+b") as opened:
        opened.write(b"\0" * 8)
    with pytest.raises(FailedPrecondition, match="variables.data-00000-of-00001"):
        model(IMAGE)


def test_variables_are_read_where_mapping_is_not_allowed(folder: Path) -> None:
    model, mapped = heald.load(folder, mmap=False), heald.load(folder)
    expected = mapped(IMAGE)
    os.truncate(shard(folder), 0)
    np.testing.assert_array_equal(model(IMAGE), expected)
