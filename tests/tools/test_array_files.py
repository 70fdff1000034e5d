"""NumPy's files: read back what NumPy wrote, and a typed error for everything else."""

from __future__ import annotations

import io
import os
import zipfile

import numpy as np
import pytest
from heald.errors import DataLoss, HealdError, Internal, InvalidArgument, NotFound, ResourceExhausted, Unimplemented
from heald.runtime.service import runtime
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import TensorMetadata
from heald_tools import inputs
from heald_tools.array_files import ArrayArchive, read_npy
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

TYPES = st.one_of(
    arrays.boolean_dtypes(), arrays.integer_dtypes(endianness="?"), arrays.floating_dtypes(endianness="?"),
    arrays.byte_string_dtypes(max_len=5), arrays.unicode_string_dtypes(max_len=5))
ANY = TYPES.flatmap(lambda dtype: arrays.arrays(dtype, arrays.array_shapes(min_dims=0, min_side=0)))


def read_npz(source):
    with ArrayArchive(source) as archive:
        return {name: archive[name] for name in archive.names}


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def npz(*, save=np.savez, **named):
    file = io.BytesIO()
    save(file, **named)
    return file.getvalue()


def zip_archive(*members, method=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return file.getvalue()


def npy_with_header(header, data=b"", version=b"\1\0"):
    return b"\x93NUMPY" + version + len(header).to_bytes(2 if version[0] == 1 else 4, "little") + header + data


SAMPLE = np.arange(6, dtype=np.float32).reshape(2, 3)
SAMPLES = [npy(SAMPLE), npy(np.array(["é"])), npz(x=SAMPLE, y=3), npz(save=np.savez_compressed, x=SAMPLE, y=[True])]


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@given(ANY, st.booleans())
def test_arrays_come_back_as_numpy_wrote_them(array, is_fortran):
    array = np.asfortranarray(array) if is_fortran and array.ndim else array
    assert same(read_npy(npy(array)), array)
    archive = read_npz(npz(save=np.savez_compressed, one=array, two=array))
    assert list(archive) == ["one", "two"]
    assert all(same(one, array) for one in archive.values())


@given(st.sampled_from(SAMPLES), st.data())
def test_a_damaged_file_is_an_array_or_a_typed_error(file_bytes, data):
    damaged = bytearray(file_bytes)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, max(len(damaged) - 1, 0)))
        count = data.draw(st.sampled_from([0, 1, 1, 4, len(damaged)]))
        damaged[at : at + count] = data.draw(st.binary(max_size=4))
    for read in (read_npy, read_npz):
        try:
            read(bytes(damaged))
        except HealdError as error:
            if isinstance(error, Internal):
                raise


@pytest.mark.parametrize(("header", "kind", "message"), [
    (b"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,), }", DataLoss, "takes 4000000000000 bytes"),
    (b"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 9), }", DataLoss, "cannot be"),
    (b"{'descr': '<f4', 'fortran_order': False, 'shape': (" + b"1," * 99 + b"), }", DataLoss, "cannot be"),
    (b"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", DataLoss, "not as NumPy writes it"),
    (b"{'descr': '<f4', 'fortran_order': False, 'shape': 3, }", DataLoss, "not as NumPy writes it"),
    (b"{'descr': '<f4', 'fortran_order': False, 'shape': (" + b"9" * 5000 + b",), }", DataLoss, "not as NumPy"),
    (b"{'descr': '<f4', 'fortran_order': 0, 'shape': (), }", DataLoss, "not as NumPy writes it"),
    (b"{'descr': '<f4', 'descr': '<f4', 'shape': (), }", DataLoss, "not as NumPy writes it"),
    (b"(" * 9000, DataLoss, "not as NumPy writes it"), (b"-" * 9000 + b"1", DataLoss, "not as NumPy writes it"),
    (b"'\\d' is 1", DataLoss, "not as NumPy writes it"), (b"{" + b" " * 60_000, DataLoss, "10000 are the most"),
    (b"{'shape': ()" + b" " * 9900 + b"x}", DataLoss, "not as NumPy writes it"),
    (b"{'descr': '|O', 'fortran_order': False, 'shape': (), }", InvalidArgument, "Python objects"),
    (b"{'descr': '<M8[ns]', 'fortran_order': False, 'shape': (), }", InvalidArgument, r"type '<M8\[ns\]'"),
    (b"{'descr': '|S0', 'fortran_order': False, 'shape': (99999999999,), }", InvalidArgument, "type '|S0'"),
    (b"{'descr': '|U9999999999', 'fortran_order': False, 'shape': (), }", InvalidArgument, "type '|U9999999999'"),
    (b"{'descr': '(9,)f4', 'fortran_order': False, 'shape': (), }", InvalidArgument, r"type '\(9,\)f4'"),
    (b"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (), }", InvalidArgument, "records"),
])
def test_a_header_is_read_as_data_and_compared_with_the_file(header, kind, message):
    with pytest.raises(kind, match=message):
        read_npy(npy_with_header(header, b"\0" * 4))


@pytest.mark.parametrize(("header", "data", "expected"), [
    (b'{"shape":(1L,),"descr":"|b1","fortran_order":False}', b"\1", [True]),
    (b"{'descr': '>i2', 'fortran_order': True, 'shape': (2, 1)}   \n", b"\0\1\0\2", [[1], [2]]),
])
def test_headers_that_others_write_are_read(header, data, expected):
    assert read_npy(npy_with_header(header, data)).tolist() == expected
    assert read_npy(npy_with_header(header, data, b"\3\0")).tolist() == expected


