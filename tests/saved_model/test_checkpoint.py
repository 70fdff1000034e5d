"""Checkpoints: heald reads TensorFlow's files, and damage is a typed error."""

from __future__ import annotations

from contextlib import suppress
from math import prod
from pathlib import Path

import numpy as np
import pytest
from heald.errors import DataLoss, HealdError, InvalidArgument, NotFound, Unimplemented
from heald.graphs.protobuf.descriptor_pool import message_class
from heald.runtime.values import dtypes, wire
from heald_saved_model.checkpoint import Checkpoint
from heald_saved_model.crc32c import masked_crc32c
from heald_saved_model.snappy import decompress
from heald_saved_model.sstable import entries
from heald_saved_model.tensor_slice import slice_key
from hypothesis import given, settings
from hypothesis import strategies as st

DATA = Path(__file__).parents[1] / "data" / "saved_models" / "checkpoint"
MAGIC = bytes.fromhex("57fb808b247547db")


def open_recorded(name: str, index: bytes | None = None) -> Checkpoint:
    shards = [(DATA / f"{name}.data-00000-of-00001").read_bytes()]
    return Checkpoint((DATA / f"{name}.index").read_bytes() if index is None else index, lambda n, _: shards[n])


def block(pairs: dict[bytes, bytes], compress: bool = False) -> bytes:
    """A block with its trailer, nothing shared among keys."""
    varint = wire.put_varint
    raw = b"".join(varint(0) + varint(len(k)) + varint(len(v)) + k + v for k, v in pairs.items())
    raw += bytes(4) + b"\1\0\0\0"
    if compress:
        raw = varint(len(raw)) + bytes((61 << 2,)) + (len(raw) - 1).to_bytes(2, "little") + raw
    raw += bytes((compress,))
    return raw + masked_crc32c(raw).to_bytes(4, "little")


def table(pairs: dict[bytes, bytes], compress: bool = False) -> bytes:
    data = block(pairs, compress)
    handle = wire.put_varint(0) + wire.put_varint(len(data) - 5)
    index = block({b"\xff": handle})
    footer = wire.put_varint(0) * 2 + wire.put_varint(len(data)) + wire.put_varint(len(index) - 5)
    return data + index + footer.ljust(40, b"\0") + MAGIC


def test_tensors_of_every_kind_are_read():
    checkpoint = open_recorded("ckpt")
    assert checkpoint.names == ["a", "b/i64", "big", "empty", "flag", "half", "s", "scalar"]
    tensors = {name: checkpoint.read(name) for name in checkpoint.names}
    assert tensors["b/i64"].tolist() == [1, 2, 3]
    assert tensors["flag"].tolist() == [True, False]
    assert tensors["s"].tolist() == [b"x", b"longer string"]
    assert tensors["scalar"].shape == ()
    assert tensors["scalar"] == 2.5
    np.testing.assert_allclose(tensors["half"].astype("f4"), [0.2412, -0.1471, -1.66, 1.014], atol=1e-3)
    assert (tensors["empty"].shape, tensors["big"].shape, str(tensors["big"].dtype)) == ((0, 3), (100, 40), "float32")
    assert not any(array.flags.writeable for array in tensors.values())


def test_a_tensor_in_slices_is_joined_and_cut():
    checkpoint = open_recorded("sliced")
    full_tensor = np.arange(12, dtype="f4").reshape(4, 3)
    np.testing.assert_array_equal(checkpoint.read("p"), full_tensor)
    np.testing.assert_array_equal(checkpoint.read("p", "4 3 1,2:-"), full_tensor[1:3])
    for text in ("4 3 1,4:-", "4 4 -:-", "4 3 -", "4 3 x:-", "4 3 -1,2:-"):
        with pytest.raises((InvalidArgument, DataLoss), match="slice"):
            checkpoint.read("p", text)


