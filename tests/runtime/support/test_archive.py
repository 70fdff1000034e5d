"""Archives of strangers: what is unpacked, and what is refused."""

from __future__ import annotations

import gc
import io
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from heald.errors import DataLoss, HealdError, InvalidArgument, ResourceExhausted
from heald.runtime.support import archive
from heald.runtime.support.archive import Unpacked, is_archive, unpack

Writer = Callable[[Path, dict[str, bytes]], Path]


def write_zip(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path.with_suffix(".zip"), "w", zipfile.ZIP_DEFLATED) as opened:
        for name, data in files.items():
            opened.writestr(name, data)
    return path.with_suffix(".zip")


def tar_writer(mode: str, form: int) -> Writer:
    def write_tar(path: Path, files: dict[str, bytes]) -> Path:
        with tarfile.open(path, f"w:{mode}", format=form) as opened:
            for name, data in files.items():
                info = tarfile.TarInfo(name)
                info.size = len(data)
                opened.addfile(info, io.BytesIO(data))
        return path

    return write_tar


WRITERS: dict[str, Writer] = {"zip": write_zip, "tar": tar_writer("", tarfile.USTAR_FORMAT),
           "tar.gz": tar_writer("gz", tarfile.PAX_FORMAT), "tar.bz2": tar_writer("bz2", tarfile.GNU_FORMAT)}


@pytest.fixture(params=WRITERS)
def write(request: pytest.FixtureRequest) -> Writer:
    return WRITERS[request.param]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_files_come_out_as_they_went_in(tmp_path: Path, write: Writer) -> None:
    files = {"m/a.pb": b"a" * 700, "m/b/empty": b"", "m/b/c": bytes(range(256)) * 5000, "./d": b"d"}
    packed = write(tmp_path / "a", files)
    assert is_archive(packed, packed.read_bytes()[:4096])
    unpacked = Unpacked(packed)
    assert contents(unpacked.folder) == {name.removeprefix("./"): data for name, data in files.items()}
    folder = unpacked.folder
    del unpacked
    gc.collect()
    assert not folder.exists()


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_long_and_foreign_names_are_kept(tmp_path: Path, form: int) -> None:
    files = {f"{'long' * 20}/{'name' * 30}/höhe": b"1", "b": b"2"}
    packed = tar_writer("gz", form)(tmp_path / "a", files)
    (tmp_path / "out").mkdir()
    unpack(packed, tmp_path / "out")
    assert contents(tmp_path / "out") == files


@pytest.mark.parametrize("name", ["/etc/x", "../x", "a/../../x", "a/.."])
def test_a_name_that_leads_out_is_refused(tmp_path: Path, write: Writer, name: str) -> None:
    packed = write(tmp_path / "a", {name: b"x"})
    (tmp_path / "out").mkdir()
    with pytest.raises(InvalidArgument, match="leads out of the archive"):
        unpack(packed, tmp_path / "out")
    assert not contents(tmp_path / "out")


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE,
                                  tarfile.GNUTYPE_SPARSE])
def test_a_member_of_a_tar_archive_that_is_no_file_is_refused(tmp_path: Path, kind: bytes) -> None:
    info = tarfile.TarInfo("variables")
    info.type, info.linkname = kind, "/etc"
    (tmp_path / "a.tar").write_bytes(info.tobuf(tarfile.GNU_FORMAT) + bytes(1024))
    with pytest.raises(InvalidArgument, match="'variables' is a link or a device"):
        Unpacked(tmp_path / "a.tar")


def test_a_link_in_a_zip_archive_is_refused(tmp_path: Path) -> None:
    info = zipfile.ZipInfo("variables")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as opened:
        opened.writestr(info, "/etc")
    with pytest.raises(InvalidArgument, match="'variables' is a link or a device"):
        Unpacked(tmp_path / "a.zip")


def test_size_and_ratio_are_bounded(tmp_path: Path, write: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = write(tmp_path / "a", {f"zeros{i}": bytes(1 << 20) for i in range(4)})
    monkeypatch.setattr(archive, "ALWAYS_PERMITTED_BYTES", 3 << 20)
    monkeypatch.setattr(archive, "LARGEST_RATIO", 0)
    with pytest.raises(ResourceExhausted, match="times its size"):
        Unpacked(packed)
    monkeypatch.setattr(archive, "ALWAYS_PERMITTED_BYTES", 4 << 20)
    assert Unpacked(packed).folder.exists()
    monkeypatch.setattr(archive, "LARGEST_UNPACKED_BYTES", 1 << 20)
    with pytest.raises(ResourceExhausted, match="GiB"):
        Unpacked(packed)


def test_members_and_headers_are_bounded(tmp_path: Path, write: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = write(tmp_path / "a", {str(i): b"" for i in range(5)})
    monkeypatch.setattr(archive, "MOST_MEMBERS", 4)
    with pytest.raises(ResourceExhausted, match="more than 4 members"):
        Unpacked(packed)


def test_a_header_that_states_a_large_size_is_not_read(tmp_path: Path) -> None:
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.XHDTYPE, 8 << 30
    (tmp_path / "a.tar").write_bytes(info.tobuf(tarfile.GNU_FORMAT) + bytes(1024))
    with pytest.raises(ResourceExhausted, match="a header of the archive has 8589934592 bytes"):
        Unpacked(tmp_path / "a.tar")


def test_a_damaged_archive_is_a_typed_error(tmp_path: Path, write: Writer) -> None:
    data = write(tmp_path / "whole", {"a": bytes(range(256)) * 400, "b/c": b"c" * 3000}).read_bytes()
    damaged = tmp_path / "damaged"
    for at in range(0, len(data), max(1, len(data) // 60)):
        for mutant in (data[:at], data[:at] + b"\xff\x00\xfe" + data[at + 3 :]):
            damaged.write_bytes(mutant)
            try:
                Unpacked(damaged)
            except HealdError as error:
                assert not isinstance(error, AssertionError)  # noqa: PT017 - any type of error.errors is right


def test_an_archive_that_ends_early_is_damaged(tmp_path: Path, write: Writer) -> None:
    packed = write(tmp_path / "a", {"a": bytes(range(256)) * 40})
    data = packed.read_bytes()
    packed.write_bytes(data[: len(data) // 2])
    with pytest.raises(DataLoss):
        Unpacked(packed)
