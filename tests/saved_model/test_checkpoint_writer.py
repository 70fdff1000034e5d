"""Checkpoints that heald writes: the bytes are TensorFlow's, all arrays come back, and no file is half written."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from harness.disk_calls import recording
from heald.errors import HealdError, InvalidArgument, NotFound, PermissionDenied, ResourceExhausted
from heald.runtime.support import disk
from heald.runtime.values import dtypes
from heald_saved_model.checkpoint import Checkpoint, shard_name
from heald_saved_model.checkpoint_writer import TensorToSave, merge_checkpoints, write_checkpoint
from heald_saved_model.sstable import entries
from heald_saved_model.sstable_writer import table
from heald_saved_model.tensor_slice import parse_shape_and_slice
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

DATA = Path(__file__).parents[1] / "data" / "saved_models"
NUMBERS = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32",
           "float64", "complex64", "complex128")


def open_checkpoint(prefix: Path) -> Checkpoint:
    return Checkpoint(Path(f"{prefix}.index").read_bytes(),
                      lambda n, count: Path(f"{prefix}.{shard_name(n, count)}").read_bytes())


def equal(a: np.ndarray, b: np.ndarray) -> bool:
    """True for equal bytes: NaN is equal to itself."""
    if a.dtype == object:
        return a.shape == b.shape and a.tolist() == b.tolist()
    return (a.shape, a.dtype, a.tobytes()) == (b.shape, b.dtype, b.tobytes())


@pytest.mark.parametrize("index", sorted(DATA.rglob("*.index")), ids=lambda path: str(path.relative_to(DATA).parent))
def test_the_table_of_tensorflows_entries_has_tensorflows_bytes(index):
    raw = index.read_bytes()
    assert table(entries(raw)) == raw


def test_a_rewritten_checkpoint_has_tensorflows_bytes(tmp_path):
    for ending in ("index", shard_name(0, 1)):
        (tmp_path / f"given.{ending}").write_bytes((DATA / "checkpoint" / f"ckpt.{ending}").read_bytes())
    original = open_checkpoint(tmp_path / "given")
    by_place = sorted(original.names, key=lambda name: original.entry(name)[3:5])  # by offset, then by size
    write_checkpoint(tmp_path / "again", {name: original.read(name) for name in by_place})
    for ending in ("index", shard_name(0, 1)):
        assert (tmp_path / f"again.{ending}").read_bytes() == (tmp_path / f"given.{ending}").read_bytes()


strings = st.lists(st.binary(max_size=300), max_size=5).map(lambda texts: np.array([*texts, None], object)[:-1])
numbers = st.sampled_from(NUMBERS).flatmap(
    lambda name: arrays_of.arrays(name, arrays_of.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)))
names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=20)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(names, numbers | strings, max_size=8))
def test_written_tensors_are_read_back(tmp_path_factory, tensors):
    prefix = tmp_path_factory.mktemp("checkpoints") / "model"
    write_checkpoint(prefix, tensors)
    checkpoint = open_checkpoint(prefix)
    assert sorted(checkpoint.names) == sorted(tensors)
    assert all(equal(checkpoint.read(name), array) for name, array in tensors.items())


@settings(max_examples=50, deadline=None)
@given(st.dictionaries(st.binary(min_size=1, max_size=12), st.binary(max_size=40), max_size=60))
def test_the_table_of_any_entries_is_read(pairs):
    assert dict(entries(table(sorted(pairs.items())))) == pairs


def test_a_table_of_many_blocks_is_read():
    pairs = {b"layer_%06d/kernel" % n: bytes(100) for n in range(6000)}
    raw = table(pairs.items())
    assert len(raw) > 2 << 18
    assert dict(entries(raw)) == pairs


def test_types_of_tensorflow_alone_and_odd_layouts_are_written(tmp_path):
    bfloat16 = np.array([1, -2.5], dtypes.bfloat16.numpy)
    turned, big_endian = np.arange(6, dtype="i4").reshape(2, 3).T, np.array([1.5], ">f8")
    write_checkpoint(tmp_path / "m", {"b": bfloat16, "t": turned, "e": big_endian, "s": np.array(["\xe9", b"\xff"],
                                                                                                 object)})
    checkpoint = open_checkpoint(tmp_path / "m")
    assert equal(checkpoint.read("b"), bfloat16)
    assert checkpoint.read("t").tolist() == turned.tolist()
    assert checkpoint.read("e").tolist() == [1.5]
    assert checkpoint.read("s").tolist() == ["\xe9".encode(), b"\xff"]


def test_slices_of_several_checkpoints_merge_to_one_tensor(tmp_path):
    full_tensor = np.arange(12, dtype="f4").reshape(4, 3)
    for number, spec in enumerate(("4 3 0,3:-", "4 3 3,1:-")):
        part = parse_shape_and_slice(spec)
        write_checkpoint(tmp_path / f"part{number}", [
            TensorToSave("v", full_tensor[part.indices], part), TensorToSave(f"own{number}", np.int32(number))])
    merge_checkpoints([tmp_path / "part0", tmp_path / "part1"], tmp_path / "model")
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "model.data-00000-of-00002", "model.data-00001-of-00002", "model.index"]
    checkpoint = open_checkpoint(tmp_path / "model")
    assert equal(checkpoint.read("v"), full_tensor)
    assert equal(checkpoint.read("v", "4 3 2,2:1,1"), full_tensor[2:, 1:2])
    assert (checkpoint.read("own0"), checkpoint.read("own1")) == (0, 1)


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_checkpoint_over_an_older_one_has_another_count_of_shards(tmp_path):
    names = []
    for number in range(3):
        write_checkpoint(tmp_path / "m", {"x": np.int32(number)})
        assert open_checkpoint(tmp_path / "m").read("x") == number
        names.append(files(tmp_path))
    assert names[0] == names[2] == ["m.data-00000-of-00001", "m.index"]
    assert names[1] == ["m.data-00000-of-00002", "m.data-00001-of-00002", "m.index"]
    assert (tmp_path / "m.data-00000-of-00001").stat().st_size == 4


def test_the_index_gets_its_name_when_both_checkpoints_have_their_shards(tmp_path):
    write_checkpoint(tmp_path / "m", {"x": np.int32(1)})
    with recording(calls := []):
        write_checkpoint(tmp_path / "m", {"x": np.int32(2)})
    names = [Path(call.args[1]).name for call in calls if call.name == "rename"]
    assert names == ["m.data-00000-of-00002", "m.data-00001-of-00002", "m.index"]
    commit = max(number for number, call in enumerate(calls) if call.name == "rename")
    assert ("sync_folder", (tmp_path,)) in calls[:commit]
    removed = [number for number, call in enumerate(calls) if call == ("remove", (tmp_path / "m.data-00000-of-00001",))]
    assert removed
    assert removed[0] > commit
    assert ("sync_folder", (tmp_path,)) in calls[commit:removed[0]]


def test_shards_of_killed_writers_go_and_other_files_stay(tmp_path):
    write_checkpoint(tmp_path / "m", {"x": np.int32(1)})
    stray = ["m.data-00003-of-00007", "m.data-00000-of-100000"]
    others = ["m.data-0-of-1", "m.data-00000-of-00009.old", "m2.data-00000-of-00001", "m.part.data-00000-of-00001"]
    for name in (*stray, *others):
        (tmp_path / name).write_bytes(b"")
    write_checkpoint(tmp_path / "m", {"x": np.int32(2)})
    assert files(tmp_path) == sorted([*others, "m.data-00000-of-00002", "m.data-00001-of-00002", "m.index"])


@pytest.mark.parametrize("index", [b"", b"no table", b"\0" * 60])
def test_a_damaged_checkpoint_is_replaced(tmp_path, index):
    write_checkpoint(tmp_path / "m", {"x": np.int32(1)})
    (tmp_path / "m.index").write_bytes(index)
    write_checkpoint(tmp_path / "m", {"x": np.int32(2)})
    assert open_checkpoint(tmp_path / "m").read("x") == 2
    assert files(tmp_path) == ["m.data-00000-of-00001", "m.index"]


def test_a_checkpoint_merges_with_its_own_older_content(tmp_path):
    write_checkpoint(tmp_path / "m", {"x": np.int32(1)})
    write_checkpoint(tmp_path / "m", {"x": np.int32(2)})  # of two shards, one of them empty
    write_checkpoint(tmp_path / "part", {"y": np.int32(3)})
    merge_checkpoints([tmp_path / "m", tmp_path / "part"], tmp_path / "m")
    assert [open_checkpoint(tmp_path / "m").read(name) for name in "xy"] == [2, 3]
    assert files(tmp_path) == [*(f"m.{shard_name(n, 3)}" for n in range(3)), "m.index"]


@pytest.mark.parametrize("write", [lambda prefix, part: merge_checkpoints([part], prefix),
                                   lambda prefix, part: write_checkpoint(prefix, {"x": np.int32(2)})])
def test_an_index_that_cannot_be_written_leaves_the_old_checkpoint_and_the_parts(tmp_path, monkeypatch, write):
    write_checkpoint(tmp_path / "m", {"x": np.int32(1)})
    write_checkpoint(tmp_path / "part", {"x": np.int32(2)})
    before = files(tmp_path)
    rename = disk.rename

    def rename_but_the_index(old: Path, new: Path) -> None:
        if new.name == "m.index":
            raise OSError(28, "No space left on device")
        rename(old, new)

    monkeypatch.setattr(disk, "rename", rename_but_the_index)
    with pytest.raises(ResourceExhausted, match=r"m\.index: No space left"):
        write(tmp_path / "m", tmp_path / "part")
    assert files(tmp_path) == before
    assert (open_checkpoint(tmp_path / "m").read("x"), open_checkpoint(tmp_path / "part").read("x")) == (1, 2)


def test_a_name_is_written_once(tmp_path):
    part = parse_shape_and_slice("4 0,2")
    twice = [TensorToSave("x", np.zeros(2)), TensorToSave("x", np.zeros(2))]
    sliced = TensorToSave("x", np.zeros(2), part)
    for tensors in (twice, [sliced, sliced], [twice[0], sliced], [sliced, twice[0]]):
        with pytest.raises(InvalidArgument, match="duplicate key: x"):
            write_checkpoint(tmp_path / "m", tensors)
    write_checkpoint(tmp_path / "a", {"x": np.zeros(2)})
    write_checkpoint(tmp_path / "b", {"x": np.zeros(2)})
    with pytest.raises(InvalidArgument, match="Duplicate tensor keyed by x"):
        merge_checkpoints([tmp_path / "a", tmp_path / "b"], tmp_path / "m")
    assert not list(tmp_path.glob("m*"))
    assert not list(tmp_path.glob(".heald*"))


def test_an_element_that_no_checkpoint_holds_leaves_the_old_checkpoint(tmp_path):
    write_checkpoint(tmp_path / "m", {"x": np.int32(1)})
    with pytest.raises(InvalidArgument, match="element of type float"):
        write_checkpoint(tmp_path / "m", {"y": np.ones(1000), "x": np.array([1.5], object)})
    assert open_checkpoint(tmp_path / "m").read("x") == 1
    assert len(list(tmp_path.iterdir())) == 2


def test_a_full_disk_leaves_no_file(tmp_path):
    import resource

    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    import signal

    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, limit[1]))
        with pytest.raises(ResourceExhausted, match="data-00000"):
            write_checkpoint(tmp_path / "m", {"x": np.zeros(1 << 15)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, handler)
    assert not list(tmp_path.iterdir())


def test_a_file_in_place_of_a_folder_is_a_typed_error(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises((NotFound, PermissionDenied)):
        write_checkpoint(tmp_path / "file" / "m", {"x": np.zeros(1)})


@pytest.mark.parametrize("text", ["4", "", "4 x", "4 0,5", "4 -1,2", "4 3 -", "4 1,2:-", "4 1", "4 3,-1"])
def test_a_malformed_slice_is_an_invalid_argument(text):
    with pytest.raises(InvalidArgument, match=r"shape_and_slice"):
        parse_shape_and_slice(text)


def test_truncations_and_mutations_are_typed_errors_or_give_the_same_values(tmp_path):
    tensors = {"a": np.arange(5, dtype="f4"), "s": np.array([b"x", b"longer"], object), "e": np.zeros((0, 2)),
               "flag": np.array([True, False])}
    write_checkpoint(tmp_path / "m", tensors)
    index, shard = (Path(f"{tmp_path}/m.{end}").read_bytes() for end in ("index", shard_name(0, 1)))
    draw = random.Random(7)  # noqa: S311 - mutations, no secrets
    mutants = [(index[:n], shard) for n in range(len(index))] + [(index, shard[:n]) for n in range(len(shard))]
    for _ in range(2000):
        files = [bytearray(index), bytearray(shard)]
        file = draw.choice(files)
        file[draw.randrange(len(file))] ^= draw.randrange(1, 256)
        mutants.append((bytes(files[0]), bytes(files[1])))
    for mutant, its_shard in mutants:
        with suppress(HealdError):
            checkpoint = Checkpoint(mutant, lambda *_, data=its_shard: data)
            for name in checkpoint.names:
                assert equal(checkpoint.read(name), tensors[name])