def test_the_error_of_a_missing_name_lists_similar_names():
    with pytest.raises(NotFound, match=r"'scalar'"):
        open_recorded("ckpt").read("scaler")


def test_a_changed_byte_of_a_shard_is_data_loss():
    index, shard = ((DATA / f"ckpt.{end}").read_bytes() for end in ("index", "data-00000-of-00001"))
    for at in range(0, len(shard), 97):
        damaged = shard[:at] + bytes((shard[at] ^ 4,)) + shard[at + 1 :]
        checkpoint = Checkpoint(index, lambda *_, data=damaged: data)
        with pytest.raises(DataLoss):
            [checkpoint.read(name) for name in checkpoint.names]


def test_a_shorter_shard_is_missed():
    checkpoint = Checkpoint((DATA / "ckpt.index").read_bytes(), lambda *_: b"")
    with pytest.raises(DataLoss, match="'big' ends at byte"):
        checkpoint.read("big")


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_an_arbitrary_entry_is_read_or_a_typed_error(data):
    """The table itself is sound, so the damage reaches the entries."""
    name = data.draw(st.sampled_from(["ckpt", "sliced"]))
    pairs = dict(entries((DATA / f"{name}.index").read_bytes()))
    key = data.draw(st.sampled_from(list(pairs)))
    raw = bytearray(pairs[key])
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    pairs[key] = bytes(raw)
    with suppress(HealdError):
        checkpoint = open_recorded(name, table(pairs))
        for tensor in checkpoint.names:
            assert checkpoint.read(tensor).nbytes < 1 << 20


@pytest.mark.parametrize("dtype", [dtypes.resource, dtypes.variant])
def test_handles_are_no_elements_of_a_checkpoint(dtype):
    entry = message_class("BundleEntryProto")(dtype=dtype.number, shape={"dim": [{"size": 0}]})
    pairs = dict(entries((DATA / "ckpt.index").read_bytes())) | {b"zzz": entry.SerializeToString()}
    with pytest.raises(DataLoss, match=f"'zzz' is .*{dtype.name}"):
        open_recorded("ckpt", table(pairs)).read("zzz")


def test_a_huge_shape_asks_for_no_memory():
    entry = message_class("BundleEntryProto")(dtype=1, size=4)
    for dims in ([1 << 40, 4], [0, 1 << 62], [1] * 65):
        del entry.shape.dim[:]
        for dim in dims:
            entry.shape.dim.add(size=dim)
        header = message_class("BundleHeaderProto")(num_shards=1).SerializeToString()
        with pytest.raises(DataLoss):
            open_recorded("ckpt", table({b"": header, b"x": entry.SerializeToString()})).read("x")


def make_checkpoint(shard: bytes, **tensors: dict) -> Checkpoint:
    """A checkpoint with these entries over one shard, in a table whose own checksums are right."""
    pairs = {b"": message_class("BundleHeaderProto")(num_shards=1).SerializeToString()}
    for name, entry_fields in tensors.items():
        fields = dict(entry_fields)
        dims = {"dim": [{"size": size} for size in fields.pop("dims")]}
        parts = fields.pop("slices", {})
        places = fields.pop("places", parts)  # the slices as the tensor's own entry lists them
        for part_slice, part in parts.items():
            pairs[slice_key(name, part_slice)] = put_entry(shape={"dim": [{"size": n} for _, n in part_slice]}, **part)
        slices = [{"extent": [{"start": start, "length": length} for start, length in part_slice]}
                  for part_slice in places]
        pairs[name.encode()] = put_entry(shape=dims, slices=slices, **fields)
    return Checkpoint(table(dict(sorted(pairs.items()))), lambda *_: shard, "folder/variables")


def put_entry(**fields: object) -> bytes:
    return message_class("BundleEntryProto")(**fields).SerializeToString()


