"""Samples: the files that one mutant consists of, and their form as a single file."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

Sample = Mapping[str, bytes]  # contents by path; a format of one file has the path ""
SINGLE = ""
MEMORY_FILES = next((folder for folder in ("/dev/shm",) if Path(folder).is_dir()), None)  # noqa: S108
_EPOCH = (1980, 1, 1, 0, 0, 0)


def pack_sample(sample: Sample) -> bytes:
    """A sample as one file: its bytes, or a zip archive of its folder."""
    if SINGLE in sample:
        return sample[SINGLE]
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in sample.items():
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), data)
    return out.getvalue()


def unpack_sample(data: bytes, *, is_folder: bool) -> Sample:
    """The sample in a file that `pack_sample` made."""
    if not is_folder:
        return {SINGLE: data}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def folder(path: Path) -> Sample:
    """All files below a folder."""
    return {file.relative_to(path).as_posix(): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}


def write_files(sample: Sample, path: Path) -> None:
    """Write a folder's files. Each is a new file: an older mutant may still be mapped into memory."""
    for name, data in sample.items():
        file = path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        file.write_bytes(data)
