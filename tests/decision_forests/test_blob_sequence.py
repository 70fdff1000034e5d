"""Blob sequences are read as they are written, and damaged ones are typed errors."""

from __future__ import annotations

import gzip
import struct

import pytest
from harness.recorded_forests import forest_graph, open_session, recorded
from heald.errors import DataLoss, HealdError, ResourceExhausted, Unimplemented
from heald_decision_forests.blob_sequence import read_records, write_records
from hypothesis import given
from hypothesis import strategies as st

RECORDS = [b"one", b"", b"three" * 100]


def read(data):
    return list(read_records(data, lambda nbytes, what: None))


def packed(data):
    """The sequence with its records in gzip's form."""
    return b"BS\1\0\1\0\0\0" + gzip.compress(data[8:])


@given(st.lists(st.binary(max_size=50)))
def test_records_are_read_as_they_were_written(records):
    assert read(write_records(records)) == read(packed(write_records(records))) == records


def test_version_0_has_no_compression():
    assert read(b"BS\0\0\7\7\7\7" + write_records(RECORDS)[8:]) == RECORDS


@given(st.integers(0, len(write_records(RECORDS)) - 1), st.booleans())
def test_a_file_that_ends_early_is_damaged_or_has_fewer_records(length, is_packed):
    whole = packed(write_records(RECORDS)) if is_packed else write_records(RECORDS)
    records, fault = read_or_fail(whole[:length])
    assert "ends in" in fault or records == RECORDS[:len(records)]


def read_or_fail(data):
    """The records and no fault, or no records and the text of the fault."""
    try:
        return read(data), ""
    except DataLoss as error:
        return [], str(error)


@pytest.mark.parametrize(("data", "error", "message"), [
    (b"SB\1\0\0\0\0\0", DataLoss, "begins with b'SB'"), (b"BS\2\0\0\0\0\0", Unimplemented, "of version 2"),
    (b"BS\1\0\2\0\0\0", Unimplemented, "compression 2"), (b"BS\1\0\1\0\0\0rubbish", DataLoss, "cannot be unpacked"),
    (b"BS\1\0\0\0\0\0" + struct.pack("<I", 2**32 - 1), DataLoss, "ends in a record of 4294967295 bytes")])
def test_a_file_of_another_form_is_told(data, error, message):
    with pytest.raises(error, match=message):
        read(data)


def test_memory_is_asked_for_before_records_are_unpacked():
    def grant(nbytes, what):
        if nbytes > 4 << 20:
            raise ResourceExhausted(what)

    bomb = packed(write_records([bytes(64 << 20)]))
    assert len(bomb) < 1 << 17
    with pytest.raises(ResourceExhausted, match="the trees of a decision forest"):
        list(read_records(bomb, grant))


def test_trees_may_be_packed_and_in_several_files(tmp_path):
    forest = recorded("rf_regression")
    name = f"{forest.prefix}nodes-00000-of-00001"
    records, header = read(forest.files[name]), forest.files[f"{forest.prefix}random_forest_header.pb"]
    parts = [write_records(records[:7]), packed(write_records(records[7:])), write_records([])]
    files = {key: content for key, content in forest.files.items() if key != name}
    files |= {f"{forest.prefix}nodes-{number:05d}-of-00003": part for number, part in enumerate(parts)}
    files[f"{forest.prefix}random_forest_header.pb"] = header + b"\x08\x03"  # num_node_shards, the last one counts
    changed = forest._replace(files=files)
    with open_session(forest_graph(changed), changed.write(tmp_path)) as session:
        session.run([], {"path": str(tmp_path)}, targets=["load"])
        assert (session.run("dense:0", forest.feeds) == forest.dense).all()


@pytest.mark.parametrize(("field", "value", "message"), [
    (b"\x08", b"\x00", "states 0 files"), (b"\x08", b"\xff\xff\xff\xff\x07", "states 2147483647 files"),
    (b"\x3a", b"\x0cTFE_RECORDIO", "format 'TFE_RECORDIO'")])
def test_trees_in_an_unknown_form_are_told(tmp_path, field, value, message):
    forest = recorded("rf_regression")
    name = f"{forest.prefix}random_forest_header.pb"
    changed = forest._replace(files={**forest.files, name: forest.files[name] + field + value})
    session = open_session(forest_graph(changed), changed.write(tmp_path))
    with session, pytest.raises((DataLoss, Unimplemented), match=message):
        session.run([], {"path": str(tmp_path)}, targets=["load"])


@pytest.mark.parametrize("name", sorted(recorded("gbt_regression").files))
def test_each_file_that_is_missing_empty_or_cut_off_is_a_typed_error(tmp_path, name):
    forest = recorded("gbt_regression")
    content = forest.files[name]
    for changed in (None, b"", content[:len(content) // 2], b"\xff" * 30):
        forest.write(tmp_path)
        if changed is None:
            (tmp_path / name).unlink()
        else:
            (tmp_path / name).write_bytes(changed)
        with open_session(forest_graph(forest), tmp_path) as session:
            if name == "done":
                session.run([], {"path": str(tmp_path)}, targets=["load"])
            else:
                with pytest.raises(HealdError):
                    session.run([], {"path": str(tmp_path)}, targets=["load"])