def string_shard(strings: list[bytes]) -> tuple[bytes, bytes, bytes]:
    """Of a tensor of short strings: lengths, their checksum, bytes."""
    sizes = b"".join(len(s).to_bytes(4, "little") for s in strings)
    return bytes(map(len, strings)), masked_crc32c(sizes).to_bytes(4, "little"), b"".join(strings)


def string_crc(lengths: bytes, check: bytes, text: bytes) -> int:
    return masked_crc32c(b"".join(bytes((n, 0, 0, 0)) for n in lengths) + check + text)


TEXTS = [b"one", b"three", b""]


def strings(data: bytes, crc: int) -> Checkpoint:
    return make_checkpoint(data, s={"dtype": 7, "dims": [3], "size": len(data), "crc32c": crc})


def test_strings_are_read_where_both_checksums_are_right():
    parts = string_shard(TEXTS)
    assert strings(b"".join(parts), string_crc(*parts)).read("s").tolist() == TEXTS


@pytest.mark.parametrize("at", range(7, 15))
def test_a_changed_byte_of_a_string_is_told_with_tensor_and_file(at):
    parts = string_shard(TEXTS)
    data = bytearray(b"".join(parts))
    data[at] ^= 1
    with pytest.raises(DataLoss, match=r"^folder/variables.data-00000-of-00001: tensor 's' does not have the checksum"):
        strings(bytes(data), string_crc(*parts)).read("s")


def test_changed_lengths_of_strings_are_told_where_their_sum_is_the_same():
    lengths, check, text = string_shard(TEXTS)
    with pytest.raises(DataLoss, match="'s' does not have the checksum"):
        strings(lengths[::-1] + check + text, string_crc(lengths, check, text)).read("s")


def test_lengths_of_strings_have_a_checksum_of_their_own():
    """The checksum of the whole is right here."""
    lengths, _, text = string_shard(TEXTS)
    other = bytes(4)
    with pytest.raises(DataLoss, match="'s' does not have the checksum"):
        strings(lengths + other + text, string_crc(lengths, other, text)).read("s")


SLICED = np.arange(6, dtype="<f4").reshape(2, 3)


def make_sliced(*places: tuple[tuple[int, int], ...]) -> Checkpoint:
    """A tensor of shape (2, 3) in these slices, each with the elements of SLICED."""
    parts, shard = {}, b""
    for part_slice in places:
        rows, columns = (slice(start, start + length) for start, length in part_slice)
        elements = SLICED[rows, columns].tobytes()
        parts[part_slice] = {"dtype": 1, "offset": len(shard), "size": len(elements), "crc32c": masked_crc32c(elements)}
        shard += elements
    return make_checkpoint(shard, t={"dtype": 1, "dims": [2, 3], "slices": parts})


def test_slices_that_fill_a_tensor_are_joined():
    np.testing.assert_array_equal(make_sliced(((0, 2), (0, 2)), ((0, 1), (2, 1)), ((1, 1), (2, 1))).read("t"), SLICED)


def test_slices_with_a_hole_serve_the_regions_that_they_fill():
    ones = np.ones((2, 2), "f4").tobytes()
    part = {"dtype": 1, "size": 16, "crc32c": masked_crc32c(ones)}
    checkpoint = make_checkpoint(ones, t={"dtype": 1, "dims": [2, 3], "slices": {((0, 2), (0, 2)): part}})
    assert checkpoint.read("t", "2 3 -:1,1").tolist() == [[1], [1]]
    for spec in ("", "2 3 -:1,2"):
        with pytest.raises(InvalidArgument, match="sufficient slices for partitioned tensor t"):
            checkpoint.read("t", spec)