@pytest.mark.parametrize(("damaged", "message"), [
    (npy(SAMPLE) + b"more", "takes 24 bytes, and 28 are there"), (npy(SAMPLE)[:-1], "takes 24 bytes, and 23 are there"),
    (npy(SAMPLE)[:9], "header is not all there"), (b"\x93NUMPY\4\0", "version 4.0 of .npy does not exist"),
    (b"", "this is no .npy file"), (SAMPLES[2], "several arrays"),
    (npy_with_header(b"{'descr': '|b1', 'fortran_order': False, 'shape': (1,)}", b"\2"), "neither true nor false"),
    (npy_with_header(b"{'descr': '>U1', 'fortran_order': False, 'shape': (1,)}", b"\0\x11\0\0"), "no character"),
])
def test_bytes_that_are_no_array_are_data_loss(damaged, message):
    with pytest.raises(DataLoss, match=message):
        read_npy(damaged)


def test_a_member_that_is_not_what_its_checksum_says_is_data_loss():
    damaged = SAMPLES[2].replace(SAMPLE.tobytes(), (SAMPLE + 1).tobytes())
    with pytest.raises(DataLoss, match=r"bytes:x cannot be read: BadZipFile: Bad CRC-32"):
        read_npz(damaged)


def test_two_arrays_of_one_name_are_data_loss():
    with pytest.warns(UserWarning, match="Duplicate"):
        twice = zip_archive(("x.npy", npy(SAMPLE)), ("x.npy", npy(SAMPLE)))
    with pytest.raises(DataLoss, match="several arrays have one name"):
        read_npz(twice)


def test_members_over_the_same_bytes_are_data_loss():
    """As in archives of a few bytes that would become any number of arrays."""
    archive_bytes = zip_archive(*[(f"{name}.npy", npy(np.zeros(500))) for name in "abcd"])
    start = archive_bytes.index(b"PK\1\2")
    at_first = bytearray(archive_bytes)
    del at_first[len(archive_bytes[:start]) // 4 : start]
    end = len(at_first) - 22
    at_first[end + 16 : end + 20] = (start // 4).to_bytes(4, "little")
    with pytest.raises(DataLoss, match="they overlap"):
        read_npz(bytes(at_first))


def test_a_member_larger_than_its_bytes_can_become_takes_no_memory():
    header = b"{'descr': '|u1', 'fortran_order': False, 'shape': (1099511627776,)}"
    archive_bytes = bytearray(zip_archive(("x.npy", npy_with_header(header))))
    at = archive_bytes.index(b"PK\1\2")
    archive_bytes[at + 24 : at + 28] = (0xFFFFFFF0).to_bytes(4, "little")  # the size in the archive's directory
    with pytest.raises(DataLoss, match="cannot become"):
        read_npz(bytes(archive_bytes))


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compression_is_unimplemented(method):
    with pytest.raises(Unimplemented, match="compressed by something else than deflate.*savez"):
        read_npz(zip_archive(("x.npy", npy(SAMPLE)), method=method))


def test_an_encrypted_array_is_unimplemented():
    archive_bytes = bytearray(SAMPLES[2])
    for at in (archive_bytes.index(b"PK\3\4") + 6, archive_bytes.index(b"PK\1\2") + 8):
        archive_bytes[at] |= 1
    with pytest.raises(Unimplemented, match="encrypted"):
        read_npz(bytes(archive_bytes))


def test_arrays_are_read_when_they_are_asked_for():
    damaged = SAMPLES[2].replace(SAMPLE.tobytes(), (SAMPLE + 1).tobytes())
    with ArrayArchive(damaged) as archive:
        assert archive.names == ["x", "y"]
        assert archive["y"] == 3


@pytest.mark.parametrize(("name", "kind"), [
    ("nothing.npy", NotFound), (".", InvalidArgument), ("pipe", InvalidArgument), ("a" * 300, InvalidArgument),
    ("file/x.npy", NotFound),
])
def test_a_path_that_cannot_be_read_is_a_typed_error_that_names_it(tmp_path, name, kind):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").touch()
    for read in (read_npy, read_npz):
        with pytest.raises(kind, match=str(tmp_path)):
            read(tmp_path / name)


def test_an_array_that_expands_asks_before_memory_is_taken():
    packed, reserved = npz(save=np.savez_compressed, zeros=np.zeros(1 << 20, np.float32), few=np.ones(3)), []

    def refuse(nbytes, what):
        reserved.append(nbytes)
        raise ResourceExhausted(f"{what} is too large")

    with ArrayArchive(packed, refuse) as archive:
        assert archive["few"].tolist() == [1, 1, 1]
        with pytest.raises(ResourceExhausted, match=r"zeros: an array of shape \(1048576,\) is too large"):
            archive["zeros"]
    assert reserved == [4 << 20]


def test_inputs_of_commands_ask_the_budget(tmp_path, monkeypatch):
    monkeypatch.setenv("HEALD_LIMITS__MEMORY", "1MiB")
    monkeypatch.setattr(runtime, "process_scope", runtime.ProcessScope())
    np.savez_compressed(tmp_path / "x.npz", x=np.zeros(1 << 20, np.float32))
    meta = TensorMetadata(dtypes.float32, None)
    with pytest.raises(ResourceExhausted, match="needs 4.2 MB"):
        inputs.read(f"{tmp_path}/x.npz:x", meta, "x")