@pytest.mark.parametrize(("places", "match"), [
    ([((0, 2), (0, 3)), ((1, 1), (2, 1))], "overlap"),  # all of it, and one element again
    ([((0, 2), (0, 2)), ((0, 2), (1, 1))], r"overlap"),  # as many elements as the tensor, one column twice
    ([((0, 1), (0, 3)), ((0, 1), (0, 3))[::-1]], r"beyond float32\[2,3\]"),
    ([((0, 2), (1, 3))], r"beyond"), ([((-1, 2), (0, 3))], r"beyond"), ([((1, -1), (0, 3))], r"beyond"),
    ([((0, 2),)], r"has 1 dimensions, the tensor has 2"),
])
def test_slices_that_overlap_or_reach_outside_are_data_loss(places, match):
    sizes = {part_slice: 4 * abs(prod(length for _, length in part_slice)) for part_slice in places}
    parts = {part_slice: {"dtype": 1, "size": size, "crc32c": masked_crc32c(bytes(size))}
             for part_slice, size in sizes.items()}
    with pytest.raises(DataLoss, match=match):
        make_checkpoint(bytes(400), t={"dtype": 1, "dims": [2, 3], "slices": parts}).read("t")


def test_a_slice_named_twice_is_data_loss():
    part_slice = (0, 1), (0, 3)
    part = {"dtype": 1, "size": 12, "crc32c": masked_crc32c(bytes(12))}
    fields = {"dtype": 1, "dims": [2, 3], "slices": {part_slice: part}}
    assert make_checkpoint(bytes(12), t=fields).read("t", "2 3 0,1:-").tolist() == [[0, 0, 0]]
    with pytest.raises(DataLoss, match="overlap"):
        make_checkpoint(bytes(12), t=fields | {"places": [part_slice, part_slice]}).read("t")


@pytest.mark.parametrize(("match", "fields"), [
    ("cannot be", {"dims": [10**18]}), ("cannot be", {"dims": [2**62] * 40_000}), ("cannot be", {"dims": [-1, -2]}),
    ("cannot be", {"dims": [2], "offset": -8}), ("cannot be", {"dims": [1] * 65}),
    ("8 bytes are not", {"dims": [10**17]}), ("8 bytes are not", {"dims": [2] * 20}),
    ("ends at byte 18 ", {"dims": [2], "offset": 10}), ("ends at byte", {"dims": [2], "offset": 2**62}),
    ("ends at byte", {"dims": [2**40], "size": 2**42}), ("ends at byte", {"dims": [2], "size": 2**62}),
    ("in shard 1 of 1", {"dims": [2], "shard_id": 1}), ("in shard -1 of 1", {"dims": [2], "shard_id": -1}),
], ids=lambda value: str(value)[:40])
def test_entries_that_cannot_be_or_are_beyond_their_shard_ask_for_no_memory(match, fields):
    with pytest.raises(DataLoss, match=f"'t'.*{match}|{match}.*'t'"):
        make_checkpoint(bytes(16), t={"dtype": 1, "size": 8, **fields}).read("t")


def test_entries_that_share_their_bytes_are_refused_before_they_stand_for_more_than_the_shard():
    data = SLICED.tobytes()
    entry = {"dtype": 1, "dims": [2, 3], "size": len(data), "crc32c": masked_crc32c(data)}
    checkpoint = make_checkpoint(data, first=entry, second=entry | {"dims": [6]})
    checkpoint.read("first")
    assert checkpoint.read("first") is checkpoint.read("first")
    with pytest.raises(DataLoss, match="'second' shares its bytes"):
        checkpoint.read("second")


@pytest.mark.parametrize("compress", [False, True])
def test_a_table_gives_back_its_pairs(compress):
    pairs = {b"": b"\x08\x01", b"a": bytes(300), b"b\0": b"value"}
    assert dict(entries(table(pairs, compress))) == pairs


def test_malformed_tables_are_typed_errors():
    sound = table({b"a": b"1"})
    for bad in (b"", bytes(100), sound[:-1], sound[:-9] + b"\xff" * 9, table({b"b": b"", b"a": b""})):
        with pytest.raises(DataLoss):
            dict(entries(bad))
    data = bytearray(block({b"a": b"1"})[:-4])
    data[-1] = 4  # zstd
    data += masked_crc32c(bytes(data)).to_bytes(4, "little")
    with pytest.raises(Unimplemented, match="not snappy"):
        dict(entries(bytes(data) + sound[len(data) :]))


def test_blocks_that_are_named_again_are_refused():
    data = block({b"a": b"1"})
    handle = wire.put_varint(0) + wire.put_varint(len(data) - 5)
    index = block({b"x": handle, b"y": handle})
    footer = wire.put_varint(0) * 2 + wire.put_varint(len(data)) + wire.put_varint(len(index) - 5)
    with pytest.raises(DataLoss, match="within the one before"):
        dict(entries(data + index + footer.ljust(40, b"\0") + MAGIC))


def test_a_table_of_few_bytes_cannot_stand_for_ever_more_entries():
    """51,200 entries in 12 KB: snappy copies the last 255 of each 256 from the 256 before them."""
    heads = [bytes((0, 3, 0, *number.to_bytes(2, "big"), 0)) for number in range(200)]
    others = b"".join(bytes((2, 1, 0, last)) for last in range(1, 256))
    copies = b"".join(bytes((size - 1 << 2 | 2, *(1026).to_bytes(2, "little"))) for size in [64] * 15 + [60])
    end = bytes(4) + b"\1\0\0\0"
    first = heads[0] + others
    packed = wire.put_varint(len(first) * len(heads) + len(end))
    packed += bytes((61 << 2, *(len(first) - 1).to_bytes(2, "little"))) + first
    packed += b"".join(bytes((5 << 2,)) + head + copies for head in heads[1:]) + bytes((7 << 2,)) + end
    assert len(decompress(packed)) == 200 * 1026 + 8
    data = packed + b"\1"
    data += masked_crc32c(data).to_bytes(4, "little")
    index = block({b"\xff": wire.put_varint(0) + wire.put_varint(len(packed))})
    footer = wire.put_varint(0) * 2 + wire.put_varint(len(data)) + wire.put_varint(len(index) - 5)
    with pytest.raises(DataLoss, match="entries take more than 128 times its 1"):
        dict(entries(data + index + footer.ljust(40, b"\0") + MAGIC))


SNAPPY = [  # literals, copies with offsets of one, two and four bytes, overlapping copies
    (b"\x00", b""), (b"\x03\x08abc", b"abc"), (b"\x08\x00a\x0d\x01", b"aaaaaaaa"),
    (b"\x06\x04ab\x0e\x02\x00", b"ababab"), (b"\x06\x04ab\x0f\x02\x00\x00\x00", b"ababab"),
    (b"\x46\xf0\x45" + bytes(range(70)), bytes(range(70))),
]


@pytest.mark.parametrize(("packed", "plain"), SNAPPY)
def test_snappy_blocks_are_decompressed(packed, plain):
    assert decompress(packed) == plain


@pytest.mark.parametrize("size", [320, 2**32 - 1, 2**63])
def test_a_snappy_block_that_claims_more_than_it_can_hold_asks_for_no_memory(size):
    with pytest.raises(DataLoss, match=f"cannot stand for {size}$"):
        decompress(wire.put_varint(size) + b"\0a\x0d\1")


@given(st.binary(max_size=60))
def test_arbitrary_snappy_bytes_decompress_or_are_data_loss(data):
    with suppress(DataLoss):
        assert len(decompress(data)) <= 32 * len(data)


@pytest.mark.parametrize(("data", "crc"), [
    (b"123456789", 0xE3069283), (bytes(32), 0x8A9136AA), (b"\xff" * 32, 0x62A8AB43),  # RFC 3720, B.4
])
@pytest.mark.parametrize("form", [bytes, bytearray, memoryview, lambda data: np.frombuffer(data, np.uint8)])
def test_the_checksum_is_castagnolis_masked_as_leveldb_masks_it(data, crc, form):
    assert masked_crc32c(form(data)) == ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
